"""Whether the states of a machine fit together."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator, Mapping

from outlive._features.machines.building import check_states
from outlive._features.machines.driver import Plan
from outlive._features.machines.kinds import Kind
from outlive.errors.program import MachineError


def problems_of(plan: Plan) -> list[str]:
    """Everything that is wrong with a machine, for people."""
    names = [member.name for member in plan.states]
    return [
        *_of_exits(plan),
        *(
            f"state {name} has no handler and is not an exit"
            for name in names
            if name not in {*plan.kinds, *plan.exits}
        ),
        *(f"{kind.word} {name} {problem}" for name, kind in plan.kinds.items() for problem in kind.problems()),
        *_of_paths(plan, names),
    ]


def _of_exits(plan: Plan) -> Iterator[str]:
    if not plan.exits:
        yield "it has no exit"
    yield from (f"exit {name} has a handler, which would never run" for name in sorted(plan.exits & {*plan.kinds}))


def _of_paths(plan: Plan, names: list[str]) -> Iterator[str]:
    reached = reachable(plan.start.name, plan.kinds, plan.exits, names)
    yield from (f"state {name} cannot be reached from {plan.start.name}" for name in names if name not in reached)
    if reached.isdisjoint(plan.exits) and plan.exits:
        yield f"no exit can be reached from {plan.start.name}"
    for name in names:
        if name in reached and name in plan.kinds and not _escapes(name, plan, names):
            yield f"state {name} never comes to an exit"


def _escapes(name: str, plan: Plan, names: list[str]) -> bool:
    return not reachable(name, plan.kinds, plan.exits, names).isdisjoint(plan.exits)


def reachable(start: str, kinds: Mapping[str, Kind], exits: frozenset[str], names: list[str]) -> set[str]:
    """Every state that can be reached from one; a state that does not say where it goes may go anywhere."""
    reached, left = {start}, [start]
    while left:
        name = left.pop()
        kind = None if name in exits else kinds.get(name)
        if kind is None:
            continue
        targets = kind.targets
        for target in names if targets is None else targets:
            if target not in reached:
                reached.add(target)
                left.append(target)
    return reached


def is_same(known: Kind, new: Kind) -> bool:
    """Whether a state is defined again by the same function: a cell of a notebook that is run twice."""
    names = [[(fn.__module__, fn.__qualname__) for fn in each.functions] for each in (known, new)]
    return bool(names[0]) and names[0] == names[1]


def check_definition(
    name: str,
    states: type[enum.Enum],
    start: enum.Enum,
    exits: Collection[enum.Enum],
) -> None:
    """Refuse what cannot be a machine, whatever its states will be.

    Raises:
        MachineError: says why.
    """
    if not isinstance(states, enum.EnumType):
        raise MachineError(name, [f"its states {states!r} are not an enumeration; write `class S(enum.Enum): ...`"])
    if not isinstance(exits, Collection):
        raise MachineError(name, [f"exits={exits!r} must be a list or a set of states"])
    check_states(name, states, start, *exits)
