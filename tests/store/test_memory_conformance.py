"""The in-memory store keeps the contract."""

import apsw
import pytest

from outlive._kernel.store.memory import MemoryStore
from outlive.errors.store import TransactionOverError
from outlive.testing.clock import ManualClock
from outlive_conformance.suite import LocalStoreConformance, MemoryFactory, StoreFactory
from outlive_conformance.suite.builders import begin, stepped


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


async def test_closed_store_leaves_no_transaction_open() -> None:
    """A worker that is gone blocks no other."""
    store = MemoryStore(clock=ManualClock())
    other = store.share()
    left_open = await store.begin()

    await store.close()

    await (await other.begin()).rollback()
    with pytest.raises(TransactionOverError, match="closed"):
        await left_open.handle.execute("SELECT 1")


async def test_transaction_that_sqlite_gave_up_blocks_no_other() -> None:
    """A step whose transaction SQLite gave up gets an error, and the next step begins when that step has ended."""
    store = MemoryStore(clock=ManualClock())
    tree = await begin(store)
    step = await store.begin()
    await step.handle.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    await step.handle.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(apsw.ConstraintError):
        await step.handle.execute("INSERT OR ROLLBACK INTO t VALUES (1)")

    with pytest.raises(TransactionOverError):
        await step.commit([tree.change(stepped(store))])

    await (await store.begin()).rollback()
