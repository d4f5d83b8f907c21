"""Makes what happens to a tree of runs what its observers are told.

A tree has these only if one of its workflows has listeners: every other tree pays one look for each event. While a
draft is written its facts are collected with it, in the order in which they come to be; the draft takes them along, and
when it is durable they are told. So nothing is told that another worker's claim has undone, and nothing twice.

Three sources, in the words of observers:

* the events of the journal, as they are recorded (`note`);
* the workflow itself, which says where it goes while it is fed (`moved`): a router of a machine leaves no event;
* what is no event but can only follow from durable ones: an attempt that begins, a claim, a breaker that is open. These
  are told at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from outlive._journal import event as journal
from outlive._journal.event import AnyEvent, Ending
from outlive._journal.fold import STATUS
from outlive._model import Failure, Run
from outlive._model.facts import (
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
from outlive._model.instant import instant_of
from outlive._replay.call import StepCall, Undoing
from outlive._replay.command import RunStep, WorkflowSpec
from outlive._replay.ending import DEADLINE
from outlive._replay.execution import Execution
from outlive._replay.frame import Frame
from outlive._runtime.tree.draft import Draft
from outlive._runtime.tree.observer_calls import ObserverCalls, Told
from outlive.errors import UnknownStateError


class Heard(NamedTuple):
    """A run that somebody listens to."""

    id: str
    spec: WorkflowSpec
    state: str


class ObserverFacts:
    """What the observers of one tree are told."""

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
        self._root: Heard | None = None
        self._cancelled: set[int] = set()
        """Runs of which somebody was told that they are cancelled."""

    # -- What the journal says -------------------------------------------------------------------------------

    def note(self, event: AnyEvent) -> None:
        """An event is written into the draft, and not fed yet."""
        tell = _NOTES.get(type(event))
        if tell is not None:
            told = list(tell(self, event))
            self._open_draft().told += told

    def _on_succeeded(self, event: journal.StepSucceeded) -> Iterable[Told]:
        asked = self._asked(event.run, event.call)
        if asked is None or event.skipped:
            return  # A person gave the result: no attempt did.
        run, call = asked
        if call.rollback is None:
            yield from _told(run, "attempt_succeeded", AttemptFact, event.at, **_attempt(call.command))
        else:
            yield from _told(run, "undo_done", UndoFact, event.at, **_undo(call.command, call.rollback))

    def _on_failed(self, event: journal.StepFailed | journal.AttemptFailed) -> Iterable[Told]:
        asked = self._asked(event.run, event.call)
        if asked is None:
            return
        run, call = asked
        failed = _attempt(call.command) | {"attempt": event.attempt, "failure": event.failure}
        if call.rollback is None:
            yield from _told(run, "attempt_failed", FailureFact, event.at, **failed)
        else:
            yield from _told(run, "undo_failed", UndoFact, event.at, **failed, undoes=call.rollback.left[0])
        if isinstance(event, journal.AttemptFailed):
            again = failed | {"attempt": event.attempt + 1, "retry_at": instant_of(event.retry_at)}
            yield from _told(run, "retry", RetryFact, event.at, **again)

    def _on_timer(self, event: journal.TimerFired) -> Iterable[Told]:
        if event.call == DEADLINE and (run := self._heard(event.run)) is not None:
            yield from _told(run, "timed_out", Fact, event.at)

    def _on_cancel(self, event: journal.CancelRequested | journal.RunCancelled) -> Iterable[Told]:
        run = self._heard(event.run)
        if run is not None and event.run not in self._cancelled:
            self._cancelled.add(event.run)
            yield from _told(run, "cancelled", ReasonFact, event.at, reason=event.reason)

    def _on_parked(self, event: journal.RunParked) -> Iterable[Told]:
        draft, reason = self._open_draft(), self._execution.parked_for
        # Undos that have used up their attempts, or their time, are not tried again by themselves.
        draft.told = [told for told in draft.told if told.hook != "retry"]
        for number, run in self._heard_all().items():
            if reason == (UnknownStateError, number):
                yield from _told(run, "unknown_state", ReasonFact, event.at, reason=event.reason)
            yield from _told(run, "parked", ReasonFact, event.at, reason=event.reason)

    def _on_resumed(self, event: journal.RunResumed) -> Iterable[Told]:
        for run in self._heard_all().values():
            yield from _told(run, "resumed", ResumeFact, event.at, by="person")

    def _on_ended(self, event: Ending) -> Iterable[Told]:
        frame, run = self._execution.frames.get(event.run), self._heard(event.run)
        if frame is None or run is None:
            return
        if isinstance(event, journal.RunCancelled) and (event.run or frame.cancel_reason is None):
            # By its parent, or by itself: there was no request.
            yield from self._on_cancel(event)
        failure = event.failure if isinstance(event, journal.RunFailed) else None
        yield from _told(run, "ended", EndFact, event.at, status=STATUS[type(event)], failure=failure)

    # -- What the workflow says ------------------------------------------------------------------------------

    def moved(self, frame: Frame, left: str) -> None:
        """A workflow has come to another stage; called while it is fed, and never while it is replayed."""
        if frame.spec.observers:
            told, at = self._open_draft().told, self._now()
            run = Heard(frame.id, frame.spec, frame.stage)
            if left:
                told += _told(run._replace(state=left), "transition_written", TransitionFact, at, to=frame.stage)
            told += _told(run, "state_entered", Fact, at)

    # -- What follows from what is durable -------------------------------------------------------------------

    def started(self, command: RunStep) -> None:
        """An attempt of a step begins."""
        asked = self._asked(command.run, command.call)
        if asked is None:
            return
        run, call = asked
        if call.rollback is None:
            self._tell(_told(run, "attempt_started", AttemptFact, self._now(), **_attempt(command)))
        else:
            self._tell(_told(run, "undo_begun", UndoFact, self._now(), **_undo(command, call.rollback)))

    def circuit_open(self, command: RunStep, breaker: str, *, until_at: int) -> None:
        """An attempt of a step is not made, or not now: its breaker is open."""
        run = self._heard(command.run)
        if run is not None:
            more = {"breaker": breaker, "until": instant_of(until_at)}
            self._tell(_told(run, "circuit_open", CircuitFact, self._now(), **_attempt(command), **more))

    def resumed(self, *, by: str) -> None:
        """A claimed tree goes on from its journal."""
        for run in self._heard_all().values():
            self._tell(_told(run, "resumed", ResumeFact, self._now(), by=by))

    def _tell(self, told: Iterable[Told]) -> None:
        self._observer_calls.tell(self._execution.root_id, told)

    # -- Who is heard ----------------------------------------------------------------------------------------

    def claimed(self, run: Run, spec: WorkflowSpec) -> None:
        """Its root; if the journal is not read, nothing else will be known of it."""
        self._root = Heard(run.id, spec, "")

    def _heard(self, number: int) -> Heard | None:
        frame = self._execution.frames.get(number)
        return Heard(frame.id, frame.spec, frame.stage) if frame is not None and frame.spec.observers else None

    def _heard_all(self) -> dict[int, Heard]:
        """Every run of the tree that is open and has observers, by its number."""
        runs = {number: self._heard(number) for number in self._execution.frames} or {0: self._root}
        return {number: run for number, run in runs.items() if run is not None}

    def _asked(self, number: int, name: str) -> tuple[Heard, StepCall] | None:
        run, call = self._heard(number), self._execution.calls.get((number, name))
        return (run, call) if run is not None and isinstance(call, StepCall) else None


_NOTES: dict[type, Callable[[ObserverFacts, Any], Iterable[Told]]] = {
    journal.StepSucceeded: ObserverFacts._on_succeeded,
    journal.StepFailed: ObserverFacts._on_failed,
    journal.AttemptFailed: ObserverFacts._on_failed,
    journal.TimerFired: ObserverFacts._on_timer,
    journal.CancelRequested: ObserverFacts._on_cancel,
    journal.RunParked: ObserverFacts._on_parked,
    journal.RunResumed: ObserverFacts._on_resumed,
    **dict.fromkeys(STATUS, ObserverFacts._on_ended),
}


def _told(run: Heard, hook: str, kind: type[Fact], at: int, **more: Any) -> list[Told]:
    """What is told to those who want to hear it; nothing if nobody does."""
    listeners = run.spec.observers.get(hook, ())
    if not listeners:
        return []
    fact = kind(
        run_id=run.id, machine=run.spec.name, version=run.spec.version, state=run.state, at=instant_of(at), **more
    )
    return [Told(listeners, hook, fact)]


def _attempt(command: RunStep) -> dict[str, Any]:
    return {"step": command.step.name, "call": command.call, "attempt": command.attempt}


def _undo(command: RunStep, rollback: Undoing, failure: Failure | None = None) -> dict[str, Any]:
    return _attempt(command) | {"undoes": rollback.left[0], "failure": failure}
