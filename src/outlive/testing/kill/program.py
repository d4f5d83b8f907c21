"""The workflow of the kill trials: an interpreter of little programs.

A program is data: a list of operations, some with parts. Each adds a known number, so the result of a program is
known before it runs, whatever happens to the workers meanwhile. The operations are the things people write: steps of
all kinds, gathers, races, timers, signals, children.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

import outlive
from outlive.testing.kill.effects import effect

MILLISECONDS = 1_000
EXPIRE_SECONDS = 0.1
PATIENCE_SECONDS = 0.05
STEP_TIMEOUT_SECONDS = 0.3
STUCK_SECONDS = 30.0
PIECES = 4


@dataclass(frozen=True)
class Op:
    """One operation of a program."""

    kind: str
    place: int
    """Its number, unique in the program and in everything that the program starts."""
    value: int = 0
    """What it adds to the result; a signal adds what it carries."""
    parts: tuple[Op, ...] = ()
    fails: int = 0
    """How often it fails by plan before it succeeds."""
    id: str = ""
    """The id of the detached run that it starts."""


@dataclass(frozen=True)
class Program:
    """What one run does, and how it ends."""

    ops: tuple[Op, ...]
    ending: str = "return"
    """`return` the total, `raise` it, or `wait` for something that never comes."""


@outlive.workflow(name="kill.program")
async def program(plan: Program) -> int:
    """Perform the operations in order; the result is the sum of what they add."""
    try:
        total = 0
        for op in plan.ops:
            total += await perform(op)
        match plan.ending:
            case "raise":
                raise ValueError(f"planned: {total}")
            case "wait":
                await outlive.wait_for_signal("never")
            case _:
                pass
        return total
    except asyncio.CancelledError:
        await tidy(-plan.ops[0].place)
        raise


async def perform(op: Op) -> int:
    """Do one operation; the number that it adds."""
    match op.kind:
        case "work":
            return await work(op.place, op.value)
        case "thread":
            return await work_on_thread(op.place, op.value)
        case "flaky":
            return await flaky(op.place, op.value, op.fails)
        case "slow":
            return await slow(op.place, op.value)
        case "pieces":
            return await in_pieces(op.place, op.value)
        case "broken":
            return await give_up(op)
        case "nap":
            await asyncio.sleep(op.value / MILLISECONDS)
            return op.value
        case "expire":
            return await expire(op)
        case "signal":
            return await outlive.wait_for_signal("go", int)
        case "patience":
            return await patience()
        case "gather":
            return sum(await asyncio.gather(*(perform(part) for part in op.parts)))
        case "race":
            return await race(op)
        case "child":
            return await program(Program(op.parts))
        case "detached":
            child = await outlive.start(program, Program(op.parts), detached=True, id=op.id)
            return await child.result()
        case "orphan":
            await outlive.start(program, Program(op.parts), detached=True, id=op.id)
            return op.value
        case _:
            raise AssertionError(f"no operation is called {op.kind}")


async def give_up(op: Op) -> int:
    """A step that fails for good, and a workflow that takes it well."""
    try:
        await broken(op.place)
    except ValueError:
        return op.value
    return -1


async def expire(op: Op) -> int:
    """Wait for what never comes, until a durable timeout."""
    try:
        async with asyncio.timeout(EXPIRE_SECONDS):
            await outlive.wait_for_signal("never")
    except TimeoutError:
        return op.value
    return -1


async def patience() -> int:
    """A signal against a timeout: whichever is first, the signal is not lost."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await outlive.wait_for_signal("go", int)
    except TimeoutError:
        return await outlive.wait_for_signal("go", int)


async def race(op: Op) -> int:
    """The first of the parts wins; a step is told which, so a replay with another winner contradicts the journal."""
    tasks = [asyncio.create_task(perform(part)) for part in op.parts]
    done, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    winner = min(tasks.index(task) for task in done)
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
    await note(op.place, winner)
    return op.value


@outlive.step(name="kill.work")
async def work(place: int, value: int) -> int:
    """Something that takes a moment."""
    with effect(place):
        await asyncio.sleep(value / MILLISECONDS)
    return value


@outlive.step(name="kill.work_on_thread")
def work_on_thread(place: int, value: int) -> int:
    """The same, in a sync function."""
    with effect(place):
        time.sleep(value / MILLISECONDS)
    return value


@outlive.step(name="kill.flaky", retry=outlive.Retry(attempts=5, first=0.02, cap=0.1, on=(ConnectionError,)))
async def flaky(place: int, value: int, fails: int) -> int:
    """Fails as often as planned."""
    with effect(place):
        await asyncio.sleep(value / MILLISECONDS)
        if outlive.current_step().attempt <= fails:
            raise ConnectionError("planned")
    return value


@outlive.step(
    name="kill.slow",
    timeout=STEP_TIMEOUT_SECONDS,
    retry=outlive.Retry(attempts=20, first=0.02, cap=0.1, on=(TimeoutError,)),
)
async def slow(place: int, value: int) -> int:
    """Hangs in its first attempt until its timeout."""
    with effect(place):
        await asyncio.sleep(STUCK_SECONDS if outlive.current_step().attempt == 1 else 0)
    return value


@outlive.step(name="kill.in_pieces")
async def in_pieces(place: int, value: int) -> int:
    """Saves how far it came."""
    me = outlive.current_step()
    with effect(place):
        for piece in range(me.last_progress or 0, PIECES):
            await asyncio.sleep(value / MILLISECONDS / PIECES)
            me.heartbeat(piece + 1)
    return value


@outlive.step(name="kill.broken", retry=outlive.Retry(attempts=2, first=0.02, on=(ValueError,)))
async def broken(place: int) -> int:
    """Fails always."""
    with effect(place):
        raise ValueError("planned")


@outlive.step(name="kill.note")
async def note(place: int, winner: int) -> int:
    """Know who won a race."""
    with effect(place):
        return winner


@outlive.step(name="kill.tidy")
async def tidy(place: int) -> None:
    """Clean up after a cancelled program."""
    with effect(place):
        await asyncio.sleep(0)
