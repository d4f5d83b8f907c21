"""The base of every facet of the suite."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from outlive._kernel.store.contract import Store
from outlive.testing.clock import ManualClock
from outlive_conformance.suite.factory import StoreFactory


@pytest.mark.asyncio
class Facet:
    """The store under test, a second store on the same data, and the clock of both."""

    @pytest.fixture
    def factory(self) -> StoreFactory:
        """An empty place for one test; the class that runs the suite says which."""
        raise NotImplementedError("give your test class a fixture `factory` (see outlive_conformance.suite)")

    @pytest.fixture
    def clock(self, factory: StoreFactory) -> ManualClock:
        """The clock of the stores."""
        return factory.clock

    @pytest_asyncio.fixture
    async def store(self, factory: StoreFactory) -> AsyncIterator[Store]:
        """The store under test."""
        store = await factory.open()
        yield store
        await store.close()

    @pytest_asyncio.fixture
    async def other(self, factory: StoreFactory) -> AsyncIterator[Store]:
        """The store of a second worker."""
        other = await factory.open()
        yield other
        await other.close()
