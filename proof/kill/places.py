"""What is special about each store that trials can run on: where its data is, who can be killed there, how to look.

SQLite has nobody to kill but the workers. PostgreSQL has a server: it is a child of the supervisor, writes to its disk
as a real one does (`fsync` is on), and is killed with all of its processes, which is what a power cut leaves behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import apsw

from outlive._runtime.clock import SystemClock
from outlive._store.contract import Store
from outlive.engine.url import store_for
from outlive.testing.postgres import PostgresServer


@dataclass(frozen=True)
class Place:
    """Where a trial has its store."""

    url: str
    server: PostgresServer | None = None
    """The server that can be killed, if the store has one."""


@contextmanager
def sqlite(folder: Path) -> Iterator[Place]:
    """A file in the folder of the trial."""
    place = Place(f"sqlite:{folder / 'kill.db'}")
    asyncio.run(_create(place.url))  # A file with other tables in it would be refused.
    database = apsw.Connection(str(folder / "kill.db"))
    database.execute(statement("create_ledger"))
    database.close()
    yield place


@contextmanager
def postgres(folder: Path, *, data: Path | None = None, settings: Mapping[str, str] | None = None) -> Iterator[Place]:
    """A server of its own, removed afterwards; what it wrote to its log stays in the folder of the trial."""
    with PostgresServer(data=data, settings=settings) as server:
        try:
            server.execute(statement("create_ledger"))
            yield Place(server.store_url(), server)
        finally:
            (folder / "postgres.server-log").write_text(server.log, "utf-8")


PLACES: dict[str, Callable[[Path], AbstractContextManager[Place]]] = {"sqlite": sqlite, "postgres": postgres}
"""For each kind of store, an empty one with the table of the trial; a new kind is a line here."""


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    """The store itself, to look at what no client sees."""
    store = store_for(url, clock=SystemClock().now)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def _create(url: str) -> None:
    async with opened(url):
        """Opening it creates it."""


async def read_ledger(store: Store) -> list[tuple[Any, ...]]:
    """Everything that the steps with a transaction wrote."""
    transaction = await store.begin()
    try:
        return [tuple(row) for row in await transaction.handle.fetch(statement("read_ledger"))]
    finally:
        await transaction.rollback()


def statement(verb: str) -> str:
    """The SQL of what a trial does in the store's own database."""
    return resources.files(__package__).joinpath("sql", f"{verb}.sql").read_text("utf-8")
