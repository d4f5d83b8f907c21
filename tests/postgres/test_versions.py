"""Every PostgreSQL that is found on this machine does: a run, a transaction, a claim, a list, and a random script."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import outlive
from outlive_conformance.servers.postgres import PostgresServer
from outlive_conformance.servers.postgres_programs import find_versions, version_of
from proof.differential import find_difference
from proof.differential.places import opener_on
from tests.postgres.support import in_time

VERSIONS = find_versions()


@outlive.step(name="versions.note", transaction=True)
async def note(tx: Any, text: str) -> int:
    """Write a line and count the lines."""
    await tx.execute("CREATE TABLE IF NOT EXISTS noted_texts (text text)")
    await tx.execute("INSERT INTO noted_texts VALUES ($1)", text)
    return int(await tx.fetchval("SELECT count(*) FROM noted_texts"))


@outlive.workflow(name="versions.child")
async def child(text: str) -> int:
    """A run in the tree of another."""
    return await note(text)


@outlive.workflow(name="versions.smoke")
async def smoke() -> list[int]:
    """A signal, a child and a transaction."""
    text = await outlive.wait_for_signal("text", str)
    return [await child(text), await note(text)]


@pytest.mark.slow
@pytest.mark.parametrize("programs", VERSIONS.values(), ids=VERSIONS)
async def test_every_version_will_do(programs: Path) -> None:
    """Every version of PostgreSQL runs and replaces a run, and agrees with the oracle on two hundred random
    operations."""
    with PostgresServer(fsync=False, programs=programs, settings={"shared_buffers": "32MB"}) as server:
        ((version,),) = server.execute("SHOW server_version")
        assert version.startswith(version_of(programs))
        database = server.create_database()
        async with outlive.Engine(server.store_url(database)) as engine:
            for number in range(2):
                run = await engine.start(smoke, id="run-1", on_conflict="replace", tags={"number": str(number)})
                await engine.signal("run-1", "text", "hello", key="k-1")
                assert await in_time(run.result()) == [2 * number + 1, 2 * number + 2]
            assert len(await engine.list(tags={"number": "1"})) == 1

        assert await find_difference({version: opener_on(server, database)}, "versions", 200) is None


def test_the_server_of_the_other_tests_is_among_them(postgres_server: PostgresServer) -> None:
    """Whatever is found to be started is tried."""
    ((version,),) = postgres_server.execute("SHOW server_version")

    assert version.split()[0] in VERSIONS
