"""Starting a run in a transaction of one's own, with every driver."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

import asyncpg
import psycopg
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session as OrmSession

import outlive
from outlive._kernel.model import Run, RunFilter
from outlive._kernel.store.contract import Delivery, Outcome
from outlive._kernel.store.postgres import PostgresStore, requests
from outlive._kernel.store.postgres.commit import Writing
from outlive._kernel.store.postgres.connection import Session
from outlive._kernel.store.postgres.store import SEARCHES_MAX
from outlive._kernel.store.tables.searching import RunSearch
from outlive.errors import ConfigurationError, RunExistsError, RunFinishedError, RunNotFoundError
from outlive_conformance.servers.postgres import PostgresServer
from outlive_conformance.suite.builders import blob, claim, get_run, hire, message, new_tree
from tests.postgres.support import in_time, plain

Connecting = Callable[[str], AbstractAsyncContextManager[Any]]


class ChangedMind(Exception):
    """The user rolls back."""


@asynccontextmanager
async def with_asyncpg(url: str) -> AsyncIterator[Any]:
    """asyncpg."""
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def with_asyncpg_pool(url: str) -> AsyncIterator[Any]:
    """A connection of asyncpg's pool."""
    pool = await asyncpg.create_pool(url, min_size=1, max_size=1)
    async with pool, pool.acquire() as connection, connection.transaction():
        yield connection


@asynccontextmanager
async def with_psycopg(url: str) -> AsyncIterator[Any]:
    """psycopg, async."""
    async with await psycopg.AsyncConnection.connect(url, row_factory=psycopg.rows.dict_row) as connection:
        yield connection


@asynccontextmanager
async def with_blocking_psycopg(url: str) -> AsyncIterator[Any]:
    """psycopg, blocking."""
    with psycopg.connect(url) as connection:
        yield connection


@asynccontextmanager
async def with_sqlalchemy(url: str) -> AsyncIterator[Any]:
    """SQLAlchemy, async, on asyncpg."""
    engine = create_async_engine(url.replace("postgresql:", "postgresql+asyncpg:"))
    try:
        async with engine.begin() as connection:
            yield connection
    finally:
        await engine.dispose()


@asynccontextmanager
async def with_sqlalchemy_session(url: str) -> AsyncIterator[Any]:
    """A session of SQLAlchemy, async, on psycopg."""
    engine = create_async_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    try:
        async with AsyncSession(engine) as session, session.begin():
            yield session
    finally:
        await engine.dispose()


@asynccontextmanager
async def with_blocking_sqlalchemy(url: str) -> AsyncIterator[Any]:
    """SQLAlchemy, blocking."""
    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


@asynccontextmanager
async def with_blocking_sqlalchemy_session(url: str) -> AsyncIterator[Any]:
    """A session of SQLAlchemy, blocking."""
    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    try:
        with OrmSession(engine) as session, session.begin():
            yield session
    finally:
        engine.dispose()


DRIVERS = [
    with_asyncpg,
    with_asyncpg_pool,
    with_psycopg,
    with_blocking_psycopg,
    with_sqlalchemy,
    with_sqlalchemy_session,
    with_blocking_sqlalchemy,
    with_blocking_sqlalchemy_session,
]


@pytest.mark.parametrize("connecting", DRIVERS, ids=lambda it: it.__name__)
async def test_tree_is_there_when_the_user_commits(
    store: PostgresStore, postgres_url: str, connecting: Connecting
) -> None:
    """Whole and due, with its tags and blobs, and not a moment before."""
    await hire(store, "worker-a")
    change = new_tree(store, "run-1", tags={"a": "b"}, timeout_at=store.now() + 5)
    change.blobs = [blob(b"\0large\xff")]

    async with connecting(plain(postgres_url)) as connection:
        assert await store.request_start(connection, change) is Outcome.COMMITTED
        assert await store.request_start(connection, change) is Outcome.CONFLICT
        assert await store.request_message(connection, message(store, "run-1")) is Delivery.ACCEPTED
        assert await store.find_run("run-1") is None
        assert await claim(store, "worker-a") == []

    run = await get_run(store, "run-1")
    assert (run.tags, run.timeout_at) == ({"a": "b"}, store.now() + 5)
    assert await store.read_journal(run.journal) == change.rows
    assert await store.get_blobs([blob(b"\0large\xff").id]) == {blob(b"\0large\xff").id: b"\0large\xff"}
    assert await store.list_runs(RunFilter(tags={"a": "b"})) == [run]
    assert await claim(store, "worker-a") == ["run-1"]
    assert ["go"] == [request.name for request in (await store.read_inbox([run.journal]))[run.journal]]


@pytest.mark.parametrize("connecting", DRIVERS, ids=lambda it: it.__name__)
async def test_tree_is_not_there_when_the_user_rolls_back(
    store: PostgresStore, postgres_url: str, connecting: Connecting
) -> None:
    """Nothing of it."""
    change = new_tree(store, "run-1")
    with suppress(ChangedMind):
        async with connecting(plain(postgres_url)) as connection:
            await store.request_start(connection, change)
            raise ChangedMind

    assert await store.find_run("run-1") is None


async def test_request_that_another_verb_takes_during_a_look_is_claimed(
    store: PostgresStore, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that found a request, and then none, looks for the run that was made of it. Its own process made it, and
    so no ring would tell."""
    await hire(store, "worker-a")
    async with with_asyncpg(plain(postgres_url)) as connection:
        await store.request_start(connection, new_tree(store, "run-1"))
    fetch, looks = Session.fetch, []

    async def take_meanwhile(self: Session, name: str, *values: Any) -> Any:
        rows = await fetch(self, name, *values)
        if name == "find_due":
            looks.append(name)
            if len(looks) == 1:
                await get_run(store, "run-1")
        return rows

    monkeypatch.setattr(Session, "fetch", take_meanwhile)

    assert await claim(store, "worker-a") == ["run-1"]


async def test_odd_names_of_schemas_reach_every_driver(
    postgres_server: PostgresServer, postgres_database: str, store: PostgresStore
) -> None:
    """Placeholders of all drivers are in this one."""
    url = f"{postgres_server.url(postgres_database)}?allow_unsafe=true"
    odd = PostgresStore(url, schema="50%s :value_1 \\ $1x", clock=store.now)
    await odd.open()
    for number, connecting in enumerate(DRIVERS):
        async with connecting(plain(url)) as connection:
            assert await odd.request_start(connection, new_tree(odd, f"run-{number}")) is Outcome.COMMITTED
    assert len(await odd.list_runs(RunFilter())) == len(DRIVERS)
    await odd.close()


async def test_connection_without_a_transaction_is_refused(store: PostgresStore, postgres_url: str) -> None:
    """There would be nothing to be part of."""
    connection = await asyncpg.connect(plain(postgres_url))
    with pytest.raises(ConfigurationError, match="no transaction is open"):
        await store.request_start(connection, new_tree(store, "run-1"))
    await connection.close()
    async with await psycopg.AsyncConnection.connect(plain(postgres_url), autocommit=True) as other:
        with pytest.raises(ConfigurationError, match="no transaction is open"):
            await store.request_start(other, new_tree(store, "run-1"))
        async with other.transaction():
            assert await store.request_start(other, new_tree(store, "run-1")) is Outcome.COMMITTED


async def test_something_else_is_refused(store: PostgresStore) -> None:
    """With what is known."""
    with pytest.raises(ConfigurationError, match=r"builtins.object is not a connection.*psycopg.AsyncConnection"):
        await store.request_start(object(), new_tree(store, "run-1"))


# -- Engines -----------------------------------------------------------------------------------------------------------


@outlive.workflow
async def ship(order: int) -> str:
    """What comes after an order."""
    return f"order {order}"


@outlive.workflow
async def bill(order: int) -> str:
    """Something else."""
    return f"bill {order}"


@outlive.workflow
async def hear() -> str:
    """Waits for a signal."""
    return await outlive.wait_for_signal("go", str)


@outlive.workflow(name="request-heard", on_event="requested")
async def hear_event(number: int) -> int:
    return number


async def test_engine_starts_a_run_with_the_users_rows(postgres_url: str) -> None:
    """Both are there or none, and the run begins when the user commits, without waiting for anybody to look."""
    async with outlive.Engine(postgres_url, poll_seconds=600) as engine:
        connection = await asyncpg.connect(plain(postgres_url))
        await connection.execute("CREATE TABLE IF NOT EXISTS orders (number int)")
        async with connection.transaction():
            await connection.execute("INSERT INTO orders VALUES (7)")
            run = await engine.start(ship, 7, id="order-7", connection=connection)
        with suppress(ChangedMind):
            async with connection.transaction():
                await engine.start(ship, 8, id="order-8", connection=connection)
                raise ChangedMind

        assert await in_time(run.result()) == "order 7"
        assert [each.id for each in await engine.list()] == ["order-7"]
        await connection.execute("DROP TABLE orders")
        await connection.close()


async def test_start_of_a_taken_id_in_a_transaction(postgres_url: str) -> None:
    """Attach gives the run that has it, if it is one of this workflow; reject and replace say no."""
    async with outlive.Engine(postgres_url, worker=False) as engine:
        async with with_asyncpg(plain(postgres_url)) as connection:
            await engine.start(ship, 1, id="mine", connection=connection)
            assert (await engine.start(ship, 1, id="mine", connection=connection)).id == "mine"
            with pytest.raises(RunExistsError, match="in this transaction"):
                await engine.start(ship, 1, id="mine", on_conflict="reject", connection=connection)
        async with with_asyncpg(plain(postgres_url)) as connection:
            assert (await engine.start(ship, 1, id="mine", connection=connection)).id == "mine"
            with pytest.raises(RunExistsError, match="a run of workflow"):
                await engine.start(bill, 1, id="mine", connection=connection)
            with pytest.raises(RunExistsError, match="pending"):
                await engine.start(ship, 1, id="mine", on_conflict="reject", connection=connection)
            with pytest.raises(ConfigurationError, match="replace"):
                await engine.start(ship, 1, id="mine", on_conflict="replace", connection=connection)


async def test_start_does_not_wait_for_the_transaction_of_another(postgres_url: str) -> None:
    """It has the id, and who asked for the same id in a transaction finds that run after the commit."""
    async with outlive.Engine(postgres_url) as engine:
        async with with_asyncpg(plain(postgres_url)) as connection:
            asked = await engine.start(ship, 1, id="mine", connection=connection)
            started = await in_time(engine.start(ship, 2, id="mine"))
            assert await in_time(started.result()) == "order 2"

        assert await in_time(asked.result()) == "order 2"


async def test_run_can_be_signalled_right_after_the_commit(postgres_url: str) -> None:
    """Though no worker has looked yet."""
    async with outlive.Engine(postgres_url, worker=False) as engine:
        async with with_asyncpg(plain(postgres_url)) as connection:
            await engine.start(hear, id="hearing", connection=connection)
        await engine.signal("hearing", "go", "now")
        assert (await engine.get("hearing").info()).status == "pending"

    async with outlive.Engine(postgres_url) as engine:
        assert await in_time(engine.get("hearing").result()) == "now"


@outlive.step(name="requests.weigh")
async def weigh(row: int) -> int:
    """One item."""
    return row * 2


async def test_signals_and_batches_in_a_transaction(postgres_url: str, caplog: pytest.LogCaptureFixture) -> None:
    """There when the user commits, in order, with what they start; a signal that comes too late is named in the log."""
    async with outlive.Engine(postgres_url, poll_seconds=600) as engine:
        waiting = await engine.start(hear, id="waiting")
        ending = await engine.start(hear, id="ending")
        async with with_asyncpg(plain(postgres_url)) as connection:
            await engine.signal("waiting", "go", "first", connection=connection)
            await engine.signal("waiting", "go", "second", connection=connection)
            await engine.signal("started", "go", "there", start=(hear,), connection=connection)
            await engine.signal("ending", "go", "too late", connection=connection)
            batch = await engine.start_batch(weigh, [1, 2], connection=connection)
            with pytest.raises(RunNotFoundError, match=r"send it with a workflow to start"):
                await engine.signal("nowhere", "go", connection=connection)
            await engine.signal("ending", "go", "in time")
            assert await in_time(ending.result()) == "in time"
            with pytest.raises(RunFinishedError):
                await engine.signal("ending", "go", connection=connection)

        assert await in_time(waiting.result()) == "first"
        assert await in_time(engine.get("started").result()) == "there"
        assert await in_time(batch.results()) == [2, 4]
    assert "signal 'go' to run ending is dropped: finished" in caplog.text


async def test_an_event_in_a_transaction(postgres_url: str) -> None:
    """Its runs are there if the user commits, and the event sent again is the same."""
    async with outlive.Engine(postgres_url, poll_seconds=600) as engine:
        connection = await asyncpg.connect(plain(postgres_url))
        with suppress(ChangedMind):
            async with connection.transaction():
                assert (await engine.events.send("requested", 7, id="evt-1", connection=connection)).runs
                raise ChangedMind
        assert await engine.count(workflow="request-heard") == 0
        async with connection.transaction():
            first = await engine.events.send("requested", 8, id="evt-1", connection=connection)
            again = await engine.events.send("requested", 8, id="evt-1", connection=connection)
        assert [(True, False)] == [(a.is_new, b.is_new) for a, b in zip(first.runs, again.runs, strict=True)]
        assert await in_time(engine.get(first.runs[0].run_id).result()) == 8
        await connection.close()


async def test_request_that_cannot_be_read_stops_no_other(postgres_url: str, caplog: pytest.LogCaptureFixture) -> None:
    """The log has what was in it."""
    async with outlive.Engine(postgres_url, worker=False) as engine:
        async with with_asyncpg(plain(postgres_url)) as connection:
            await connection.execute("INSERT INTO place.requests VALUES ('odd', 'no JSON')")
            await engine.start(ship, 1, id="mine", connection=connection)

        assert [run.id for run in await engine.list()] == ["mine"]
    assert "no JSON" in caplog.text


async def test_engines_that_start_the_same_ids_do_not_stall(postgres_url: str) -> None:
    """Each id is one run, and neither waits for a lock of the server until it gives up."""
    ids = [f"run-{number}" for number in range(100)]
    async with outlive.Engine(postgres_url) as engine, outlive.Engine(postgres_url) as other:
        runs = await in_time(
            asyncio.gather(
                *(engine.start(ship, 1, id=id_) for id_ in ids),
                *(other.start(ship, 2, id=id_) for id_ in reversed(ids)),
            )
        )
        results = [await in_time(run.result()) for run in runs]

    assert results[:100] == results[100:][::-1]
    assert set(results) <= {"order 1", "order 2"}


async def test_a_search_that_is_cancelled_before_its_turn_never_happens(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many searches are done at once; one whose caller has gone leaves the line. [S51]"""
    ended, begun = asyncio.Event(), asyncio.Semaphore(0)
    looked_for: list[str | None] = []

    async def list_runs(session: Session, search: RunSearch, writing: Writing) -> list[Run]:
        looked_for.append(search.filter.id_prefix)
        begun.release()
        await ended.wait()
        return []

    monkeypatch.setattr(requests, "list_runs", list_runs)
    names = [f"run-{number}" for number in range(SEARCHES_MAX + 2)]
    searches = [asyncio.ensure_future(store.list_runs(RunFilter(id_prefix=name))) for name in names]
    for _ in range(SEARCHES_MAX):
        await in_time(begun.acquire())
    searches[-2].cancel()
    with suppress(asyncio.CancelledError):
        await searches[-2]
    ended.set()
    await in_time(searches[-1])

    assert looked_for == [*names[:-2], names[-1]]
