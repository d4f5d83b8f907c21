"""The SQLite store keeps the contract."""

from functools import partial
from pathlib import Path

import pytest

from outlive._kernel.store.sqlite import SqliteStore, migrate
from outlive._kernel.store.sqlite.file import create_file
from outlive_conformance.suite import PersistentFactory, StoreConformance, StoreFactory


class TestSqliteStore(StoreConformance):
    """One file, several connections, several processes."""

    @pytest.fixture
    def factory(self, tmp_path: Path) -> StoreFactory:
        """A file of its own for each test."""
        return PersistentFactory(partial(SqliteStore, tmp_path / "conformance.db"))

    @pytest.fixture(autouse=True)
    def new_file(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
        """Stores that open at once make the schema themselves: the file that they find has none."""
        if request.function.__name__ == "test_many_may_open_at_once":
            monkeypatch.setattr(migrate, "create_file", create_file)
