"""The store is filled once for each kind of it, and every test damages a copy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from outlive._features.fsck.checker import Checker
from outlive._features.fsck.problem import Problem
from outlive_conformance.servers.postgres import PostgresServer
from tests.engine.support import Place
from tests.fsck.world import PostgresWorld, SqliteWorld, World, fill, open_at

Check = Callable[..., Awaitable[list[Problem]]]


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


@pytest.fixture
async def check(world: World) -> AsyncIterator[Check]:
    """Asks the checker what it thinks of the world."""
    store = open_at(world.url)
    await store.open()

    async def ask(*, repair: bool = False) -> list[Problem]:
        return [problem async for problem in Checker(store, repair=repair).problems()]

    yield ask
    await store.close()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """An empty place for engines."""
    place = Place(tmp_path / "engine.db" if request.param == "sqlite" else None)
    if request.param == "postgres":
        place.server_url = request.getfixturevalue("postgres_url")
    return place
