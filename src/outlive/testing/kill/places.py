"""What is special about each store that trials can run on: where its data is, and how to look at it afterwards."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from outlive._runtime.clock import SystemClock
from outlive._store.contract import Store
from outlive.engine.url import store_for

URLS: dict[str, Callable[[Path], str]] = {
    "sqlite": lambda folder: f"sqlite:{folder / 'kill.db'}",
}
"""For each kind of store, the URL of an empty one; a new kind is a line here."""


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    """The store itself, to look at what no client sees."""
    store = store_for(url, clock=SystemClock().now)
    await store.open()
    try:
        yield store
    finally:
        await store.close()
