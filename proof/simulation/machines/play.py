"""The machines that go a list of legs: all alike, but for how long their journals may grow."""

from __future__ import annotations

from outlive._features.machines.joins import All, PartialTimeout, Quorum
from outlive._features.machines.joins import Any as AnyOne
from outlive._features.machines.machine import Machine
from outlive._features.machines.split import Branch
from outlive._features.machines.wire import MachineResult
from outlive._kernel.define.registry import Registry
from outlive._kernel.model import Retry
from proof.simulation.machines import states
from proof.simulation.machines.legs import ATTEMPTS, MACHINES
from proof.simulation.machines.limits import BREAKER, LIMIT
from proof.simulation.machines.trip import S, Trip

SNAPSHOT_AFTER: dict[str, int | None] = dict(zip(MACHINES, (3, 8, 20, None), strict=True))
"""How many events a journal may grow by. So few that most workers die behind a snapshot."""
PART_SECONDS = 1.0
"""How long a split waits for whatever branches succeed."""
SLOW_SECONDS = 0.5
UNDO_SECONDS = dict(zip(MACHINES, (600, 8, 600, 20), strict=True))
"""How long a roll-back may take. If it takes longer the run is parked, and an operator lets it go on."""


def _machine(name: str, snapshot_after: int | None) -> Machine[S, Trip]:
    machine = Machine(
        name,
        S,
        data=Trip,
        start=S.ROUTE,
        exits=[S.DONE, S.LOST],
        snapshot_after=snapshot_after,
        undo_timeout=UNDO_SECONDS[name],
        strict_arguments=True,
    )
    anywhere, retry = list(S), Retry(attempts=ATTEMPTS, first=0.1)
    machine.router(S.ROUTE, to=anywhere)(_route)
    machine.state(S.WORK, to=anywhere, retry=retry)(states.work)
    machine.timer(S.TIMER, _pause, then=S.WORK)
    machine.state(S.BOOK, to=anywhere, retry=retry, undo=states.give_back)(states.take)
    machine.state(S.ONCE, to=anywhere, once=True)(states.once)
    machine.state(S.SLOW, to=anywhere, retry=retry, timeout=SLOW_SECONDS)(states.slow)
    machine.state(S.POISON, to=anywhere)(states.poison)
    machine.state(S.LOOP, to=anywhere)(states.loop)
    machine.poll(S.POLL, to=anywhere)(states.poll)
    machine.stepped(S.STEPPED, to=anywhere)(states.stepped)
    machine.state(S.LIMITED, to=anywhere, limit=LIMIT)(states.limited)
    machine.state(S.FRAGILE, to=anywhere, retry=retry, breaker=BREAKER, limit=LIMIT)(states.fragile)
    branches: dict[str, Branch] = {"a": states.branch_a, "b": states.branch_b, "c": states.branch_c}
    machine.split(S.SPLIT, branches, join=All(then=S.ROUTE), merge=states.merge)
    machine.split(S.ANY, branches, join=AnyOne(then=S.ROUTE), merge=states.merge)
    machine.split(S.QUORUM, branches, join=Quorum(2, then=S.ROUTE), merge=states.merge)
    machine.split(S.PART, branches, join=PartialTimeout(then=S.ROUTE), merge=states.merge, timeout=PART_SECONDS)
    machine.batch(S.BATCH, to=anywhere, load=states.load, process=states.parcel, finish=states.unload, concurrency=2)
    machine.workflow(S.ASK, to=anywhere)(states.ask)
    machine.workflow(S.TRIP, to=anywhere)(_inner)
    machine.validate()
    return machine


def _route(trip: Trip) -> S:
    return trip.here


async def _inner(trip: Trip) -> S:
    """Another machine, as a child."""
    result = await PLAYED[MACHINES[0]](Trip(trip.leg[2]))
    return trip.go_on(result.data.log)


def _pause(trip: Trip) -> float:
    return float(trip.leg[4]) / 1000


PLAYED = {name: _machine(name, snapshot_after) for name, snapshot_after in SNAPSHOT_AFTER.items()}


def add_machines(registry: Registry) -> None:
    """Let a worker run them."""
    for machine in PLAYED.values():
        registry.add_workflow(machine.spec)
    registry.add_workflow(states.errand.spec)
    for known in states.STEPS:
        registry.add_step(known.spec)


def shown_end(result: MachineResult[S, Trip]) -> str:
    """What a user notes of the end of a machine; see `judge`."""
    return f"{result.state.name} {result.data.log}"
