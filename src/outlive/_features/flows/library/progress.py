"""Where the steps of a flow are in one run, as its journal says it.

The journal knows what has ended and what waits. That a step runs, no event says: it runs if all that come before it are
over, it is not, and its run goes on. A step that is not a call of anything (`switch`, a timer) has no event of its end:
it is over when something that waits for it has begun, or when its run has ended. A step that only one branch of a
condition needs is taken for one that did not run, as long as the journal has nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from outlive._features.flows.graph import Node, StepState, StepView
from outlive._kernel.values.event import Event
from outlive._kernel.values.run import Run, Status, Wait

_OVER = frozenset((StepState.SUCCEEDED, StepState.FAILED, StepState.UNDONE, StepState.SKIPPED))
UNDO = ".undo"
_CALLS = frozenset(
    {
        "AttemptFailed",
        "ApprovalRequested",
        "DetachedStarted",
        "PromiseMade",
        "StepDelayed",
        "StepFailed",
        "StepIntended",
        "StepProgressed",
        "StepSucceeded",
        "TimerFired",
    }
)
"""Events that name the call which they belong to."""


def step_of(call: str) -> str:
    """The step of the flow that a call belongs to: `charge` of `charge`, `charge#2`, `charge/@timer` and `charge.7`."""
    return call.partition("/")[0].partition("#")[0].partition(".")[0]


def undone_by(call: str) -> str:
    """The step that a call takes back: `charge` of `1/charge.undo#2`; empty if it takes back none."""
    name = call.rpartition("/")[2].partition("#")[0]
    return name.removesuffix(UNDO) if name.endswith(UNDO) else ""


def is_of_item(call: str) -> bool:
    """Whether a call is made for one item of a map, or in one turn: the step goes on when it has ended."""
    return "." in call.partition("/")[0]


class Progress:
    """The progress of the steps of a flow, folded from the journal of a run event by event."""

    def __init__(self, nodes: Sequence[Node], run_id: str) -> None:
        self._nodes = nodes
        self._run_id = run_id
        self._ended: dict[str, StepView] = {}
        self._retried: dict[str, StepView] = {}
        """Steps whose next attempt is to come."""
        self._touched: set[str] = set()
        self._children: dict[str, tuple[str, datetime]] = {}
        """Child runs: the step, and when it began."""
        self._detached: dict[str, tuple[str, datetime]] = {}
        self._asked: dict[str, str] = {}
        """Approvals: the step that asked for each."""

    def read(self, events: Iterable[Event]) -> None:
        """Take in more events."""
        for event in events:
            data = event.data
            if event.run_id in self._children:
                self._read_child(event)
            elif event.type == "RunCreated" and data["parent_id"] == self._run_id:
                self._touched.add(step_of(data["call"]))
                if not is_of_item(data["call"]):
                    self._children[event.run_id] = step_of(data["call"]), event.at
            elif event.run_id == self._run_id:
                self._read_own(event)

    def _read_own(self, event: Event) -> None:
        data = event.data
        call = data.get("call", "")
        if event.type in _CALLS:
            if undone_by(call):
                self._read_undo(event)
                return
            self._touched.add(step_of(call))
            if is_of_item(call):
                return
        match event.type:
            case "StepSucceeded" if "/" not in call:
                self._end(step_of(call), StepState.SUCCEEDED, data["took"], attempts=data["attempt"])
            case "StepFailed" if "/" not in call:
                note = _note(event)
                self._end(step_of(call), StepState.FAILED, data["took"], attempts=data["attempt"], note=note)
            case "AttemptFailed":
                view = StepView(state=StepState.RETRYING, attempts=data["attempt"], note=_note(event))
                self._retried[step_of(call)] = view
            case "ApprovalRequested":
                self._asked[data["name"]] = step_of(call)
            case "DetachedStarted":
                self._detached[data["run_id"]] = step_of(call), event.at
                self._ended.pop(step_of(call), None)  # The next attempt.
            case "DetachedEnded" if data["run_id"] in self._detached:
                id, began_at = self._detached[data["run_id"]]
                state = StepState.SUCCEEDED if data["status"] == "succeeded" else StepState.FAILED
                failure = event.failure
                took = event.at - began_at
                self._end(id, state, took, note=failure.message if failure else "")
            case _:
                """It says nothing about a step."""

    def _read_undo(self, event: Event) -> None:
        if event.type == "StepSucceeded":
            id = undone_by(event.data["call"])
            known = self._ended.get(id, StepView())
            self._ended[id] = replace(known, state=StepState.UNDONE, note="taken back, as the flow failed later on")

    def _read_child(self, event: Event) -> None:
        id, began_at = self._children[event.run_id]
        took = event.at - began_at
        if event.type == "RunSucceeded":
            self._end(id, StepState.SUCCEEDED, took)
        elif event.type == "RunFailed":
            self._end(id, StepState.FAILED, took, note=_note(event))

    def _end(self, id: str, state: StepState, took: timedelta | None, *, attempts: int = 1, note: str = "") -> None:
        self._retried.pop(id, None)
        seconds = took.total_seconds() if took else None
        self._ended[id] = StepView(state=state, attempts=attempts, took_seconds=seconds, note=note)

    def views(self, run: Run) -> dict[str, StepView]:
        """The state of every step, given the row of the run."""
        waits = {self._asked.get(wait.name, step_of(wait.name)): wait for wait in run.waits}
        others = [wait for id, wait in waits.items() if id not in {node.id for node in self._nodes}]
        followers: dict[str, list[str]] = {node.id: [] for node in self._nodes}
        for node in self._nodes:
            for other in node.needs:
                followers[other].append(node.id)
        views: dict[str, StepView] = {}
        passed: set[str] = set()
        # The deepest first: what is over is known by what has begun behind it, and not by what never will.
        for node in sorted(self._nodes, key=lambda node: -node.depth):
            if any(id in self._touched or id in passed for id in followers[node.id]):
                passed.add(node.id)
            views[node.id] = self._view(node, run, is_passed=node.id in passed)
        # The journal says nothing of a step that only some branch needs before it has ended: it is left pending.
        known = self._touched | waits.keys()
        unsure = {node.id for node in self._nodes if not node.is_certain and node.id not in known}
        for node in sorted(self._nodes, key=lambda node: node.depth):
            is_free = all(views[id].state in _OVER for id in node.needs if id not in unsure)
            is_next = views[node.id].state is StepState.PENDING and is_free and node.id not in unsure
            if is_next and not run.has_ended:
                wait = waits.get(node.id) or (others[0] if len(others) == 1 else None)
                # If a run waits for named steps only, no other step is open: a step without an event has ended.
                is_over = run.status == "waiting" and waits and not others and node.id not in known
                view = StepView(state=StepState.SUCCEEDED) if is_over else self._open_view(node, wait, run.status)
                views[node.id] = StepView() if is_over and node.is_conditional else view
        return {node.id: views[node.id] for node in self._nodes}

    def _view(self, node: Node, run: Run, *, is_passed: bool) -> StepView:
        if node.id in self._ended:
            return self._ended[node.id]
        if not node.is_needed:
            return StepView(state=StepState.SKIPPED, note="the output does not need it")
        is_over = is_passed or run.status == "succeeded"
        if is_over:
            is_skipped = (node.is_conditional or not node.is_certain) and node.id not in self._touched
            return StepView(state=StepState.SKIPPED if is_skipped else StepState.SUCCEEDED)
        if run.has_ended:
            is_begun = node.id in self._touched
            note = self._retried[node.id].note if node.id in self._retried else ""
            return StepView(state=StepState.FAILED if is_begun else StepState.SKIPPED, note=note)
        return StepView()

    def _open_view(self, node: Node, wait: Wait | None, status: Status) -> StepView:
        """A step that could go on. Only of a run that a worker owns, a step runs."""
        if node.id in self._retried:
            return self._retried[node.id]
        if status == "running":
            return StepView(state=StepState.RUNNING)
        if status == "waiting":
            return StepView(state=StepState.WAITING, note="" if wait is None else wait.describe())
        return StepView()


def _note(event: Event) -> str:
    failure = event.failure
    return "" if failure is None else f"{failure.wrapper or failure.type}: {failure.message}"
