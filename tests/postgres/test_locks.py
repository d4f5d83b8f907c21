"""Locks: taken in one order by all transactions, so that none waits for one that waits for it."""

from __future__ import annotations

import asyncio

from outlive._journal.event import RunReleased
from outlive._store.postgres import PostgresStore
from outlive.testing.conformance.builders import begin, message, read_names
from tests.postgres.support import connected, in_time, is_waiting_for_lock, until

LOCK = "SELECT key FROM place.runs WHERE id = $1 FOR UPDATE"


async def test_trees_that_write_to_each_other_do_not_block_each_other(store: PostgresStore, postgres_url: str) -> None:
    """A transaction that waits for the first of two trees has not locked the second: its owner may wait for the first.

    PostgreSQL would find out after a second, and all commits would stand still meanwhile.
    """
    first, second = await begin(store, "first"), await begin(store, "second")
    async with connected(postgres_url) as blocker, connected(postgres_url) as looker:
        async with blocker.transaction():
            await blocker.fetchval(LOCK, "first")
            writing = asyncio.ensure_future(
                second.write(RunReleased(at=store.now()), messages=[message(store, "first")])
            )
            await until(lambda: is_waiting_for_lock(looker))

            assert await looker.fetchval(f"{LOCK} SKIP LOCKED", "second") == second.journal

        await in_time(writing)

    assert await read_names(store, first) == ["go"]
