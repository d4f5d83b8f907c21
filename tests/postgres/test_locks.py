"""Locks: taken in one order by all transactions, so that none waits for one that waits for it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from outlive._kernel.model.queue import queue_cell
from outlive._kernel.store.contract import Outcome
from outlive._kernel.store.postgres import PostgresStore
from outlive._kernel.store.postgres.connection import Session
from outlive.errors import StoreUnavailableError
from outlive.events import RunReleased
from outlive_conformance.suite.builders import begin, claim, hire, message, new_tree, read_names
from outlive_conformance.suite.eager import eager
from outlive_conformance.suite.queues import QUEUE, limit
from tests.postgres.conftest import Opener
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


async def test_process_that_stands_still_in_a_claim_does_not_hold_up_the_queue(
    store: PostgresStore, postgres_url: str, open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server ends its transaction after a second, and the next worker takes the run."""
    other = await open_store(postgres_url)
    for worker in ("frozen", "other"):
        await hire(store, worker)
    await limit(store, concurrency=1)
    await begin(store, queue=QUEUE)
    fetch, stands_still, goes_on = Session.fetch, asyncio.Event(), asyncio.Event()

    async def stand_still(self: Session, name: str, *values: Any) -> Any:
        if name == "count_slots" and not stands_still.is_set():
            stands_still.set()
            await goes_on.wait()
        return await fetch(self, name, *values)

    monkeypatch.setattr(Session, "fetch", stand_still)
    claiming = asyncio.ensure_future(claim(store, "frozen"))
    await in_time(stands_still.wait())

    assert await in_time(claim(other, "other")) == ["run-1"]
    goes_on.set()
    with pytest.raises(StoreUnavailableError):
        await in_time(claiming)


async def test_new_run_gets_in_line_rather_than_wait_for_a_claim(store: PostgresStore, postgres_url: str) -> None:
    """The lock of its queue is another one's: what is committed with the run waits for nothing."""
    await store.commit([eager(store, "before")])
    async with connected(postgres_url) as blocker, blocker.transaction():
        await blocker.fetchval("SELECT name FROM place.cells WHERE name = $1 FOR UPDATE", queue_cell(QUEUE))

        outcomes = await in_time(store.commit([new_tree(store, "other"), eager(store, "run-1")]))

    assert [outcome for outcome, _ in outcomes] == [Outcome.COMMITTED, Outcome.MUST_WAIT]


async def test_limit_waits_for_the_runs_that_begin_without_one(store: PostgresStore, postgres_url: str) -> None:
    """A run that began when nothing was limited is there to be counted when the limit is."""
    async with connected(postgres_url) as blocker, connected(postgres_url) as looker:
        await store.commit([eager(store, "first")])
        async with blocker.transaction():
            # As the transaction of a run that begins has it.
            await blocker.fetchval("SELECT name FROM place.cells WHERE name = $1 FOR SHARE", queue_cell(QUEUE))
            limiting = asyncio.ensure_future(limit(store, concurrency=1))
            await until(lambda: is_waiting_for_lock(looker))
        await in_time(limiting)

    ((outcome, _),) = await store.commit([eager(store, "second")])
    assert outcome is Outcome.MUST_WAIT
