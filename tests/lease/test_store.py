"""Leases kept by a store keep their contract on every store."""

from functools import partial
from pathlib import Path

import pytest

from outlive._kernel.store.postgres import PostgresStore
from outlive._kernel.store.sqlite import SqliteStore
from outlive_conformance.suite import MemoryFactory, PersistentFactory, StoreFactory
from outlive_conformance.suite.leases import StoreLeasesConformance


class TestMemoryLeases(StoreLeasesConformance):
    """In memory."""

    @pytest.fixture
    def factory(self) -> StoreFactory:
        """A state of its own for each test."""
        return MemoryFactory()


class TestSqliteLeases(StoreLeasesConformance):
    """In a file, for the processes of one machine."""

    @pytest.fixture
    def factory(self, tmp_path: Path) -> StoreFactory:
        """A file of its own for each test."""
        return PersistentFactory(partial(SqliteStore, tmp_path / "test.db"))


class TestPostgresLeases(StoreLeasesConformance):
    """On a server, for a fleet."""

    @pytest.fixture
    def factory(self, postgres_url: str) -> StoreFactory:
        """An empty schema for each test."""
        return PersistentFactory(partial(PostgresStore, postgres_url))
