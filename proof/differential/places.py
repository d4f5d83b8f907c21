"""The stores that Outlive has, each on an empty place.

PostgreSQL: one server for as long as the process lives, and one schema that is emptied for each episode. An episode
begins hundreds of times, and to create a schema takes longer than to play.
"""

from __future__ import annotations

import atexit
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

from outlive._kernel.store.contract import Store
from outlive._kernel.store.memory import MemoryStore
from outlive._kernel.store.postgres import PostgresStore
from outlive._kernel.store.sqlite import SqliteStore
from outlive.testing.clock import ManualClock
from outlive_conformance.servers.postgres import PostgresServer
from proof.differential.episode import OpenStore
from proof.postgres_place import PostgresPlace

_SHM = Path("/dev/shm")
FAST = _SHM if _SHM.is_dir() else None
"""A disk in memory, where there is one: nothing here has to survive, and a real disk would cost time."""


@asynccontextmanager
async def open_memory(clock: ManualClock) -> AsyncIterator[Store]:
    """A store on dictionaries."""
    yield MemoryStore(clock=clock)


@asynccontextmanager
async def open_sqlite(clock: ManualClock) -> AsyncIterator[Store]:
    """A store on a file of its own."""
    with tempfile.TemporaryDirectory(dir=FAST) as folder:
        store = SqliteStore(Path(folder) / "differential.db", clock=clock)
        await store.open()
        try:
            yield store
        finally:
            await store.close()


def opener_on(server: PostgresServer, database: str) -> OpenStore:
    """Opens stores in a database of this server, which are used one after the other."""

    @asynccontextmanager
    async def open_postgres(clock: ManualClock) -> AsyncIterator[Store]:
        with PostgresPlace(server, database, schema="differential") as place:
            store = PostgresStore(place.empty(), clock=clock)
        await store.open()
        try:
            yield store
        finally:
            await store.close()

    return open_postgres


@asynccontextmanager
async def open_postgres(clock: ManualClock) -> AsyncIterator[Store]:
    """A store on a server of its own, which the first one starts."""
    async with _server_opener()(clock) as store:
        yield store


@cache
def _server_opener() -> OpenStore:
    server = PostgresServer(fsync=False)
    atexit.register(server.remove)
    server.start()
    return opener_on(server, server.create_database())


STORES: dict[str, OpenStore] = {"memory": open_memory, "sqlite": open_sqlite, "postgres": open_postgres}
