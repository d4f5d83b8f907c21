"""What is special about each store that trials can run on: where its data is, what can be killed there, how to look.

SQLite has no process but the workers. PostgreSQL has a server: it is a child of the trial, writes to its disk as a real
one does (`fsync` is on), and is killed with all of its processes, which is what a power cut leaves behind.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

import apsw

from outlive._kernel.runtime.clock import SystemClock
from outlive._kernel.store.contract import Store
from outlive.engine.url import store_for
from outlive_conformance.servers.postgres import PostgresServer
from proof.storm.disk import Disk, LimitedFiles, own_disk

STORES = ("sqlite", "postgres")
SETTINGS = {"max_wal_size": "128MB", "shared_buffers": "32MB"}
BUSY_MILLISECONDS = 5_000


@dataclass(frozen=True)
class Place:
    """Where a trial has its store."""

    url: str
    server: PostgresServer | None = None
    """The server that can be killed, if the store has one."""
    disk: Disk | None = None
    """The disk of the store, if it can be filled."""


@contextmanager
def sqlite(folder: Path) -> Iterator[Place]:
    """A file in a folder."""
    place = Place(f"sqlite:{folder / 'storm.db'}")
    asyncio.run(_create(place.url))  # A file with other tables in it would be refused.
    database = database_at(place.url)
    database.execute(statement("create_ledger"))
    database.close()
    yield place


@contextmanager
def postgres(folder: Path, *, data: Path | None = None) -> Iterator[Place]:
    """A server of its own, removed afterwards; what it wrote to its log stays in the folder of the trial."""
    with PostgresServer(data=data, settings=SETTINGS) as server:
        try:
            server.execute(statement("create_ledger"))
            yield Place(server.store_url(), server)
        finally:
            (folder / "postgres.server-log").write_text(server.log, "utf-8")


@contextmanager
def place_of(store: str, folder: Path, *, fills_disk: bool) -> Iterator[Place]:
    """An empty store with the table of the trial. One whose disk is to be filled gets a disk of its own, if we may."""
    if not fills_disk:
        with sqlite(folder) if store == "sqlite" else postgres(folder) as place:
            yield place
        return
    with own_disk() as (disk, root):
        if store == "postgres":
            # Without a disk of its own the server has the disk of the machine, which must not be filled.
            with postgres(folder, data=None if disk is None else root / "data") as place:
                yield replace(place, disk=disk)
            return
        with sqlite(root) as place:
            try:
                yield replace(place, disk=disk or LimitedFiles())
            finally:
                shutil.copytree(root, folder / "store", dirs_exist_ok=True)


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


def database_at(url: str) -> apsw.Connection:
    """A connection to an SQLite file that waits for its turn for a while."""
    database = apsw.Connection(url.partition(":")[2])
    database.set_busy_timeout(BUSY_MILLISECONDS)
    return database


def empty_log(url: str) -> None:
    """Empty the log of an SQLite file. It is written over and over; emptied, the next commit needs room for it."""
    database = database_at(url)
    try:
        database.pragma("wal_checkpoint", "TRUNCATE")
    except apsw.Error:
        """Another process reads or writes for too long; then the log needs room when it grows by itself."""
    finally:
        database.close()


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
