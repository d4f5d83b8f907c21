"""The worked example of a store keeps the contract: `examples/store`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from examples.store.log_store import LogStore
from outlive_conformance.suite import PersistentFactory, StoreConformance, StoreFactory
from outlive_conformance.suite.claims import ClaimsConformance
from outlive_conformance.suite.runs import RunsConformance
from outlive_conformance.suite.transactions import TransactionsConformance


class TestLogStoreSample(RunsConformance, ClaimsConformance, TransactionsConformance):
    """A part of the contract that is quick to try."""

    @pytest.fixture
    def factory(self, tmp_path: Path) -> StoreFactory:
        """A log of its own for each test."""
        return PersistentFactory(partial(LogStore, str(tmp_path / "conformance.log")))


@pytest.mark.slow
class TestLogStore(StoreConformance):
    """All of it: one log, several stores, several processes."""

    @pytest.fixture
    def factory(self, tmp_path: Path) -> StoreFactory:
        """A log of its own for each test."""
        return PersistentFactory(partial(LogStore, str(tmp_path / "conformance.log")))
