"""The PostgreSQL store keeps the contract."""

from functools import partial
from itertools import count

import pytest

from outlive._store.postgres import PostgresStore
from outlive.testing.conformance import PersistentFactory, StoreConformance, StoreFactory
from outlive.testing.postgres import PostgresServer

_schemas = count(1)


class TestPostgresStore(StoreConformance):
    """One server, several connections, several processes."""

    @pytest.fixture
    def factory(self, postgres_server: PostgresServer, postgres_database: str) -> StoreFactory:
        """A schema of its own for each test."""
        url = postgres_server.store_url(postgres_database, schema=f"conformance {next(_schemas)}")
        return PersistentFactory(partial(PostgresStore, url))
