"""The store is filled once for each kind of it, and every test damages a copy."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from outlive.testing.postgres import PostgresServer
from tests.fsck.world import PostgresWorld, SqliteWorld, World, fill


@pytest.fixture(scope="session")
def sqlite_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a little of everything in it."""
    path = tmp_path_factory.mktemp("fsck") / "world.db"
    asyncio.run(fill(f"sqlite:{path}"))
    return path


@pytest.fixture(scope="session")
def postgres_world(postgres_server: PostgresServer) -> PostgresWorld:
    """A database with a little of everything in it."""
    name = postgres_server.create_database()
    asyncio.run(fill(postgres_server.store_url(name)))
    return PostgresWorld(name, postgres_server)


@pytest.fixture(params=["sqlite", "postgres"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A store to damage."""
    if request.param == "sqlite":
        yield SqliteWorld(request.getfixturevalue("sqlite_source"), tmp_path)
        return
    world: PostgresWorld = request.getfixturevalue("postgres_world")
    yield world
    world.restore()
