"""The function of every machine: from state to state, until an exit."""

from __future__ import annotations

import enum
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import msgspec

from outlive._features.machines.asking import park
from outlive._features.machines.kinds import Kind
from outlive._features.machines.snapshots import MachineSnapshots
from outlive._features.machines.wire import NULL, StateResult
from outlive._kernel.define.registry import REGISTRY
from outlive._kernel.define.saga import saga
from outlive._kernel.define.step import as_undo
from outlive._kernel.replay.ask import current_execution
from outlive._kernel.replay.command import StepSpec
from outlive._kernel.replay.frame import SCOPE, step_of
from outlive._kernel.replay.saga import SAGA
from outlive.errors.program import MachineError, UnknownStateError


@dataclass(kw_only=True)
class Plan:
    """The plan of a machine for its driver; complete once all states are defined."""

    name: str
    states: type[enum.Enum]
    start: enum.Enum
    exits: frozenset[str]
    snapshot_after: int | None
    undo_seconds: float | None
    """How long a roll-back may take."""
    check: Callable[[], None]
    """Raises `MachineError`."""
    kinds: dict[str, Kind] = field(default_factory=dict)

    def find_undo(self, name: str, call: str) -> StepSpec | None:
        """The step of this name as what undoes `call`: that of a state, or of a step that workflow code has called."""
        for kind in self.kinds.values():
            if kind.undo is not None and kind.undo.name == name:
                return kind.undo
        undone = REGISTRY.find_step(step_of(call))
        if undone is not None and undone.options.undo is not None and undone.options.undo.name == name:
            return undone.options.undo
        spec = REGISTRY.find_step(name)
        return None if spec is None else as_undo(spec)


def driver_of(plan: Plan) -> Callable[..., Coroutine[Any, Any, StateResult]]:
    """The function of a machine's workflow; without data it begins where its snapshot was taken."""

    async def drive(data: msgspec.Raw = NULL) -> StateResult:
        try:
            plan.check()
        except MachineError as error:
            await park(error)
        async with saga(undo_timeout=plan.undo_seconds):
            around = SAGA.get()
            assert around is not None
            snapshots = MachineSnapshots(
                plan.name, around, snapshot_after=plan.snapshot_after, find_undo=plan.find_undo
            )
            return await _drive(plan, snapshots, data)

    return drive


async def _drive(plan: Plan, snapshots: MachineSnapshots, data: msgspec.Raw) -> StateResult:
    state, data = await snapshots.begin(plan.start.name, data)
    routed = dict[str, None]()
    _enter(state, is_written=False)
    while state not in plan.exits:
        kind = plan.kinds.get(state)
        if kind is None:
            await park(UnknownStateError(plan.name, state, [*plan.kinds, *sorted(plan.exits)]))
        snapshots.state = state
        if not kind.is_pure:
            routed.clear()
            if not kind.offers_snapshots:
                await snapshots.take_if_due(data)
        elif state in routed:
            # Routers are pure: with the same data they will go round for ever.
            await park(MachineError(plan.name, [f"its routers go in a circle: {' -> '.join([*routed, state])}"]))
        else:
            routed[state] = None
        result = await kind.leave(data, snapshots)
        snapshots.take_cursor()  # The state had a cursor when the snapshot was taken, and has none in this code.
        _enter(result.to, is_written=not kind.is_pure)
        state, data = result.to, result.data_after(data)
    return StateResult(to=state, data=data)


def _enter(state: str, *, is_written: bool) -> None:
    execution = current_execution()
    if execution is not None:
        execution.enter_stage(SCOPE.get().frame, state, is_written=is_written)
