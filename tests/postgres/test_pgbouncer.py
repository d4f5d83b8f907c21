"""Behind a real PgBouncer in transaction mode: two connections of the server for everybody."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import psycopg
import pytest

import outlive
from outlive._kernel.store.contract import Outcome
from outlive._kernel.store.postgres import PostgresStore, transaction
from outlive.testing.clock import ManualClock
from outlive_conformance.servers.pgbouncer import PgBouncer
from outlive_conformance.servers.postgres import PostgresServer
from outlive_conformance.suite.builders import begin, stepped
from tests.postgres.support import in_time

RUNS = 8


@outlive.step(transaction=True)
async def credit(tx: Any, account: str, cents: int) -> int:
    """Add to a balance, and say what it is."""
    query = "UPDATE accounts SET cents = cents + $2 WHERE id = $1 RETURNING cents"
    return int(await tx.fetchval(query, account, cents))


@outlive.step
async def fetch_cents(cents: int) -> int:
    """Some work of another kind."""
    await asyncio.sleep(0)
    return cents


@outlive.workflow
async def deposit(account: str, cents: int) -> int:
    """Both kinds of steps, a timer, and a signal for a big amount."""
    found = await fetch_cents(cents)
    await asyncio.sleep(0.001)
    if cents > 1_000:
        await outlive.wait_for_signal("allowed", bool)
    return await credit(account, found)


@pytest.fixture
def accounts(postgres_server: PostgresServer, postgres_place: str, pgbouncer_url: str) -> PostgresServer:
    """A table of the user's with one account, in the place that `pgbouncer_url` has emptied."""
    assert pgbouncer_url
    postgres_server.execute("CREATE TABLE accounts (id text PRIMARY KEY, cents int)", database=postgres_place)
    postgres_server.execute("INSERT INTO accounts VALUES ('a-1', 0)", database=postgres_place)
    return postgres_server


def balance(server: PostgresServer, database: str) -> int:
    """What is on the account."""
    ((cents,),) = server.execute("SELECT cents FROM accounts WHERE id = 'a-1'", database=database)
    return int(cents)


async def test_connections_change_hands(pgbouncer: PgBouncer, pgbouncer_url: str, postgres_place: str) -> None:
    """A session of the store talks to different connections of the server from one statement to the next."""
    store = PostgresStore(pgbouncer_url, clock=ManualClock())
    await store.open()
    user = await asyncpg.connect(pgbouncer.url(postgres_place), statement_cache_size=0)
    async with store.pools.writer.session(is_write=False) as session:
        before = await session.connection.fetchval("SELECT pg_backend_pid()")
        async with user.transaction():  # PgBouncer gives it the connection that was let go of last.
            assert await user.fetchval("SELECT pg_backend_pid()") == before
            assert await session.connection.fetchval("SELECT pg_backend_pid()") != before
    await user.close()
    await store.close()


async def test_transaction_makes_way(pgbouncer_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Transactions that hold all connections, and wait for a commit that needs one, do not wait for ever."""
    monkeypatch.setattr(transaction, "FLUSH_SECONDS_MAX", 0.1)
    store = PostgresStore(pgbouncer_url, clock=ManualClock())
    await store.open()
    trees = [await begin(store, f"run-{number}") for number in range(3)]
    first, second = await store.begin(), await store.begin()
    blocked = asyncio.ensure_future(store.commit([trees[0].change(stepped(store))]))
    await asyncio.sleep(0)

    with pytest.raises(outlive.errors.StoreUnavailableError, match="default_pool_size"):
        await in_time(first.commit([trees[1].change(stepped(store))]))
    ((outcome, _),) = await in_time(blocked)
    assert outcome is Outcome.COMMITTED
    ((outcome, _),) = await in_time(second.commit([trees[2].change(stepped(store))]))
    assert outcome is Outcome.COMMITTED
    await store.close()


async def test_runs_of_two_engines(
    accounts: PostgresServer, pgbouncer_url: str, postgres_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With more transactions than connections, transactions that block each other give way, and each commits once."""
    monkeypatch.setattr(transaction, "FLUSH_SECONDS_MAX", 0.1)
    async with (
        outlive.Engine(pgbouncer_url, poll_seconds=0.02) as engine,
        outlive.Engine(pgbouncer_url, poll_seconds=0.02) as other,
    ):
        runs = [await each.start(deposit, "a-1", 10) for _ in range(RUNS) for each in (engine, other)]
        big = await other.start(deposit, "a-1", 5_000, id="big")
        await engine.signal("big", "allowed", True, key="k-1")
        await engine.signal("big", "allowed", True, key="k-1")

        results = sorted([await in_time(run.result()) for run in [*runs, big]])

    assert len(set(results)) == 2 * RUNS + 1
    assert results[-1] == balance(accounts, postgres_place) == 2 * RUNS * 10 + 5_000


async def test_engine_goes_on_for_another(accounts: PostgresServer, pgbouncer_url: str, postgres_place: str) -> None:
    """One after the other."""
    async with outlive.Engine(pgbouncer_url, poll_seconds=0.02) as engine:
        await engine.start(deposit, "a-1", 5_000, id="big")
        while await engine.get("big").status() != "waiting":  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    async with outlive.Engine(pgbouncer_url, poll_seconds=0.02) as engine:
        await engine.signal("big", "allowed", True)
        assert await in_time(engine.get("big").result()) == 5_000

    assert balance(accounts, postgres_place) == 5_000


async def test_start_in_a_users_transaction(
    accounts: PostgresServer, pgbouncer: PgBouncer, pgbouncer_url: str, postgres_place: str
) -> None:
    """The user's connection goes through PgBouncer as well, with any driver; what is rolled back never was."""
    url = pgbouncer.url(postgres_place)
    async with outlive.Engine(pgbouncer_url, poll_seconds=0.02) as engine:
        connection = await asyncpg.connect(url, statement_cache_size=0)
        async with connection.transaction():
            await connection.execute("INSERT INTO accounts VALUES ('a-2', 1)")
            run = await engine.start(deposit, "a-2", 10, connection=connection)
        undone = connection.transaction()
        await undone.start()
        await engine.start(deposit, "a-2", 10, id="never", connection=connection)
        await undone.rollback()
        await connection.close()
        async with await psycopg.AsyncConnection.connect(url, prepare_threshold=None) as session:
            second = await engine.start(deposit, "a-1", 10, connection=session)

        assert await in_time(run.result()) == 11
        assert await in_time(second.result()) == 10
        with pytest.raises(outlive.errors.RunNotFoundError):
            await engine.get("never").status()
