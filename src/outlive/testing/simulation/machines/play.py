"""The machines that go a list of legs, and what their handlers do to the world."""

from __future__ import annotations

import asyncio
import enum
from dataclasses import dataclass, field
from typing import Any

from outlive._define.inside import CURRENT_STEP, wait_for_signal
from outlive._define.machine.answer import More, Pending
from outlive._define.machine.joins import All, Quorum
from outlive._define.machine.joins import Any as AnyOne
from outlive._define.machine.machine import Machine
from outlive._define.machine.split import Branch
from outlive._define.machine.wire import MachineResult
from outlive._define.registry import Registry
from outlive._define.step import step
from outlive._define.workflow import workflow
from outlive._model import Retry
from outlive._runtime.attempt import Attempt
from outlive.testing.simulation.clock import running_loop
from outlive.testing.simulation.ledger import Ledger
from outlive.testing.simulation.machines.legs import ATTEMPTS, MACHINES, UNDO_ATTEMPTS, Leg
from outlive.testing.simulation.machines.limits import BREAKER, BREAKER_CELL, LIMIT, LIMIT_CELL

SNAPSHOT_AFTER: dict[str, int | None] = dict(zip(MACHINES, (3, 8, 20, None), strict=True))
"""How many events a journal may grow by. So few that most workers die behind a snapshot."""


class Bumped(Exception):
    """What the handlers raise on purpose."""


class S(enum.Enum):
    """One for each kind of leg, a router, and two exits."""

    ROUTE = "route"
    WORK = "work"
    TIMER = "timer"
    BOOK = "book"
    LOOP = "loop"
    SPLIT = "split"
    ANY = "any"
    QUORUM = "quorum"
    POLL = "poll"
    STEPPED = "stepped"
    BATCH = "batch"
    ASK = "ask"
    LIMITED = "limited"
    FRAGILE = "fragile"
    DONE = "done"
    LOST = "lost"


@dataclass
class Trip:
    """How far a run has come."""

    legs: list[list[Any]]
    at: int = 0
    turn: int = 0
    """How often it went round in this leg."""
    log: list[Any] = field(default_factory=list)
    """What each leg gave."""
    owes: list[Any] = field(default_factory=list)
    """What the last state that can be undone did, and how often its undo fails."""

    @property
    def leg(self) -> Leg:
        """Where it is."""
        return self.legs[self.at]

    @property
    def here(self) -> S:
        """The state of its leg."""
        kind, what = self.leg[0], self.leg[1]
        return S[what if kind == "end" else kind.upper()]

    def go_on(self, gave: Any) -> S:
        """To the next leg, every other time by way of the router."""
        self.log.append(gave)
        self.at += 1
        self.turn = 0
        return S.ROUTE if self.at % 2 else self.here

    def turned(self, turns: int) -> bool:
        """Whether it has gone round often enough."""
        self.turn += 1
        return self.turn >= turns


async def act(name: str, millis: int, *, fails: int = 0, is_held: bool = False, is_undo: bool = False) -> None:
    """Do something to the world, half-way through the time that it takes."""
    attempt, loop = CURRENT_STEP.get(), running_loop()
    assert isinstance(attempt, Attempt)
    ledger = loop.ledger
    assert isinstance(ledger, Ledger)
    ledger.begin(loop, attempt)
    ledger.effects.begin(attempt, name, is_undo=is_undo)
    try:
        await asyncio.sleep(millis / 2000)
        if attempt.command.attempt <= fails:
            raise Bumped(f"attempt {attempt.command.attempt} at {name}")
        if is_held:
            ledger.effects.do(attempt, name)
        if is_undo:
            ledger.effects.undo(attempt, name)
        await asyncio.sleep(millis / 2000)
    except BaseException:
        ledger.stop(loop, attempt)
        raise
    ledger.end(loop, attempt)


def pay(cell: str, name: str) -> None:
    """Call something that stands behind a limit or a breaker."""
    loop = running_loop()
    assert isinstance(loop.ledger, Ledger)
    loop.ledger.limits.begin(loop, cell, name)


# -- States ------------------------------------------------------------------------------------------------------------


async def work(trip: Trip) -> S:
    """A plain state; also what comes behind a timer."""
    _, tag, millis, fails, *_ = trip.leg
    await act(tag, millis, fails=fails)
    return trip.go_on(tag)


@step(name="simulated.return", retry=Retry(attempts=UNDO_ATTEMPTS, first=0.2))
async def give_back(trip: Trip) -> None:
    """Undo a state."""
    name, fails, millis = trip.owes
    await act(name, millis, fails=fails, is_undo=True)


async def take(trip: Trip) -> S:
    """A state that can be undone, so many times."""
    _, tag, turns, millis, fails, undo_fails = trip.leg
    name = f"{tag}/{trip.turn}"
    await act(name, millis, fails=fails if trip.turn == 0 else 0, is_held=True)
    trip.owes = [name, undo_fails, millis]
    return trip.go_on([tag, turns]) if trip.turned(turns) else S.BOOK


async def loop(trip: Trip) -> S:
    """A circle."""
    _, tag, turns, millis = trip.leg
    await act(f"{tag}/{trip.turn}", millis)
    return trip.go_on([tag, turns]) if trip.turned(turns) else S.LOOP


async def poll(trip: Trip) -> S | Pending:
    """Pending so many times."""
    _, tag, turns, pause, millis = trip.leg
    await act(f"{tag}/{trip.turn}", millis)
    return trip.go_on([tag, turns]) if trip.turned(turns + 1) else Pending(pause / 1000)


async def stepped(trip: Trip, cursor: int | None) -> S | More[int]:
    """A cursor that goes so far."""
    _, tag, count, millis = trip.leg
    place = 0 if cursor is None else cursor
    await act(f"{tag}/{place}", millis)
    return More(place + 1) if place + 1 < count else trip.go_on([tag, count])


async def limited(trip: Trip) -> S:
    """A circle behind a limit that all workers share."""
    _, tag, turns, millis = trip.leg
    pay(LIMIT_CELL, tag)
    await act(f"{tag}/{trip.turn}", millis)
    return trip.go_on([tag, turns]) if trip.turned(turns) else S.LIMITED


async def fragile(trip: Trip) -> S:
    """Something behind a breaker that all workers share."""
    _, tag, millis, fails = trip.leg
    pay(BREAKER_CELL, tag)
    await act(tag, millis, fails=fails)
    return trip.go_on(tag)


# -- States that are more than one step --------------------------------------------------------------------------------


@step(name="simulated.drop")
async def drop(name: str) -> None:
    """Undo a step."""
    await act(name, 20, is_undo=True)


async def _branch(trip: Trip, place: int, name: str, *, is_held: bool) -> str:
    _, tag, millis, fails = trip.leg
    await act(f"{tag}/{name}", millis[place], fails=ATTEMPTS if fails[place] else 0, is_held=is_held)
    return f"{tag}/{name}"


@step(name="simulated.branch_a", undo=drop)
async def branch_a(trip: Trip) -> str:
    """The first branch, which can be undone."""
    return await _branch(trip, 0, "a", is_held=True)


@step(name="simulated.branch_b", undo=drop)
async def branch_b(trip: Trip) -> str:
    """The second branch, which can be undone."""
    return await _branch(trip, 1, "b", is_held=True)


async def branch_c(trip: Trip) -> str:
    """The third branch, which cannot."""
    return await _branch(trip, 2, "c", is_held=False)


def merge(trip: Trip, results: dict[str, Any]) -> None:
    """Which branches have succeeded."""
    trip.go_on(sorted(result for result in results.values() if isinstance(result, str)))


async def load(trip: Trip) -> list[list[Any]]:
    """The items of a batch."""
    _, tag, count, millis, bad = trip.leg
    await act(f"{tag}/load", 5)
    return [[f"{tag}/{number}", millis, number == bad] for number in range(count)]


@step(name="simulated.parcel")
async def parcel(order: list[Any]) -> str:
    """One item of a batch."""
    name, millis, is_bad = order
    await act(name, millis, fails=ATTEMPTS if is_bad else 0)
    return str(name)


async def unload(trip: Trip, results: list[Any]) -> S:
    """The end of a batch."""
    tag = trip.leg[1]
    await act(f"{tag}/unload", 5)
    return trip.go_on([result if isinstance(result, str) else "failed" for result in results])


@step(name="simulated.hold", undo=drop)
async def hold(name: str, millis: int) -> str:
    """A step of workflow code that can be undone."""
    await act(name, millis, is_held=True)
    return name


@workflow(name="simulated.errand")
async def errand(name: str, millis: int) -> str:
    """A child, with something that can be undone."""
    return await hold(name, millis)


async def ask(trip: Trip) -> S:
    """Wait for what the world says, call a step, and have a child."""
    _, tag, count, millis = trip.leg
    first = await hold(f"{tag}/first", millis)
    heard = [await wait_for_signal(tag, int) for _ in range(count)]
    return trip.go_on([first, heard, await errand(f"{tag}/last", millis)])


# -- The machines ------------------------------------------------------------------------------------------------------


def _machine(name: str, snapshot_after: int | None) -> Machine[S, Trip]:
    machine = Machine(
        name, S, data=Trip, start=S.ROUTE, exits=[S.DONE, S.LOST], snapshot_after=snapshot_after, undo_timeout=600
    )
    anywhere, retry = list(S), Retry(attempts=ATTEMPTS, first=0.1)
    machine.router(S.ROUTE, to=anywhere)(_route)
    machine.state(S.WORK, to=anywhere, retry=retry)(work)
    machine.timer(S.TIMER, _pause, then=S.WORK)
    machine.state(S.BOOK, to=anywhere, retry=retry, undo=give_back)(take)
    machine.state(S.LOOP, to=anywhere)(loop)
    machine.poll(S.POLL, to=anywhere)(poll)
    machine.stepped(S.STEPPED, to=anywhere)(stepped)
    machine.state(S.LIMITED, to=anywhere, limit=LIMIT)(limited)
    machine.state(S.FRAGILE, to=anywhere, retry=retry, breaker=BREAKER)(fragile)
    branches: dict[str, Branch] = {"a": branch_a, "b": branch_b, "c": branch_c}
    machine.split(S.SPLIT, branches, join=All(then=S.ROUTE), merge=merge)
    machine.split(S.ANY, branches, join=AnyOne(then=S.ROUTE), merge=merge)
    machine.split(S.QUORUM, branches, join=Quorum(2, then=S.ROUTE), merge=merge)
    machine.batch(S.BATCH, to=anywhere, load=load, process=parcel, finish=unload, concurrency=2)
    machine.workflow(S.ASK, to=anywhere)(ask)
    machine.validate()
    return machine


def _route(trip: Trip) -> S:
    return trip.here


def _pause(trip: Trip) -> float:
    return float(trip.leg[4]) / 1000


PLAYED = {name: _machine(name, snapshot_after) for name, snapshot_after in SNAPSHOT_AFTER.items()}


def add_machines(registry: Registry) -> None:
    """Let a worker run them."""
    for machine in PLAYED.values():
        registry.add_workflow(machine.spec)
    registry.add_workflow(errand.spec)
    for known in (give_back, drop, branch_a, branch_b, parcel, hold):
        registry.add_step(known.spec)


def told(result: MachineResult[S, Trip]) -> str:
    """What a user takes down of the end of a machine; see `judge`."""
    return f"{result.state.name} {result.data.log}"
