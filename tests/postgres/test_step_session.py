"""The sessions that steps write in: each begins as if it were new, and none of them outlasts its use."""

from __future__ import annotations

import asyncio

import pytest

from outlive._kernel.store.contract import Outcome
from outlive._kernel.store.postgres import PostgresStore, connection
from outlive._kernel.store.postgres import transaction as transaction_module
from outlive._kernel.store.postgres.store import STEP_SESSIONS_MAX
from outlive.errors.store import TransactionOverError
from outlive_conformance.suite.builders import begin, stepped
from tests.postgres.support import connected, in_time, until

ROLE = "DO $$ BEGIN CREATE ROLE tenant; EXCEPTION WHEN duplicate_object THEN END $$"


@pytest.mark.parametrize(
    ("statement", "look"),
    [
        ("SET search_path TO elsewhere", "SELECT current_setting('search_path') <> 'elsewhere'"),
        ("SET ROLE pg_monitor", "SELECT current_user = session_user"),
        ("CREATE TEMPORARY TABLE scratch (n int)", "SELECT to_regclass('scratch') IS NULL"),
        ("LISTEN bell", "SELECT NOT EXISTS (SELECT FROM pg_listening_channels())"),
        (
            "SELECT pg_advisory_lock(7)",
            "SELECT NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())",
        ),
    ],
)
async def test_no_step_finds_what_another_one_has_set(store: PostgresStore, statement: str, look: str) -> None:
    """A search path or a role that stays would lead the next step to another tenant's rows."""
    tree = await begin(store)
    transaction = await store.begin()
    pid = await transaction.handle.fetchval("SELECT pg_backend_pid()")
    await transaction.handle.execute(statement)
    assert await transaction.commit([tree.change(stepped(store))]) == [(Outcome.COMMITTED, tree.journal)]

    # All sessions there are, so that the same one is among them.
    later = [await in_time(store.begin()) for _ in range(STEP_SESSIONS_MAX)]

    for each in later:
        if await each.handle.fetchval("SELECT pg_backend_pid()") == pid:
            assert await each.handle.fetchval(look)
            break
    else:
        pytest.fail("the session was thrown away")
    for each in later:
        await each.rollback()


@pytest.mark.parametrize("statement", ["SET LOCAL ROLE tenant", "SELECT set_config('role', 'tenant', true)"])
async def test_step_may_work_as_another_role(store: PostgresStore, postgres_url: str, statement: str) -> None:
    """The journal is written by us all the same: the other one has no rights on it."""
    async with connected(postgres_url) as admin:
        await admin.execute(ROLE)
    tree = await begin(store)
    transaction = await store.begin()
    await transaction.handle.execute(statement)

    assert await transaction.commit([tree.change(stepped(store))]) == [(Outcome.COMMITTED, tree.journal)]


async def test_transaction_whose_time_is_up_releases_its_locks(
    store: PostgresStore, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transaction whose time is up releases its locks, even in the middle of a long statement."""
    monkeypatch.setattr(transaction_module, "SLACK_SECONDS", 60)  # The server ends it by itself only much later.
    async with connected(postgres_url) as other:
        transaction = await store.begin(seconds_max=0.2)
        with pytest.raises(TransactionOverError, match="took more than"):
            await transaction.handle.execute("SELECT pg_advisory_xact_lock(8), pg_sleep(600)")

        async with asyncio.timeout(10):
            await other.execute("SELECT pg_advisory_lock(8)")


async def test_statement_of_a_step_may_take_longer_than_ours(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The only limit is that of the transaction."""
    transaction = await store.begin(seconds_max=30)
    with monkeypatch.context() as patch:
        patch.setattr(connection, "PATIENCE_SECONDS", 0.2)
        assert await transaction.handle.fetchval("SELECT pg_sleep(0.5) IS NULL") is False

    await transaction.rollback()


async def test_transaction_that_ends_after_the_store_was_closed_leaves_no_connection(
    store: PostgresStore, postgres_url: str
) -> None:
    """No code would ever close it."""
    transaction = await store.begin()
    pid = await transaction.handle.fetchval("SELECT pg_backend_pid()")
    await store.close()

    await transaction.rollback()

    async with connected(postgres_url) as other:

        async def is_gone() -> bool:
            return not await other.fetchval("SELECT count(*) FROM pg_stat_activity WHERE pid = $1", pid)

        await until(is_gone)


async def test_transaction_comes_after_every_commit_that_was_asked_for_before(store: PostgresStore) -> None:
    """A transaction commits after every commit that was asked for before it, even one that waits for a connection."""
    tree, other = await begin(store, "run-1"), await begin(store, "run-2")
    transaction = await store.begin()
    session = await store.pools.writer.take()
    first = asyncio.ensure_future(store.commit([tree.change(stepped(store))]))
    await asyncio.sleep(0)
    second = asyncio.ensure_future(transaction.commit([other.change(stepped(store))]))
    await in_time(transaction_would_have_ended(store))
    assert not second.done()

    store.pools.writer.give(session)
    await in_time(second)

    assert first.done()


async def transaction_would_have_ended(store: PostgresStore) -> None:
    """More round trips to the server than a commit takes."""
    for _ in range(10):
        await store.find_run("run-1")
