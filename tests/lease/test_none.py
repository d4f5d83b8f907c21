"""Leases of a process that is alone: they keep the contract, need no beat, and take other sessions for dead."""

import pytest

from outlive._kernel.lease.contract import Leases
from outlive._kernel.lease.process import this_process
from outlive._kernel.lease.sessions import NoLeases
from outlive._kernel.store.contract import Store, WorkerInfo
from outlive.testing.clock import ManualClock
from outlive_conformance.suite import MemoryFactory, StoreFactory
from outlive_conformance.suite.builders import begin
from outlive_conformance.suite.leases import LeasesConformance, enlist

CENTURY_SECONDS = 90 * 365 * 86_400


class TestNoLeases(LeasesConformance):
    """The contract, as far as it speaks of one process."""

    @pytest.fixture
    def factory(self) -> StoreFactory:
        """A state of its own for each test."""
        return MemoryFactory()

    @pytest.fixture
    def leases(self, store: Store) -> Leases:
        """None."""
        return NoLeases(store)

    async def test_a_worker_without_a_lease_lives_for_ever_without_a_beat(
        self, store: Store, leases: Leases, clock: ManualClock
    ) -> None:
        """A worker without a lease owns its runs for a century without a beat."""
        await enlist(leases, "worker-a")
        await begin(store, worker="worker-a")

        clock.advance(seconds=CENTURY_SECONDS)

        assert [worker.runs for worker in await leases.list_workers()] == [1]

    async def test_everybody_else_is_lost(self, leases: Leases) -> None:
        """A session that is found at the start is one of a process that is not there any more."""
        await enlist(leases, "before")
        await enlist(leases, "worker-a")

        assert [worker.id for worker in await leases.find_lost("worker-a")] == ["before"]

    async def test_two_do_not_end_each_other(
        self, leases: Leases, clock: ManualClock, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Two workers without leases are a mistake, and only the later one ends the other; else no worker would claim
        anything. The worker whose session was ended logs it once."""
        await enlist(leases, "first")
        clock.advance(seconds=1)
        await enlist(leases, "second")

        assert await leases.find_lost("first") == []
        assert [worker.id for worker in await leases.find_lost("second")] == ["first"]
        await leases.end_session("first")
        assert [await leases.find_lost("first") for _ in range(2)] == [[], []]
        assert caplog.text.count("a worker that began later has ended session first") == 1

    async def test_a_dead_one_is_lost_though_its_clock_was_ahead(self, leases: Leases) -> None:
        """It seems to have begun later; but its process is not there."""
        process, began = this_process().rsplit("/", 1)
        dead = WorkerInfo(
            id="before",
            name="before",
            definitions=(),
            started_at=10,
            expires_at=0,
            process=f"{process}/{int(began) + 1}",
        )
        await leases.register(dead, lease_seconds=1.0)
        await enlist(leases, "after")

        assert [worker.id for worker in await leases.find_lost("after")] == ["before"]
