"""What the tests of the PostgreSQL store share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

import asyncpg

from outlive._kernel.store.postgres import PostgresStore
from outlive._kernel.store.postgres.connection import Session
from outlive_conformance.servers.proxy import Proxy

T = TypeVar("T")
PATIENCE_SECONDS = 20


async def in_time(wanted: Awaitable[T]) -> T:
    """The outcome of something that must happen."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await wanted


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Return when a condition holds that no event announces."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await condition():  # noqa: ASYNC110
            await asyncio.sleep(0.002)


def plain(url: str) -> str:
    """The address of the database, as every driver takes it."""
    return url.partition("?")[0]


def through(proxy: Proxy, url: str) -> str:
    """The same database, by way of a proxy."""
    parts = urlsplit(url)
    assert parts.port is not None
    return url.replace(f":{parts.port}/", f":{proxy.port}/")


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Any]:
    """A connection that is not a store's."""
    connection = await asyncpg.connect(plain(url))
    try:
        yield connection
    finally:
        await connection.close()


async def is_waiting_for_lock(connection: Any) -> bool:
    """Whether a session waits for a lock in this database."""
    return bool(
        await connection.fetchval(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
    )


async def writer_session(store: PostgresStore) -> Session:
    """The connection that commits; it is free again at once."""
    session = await store.pools.writer.take()
    store.pools.writer.give(session)
    return session


async def count_statements(store: PostgresStore, verb: Callable[[], Awaitable[T]]) -> tuple[T, list[str]]:
    """What a verb answers, and the statements that its commit connection sends meanwhile."""
    sent: list[str] = []
    session = await writer_session(store)
    session.connection.add_query_logger(lambda record: sent.append(record.query))
    return await verb(), sent
