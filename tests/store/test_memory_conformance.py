"""The in-memory store keeps the contract."""

import pytest

from outlive._store.memory import MemoryStore
from outlive.testing.clock import ManualClock
from outlive.testing.conformance import LocalStoreConformance, MemoryFactory, StoreFactory
from outlive.testing.conformance.builders import begin


class TestMemoryStore(LocalStoreConformance):
    """The oracle."""

    @pytest.fixture
    def factory(self) -> StoreFactory:
        """A state of its own for each test."""
        return MemoryFactory()


async def test_shared_store_has_the_same_state() -> None:
    """Two workers of one process contend through two stores, and a store of its own sees nothing of them."""
    store = MemoryStore(clock=ManualClock())
    await begin(store, "run-1")

    assert await store.share().find_run("run-1") == await store.find_run("run-1")
    assert await MemoryStore(clock=ManualClock()).find_run("run-1") is None
