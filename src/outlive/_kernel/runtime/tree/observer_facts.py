"""Which hooks of observers are called for what happens to a tree of runs.

A tree has an `ObserverFacts` only if one of its workflows has observers: every other tree pays one test for each event.
The calls are collected in the draft of the next change, in order, and are made when it is durable. So no hook is called
for an event that was refused, or twice for one event.

Three sources:

* the events of the journal, as they are recorded (`note`);
* the workflow itself, which reports its stage while it is fed (`moved`): a router of a machine leaves no event;
* facts that are not events but can only follow from durable events: an attempt that begins, a claim, a breaker that is
  open. Their hooks are called at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from outlive._kernel.journal import event as journal
from outlive._kernel.journal.event import AnyEvent, Ending
from outlive._kernel.journal.fold import STATUS
from outlive._kernel.model import Run
from outlive._kernel.model.instant import instant_of
from outlive._kernel.model.wait import DEADLINE
from outlive._kernel.replay.call import StepCall, Undoing
from outlive._kernel.replay.command import RunStep, WorkflowSpec
from outlive._kernel.replay.execution import Execution
from outlive._kernel.replay.frame import Frame
from outlive._kernel.runtime.tree.draft import Draft
from outlive._kernel.runtime.tree.observer_calls import HookCall, ObserverCalls
from outlive._kernel.values.fact import (
    AttemptFact,
    CircuitFact,
    EndFact,
    Fact,
    FailureFact,
    ReasonFact,
    ResumeFact,
    RetryFact,
    TransitionFact,
    UndoFact,
)
from outlive._kernel.values.failure import failure_of
from outlive.errors.program import UnknownStateError


class ObservedRun(NamedTuple):
    """A run whose workflow has observers."""

    id: str
    spec: WorkflowSpec
    state: str


class ObserverFacts:
    """Makes the hook calls for the observers of one tree."""

    def __init__(
        self,
        execution: Execution,
        *,
        observer_calls: ObserverCalls,
        now: Callable[[], int],
        open_draft: Callable[[], Draft],
    ) -> None:
        self._execution = execution
        self._observer_calls = observer_calls
        self._now = now
        self._open_draft = open_draft
        self._root: ObservedRun | None = None
        self._cancelled: set[int] = set()
        """Runs whose hook `cancelled` was called."""

    # -- Events of the journal -------------------------------------------------------------------------------

    def note(self, event: AnyEvent) -> None:
        """An event is written into the draft, and not fed yet."""
        calls_of = _NOTES.get(type(event))
        if calls_of is not None:
            calls = list(calls_of(self, event))
            self._open_draft().hook_calls += calls

    def _on_succeeded(self, event: journal.StepSucceeded) -> Iterable[HookCall]:
        asked = self._asked(event.run, event.call)
        if asked is None or event.skipped:
            return  # A person gave the result: no attempt did.
        run, call = asked
        if call.rollback is None:
            yield from _hook_calls(run, "attempt_succeeded", AttemptFact, event.at, **_attempt(call.command))
        else:
            yield from _hook_calls(run, "undo_done", UndoFact, event.at, **_undo(call.command, call.rollback))

    def _on_failed(self, event: journal.StepFailed | journal.AttemptFailed) -> Iterable[HookCall]:
        asked = self._asked(event.run, event.call)
        if asked is None:
            return
        run, call = asked
        failed = _attempt(call.command) | {"attempt": event.attempt, "failure": failure_of(event.failure)}
        if call.rollback is None:
            yield from _hook_calls(run, "attempt_failed", FailureFact, event.at, **failed)
        else:
            yield from _hook_calls(run, "undo_failed", UndoFact, event.at, **failed, undoes=call.rollback.left[0])
        if isinstance(event, journal.AttemptFailed):
            again = failed | {"attempt": event.attempt + 1, "retry_at": instant_of(event.retry_at)}
            yield from _hook_calls(run, "retry", RetryFact, event.at, **again)

    def _on_timer(self, event: journal.TimerFired) -> Iterable[HookCall]:
        if event.call == DEADLINE and (run := self._observed(event.run)) is not None:
            yield from _hook_calls(run, "timed_out", Fact, event.at)

    def _on_cancel(self, event: journal.CancelRequested | journal.RunCancelled) -> Iterable[HookCall]:
        run = self._observed(event.run)
        if run is not None and event.run not in self._cancelled:
            self._cancelled.add(event.run)
            yield from _hook_calls(run, "cancelled", ReasonFact, event.at, reason=event.reason)

    def _on_parked(self, event: journal.RunParked) -> Iterable[HookCall]:
        draft, reason = self._open_draft(), self._execution.parked_for
        # Undos that have used up their attempts, or their time, are not tried again by themselves.
        draft.hook_calls = [call for call in draft.hook_calls if call.hook != "retry"]
        for number, run in self._all_observed().items():
            if reason == (UnknownStateError, number):
                yield from _hook_calls(run, "unknown_state", ReasonFact, event.at, reason=event.reason)
            yield from _hook_calls(run, "parked", ReasonFact, event.at, reason=event.reason)

    def _on_resumed(self, event: journal.RunResumed) -> Iterable[HookCall]:
        for run in self._all_observed().values():
            yield from _hook_calls(run, "resumed", ResumeFact, event.at, by="person")

    def _on_ended(self, event: Ending) -> Iterable[HookCall]:
        frame, run = self._execution.frames.get(event.run), self._observed(event.run)
        if frame is None or run is None:
            return
        if isinstance(event, journal.RunCancelled) and (event.run or frame.cancel_reason is None):
            # By its parent, or by itself: there was no request.
            yield from self._on_cancel(event)
        failure = failure_of(event.failure) if isinstance(event, journal.RunFailed) else None
        yield from _hook_calls(run, "ended", EndFact, event.at, status=STATUS[type(event)].value, failure=failure)

    # -- Stages of workflows ---------------------------------------------------------------------------------

    def moved(self, frame: Frame, left: str) -> None:
        """A workflow has come to another stage; called while it is fed, and never while it is replayed."""
        if frame.spec.observers:
            calls, at = self._open_draft().hook_calls, self._now()
            run = ObservedRun(frame.id, frame.spec, frame.stage)
            if left:
                calls += _hook_calls(run._replace(state=left), "transition_written", TransitionFact, at, to=frame.stage)
            calls += _hook_calls(run, "state_entered", Fact, at)

    # -- What follows from what is durable -------------------------------------------------------------------

    def started(self, command: RunStep) -> None:
        """An attempt of a step begins."""
        asked = self._asked(command.run, command.call)
        if asked is None:
            return
        run, call = asked
        if call.rollback is None:
            self._call(_hook_calls(run, "attempt_started", AttemptFact, self._now(), **_attempt(command)))
        else:
            self._call(_hook_calls(run, "undo_begun", UndoFact, self._now(), **_undo(command, call.rollback)))

    def circuit_open(self, command: RunStep, breaker: str, *, until_at: int) -> None:
        """An attempt of a step is not made, or not now: its breaker is open."""
        run = self._observed(command.run)
        if run is not None:
            more = {"breaker": breaker, "until": instant_of(until_at)}
            self._call(_hook_calls(run, "circuit_open", CircuitFact, self._now(), **_attempt(command), **more))

    def resumed(self, *, by: str) -> None:
        """A claimed tree goes on from its journal."""
        for run in self._all_observed().values():
            self._call(_hook_calls(run, "resumed", ResumeFact, self._now(), by=by))

    def _call(self, calls: Iterable[HookCall]) -> None:
        self._observer_calls.add(self._execution.root_id, calls)

    # -- Which runs have observers ---------------------------------------------------------------------------

    def claimed(self, run: Run, spec: WorkflowSpec) -> None:
        """Remember the root: if the journal is not read, no other run of the tree is known."""
        self._root = ObservedRun(run.id, spec, "")

    def _observed(self, number: int) -> ObservedRun | None:
        frame = self._execution.frames.get(number)
        return ObservedRun(frame.id, frame.spec, frame.stage) if frame is not None and frame.spec.observers else None

    def _all_observed(self) -> dict[int, ObservedRun]:
        """Every run of the tree that is open and has observers, by its number."""
        runs = {number: self._observed(number) for number in self._execution.frames} or {0: self._root}
        return {number: run for number, run in runs.items() if run is not None}

    def _asked(self, number: int, name: str) -> tuple[ObservedRun, StepCall] | None:
        run, call = self._observed(number), self._execution.calls.get((number, name))
        return (run, call) if run is not None and isinstance(call, StepCall) else None


_NOTES: dict[type, Callable[[ObserverFacts, Any], Iterable[HookCall]]] = {
    journal.StepSucceeded: ObserverFacts._on_succeeded,
    journal.StepFailed: ObserverFacts._on_failed,
    journal.AttemptFailed: ObserverFacts._on_failed,
    journal.TimerFired: ObserverFacts._on_timer,
    journal.CancelRequested: ObserverFacts._on_cancel,
    journal.RunParked: ObserverFacts._on_parked,
    journal.RunResumed: ObserverFacts._on_resumed,
    **dict.fromkeys(STATUS, ObserverFacts._on_ended),
}


def _hook_calls(run: ObservedRun, hook: str, kind: type[Fact], at: int, **more: Any) -> list[HookCall]:
    """The calls of a hook; none if no observer of the run has it."""
    listeners = run.spec.observers.get(hook, ())
    if not listeners:
        return []
    fact = kind(
        run_id=run.id, machine=run.spec.name, version=run.spec.version, state=run.state, at=instant_of(at), **more
    )
    return [HookCall(listeners, hook, fact)]


def _attempt(command: RunStep) -> dict[str, Any]:
    return {"step": command.step.name, "call": command.call, "attempt": command.attempt}


def _undo(command: RunStep, rollback: Undoing) -> dict[str, Any]:
    return _attempt(command) | {"undoes": rollback.left[0]}
