"""The function of every machine: from state to state, until an exit."""

from __future__ import annotations

import enum
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import msgspec

from outlive._define.machine.asking import data_of, park
from outlive._define.machine.kinds import Kind
from outlive._define.machine.moving import move
from outlive._define.machine.wire import Outcome
from outlive._define.saga import saga
from outlive.errors import MachineError, UnknownStateError


class Plan:
    """What a driver must know of its machine; complete once all states are defined."""

    def __init__(self, name: str, states: type[enum.Enum], *, start: enum.Enum, exits: frozenset[str]) -> None:
        self.name = name
        self.states = states
        self.start = start
        self.exits = exits
        self.kinds: dict[str, Kind] = {}
        self.undo_seconds: float | None = None
        """How long a roll-back may take."""
        self.check: Callable[[], None] = lambda: None
        """Raises `MachineError`."""


def driver_of(plan: Plan) -> Callable[[msgspec.Raw], Coroutine[Any, Any, Outcome]]:
    """The function of a machine's workflow."""

    async def drive(data: msgspec.Raw) -> Outcome:
        try:
            plan.check()
        except MachineError as error:
            await park(error)
        async with saga(undo_timeout=plan.undo_seconds):
            return await _drive(plan, plan.kinds, data)

    return drive


async def _drive(plan: Plan, kinds: Mapping[str, Kind], data: msgspec.Raw) -> Outcome:
    state, routed = plan.start.name, dict[str, None]()
    move(state)
    while state not in plan.exits:
        kind = kinds.get(state)
        if kind is None:
            await park(UnknownStateError(plan.name, state, [*kinds, *sorted(plan.exits)]))
        if not kind.is_pure:
            routed.clear()
        elif state in routed:
            # Routers are pure: with the same data they will go round for ever.
            await park(MachineError(plan.name, [f"its routers go in a circle: {' -> '.join([*routed, state])}"]))
        else:
            routed[state] = None
        outcome = await kind.leave(data)
        move(outcome.to, came_from=state, is_written=not kind.is_pure)
        state, data = outcome.to, data_of(outcome, data)
    return Outcome(to=state, data=data)
