"""The SQLite store keeps the contract."""

from functools import partial
from pathlib import Path

import pytest

from outlive._store.sqlite import SqliteStore
from outlive.testing.conformance import PersistentFactory, StoreConformance, StoreFactory


class TestSqliteStore(StoreConformance):
    """One file, several connections, several processes."""

    @pytest.fixture
    def factory(self, tmp_path: Path) -> StoreFactory:
        """A file of its own for each test."""
        return PersistentFactory(partial(SqliteStore, tmp_path / "conformance.db"))
