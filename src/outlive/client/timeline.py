"""What happened in a tree of runs and when, folded from its journal into lines that can be drawn.

A journal has points in time; people want to see spans: a step with its attempts, a wait, a child run, and the gap
between the death of a worker and the claim of the next one. A step that runs has no event yet, so it has no line.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any

import msgspec

from outlive._journal import event as journal
from outlive._journal.event import AnyEvent, Ending
from outlive._journal.words import in_words
from outlive._model import Failure, RunStatus, WaitKind
from outlive._model.worker import name_in
from outlive.client.why import wait_shown


class LineKind(enum.Enum):
    """What a line stands for."""

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


class Attempt(msgspec.Struct, frozen=True):
    """One attempt of a step."""

    began_at: int
    ended_at: int
    failure: Failure | None = None


class Line(msgspec.Struct, kw_only=True):
    """One line of a timeline; times are microseconds since 1970 UTC."""

    kind: LineKind
    name: str
    """The call of the step, the workflow of the child, or what is waited for; of a mark what happened, in words."""
    run: int = 0
    """The number of the run in its tree."""
    depth: int = 0
    """0 for the root."""
    began_at: int
    ended_at: int | None = None
    """None while it goes on."""
    state: LineState = LineState.OPEN
    attempts: list[Attempt] = []
    note: str = ""
    """What else people should know."""
    failure: Failure | None = None


_ENDED = {
    RunStatus.SUCCEEDED: LineState.DONE,
    RunStatus.CONTINUED: LineState.DONE,
    RunStatus.FAILED: LineState.FAILED,
}
_OF_STEP = (
    journal.StepSucceeded,
    journal.StepFailed,
    journal.AttemptFailed,
    journal.StepDelayed,
    journal.StepProgressed,
    journal.StepIntended,
)


class Timeline:
    """Folds a journal, as `history(redacted=True)` gives it, into lines."""

    def __init__(self, events: Iterable[AnyEvent]) -> None:
        self.began_at = 0
        """When the root began its life."""
        self.last_at = 0
        """The last event."""
        self._lines: dict[int, list[Line]] = {}
        """By the number of the run."""
        self._steps: dict[tuple[int, str], Line] = {}
        self._children: dict[int, Line] = {}
        self._others: dict[str, Line] = {}
        self._approvals: dict[tuple[int, str], Line] = {}
        self._rest: Line | None = None
        """While no worker owns the tree."""
        self._timers: frozenset[str] = frozenset()
        """Those that the last wait was for: their line says what there is to say."""
        self._owner = ""
        for event in events:
            self._take(event)
            self.last_at = event.at

    def lines(self) -> list[Line]:
        """All lines: those of a run by their beginning, and those of a child below its own line."""
        ordered: list[Line] = []
        heads = {id(line): number for number, line in self._children.items()}
        stack = self._of_run(0)  # No recursion: a tree may be deep.
        while stack:
            line = stack.pop()
            ordered.append(line)
            if (number := heads.get(id(line))) is not None:
                stack += self._of_run(number)
        return ordered

    def _of_run(self, number: int) -> list[Line]:
        """The lines of one run, the last one first."""
        return sorted(self._lines.get(number, []), key=lambda line: line.began_at)[::-1]

    # -- Events ----------------------------------------------------------------------------------------------

    def _take(self, event: AnyEvent) -> None:
        if self._rest is not None:
            self._rest.ended_at, self._rest.state, self._rest = event.at, LineState.DONE, None
        if isinstance(event, _OF_STEP):
            self._take_step(event)
        elif isinstance(event, Ending):
            self._end(event)
        else:
            self._take_other(event)

    def _take_other(self, event: AnyEvent) -> None:
        match event:
            case journal.RunCreated() if event.run == 0:
                self.began_at, self._owner = event.at, event.worker
                self._mark(event, note=f"on worker {name_in(event.worker)}" if event.worker else "")
            case journal.RunCreated():
                self._begin_child(event)
            case journal.SnapshotTaken():
                self.began_at, self._owner = event.created.at, event.worker
                self._mark(event)
            case journal.RunClaimed():
                self._claim(event)
            case journal.RunSuspended() | journal.RunReleased() | journal.RunParked():
                self._begin_rest(event)
            case journal.TimerFired() if event.call in self._timers:
                """The line of the wait has ended here."""
            case journal.DetachedStarted():
                line = self._add(event, LineKind.OTHER, f"run {event.run_id}")
                self._others[event.run_id] = line
            case journal.DetachedEnded() if event.run_id in self._others:
                line = self._others.pop(event.run_id)
                line.note = event.status.value.replace("_", " ")
                self._close(line, event.at, _ENDED.get(event.status, LineState.STOPPED), event.failure)
            case journal.ApprovalRequested():
                line = self._add(event, LineKind.APPROVAL, f"approval {event.name!r}")
                self._approvals[event.run, event.call] = line
            case journal.ApprovalDecided() | journal.ApprovalClosed():
                self._end_approval(event)
            case _:
                self._mark(event)

    def _claim(self, event: journal.RunClaimed) -> None:
        if event.interrupted:
            lost = f"worker {name_in(self._owner)} was lost" if self._owner else "its worker was lost"
            line = self._add(event, LineKind.LOST, f"{lost}; worker {name_in(event.worker)} took over")
            line.began_at = self.last_at
            self._close(line, event.at, LineState.FAILED)
        elif event.worker != self._owner:
            self._mark(event)
        self._owner = event.worker

    def _begin_rest(self, event: journal.RunSuspended | journal.RunReleased | journal.RunParked) -> None:
        if isinstance(event, journal.RunSuspended):
            shown = list(dict.fromkeys(wait_shown(wait) for wait in event.waits))
            name = "waits for " + (" or ".join(shown) or "a message")
            self._timers = frozenset(wait.name for wait in event.waits if wait.kind is WaitKind.TIMER)
        elif isinstance(event, journal.RunReleased):
            name = "released by its worker" + (f": {event.reason}" if event.reason else "")
        else:
            name = f"parked: {event.reason}"
        self._rest = self._add(event, LineKind.WAIT, name)

    def _begin_child(self, event: journal.RunCreated) -> None:
        name = f"{event.workflow}, version {event.version}"
        self._children[event.run] = self._add(event, LineKind.CHILD, name, run=event.parent)

    def _end_approval(self, event: journal.ApprovalDecided | journal.ApprovalClosed) -> None:
        line = self._approvals.pop((event.run, event.approval), None)
        if line is None:
            self._mark(event)
        elif isinstance(event, journal.ApprovalClosed):
            line.note = "no longer waited for"
            self._close(line, event.at, LineState.STOPPED)
        else:
            decision = _plain(event.payload)
            if isinstance(decision, dict):
                line.note = f"{'approved' if decision.get('approved') else 'rejected'} by {decision.get('by', '?')}"
            self._close(line, event.at, LineState.DONE)

    def _end(self, event: Ending) -> None:
        status = _STATUS[type(event)]
        state = _ENDED.get(status, LineState.STOPPED)
        failure = event.failure if isinstance(event, journal.RunFailed) else None
        for line in [it for it in self._lines.get(event.run, ()) if it.ended_at is None]:
            self._close(line, event.at, LineState.STOPPED)
        if event.run in self._children:
            line = self._children[event.run]
            line.note = status.value.replace("_", " ")
            self._close(line, event.at, state, failure)
        else:
            line = self._mark(event)
            line.state, line.failure = state, failure

    # -- Steps -----------------------------------------------------------------------------------------------

    def _take_step(self, event: Any) -> None:
        key = event.run, event.call
        line = self._steps.get(key)
        if line is None or (line.ended_at is not None and not isinstance(event, journal.StepProgressed)):
            # After a retry of the run the same call comes again, on a line of its own.
            line = self._steps[key] = self._add(event, LineKind.STEP, event.call)
            took = getattr(event, "took", 0)
            line.began_at = event.at - took if took else event.at
        match event:
            case journal.StepSucceeded():
                self._attempt(line, event, None)
                line.note = "skipped by a person, who gave its result" if event.skipped else ""
                self._close(line, event.at, LineState.STOPPED if event.skipped else LineState.DONE)
            case journal.StepFailed():
                self._attempt(line, event, event.failure)
                self._close(line, event.at, LineState.FAILED, event.failure)
            case journal.AttemptFailed():
                self._attempt(line, event, event.failure)
                line.failure = event.failure
            case journal.StepDelayed():
                line.note = f"had to wait for {event.by}"
            case journal.StepIntended() if not event.attempt:
                self._close(line, event.at, LineState.STOPPED)
            case journal.StepProgressed():
                line.note = f"came to {_compact(_plain(event.progress))}"
            case _:
                """It begins."""

    def _attempt(
        self,
        line: Line,
        event: journal.StepSucceeded | journal.StepFailed | journal.AttemptFailed,
        failure: Failure | None,
    ) -> None:
        began_at = event.at - event.took if event.took else max(line.began_at, _last_end(line))
        line.attempts.append(Attempt(began_at, event.at, failure))
        # Earlier attempts may have been on a worker that was lost, which no event says.
        line.began_at = min(line.began_at, began_at)

    # -- Lines -----------------------------------------------------------------------------------------------

    def _add(self, event: AnyEvent, kind: LineKind, name: str, *, run: int | None = None) -> Line:
        number = event.run if run is None else run
        parent = self._children.get(number)
        depth = 0 if parent is None else parent.depth + 1
        line = Line(kind=kind, name=name, run=number, depth=depth, began_at=event.at, attempts=[])
        self._lines.setdefault(number, []).append(line)
        return line

    def _mark(self, event: AnyEvent, *, note: str = "") -> Line:
        line = self._add(event, LineKind.MARK, described(event))
        line.ended_at, line.state, line.note = event.at, LineState.DONE, note
        return line

    def _close(self, line: Line, at: int, state: LineState, failure: Failure | None = None) -> None:
        line.ended_at, line.state = at, state
        line.failure = failure


_STATUS: dict[type, RunStatus] = {
    journal.RunSucceeded: RunStatus.SUCCEEDED,
    journal.RunFailed: RunStatus.FAILED,
    journal.RunCancelled: RunStatus.CANCELLED,
    journal.RunTimedOut: RunStatus.TIMED_OUT,
    journal.RunContinued: RunStatus.CONTINUED,
}
SHOWN_CHARACTERS_MAX = 120
"""How much of a value is shown on a line."""


def described(event: AnyEvent) -> str:
    """What happened, in words; with the value, where people follow a run by it."""
    if isinstance(event, journal.RunClaimed):
        return in_words(msgspec.structs.replace(event, worker=name_in(event.worker)))
    if isinstance(event, journal.RunPublished):
        return f"published {_compact(_plain(event.payload))}"
    return in_words(event)


def _last_end(line: Line) -> int:
    return line.attempts[-1].ended_at if line.attempts else 0


def _plain(payload: Any) -> Any:
    """The JSON value of a payload of a redacted journal."""
    return None if payload.v is msgspec.UNSET else msgspec.json.decode(payload.v)


def _compact(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= SHOWN_CHARACTERS_MAX else f"{text[: SHOWN_CHARACTERS_MAX - 3]}..."
