"""Where a run of a machine is, as its journal says it: which states it has been in, and which one it is in now.

A machine is in one state at a time, so one walk through its journal is enough. A state that has ended says where it
went: `StateLeft`, or the result of the step that the state is. A router leaves no event. It was passed if the next
event is one of a state behind it; until then, where the machine went is known only if there is one way, or if what the
run waits for leaves one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import msgspec

from outlive._features.flows.graph import StepState, StepView
from outlive._features.flows.library.progress import undone_by
from outlive._kernel.client.why import wait_shown
from outlive._kernel.journal.event import (
    AnyEvent,
    AttemptFailed,
    RunClaimed,
    RunCreated,
    RunFailed,
    RunForked,
    RunRetried,
    RunSucceeded,
    SnapshotTaken,
    StateLeft,
    StepFailed,
    StepSucceeded,
)
from outlive._kernel.model import Payload, Run, RunStatus, WaitKind
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.run import ENDED_BADLY
from outlive._kernel.model.state_graph import StateBox, StateGraph
from outlive._kernel.replay.snapshot import Standing

T = TypeVar("T")

ROUTER, LEFT = "router", "@state/"
_WAITING_KINDS = {
    WaitKind.SIGNAL: {"workflow"},
    WaitKind.APPROVAL: {"workflow"},
    WaitKind.TIMER: {"timer", "poll", "workflow"},
}
"""In which kinds of states a run can wait for that."""


class _Went(msgspec.Struct):
    """The part of the outcome of a state that a picture needs."""

    to: str = ""


class _Stood(msgspec.Struct):
    """The part of a snapshot that a picture needs."""

    state: str = ""


class _Ended(msgspec.Struct):
    """The part of the result of a machine that a picture needs."""

    state: str = ""


class StateProgress:
    """The progress of the states of a machine, folded from the journal of a run event by event."""

    def __init__(self, machine: str, graph: StateGraph, number: int = 0) -> None:
        self._machine, self._number = machine, number
        self._states: dict[str, StateBox] = {state.name: state for state in graph.states}
        self._views: dict[str, StepView] = {}
        self._current = graph.start
        self._entered_at = 0
        self._rests = False
        """Whether the next claim begins the run, or goes on with one that a person has brought back."""
        self.taken: set[tuple[str, str]] = set()
        """The arrows that the run has gone along."""
        self._visit(graph.start, 0)

    def read(self, events: Iterable[AnyEvent]) -> None:
        """Take in more events."""
        for event in events:
            if isinstance(event, RunClaimed):
                self._take_up(event)
            elif event.run == self._number:
                self._entered_at = self._entered_at or event.at
                self._read(event)

    def _take_up(self, event: RunClaimed) -> None:
        """Time in line, and before a retry, is not time in a state."""
        if self._rests:
            self._entered_at, self._rests = event.at, False

    def _read(self, event: AnyEvent) -> None:
        match event:
            case StepSucceeded() if undone_by(event.call):
                self._undo(undone_by(event.call))
            case StepSucceeded() if (name := self._state_of(event.call)) is not None:
                went = _plain(event.result, _Went)
                self._come_to(name, event.at)
                self._look(attempts=event.attempt)
                if went is not None and went.to in self._states:
                    self._leave_for(went.to, event.at)
            case StateLeft() if (name := self._state_of(event.call.removeprefix(LEFT))) is not None:
                went = _plain(event.payload, _Went)
                self._come_to(name, event.at)
                if went is not None and went.to in self._states:
                    self._leave_for(went.to, event.at)
            case AttemptFailed() if (name := self._state_of(event.call)) is not None:
                self._come_to(name, event.at)
                note = f"{event.failure.type}: {event.failure.message}"
                self._look(state=StepState.RETRYING, attempts=event.attempt, note=note)
            case StepFailed() if (name := self._state_of(event.call)) is not None:
                self._come_to(name, event.at)
                note = f"{event.failure.type}: {event.failure.message}"
                self._look(state=StepState.FAILED, attempts=event.attempt, note=note)
            case RunFailed():
                if not self._views[self._current].note:
                    self._look(note=f"{event.failure.type}: {event.failure.message}")
            case RunCreated():
                self._rests = event.run == 0 and not event.worker
            case RunForked():
                self._rests = event.rests
            case RunRetried():
                self._rests = True
                self._look(state=StepState.RUNNING, note="")
            case SnapshotTaken():
                self._stand(event)
            case RunSucceeded():
                ended = _plain(event.result, _Ended)
                if ended is not None and ended.state in self._states:
                    self._come_to(ended.state, event.at)
                    self._look(state=StepState.SUCCEEDED)
            case _:
                """It says nothing about a state."""

    def _state_of(self, call: str) -> str | None:
        """The state whose own step a call is; None for any other call."""
        name = call.partition("#")[0].removeprefix(f"{self._machine}.")
        return name if name in self._states else None

    # -- From state to state ---------------------------------------------------------------------------------

    def _visit(self, name: str, at: int) -> None:
        before = self._views.get(name, StepView())
        self._views[name] = StepView(state=StepState.RUNNING, visits=before.visits + 1)
        self._current, self._entered_at = name, at

    def _look(self, **changes: object) -> None:
        self._views[self._current] = msgspec.structs.replace(self._views[self._current], **changes)

    def _leave_for(self, name: str, at: int) -> None:
        took = (at - self._entered_at) / MICROSECONDS if self._entered_at else None
        self._look(state=StepState.SUCCEEDED, took_seconds=took or None, note="")
        self.taken.add((self._current, name))
        self._visit(name, at)

    def _come_to(self, name: str, at: int) -> None:
        """An event belongs to this state: if the machine was at routers, they have led here."""
        if name == self._current:
            return
        way = self._way_through_routers(name)
        for passed in way:
            self._leave_for(passed, self._entered_at)
        if not way:  # The journal of other code, or an arrow that no annotation has promised.
            self._look(state=StepState.SUCCEEDED)
            self._visit(name, at)

    def _way_through_routers(self, name: str) -> list[str]:
        """The shortest way from the current router to a state; empty if there is none."""
        ways: list[list[str]] = [[]]
        seen = {self._current}
        for way in ways:
            last = self._states[way[-1] if way else self._current]
            if last.kind != ROUTER:
                continue
            for other in last.to:
                if other == name:
                    return [*way, other]
                if other not in seen and other in self._states:
                    seen.add(other)
                    ways.append([*way, other])
        return []

    def _undo(self, call: str) -> None:
        name = self._state_of(call)
        if name is not None and name in self._views:
            note = "taken back, as the run failed later on"
            self._views[name] = msgspec.structs.replace(self._views[name], state=StepState.UNDONE, note=note)

    def _stand(self, event: SnapshotTaken) -> None:
        """A snapshot stands for all that came before it."""
        standing = _plain(event.payload, Standing)
        stood = None if standing is None else _decoded(bytes(standing.position), _Stood)
        if stood is not None and stood.state in self._states:
            self._views.clear()
            self.taken.clear()
            self._visit(stood.state, event.at)

    # -- What is shown ---------------------------------------------------------------------------------------

    def views(self, run: Run) -> dict[str, StepView]:
        """The state of every box, given the row of the run."""
        if not run.status.is_terminal:
            self._guess_way(run)
        views = {name: self._views.get(name, StepView()) for name in self._states}
        here = views[self._current]
        if run.status in ENDED_BADLY and here.state is not StepState.UNDONE:
            views[self._current] = msgspec.structs.replace(here, state=StepState.FAILED)
        elif here.state is StepState.RUNNING and not run.status.is_terminal:
            views[self._current] = self._open_view(here, run)
        return views

    def _open_view(self, here: StepView, run: Run) -> StepView:
        """The state that a run is in. Only a run that a worker owns moves."""
        if run.status is RunStatus.WAITING:
            note = wait_shown(run.waits[0]) if run.waits else ""
            return msgspec.structs.replace(here, state=StepState.WAITING, note=note)
        if run.status is RunStatus.RUNNING:
            return here
        return msgspec.structs.replace(here, state=StepState.WAITING, note=run.reason)

    def _guess_way(self, run: Run) -> None:
        """Follow routers to the one state that the run can be in."""
        if self._states[self._current].kind != ROUTER:
            return
        ends = [name for name in self._states if self._states[name].kind != ROUTER and self._way_through_routers(name)]
        kinds = [_WAITING_KINDS.get(wait.kind) for wait in run.waits if wait.run == self._number]
        for allowed in kinds:
            if allowed is not None:
                ends = [name for name in ends if self._states[name].kind in allowed]
        if len(ends) == 1:
            self._come_to(ends[0], self._entered_at)


def _plain(payload: Payload, kind: type[T]) -> T | None:
    """A payload that is shown as JSON; None if it cannot be read here."""
    return None if isinstance(payload.v, msgspec.UnsetType) else _decoded(bytes(payload.v), kind)


def _decoded(data: bytes, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError:
        return None
