"""NOTIFY: a store that watches is rung for what others made due, and not otherwise."""

from __future__ import annotations

import asyncio

import pytest

import outlive
from outlive._kernel.store.postgres import PostgresStore
from outlive._kernel.store.postgres.address import parse_address
from outlive._kernel.store.postgres.streams import channel_of
from outlive_conformance.suite.builders import begin, hire, message, new_tree, send
from tests.engine.inside import store_of
from tests.postgres.conftest import Opener
from tests.postgres.support import connected, in_time, until


class Ear:
    """Counts rings; the first one says that the listener is there."""

    def __init__(self, store: PostgresStore) -> None:
        self.rings = 0
        self.cells: list[str] = []
        self._heard = asyncio.Event()
        store.watch(self._ring)

    def _ring(self, cell: str) -> None:
        self.cells.append(cell)
        self.rings += 1
        self._heard.set()

    async def hear(self) -> None:
        """Wait for a ring."""
        await in_time(self._heard.wait())
        self._heard.clear()


@pytest.fixture
async def ear(store: PostgresStore) -> Ear:
    """A listener that is there already."""
    ear = Ear(store)
    await ear.hear()
    return ear


async def test_new_run_rings(ear: Ear, other: PostgresStore) -> None:
    """Anybody may claim it."""
    await other.commit([new_tree(other, "run-1")])

    await ear.hear()


async def test_message_rings(ear: Ear, store: PostgresStore, other: PostgresStore) -> None:
    """Its run may be ours."""
    await begin(store, worker="worker-a")

    await send(other, message(other, "run-1"))

    await ear.hear()


async def test_released_run_rings(ear: Ear, other: PostgresStore) -> None:
    """It is due at once."""
    tree = await begin(other, worker="worker-a")

    await tree.release()

    await ear.hear()


async def test_retired_worker_rings(ear: Ear, other: PostgresStore) -> None:
    """A worker that retires rings the others, which may take its runs."""
    await hire(other, "worker-a")

    await other.end_session("worker-a")

    await ear.hear()


async def test_cell_rings_if_it_is_to(ear: Ear, other: PostgresStore) -> None:
    """With its name. Most cells change all the time, and ring no process."""
    before = len(ear.cells)
    await other.change_cell("quiet", lambda before, now_at: (b"1", None))
    await other.ring("loud")
    await ear.hear()

    assert ear.cells[before:] == ["loud"]


async def test_steps_and_sleep_ring_for_no_process(ear: Ear, other: PostgresStore) -> None:
    """Nor do ends, nor what this process does itself; the ring at the end is the first one."""
    tree = await begin(other, worker="worker-a")
    before = ear.rings
    await tree.step()
    await tree.suspend(wake_at=other.now() + 3_600_000_000)
    ended = await begin(other, "run-2", worker="worker-a")
    await ended.succeed()
    assert before == ear.rings

    await other.commit([new_tree(other, "run-3")])
    await ear.hear()

    assert ear.rings == before + 1


async def test_ends_notify_processes_that_follow_runs_and_no_server_without_any(
    store: PostgresStore, other: PostgresStore, postgres_url: str
) -> None:
    """Commits that notify wait for each other on the whole server, so that none does while no process follows runs."""
    heard: list[str] = []
    channel = channel_of(parse_address(postgres_url, schema=None).schema)
    async with connected(postgres_url) as connection:
        await connection.add_listener(channel, lambda *notification: heard.append(notification[-1]))
        await _end(other, "run-1")
        rung = asyncio.Queue[str]()
        store.follow(rung.put_nowait)
        assert await in_time(rung.get()) == ""  # It listens, and may have missed something before.
        await _end(other, "run-2")
        assert await in_time(rung.get()) == "run-2"
        await connection.execute("SELECT 1")
        assert heard == ["run-2"]


async def _end(store: PostgresStore, run_id: str) -> None:
    tree = await begin(store, run_id, worker="worker-a")
    await tree.succeed(rings=run_id)


async def test_own_writes_do_not_ring(ear: Ear, store: PostgresStore, other: PostgresStore) -> None:
    """The process that made something due knows it."""
    await store.commit([new_tree(store, "run-1")])
    before = ear.rings

    await other.commit([new_tree(other, "run-2")])
    await ear.hear()

    assert ear.rings == before + 1


async def test_behind_a_pooler_no_session_listens(open_store: Opener, postgres_url: str) -> None:
    """No session is ours there: no LISTEN, no setting, no named statement."""
    store = await open_store(f"{postgres_url}&pgbouncer=true")
    store.watch(lambda _: pytest.fail("it does not listen"))
    tree = await begin(store)
    await tree.step()
    await send(store, message(store, "run-1"))

    session = await store.pools.shared.take()
    assert await session.connection.fetchval("SELECT count(*) FROM pg_prepared_statements") == 0
    assert await session.connection.fetchval("SELECT current_setting('statement_timeout')") == "0"
    assert await session.connection.fetchval("SELECT count(*) FROM pg_listening_channels()") == 0
    store.pools.shared.give(session)
    async with connected(postgres_url) as connection:
        listeners = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'outlive listener'"
        assert await connection.fetchval(listeners + " AND datname = current_database()") == 0


@outlive.workflow
async def greet(name: str) -> str:
    """Says hello."""
    return f"hello {name}"


async def test_worker_starts_at_once_what_another_process_started(postgres_url: str) -> None:
    """Long before it would have looked by itself."""
    async with (
        outlive.Engine(postgres_url, poll_seconds=600) as engine,
        outlive.Engine(postgres_url, worker=False, poll_seconds=0.01) as client,
    ):
        store = store_of(engine)
        assert isinstance(store, PostgresStore)
        await until(lambda: _listens(postgres_url))

        run = await client.start(greet, "you")

        assert await in_time(run.result()) == "hello you"


async def _listens(url: str) -> bool:
    async with connected(url) as connection:
        listeners = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND state = 'idle'"
        return bool(await connection.fetchval(listeners + " AND datname = current_database()"))


async def test_engine_works_behind_a_pooler(postgres_url: str) -> None:
    """By looking now and then."""
    async with outlive.Engine(f"{postgres_url}&pgbouncer=true", poll_seconds=0.01) as engine:
        run = await engine.start(greet, "you")

        assert await in_time(run.result()) == "hello you"
