"""A journal that forgets has no hole that a paused writer could write into."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
from msgspec.structs import replace

from outlive._kernel.store.contract import Change, Forgotten, Outcome
from outlive._kernel.store.postgres import PostgresStore
from outlive._kernel.store.postgres.address import parse_address
from outlive_conformance.suite.builders import Writer, begin, stepped
from outlive_conformance.suite.forgetting import snapshot
from tests.postgres.support import connected, in_time, until

LOCK = 4711
STALL = """
CREATE FUNCTION {schema}.stall() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF position('late' IN convert_from(NEW.body, 'UTF8')) > 0 THEN
        PERFORM pg_advisory_xact_lock({lock});
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER stall BEFORE INSERT ON {schema}.events FOR EACH ROW EXECUTE FUNCTION {schema}.stall();
"""
DROP = "DROP FUNCTION {schema}.stall() CASCADE"
WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted"


async def test_writer_that_pauses_between_looking_and_writing_finds_no_hole(
    store: PostgresStore, other: PostgresStore, postgres_url: str
) -> None:
    """A late writer has seen the event that it builds on. Before it writes, another writer takes over, goes on and
    wants to forget that event: it has to wait for the late writer, so that the journal keeps no hole."""
    tree = await begin(store)
    late = tree.twin(other)
    async with connected(postgres_url) as raw, stalling(raw, parse_address(postgres_url).schema):
        await raw.execute(f"SELECT pg_advisory_lock({LOCK})")
        paused = asyncio.create_task(other.commit([guarded(late.change(stepped(store, "late")))]))
        await is_waiting(raw, 1)

        overtaking = asyncio.create_task(go_on_and_forget(tree))
        await is_waiting(raw, 2)
        await raw.execute(f"SELECT pg_advisory_unlock({LOCK})")

        assert [outcome for outcome, _ in await in_time(paused)] == [Outcome.COMMITTED]
        assert await in_time(overtaking) is Outcome.CONFLICT
    assert [row[0] for row in await store.read_journal(tree.journal)] == [0, 1]


@asynccontextmanager
async def stalling(raw: asyncpg.Connection, schema: str) -> AsyncIterator[None]:
    """Let writers of the event `late` wait for the lock; other tests use the same schema afterwards."""
    await raw.execute(STALL.format(schema=schema, lock=LOCK))
    try:
        yield
    finally:
        await raw.execute(DROP.format(schema=schema))


async def go_on_and_forget(tree: Writer) -> Outcome:
    """What another worker does: an event where the paused one wants to write, and if it may, a snapshot."""
    ((outcome, _),) = await tree.store.commit([guarded(tree.change(stepped(tree.store, "ahead")))])
    if outcome is Outcome.COMMITTED:
        await tree.catch_up()
        await tree.store.commit([guarded(tree.change(snapshot(tree), forgets=Forgotten(2, 1)))])
    return outcome


def guarded(change: Change) -> Change:
    """As a machine that takes snapshots writes it."""
    return replace(change, is_guarded=True)


async def is_waiting(raw: asyncpg.Connection, count: int) -> None:
    """Return when so many wait for a lock."""

    async def are_waiting() -> bool:
        return bool(await raw.fetchval(WAITING) == count)

    await until(are_waiting)
