"""The stores that Outlive has, each on an empty place."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from outlive._store.contract import Store
from outlive._store.memory import MemoryStore
from outlive._store.sqlite import SqliteStore
from outlive.testing.clock import ManualClock
from outlive.testing.differential.episode import OpenStore

_SHM = Path("/dev/shm")
FAST = _SHM if _SHM.is_dir() else None
"""A disk in memory, where there is one: nothing here has to survive, and nobody wants to wait for it."""


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


STORES: dict[str, OpenStore] = {"memory": open_memory, "sqlite": open_sqlite}
