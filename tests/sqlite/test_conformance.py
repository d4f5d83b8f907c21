"""The store on SQLite keeps the contract."""

from functools import partial
from pathlib import Path

import pytest

from outlive._store.sqlite import SqliteStore
from outlive.testing.conformance import PersistentFactory, StoreConformance


class TestSqliteStore(StoreConformance):
    """Every test of the suite, on a file."""

    @pytest.fixture
    def factory(self, tmp_path: Path) -> PersistentFactory:
        """A folder in which there is no file yet."""
        return PersistentFactory(partial(SqliteStore, tmp_path / "outlive.db"))
