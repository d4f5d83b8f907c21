"""The handlers of states: each goes the leg that its machine is at."""

from __future__ import annotations

from typing import Any

from outlive._features.machines.answer import More, Pending
from outlive._kernel.define.decide import patched, publish
from outlive._kernel.define.in_run import random, wait_for_signal
from outlive._kernel.define.in_step import current_step
from outlive._kernel.define.step import Step, step
from outlive._kernel.define.workflow import workflow
from outlive._kernel.model import Retry
from outlive.errors import RateLimitedError
from proof.simulation.clock import running_loop
from proof.simulation.ledger import Ledger
from proof.simulation.machines.legs import ATTEMPTS, UNDO_ATTEMPTS
from proof.simulation.machines.limits import BREAKER_CELL, IMPATIENT, LIMIT, LIMIT_CELL
from proof.simulation.machines.trip import S, Trip, act, pay

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


async def once(trip: Trip) -> S:
    """A state that may be begun only once."""
    _, tag, millis = trip.leg
    await act(tag, millis)
    return trip.go_on(tag)


async def slow(trip: Trip) -> S:
    """A state that may take too long, the first time."""
    _, tag, millis = trip.leg
    await act(tag, millis if current_step().attempt == 1 else 10)
    return trip.go_on(tag)


async def poison(trip: Trip) -> S:
    """Kill the worker, until the world is healed."""
    loop = running_loop()
    assert isinstance(loop.ledger, Ledger)
    if loop.ledger.is_poisonous:
        loop.fuse = 0
    await act(trip.leg[1], 10)
    return trip.go_on(trip.leg[1])


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
    """Something behind a breaker and a limit that all workers share."""
    _, tag, millis, fails = trip.leg
    pay(BREAKER_CELL, tag)
    pay(LIMIT_CELL, tag)
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


@step(name="simulated.let_go", limit=LIMIT, retry=Retry(attempts=UNDO_ATTEMPTS, first=0.2))
async def let_go(name: str) -> None:
    """Undo a step, behind a limit."""
    pay(LIMIT_CELL, name)
    await act(name, 20, is_undo=True)


@step(name="simulated.hold", undo=let_go)
async def hold(name: str, millis: int, number: float = 0.0) -> str:
    """A step of workflow code that can be undone."""
    await act(name, millis, is_held=True)
    return name


@step(name="simulated.toll", limit=IMPATIENT)
async def toll(name: str) -> str:
    """A step that does not wait for its limit."""
    pay(LIMIT_CELL, name)
    await act(name, 20)
    return name


@workflow(name="simulated.errand", strict_arguments=True)
async def errand(name: str, millis: int) -> str:
    """A child, with something that can be undone."""
    return await hold(name, millis)


async def ask(trip: Trip) -> S:
    """Show where it is, call steps, wait for what the world says, and have a child."""
    _, tag, count, millis = trip.leg
    publish(at=tag)
    # A replay that draws another number asks with other arguments, and that is noticed.
    first = await hold(f"{tag}/first", millis, random())
    heard = [await wait_for_signal(tag, int) for _ in range(count)]
    try:
        paid = await toll(f"{tag}/toll") if patched(f"toll.{tag}") else "never"
    except RateLimitedError:
        paid = "refused"
    return trip.go_on([first, heard, paid, await errand(f"{tag}/last", millis)])


STEPS: tuple[Step[..., Any], ...] = (give_back, drop, branch_a, branch_b, parcel, let_go, hold, toll)
"""What a worker must have besides the machines."""
