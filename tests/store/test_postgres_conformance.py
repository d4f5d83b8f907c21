"""The PostgreSQL store keeps the contract."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import asyncpg
import pytest
import pytest_asyncio

from outlive._kernel.store.contract import Store
from outlive._kernel.store.postgres import PostgresStore, pool
from outlive_conformance.servers.postgres import PostgresServer
from outlive_conformance.suite import PersistentFactory, StoreConformance, StoreFactory
from tests.store.lasting import LastingConnections

_schemas = count(1)


@asynccontextmanager
async def transaction_of(url: str) -> AsyncIterator[Any]:
    """A transaction that a user begins on a connection of their own."""
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            yield connection
    finally:
        await connection.close()


@dataclass(frozen=True)
class PostgresFactory(PersistentFactory):
    """A place on a server, and a user of the same database."""

    shared_transaction: Callable[[], AbstractAsyncContextManager[Any]] | None = None


@pytest_asyncio.fixture(scope="module", loop_scope="module", autouse=True)
async def lasting_connections() -> AsyncIterator[None]:
    """Connections stay open from test to test; those of other processes do not."""
    connections = LastingConnections()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "connect", connections.connect)
        yield
    await connections.close()


class TestPostgresStore(StoreConformance):
    """One server, several connections, several processes."""

    @pytest_asyncio.fixture(loop_scope="module")
    async def store(self, factory: StoreFactory) -> AsyncIterator[Store]:
        """The store under test, on the loop of its connections."""
        store = await factory.open()
        yield store
        await store.close()

    @pytest_asyncio.fixture(loop_scope="module")
    async def other(self, factory: StoreFactory) -> AsyncIterator[Store]:
        """The store of a second worker."""
        other = await factory.open()
        yield other
        await other.close()

    @pytest.fixture
    def factory(self, request: pytest.FixtureRequest, postgres_server: PostgresServer) -> StoreFactory:
        """An empty schema for each test; a new one for tests of opening."""
        database: str = request.getfixturevalue("postgres_place")
        if "open" in request.node.name:
            postgres_server.execute("DROP TABLE IF EXISTS notes", database=database)
            url = postgres_server.store_url(database, schema=f"conformance {next(_schemas)}")
        else:
            url = request.getfixturevalue("postgres_url")
        user = partial(transaction_of, postgres_server.url(database))
        return PostgresFactory(partial(PostgresStore, url), shared_transaction=user)
