"""The steps of a storm: every kind that there is. Each marks what it really does."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import outlive
from outlive.errors.store import TransactionOverError
from proof.storm.effects import effect
from proof.storm.insistence import insist
from proof.storm.op import Booked, Op
from proof.storm.places import statement

MILLISECONDS = 1_000
STEP_TIMEOUT_SECONDS = 0.3
STUCK_SECONDS = 30.0
PIECES = 4
SOON = outlive.Retry(attempts=5, first=0.02, cap=0.1, on=(ConnectionError,))
LATER = outlive.Retry(attempts=5, first=0.2, cap=0.5, on=(ConnectionError,))
"""So long that a worker which stands still has attempts to begin when it goes on: it must look at its lease first."""
INSERT = statement("insert_into_ledger")


@outlive.step(name="storm.work")
async def work(place: int, value: int) -> int:
    """Something that takes a moment."""
    with effect(place):
        await asyncio.sleep(value / MILLISECONDS)
    return value


@outlive.step(name="storm.work_on_thread")
def work_on_thread(place: int, value: int) -> int:
    """The same, in a sync function."""
    with effect(place):
        time.sleep(value / MILLISECONDS)
    return value


@outlive.step(name="storm.work_in_process", process=True)
def work_in_process(place: int, value: int) -> int:
    """The same, in a process of its own."""
    with effect(place):
        time.sleep(value / MILLISECONDS)
    return value


@outlive.step(name="storm.flaky", retry=LATER)
async def flaky(place: int, value: int, fails: int) -> int:
    """Fails as often as planned."""
    with effect(place):
        await asyncio.sleep(value / MILLISECONDS)
        if outlive.current_step().attempt <= fails:
            raise ConnectionError("planned")
    return value


@outlive.step(
    name="storm.slow",
    timeout=STEP_TIMEOUT_SECONDS,
    retry=outlive.Retry(attempts=20, first=0.02, cap=0.1, on=(TimeoutError,)),
)
async def slow(place: int, value: int) -> int:
    """Hangs in its first attempt until its timeout."""
    with effect(place):
        await asyncio.sleep(STUCK_SECONDS if outlive.current_step().attempt == 1 else 0)
    return value


@outlive.step(name="storm.in_pieces")
async def in_pieces(place: int, value: int) -> int:
    """Saves how far it came."""
    me = outlive.current_step()
    with effect(place):
        for piece in range(me.last_progress or 0, PIECES):
            await asyncio.sleep(value / MILLISECONDS / PIECES)
            me.heartbeat(piece + 1)
    return value


@outlive.step(name="storm.broken", retry=outlive.Retry(attempts=2, first=0.02, on=(ValueError,)))
async def broken(place: int) -> int:
    """Fails always."""
    with effect(place):
        raise ValueError("planned")


@outlive.step(name="storm.note")
async def note(place: int, fact: int) -> int:
    """Know who won a race, or what a person decided: a replay that thinks otherwise contradicts the journal."""
    with effect(place):
        return fact


@outlive.step(name="storm.tidy")
async def tidy(place: int) -> None:
    """Clean up after a cancelled program."""
    with effect(place):
        await asyncio.sleep(0)


@outlive.step(name="storm.once", once=True, retry=SOON)
async def call_once(place: int, value: int, fails: int) -> int:
    """May be called once for each attempt; fails as often as planned."""
    with effect(place):
        await asyncio.sleep(value / MILLISECONDS)
        if outlive.current_step().attempt <= fails:
            raise ConnectionError("planned")
    return value


@outlive.step(
    name="storm.write",
    transaction=True,
    retry=outlive.Retry(attempts=20, first=0.02, cap=0.1, on=(ConnectionError, TransactionOverError)),
)
async def write(tx: Any, place: int, value: int, fails: int) -> int:
    """Writes a row into the store's own database; what it wrote before it fails by plan must not stay."""
    with effect(place):
        await tx.execute(INSERT, outlive.current_step().idempotency_key, place, value)
        if outlive.current_step().attempt <= fails:
            raise ConnectionError("planned")
    return value


@outlive.step(
    name="storm.write_item",
    transaction=True,
    retry=outlive.Retry(attempts=20, first=0.02, cap=0.1, on=(TransactionOverError,)),
    raises=(ValueError,),
)
def write_item(tx: Any, item: Op) -> int:
    """The same for an item of a batch, on a thread; some fail for good by plan, and leave nothing."""
    with effect(item.place):
        tx.execute(INSERT, outlive.current_step().idempotency_key, item.place, item.value)
        if item.fails:
            raise ValueError("planned")
    return item.value


@outlive.step(name="storm.handle_item", raises=(ValueError,))
async def handle_item(item: Op) -> int:
    """One of many; some fail by plan."""
    with effect(item.place):
        await asyncio.sleep(item.value / MILLISECONDS)
        if item.fails:
            raise ValueError("planned")
    return item.value


@outlive.step(name="storm.show")
async def show(place: int, value: int) -> int:
    """Publishes faster than any store can write; the last word counts."""
    with effect(place):
        for part in range(value + 1):
            outlive.publish(**{f"shown-{place}": part})
        await asyncio.sleep(0)
    return value


@outlive.step(name="storm.emit")
async def emit_all(place: int, value: int) -> int:
    """Emits the numbers from 0 on; an attempt that is interrupted begins again."""
    with effect(place):
        for number in range(value):
            await outlive.emit(f"stream-{place}", number)
    return value


@outlive.step(name="storm.need_repair")
async def need_repair(place: int, number: int) -> None:
    """Fails for good until a client has left a repair in the store. That the store is away is not what it fails of."""
    checkpoints = outlive.current_engine().checkpoints
    with effect(place):
        if not await insist(lambda: checkpoints.load_run(f"repair-{number}")):
            raise ValueError("planned: it needs a repair")


@outlive.step(name="storm.unbook", retry=outlive.Retry(attempts=5, first=0.02, cap=0.1, on=(ConnectionError,)))
async def unbook(booked: Booked) -> None:
    """Undoes a booking; the first attempt fails for some."""
    with effect(booked.place):
        await asyncio.sleep(booked.value / MILLISECONDS / 4)
        if booked.value % 4 == 0 and outlive.current_step().attempt == 1:
            raise ConnectionError("planned")


@outlive.step(name="storm.book", undo=unbook)
async def book(place: int, value: int) -> Booked:
    """Books something."""
    with effect(place):
        await asyncio.sleep(value / MILLISECONDS / 4)
    return Booked(place, value)
