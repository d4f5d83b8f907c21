"""Transactions of the memory store, where nothing happens between two awaits and so every order can be had."""

from __future__ import annotations

import asyncio

import apsw
import pytest

from outlive._kernel.store.memory import MemoryStore
from outlive.testing.clock import ManualClock


async def test_turn_of_a_waiter_that_gave_up_goes_to_the_next_one() -> None:
    """It gives up at the very moment at which it could have begun."""
    store = MemoryStore(clock=ManualClock())
    await store.open()
    first = await store.begin()
    quitter, next_one = asyncio.ensure_future(store.begin()), asyncio.ensure_future(store.begin())
    await asyncio.sleep(0)

    await first.rollback()
    quitter.cancel()

    async with asyncio.timeout(10):
        await (await next_one).rollback()
    assert quitter.cancelled()
    await store.close()


async def test_waiter_that_gave_up_before_its_turn_blocks_no_other() -> None:
    """The next one in the line begins."""
    store = MemoryStore(clock=ManualClock())
    await store.open()
    first = await store.begin()
    quitter, next_one = asyncio.ensure_future(store.begin()), asyncio.ensure_future(store.begin())
    await asyncio.sleep(0)

    quitter.cancel()
    await asyncio.wait([quitter])
    assert not next_one.done()
    await first.rollback()

    async with asyncio.timeout(10):
        await (await next_one).rollback()
    await store.close()


async def test_a_transaction_that_the_database_gave_up_makes_room_when_it_is_rolled_back() -> None:
    """Though there is nothing left to roll back."""
    store = MemoryStore(clock=ManualClock())
    await store.open()
    given_up = await store.begin()
    await given_up.handle.execute("CREATE TABLE seats (id INTEGER PRIMARY KEY)")
    await given_up.handle.execute("INSERT INTO seats VALUES (1)")
    with pytest.raises(apsw.ConstraintError):
        await given_up.handle.execute("INSERT OR ROLLBACK INTO seats VALUES (1)")

    await given_up.rollback()

    async with asyncio.timeout(10):
        await (await store.begin()).rollback()
    await store.close()
