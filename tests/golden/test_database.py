"""A database that an earlier Outlive wrote is opened, brought up to date, and every run in it goes on."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from outlive.errors import RunFailedError
from outlive.testing import SkipClock, TestEngine
from outlive.testing.fsck import check_store
from outlive_conformance.servers.postgres import PostgresServer
from tests.engine.inside import store_of
from tests.golden.database import DUMP, FILE, LETTER_BYTES
from tests.golden.machine_stories import Label, Parcel

pytestmark = pytest.mark.every_store
WRITTEN_AT = SkipClock().now() + 10_000_000


@pytest.fixture(params=["sqlite", "postgres"])
async def url(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    """A copy of what was kept."""
    if request.param == "sqlite":
        (tmp_path / "runs.db").write_bytes(gzip.decompress(FILE.read_bytes()))
        yield f"sqlite:{tmp_path}/runs.db"
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    database = server.create_database()
    connection = await asyncpg.connect(server.url(database))
    # In a dump functions come before the tables that they name.
    await connection.execute("SET check_function_bodies = off")
    await connection.execute(gzip.decompress(DUMP.read_bytes()).decode())
    await connection.close()
    yield server.store_url(database)
    server.drop_database(database)


@pytest.fixture
async def engine(url: str) -> AsyncIterator[TestEngine]:
    """An engine on the copy, at the time at which it was written."""
    async with TestEngine(url, clock=SkipClock(start_at=WRITTEN_AT, seed=7)) as engine:
        yield engine


async def test_runs_that_had_ended_are_as_they_were(engine: TestEngine) -> None:
    """Their results, their earlier generations, and the run whose id was given to another one."""
    assert await engine.get("succeeded").result() == "hold of box of a"
    with pytest.raises(RunFailedError, match="no such thing"):
        await engine.get("failed").result()
    assert await engine.get("generations").result() == "hold of number 0"
    assert await engine.get("replaced~old1").result() == "hold of box of first"
    generations = [(await engine.get(f"generations~gen{number}").status()) for number in (1, 2)]
    assert generations == ["continued", "continued"]


async def test_runs_that_had_not_ended_go_on(engine: TestEngine) -> None:
    """A run that was never begun goes on, and so do the runs that waited for a timer, a child, a signal or a person."""
    assert await engine.get("pending").result() == "hold of box of b"
    assert len(await engine.get("with-a-blob").result()) == len("hold of box of ") + LETTER_BYTES

    ended = await engine.get("with-a-child").result()
    assert ended[2:5] == [{"cents": 4200, "by": "card"}, "hold of box of o-1", 4200]

    await engine.signal("machine", "stamps", 2)
    machine = await engine.get("machine").result()
    assert (machine.state, machine.data) == (Parcel.DELIVERED, Label("ann", 3))

    await engine.resume("parked")
    assert (await engine.get("parked").result()).startswith("hold of box of hold of r")


async def test_messages_and_their_keys_are_there(engine: TestEngine) -> None:
    """A message that waited is taken, and one with the key of an earlier one is the same message."""
    await engine.signal("with-a-child", "paid", 1, key="evt-1")
    await engine.signal("for-a-signal", "something else", 2, key="evt-2")
    for run_id in ("for-a-signal", "replaced"):
        await engine.signal(run_id, "never", "at last")
        await engine.get(run_id).result()

    assert (await engine.get("with-a-child").result())[4] == 4200
    assert [run.id for run in await engine.list(tags={"team": "shop"})] == ["for-a-signal"]


async def test_database_is_whole(url: str) -> None:
    """A database of an earlier release is whole as the checker sees it."""
    async with TestEngine(url, clock=SkipClock(start_at=WRITTEN_AT, seed=7), worker=False) as engine:
        assert await check_store(store_of(engine)) == []
