"""Connections run out, in our pool or on the server: work waits for its turn, and no run fails because of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

import outlive
from outlive._kernel.model import RunStatus
from outlive._kernel.store.postgres import PostgresStore
from outlive._kernel.store.postgres.store import STEP_SESSIONS_MAX
from outlive.testing.fsck import check_store
from outlive_conformance.servers.postgres import USER, PostgresServer
from proof.storm.places import opened
from tests.postgres.support import in_time, until

RUNS = 40
FEWEST = 5
"""What an engine needs to get on at all: one connection each for commits, for its lease, to listen, for reads and
claims, and for steps in a transaction."""
REFUSED = "too many connections for role"
COUNT = "SELECT count(*), count(DISTINCT entry) FROM entries"


class Door:
    """Steps in a transaction wait here while it is closed."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.waiting = 0

    async def pass_through(self) -> None:
        self.waiting += 1
        await self.open.wait()
        self.waiting -= 1


door = Door()


@outlive.step(name="exhaustion.write", transaction=True)
async def write(tx: Any, entry: str) -> str:
    await tx.execute("INSERT INTO entries VALUES ($1)", entry)
    await door.pass_through()
    return entry


@outlive.step(name="exhaustion.plain")
async def plain(number: int) -> int:
    return number


@outlive.workflow(name="exhaustion.load")
async def load(number: int) -> list[str]:
    written = [await write(f"{number}-first")]
    await plain(number)
    return written + await asyncio.gather(*(write(f"{number}-{branch}") for branch in range(2)))


@outlive.workflow(name="exhaustion.light")
async def light(number: int) -> int:
    return await plain(number) + await outlive.wait_for_signal("more", int)


@pytest.fixture
def closed_door(monkeypatch: pytest.MonkeyPatch) -> Door:
    """A door for one test."""
    monkeypatch.setitem(globals(), "door", Door())
    return door


@pytest.fixture
def open_door(closed_door: Door) -> Door:
    """A door at which no caller waits."""
    closed_door.open.set()
    return closed_door


@pytest.fixture
def place(postgres_server: PostgresServer, postgres_database: str, request: pytest.FixtureRequest) -> str:
    """The address of a store beside an empty table `entries`."""
    execute = postgres_server.execute
    execute("DROP TABLE IF EXISTS entries", database=postgres_database)
    execute("CREATE TABLE entries (entry text)", database=postgres_database)
    return postgres_server.store_url(postgres_database, schema=f"place_{request.node.name[5:30]}")


@pytest.fixture
def few(postgres_server: PostgresServer, postgres_database: str, place: str) -> Iterator[str]:
    """The same for a user to whom the server gives `FEWEST` connections and no more."""
    execute = postgres_server.execute
    execute(f"CREATE ROLE few LOGIN CONNECTION LIMIT {FEWEST}")
    execute(f"GRANT ALL ON DATABASE {postgres_database} TO few")
    execute("GRANT ALL ON entries TO few", database=postgres_database)
    yield place.replace(f"//{USER}@", "//few@")
    execute(f"REASSIGN OWNED BY few TO {USER}", database=postgres_database)
    execute("DROP OWNED BY few", database=postgres_database)
    execute("DROP ROLE few")


async def check(url: str, server: PostgresServer, database: str) -> None:
    """Everything ended well, and every step has written once."""
    async with opened(url) as store:
        assert await check_store(store) == []
        for number in range(RUNS):
            run = await store.find_run(f"load-{number}")
            assert run is not None
            assert run.status is RunStatus.SUCCEEDED
    assert server.execute(COUNT, database=database) == [(3 * RUNS, 3 * RUNS)]


async def test_steps_that_hold_every_connection_delay_only_each_other(
    postgres_server: PostgresServer, postgres_database: str, place: str, closed_door: Door
) -> None:
    """More steps in transactions than connections for them: the rest waits, and everything else goes on."""
    async with outlive.Engine(place) as engine:
        runs = [await engine.start(load, number, id=f"load-{number}") for number in range(RUNS)]

        async def is_full() -> bool:
            return closed_door.waiting == STEP_SESSIONS_MAX

        await until(is_full)
        other = await engine.start(light, 1, id="other")
        await in_time(engine.signal("other", "more", 10))
        assert await in_time(other.result()) == 11
        assert closed_door.waiting == STEP_SESSIONS_MAX
        closed_door.open.set()
        await in_time(asyncio.gather(*(run.result() for run in runs)))

    await check(place, postgres_server, postgres_database)


async def test_a_server_that_refuses_more_connections_fails_no_run_and_no_read(
    postgres_server: PostgresServer, postgres_database: str, few: str, place: str, open_door: Door
) -> None:
    """Who cannot have a new connection waits for one that we have."""
    before = postgres_server.log.count(REFUSED)
    async with outlive.Engine(few) as engine:
        runs = [await engine.start(load, number, id=f"load-{number}") for number in range(RUNS)]
        looks = [engine.get(f"load-{number}").info() for number in range(RUNS)]
        found = await in_time(asyncio.gather(*looks))
        await in_time(asyncio.gather(*(run.result() for run in runs)))

    assert [run.id for run in found] == [f"load-{number}" for number in range(RUNS)]
    assert postgres_server.log.count(REFUSED) > before, "there was always another connection to be had"
    await check(place, postgres_server, postgres_database)


async def test_a_server_that_takes_every_connection_away_fails_no_run(
    postgres_server: PostgresServer, postgres_database: str, few: str, place: str, closed_door: Door
) -> None:
    """In the middle of steps; all that they wrote is rolled back, and done again when there are connections."""
    before = postgres_server.log.count(REFUSED)
    async with outlive.Engine(few) as engine:
        runs = [await engine.start(load, number, id=f"load-{number}") for number in range(RUNS)]

        async def is_inside() -> bool:
            return closed_door.waiting > 0

        await until(is_inside)
        postgres_server.execute("ALTER ROLE few CONNECTION LIMIT 0")
        postgres_server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'few'")
        closed_door.open.set()

        async def is_refused() -> bool:
            return postgres_server.log.count(REFUSED) > before + 5

        await until(is_refused)
        postgres_server.execute("ALTER ROLE few CONNECTION LIMIT 20")
        await in_time(asyncio.gather(*(run.result() for run in runs)))

    await check(place, postgres_server, postgres_database)


async def test_a_pool_without_a_connection_gets_one_that_another_can_spare(
    postgres_server: PostgresServer, few: str
) -> None:
    """A step's connection that lies idle keeps no reader waiting."""
    async with opened(few) as store:
        assert isinstance(store, PostgresStore)
        await (await store.begin()).rollback()
        steps = store.pools.steps

        async def is_idle() -> bool:
            return bool(steps.free)

        await until(is_idle)
        postgres_server.execute("ALTER ROLE few CONNECTION LIMIT 2")

        assert await in_time(store.find_run("missing")) is None

        assert not steps.free
