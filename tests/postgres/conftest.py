"""Stores on a server, and what they send to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack

import pytest

from outlive._kernel.store.postgres import PostgresStore
from outlive.testing.clock import ManualClock
from outlive_conformance.servers.postgres import PostgresServer
from outlive_conformance.servers.proxy import Proxy

Opener = Callable[..., Awaitable[PostgresStore]]


@pytest.fixture
def clock() -> ManualClock:
    """The clock of the stores."""
    return ManualClock()


@pytest.fixture
async def open_store(postgres_url: str, clock: ManualClock) -> AsyncIterator[Opener]:
    """Opens stores on one empty place; `url` names another one."""
    async with AsyncExitStack() as stack:

        async def open_(url: str = postgres_url) -> PostgresStore:
            store = PostgresStore(url, clock=clock)
            await store.open()
            stack.push_async_callback(store.close)
            return store

        yield open_


@pytest.fixture
async def store(open_store: Opener) -> PostgresStore:
    """A store on an empty place."""
    return await open_store()


@pytest.fixture
async def other(open_store: Opener) -> PostgresStore:
    """Another process, as the server sees it."""
    return await open_store()


@pytest.fixture
def proxy(postgres_server: PostgresServer) -> Iterator[Proxy]:
    """A line to the server that can be cut."""
    with Proxy("127.0.0.1", postgres_server.port) as proxy:
        yield proxy
