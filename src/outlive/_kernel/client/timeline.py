"""The history of a tree of runs, folded from its journal into lines that can be drawn.

A journal has points in time; people want to see spans: a step with its attempts, a wait, a child run, and the gap
between the death of a worker and the claim of the next one. A step that runs has no event yet, so it has no line.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from datetime import timedelta

import msgspec

from outlive._kernel.model.instant import microseconds_of
from outlive._kernel.values.event import Event, compact
from outlive._kernel.values.failure import Failure
from outlive._kernel.values.run import Wait


class LineKind(enum.Enum):
    """The subject of a line."""

    STEP = "step"
    WAIT = "wait"
    """The run is suspended, released or parked: no worker owns it."""
    CHILD = "child"
    OTHER = "run"
    """A run that this one has started detached."""
    APPROVAL = "approval"
    LOST = "lost"
    """From the last sign of a worker to the claim of the next one."""
    MARK = "mark"
    """Something that took no time."""


class LineState(enum.Enum):
    """How it went."""

    OPEN = "open"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"
    """It was cancelled, timed out, skipped or was no longer waited for."""


class ShownAttempt(msgspec.Struct, frozen=True):
    """One attempt of a step."""

    began_at: int
    ended_at: int
    failure: Failure | None = None


class Line(msgspec.Struct, kw_only=True):
    """One line of a timeline; times are microseconds since 1970 UTC."""

    kind: LineKind
    name: str
    """The call of the step, the workflow of the child, or what is waited for; of a mark what happened, in words."""
    run_id: str
    """The run that it is of."""
    depth: int = 0
    """0 for the root."""
    began_at: int
    ended_at: int | None = None
    """None while it goes on."""
    state: LineState = LineState.OPEN
    attempts: list[ShownAttempt] = []
    note: str = ""
    """More for people to know."""
    failure: Failure | None = None


_ENDED = {"succeeded": LineState.DONE, "continued": LineState.DONE, "failed": LineState.FAILED}
_OF_STEP = frozenset({"StepSucceeded", "StepFailed", "AttemptFailed", "StepDelayed", "StepProgressed", "StepIntended"})
_TAKEN_BACK = frozenset({LineKind.STEP, LineKind.CHILD, LineKind.OTHER, LineKind.APPROVAL})
ENDS = {
    "RunSucceeded": "succeeded",
    "RunFailed": "failed",
    "RunCancelled": "cancelled",
    "RunTimedOut": "timed_out",
    "RunContinued": "continued",
}
"""The events with which a run ends, each with the status that it has then."""


class Timeline:
    """Folds a history into lines."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.began_at = 0
        """When the root began its life."""
        self.last_at = 0
        """The last event."""
        self.end = ""
        """The status of the root after its end; empty while it goes on."""
        self._root_id = ""
        self._lines: dict[str, list[Line]] = {}
        """By the id of the run."""
        self._steps: dict[tuple[str, str], Line] = {}
        self._not_before: dict[tuple[str, str], int] = {}
        """When the next attempt of a step could begin at the earliest, if an event said so."""
        self._by_seq: dict[int, Line] = {}
        """The lines of steps, children and requests by the numbers of their events, for a retry to take back."""
        self._children: dict[str, Line] = {}
        self._others: dict[str, Line] = {}
        self._approvals: dict[tuple[str, str], Line] = {}
        self._rest: Line | None = None
        """While no worker owns the tree."""
        self._timers: frozenset[str] = frozenset()
        """The timers in the last wait of the run: the line of that wait says everything about them."""
        self._owner = ""
        self._taken_over_at = 0
        """When the last worker took the tree over from one that was lost, if that was the last claim."""
        for event in events:
            self._root_id = self._root_id or event.run_id
            self._take(event)
            self.last_at = microseconds_of(event.at)

    def lines(self) -> list[Line]:
        """All lines: those of a run by their beginning, and those of a child below its own line."""
        ordered: list[Line] = []
        heads = {id(line): run_id for run_id, line in self._children.items()}
        stack = self._of_run(self._root_id)  # No recursion: a tree may be deep.
        while stack:
            line = stack.pop()
            ordered.append(line)
            if (run_id := heads.get(id(line))) is not None:
                stack += self._of_run(run_id)
        return ordered

    def _of_run(self, run_id: str) -> list[Line]:
        """The lines of one run, the last one first."""
        return sorted(self._lines.get(run_id, []), key=lambda line: line.began_at)[::-1]

    # -- Events ----------------------------------------------------------------------------------------------

    def _take(self, event: Event) -> None:
        if self._rest is not None:
            self._close(self._rest, event, LineState.DONE)
            self._rest = None
        if event.type in _OF_STEP:
            self._take_step(event)
        elif event.type in ENDS:
            self._end(event)
        else:
            self._take_other(event)

    def _take_other(self, event: Event) -> None:
        data = event.data
        match event.type:
            case "RunCreated" if event.run_id == self._root_id:
                self.began_at, self._owner = microseconds_of(event.at), data["worker"]
                self._mark(event, note=f"on worker {data['worker']}" if data["worker"] else "")
            case "RunCreated":
                self._begin_child(event)
            case "SnapshotTaken":
                self.began_at, self._owner = microseconds_of(data["created"]["at"]), data["worker"]
                self._mark(event)
            case "RunClaimed":
                self._claim(event)
            case "RunRetried":
                self._retry(event)
            case "RunSuspended" | "RunReleased" | "RunParked":
                self._begin_rest(event)
            case "TimerFired" if data["call"] in self._timers:
                """The line of the wait has ended here."""
            case "DetachedStarted":
                self._others[data["run_id"]] = self._add(event, LineKind.OTHER, f"run {data['run_id']}")
            case "DetachedEnded":
                # The run may be one that was only waited for.
                line = self._others.pop(data["run_id"], None) or self._add(
                    event, LineKind.OTHER, f"run {data['run_id']}"
                )
                line.note = data["status"].replace("_", " ")
                self._close(line, event, _ENDED.get(data["status"], LineState.STOPPED), event.failure)
            case "ApprovalRequested":
                line = self._add(event, LineKind.APPROVAL, f"approval {data['name']!r}")
                self._approvals[event.run_id, data["call"]] = line
            case "ApprovalDecided" | "ApprovalClosed":
                self._end_approval(event)
            case "TimerFired" | "RunResumed" | "RunForked" | "CancelRequested" | "StepEndedLate":
                self._mark(event)
            case "SignalReceived" | "AskReceived" | "AskAnswered" | "MessageSetAside" | "PromiseMade":
                self._mark(event)
            case (
                "DetachedCancelled"
                | "ApprovalEscalated"
                | "RunChanged"
                | "RunPublished"
                | "RunTagged"
                | "PatchTaken"
                | "StateLeft"
            ):
                self._mark(event)
            case _:  # A later release has written it.
                self._mark(event)

    def _claim(self, event: Event) -> None:
        worker = event.data["worker"]
        self._taken_over_at = microseconds_of(event.at) if event.data["interrupted"] else 0
        if event.data["interrupted"]:
            lost = f"worker {self._owner} was lost" if self._owner else "its worker was lost"
            line = self._add(event, LineKind.LOST, f"{lost}; worker {worker} took over")
            line.began_at = self.last_at
            self._close(line, event, LineState.FAILED)
        elif worker != self._owner:
            self._mark(event)
        self._owner = worker

    def _retry(self, event: Event) -> None:
        self._mark(event)
        if event.run_id == self._root_id:
            self.end = ""
        for seq in event.data["undone"]:
            if (line := self._by_seq.get(seq)) is not None:
                line.state, line.note = LineState.STOPPED, "taken back by a retry"
        for request in event.data["approvals"] or ():
            # The end of the run had closed it. Now it is open again, on a line of its own.
            if (line := self._approvals.get((event.run_id, request["call"]))) is not None:
                self._approvals[event.run_id, request["call"]] = self._add(event, LineKind.APPROVAL, line.name)

    def _begin_rest(self, event: Event) -> None:
        data = event.data
        if event.type == "RunSuspended":
            waits: list[Wait] = data["waits"]
            shown = list(dict.fromkeys(wait.describe() for wait in waits))
            name = "waits for " + (" or ".join(shown) or "a message")
            self._timers = frozenset(wait.name for wait in waits if wait.kind == "timer")
        elif event.type == "RunReleased":
            name = "released by its worker" + (f": {data['reason']}" if data["reason"] else "")
        else:
            name = f"parked: {data['reason']}"
        self._rest = self._add(event, LineKind.WAIT, name)

    def _begin_child(self, event: Event) -> None:
        name = f"{event.data['workflow']}, version {event.data['version']}"
        self._children[event.run_id] = self._add(event, LineKind.CHILD, name, run_id=event.data["parent_id"])

    def _end_approval(self, event: Event) -> None:
        line = self._approvals.get((event.run_id, event.data["approval"]))
        if line is None or line.ended_at is not None:
            self._mark(event)
        elif event.type == "ApprovalClosed":
            line.note = "no longer waited for"
            self._close(line, event, LineState.STOPPED)
        else:
            decision = event.data.get("payload")
            if isinstance(decision, dict):
                line.note = f"{'approved' if decision.get('approved') else 'rejected'} by {decision.get('by', '?')}"
            self._close(line, event, LineState.DONE)

    def _end(self, event: Event) -> None:
        status = ENDS[event.type]
        state = _ENDED.get(status, LineState.STOPPED)
        for line in [it for it in self._lines.get(event.run_id, ()) if it.ended_at is None]:
            self._close(line, event, LineState.STOPPED)
        if event.run_id in self._children:
            line = self._children[event.run_id]
            line.note = status.replace("_", " ")
            self._close(line, event, state, event.failure)
        else:
            line = self._mark(event)
            line.state, line.failure = state, event.failure
            self.end = status

    # -- Steps -----------------------------------------------------------------------------------------------

    def _take_step(self, event: Event) -> None:
        data = event.data
        key = event.run_id, data["call"]
        line = self._steps.get(key)
        if line is None or (line.ended_at is not None and event.type != "StepProgressed"):
            # After a retry of the run the same call comes again, on a line of its own.
            line = self._steps[key] = self._add(event, LineKind.STEP, data["call"])
        match event.type:
            case "StepSucceeded":
                self._attempt(line, event)
                line.note = "skipped by a person, who gave its result" if data["skipped"] else ""
                self._close(line, event, LineState.STOPPED if data["skipped"] else LineState.DONE)
            case "StepFailed":
                self._attempt(line, event)
                self._close(line, event, LineState.FAILED, event.failure)
            case "AttemptFailed":
                self._attempt(line, event)
                line.failure = event.failure
            case "StepDelayed":
                line.note = f"had to wait for {data['by']}"
                self._not_before[key] = microseconds_of(data["until_at"])
            case "StepIntended" if not data["attempt"]:
                self._close(line, event, LineState.STOPPED)
            case "StepIntended":
                self._not_before[key] = microseconds_of(event.at)
            case "StepProgressed":
                line.note = f"came to {compact(data.get('progress'))}"
            case _:
                """It begins."""

    def _attempt(self, line: Line, event: Event) -> None:
        at, took = microseconds_of(event.at), _took(event)
        earliest = max(line.began_at, _last_end(line), self._not_before.pop((event.run_id, event.data["call"]), 0))
        began_at = at - took if took else min(max(earliest, self._taken_over_at), at)
        line.attempts.append(ShownAttempt(began_at, at, event.failure))
        self._by_seq[event.seq] = line
        # Earlier attempts may have been on a worker that was lost, which no event says.
        line.began_at = min(line.began_at, began_at)

    # -- Lines -----------------------------------------------------------------------------------------------

    def _add(self, event: Event, kind: LineKind, name: str, *, run_id: str = "") -> Line:
        run_id = run_id or event.run_id
        parent = self._children.get(run_id)
        depth = 0 if parent is None else parent.depth + 1
        began_at = microseconds_of(event.at)
        line = Line(kind=kind, name=name, run_id=run_id, depth=depth, began_at=began_at, attempts=[])
        self._lines.setdefault(run_id, []).append(line)
        if kind in _TAKEN_BACK:
            self._by_seq[event.seq] = line
        return line

    def _mark(self, event: Event, *, note: str = "") -> Line:
        line = self._add(event, LineKind.MARK, event.words)
        line.ended_at, line.state, line.note = line.began_at, LineState.DONE, note
        return line

    def _close(self, line: Line, event: Event, state: LineState, failure: Failure | None = None) -> None:
        line.ended_at, line.state = microseconds_of(event.at), state
        line.failure = failure


def _last_end(line: Line) -> int:
    return line.attempts[-1].ended_at if line.attempts else 0


def _took(event: Event) -> int:
    """How many microseconds the attempt took that an event is the end of; 0 if it is not known."""
    took = event.data.get("took")
    return 0 if took is None else took // timedelta(microseconds=1)
