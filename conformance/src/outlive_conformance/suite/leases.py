"""Leases: a session is alive while it is renewed, and only a live session owns and claims trees."""

from __future__ import annotations

import pytest

from outlive._kernel.lease.contract import Leases
from outlive._kernel.lease.process import this_process
from outlive._kernel.lease.sessions import StoreLeases
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.store.contract import Store, WorkerInfo
from outlive.testing.clock import ManualClock
from outlive_conformance.suite.builders import DEFINITION, LEASE_SECONDS, begin, claim, get_run
from outlive_conformance.suite.facet import Facet


class LeasesConformance(Facet):
    """The promises of every kind of leases. A class that tests another kind than the store's overrides `leases`."""

    @pytest.fixture
    def leases(self, store: Store) -> Leases:
        """The leases under test, on the store under test."""
        return StoreLeases(store)

    async def test_session_claims_what_is_free(self, store: Store, leases: Leases) -> None:
        """The epoch rises, and the run shows whose it is. [SF-L1 SF-L2 SF-L3 AK-L1]"""
        await enlist(leases, "worker-a")
        await begin(store)
        assert (await get_run(store, "run-1")).owner == ""

        assert await claim(store, "worker-a") == ["run-1"]

        run = await get_run(store, "run-1")
        assert (run.owner, run.epoch) == ("worker-a", 1)
        (worker,) = await leases.list_workers()
        assert worker.expires_at > store.now()

    async def test_released_run_has_no_owner(self, store: Store, leases: Leases) -> None:
        """A released run has no owner, and is due at once for others. [SF-L4 AK-L6]"""
        await enlist(leases, "worker-a")
        await enlist(leases, "worker-b")
        tree = await begin(store, worker="worker-a")

        await tree.release()

        assert (await get_run(store, "run-1")).owner == ""
        assert await claim(store, "worker-b") == ["run-1"]

    async def test_run_of_a_living_session_is_not_claimed(self, store: Store, leases: Leases) -> None:
        """Neither by another one nor by itself. [SF-L7 SF-L8 AK-L2 TS-S3]"""
        await enlist(leases, "worker-a")
        await enlist(leases, "worker-b")
        await begin(store, worker="worker-a")

        assert await claim(store, "worker-b") == await claim(store, "worker-a") == []
        assert (await get_run(store, "run-1")).owner == "worker-a"

    async def test_workers_are_listed_with_their_counts(self, store: Store, leases: Leases) -> None:
        """Each with what it owns. [SF-L6 SF-L10]"""
        await share_three(store, leases)

        assert {worker.id: worker.runs for worker in await leases.list_workers()} == {"worker-a": 2, "worker-b": 1}

    async def test_end_session_frees_everything_of_one_session(self, store: Store, leases: Leases) -> None:
        """All runs of one session are freed, and none of another one; twice is fine. [SF-L11]"""
        await share_three(store, leases)

        await leases.end_session("worker-a")
        await leases.end_session("worker-a")

        assert (await get_run(store, "third")).owner == "worker-b"
        assert sorted(await claim(store, "worker-b")) == ["first", "second"]

    async def test_beat_succeeds_while_the_session_lives(self, leases: Leases) -> None:
        """A beat succeeds as often as it likes; closing it twice is fine. [SF-L5]"""
        await enlist(leases, "worker-a")
        beat = leases.open_beat("worker-a")

        assert beat.renew(lease_seconds=LEASE_SECONDS) is True

        beat.close()
        beat.close()

    async def test_session_that_is_over_claims_nothing(self, store: Store, leases: Leases) -> None:
        """A worker that was ended by others learns it here at the latest."""
        await enlist(leases, "worker-a")
        await begin(store)
        await leases.end_session("worker-a")

        assert await claim(store, "worker-a") == []

    async def test_no_living_worker_is_taken_for_lost(self, leases: Leases) -> None:
        """One's own session never is."""
        await enlist(leases, "worker-a")

        assert await leases.find_lost("worker-a") == []


class StoreLeasesConformance(LeasesConformance):
    """The promises of leases that the store judges by its own clock, with an eye on the processes of this machine."""

    async def test_run_of_an_expired_session_is_claimed(self, store: Store, leases: Leases, clock: ManualClock) -> None:
        """Not before, and as an interruption. [AK-L3 TS-S3 TS-S4]"""
        await enlist(leases, "worker-a")
        await begin(store, worker="worker-a")
        clock.advance(seconds=LEASE_SECONDS - 1)
        await enlist(leases, "worker-b")
        assert await claim(store, "worker-b") == []
        clock.advance(seconds=2)

        assert await claim(store, "worker-b") == ["run-1"]

        run = await get_run(store, "run-1")
        assert (run.owner, run.attempts) == ("worker-b", 1)

    async def test_beat_moves_the_expiry_that_others_see(self, leases: Leases, clock: ManualClock) -> None:
        """By the store's clock. [TS-S5 AK-L4]"""
        await enlist(leases, "worker-a")
        clock.advance(seconds=10)
        beat = leases.open_beat("worker-a")

        beat.renew(lease_seconds=LEASE_SECONDS)

        beat.close()
        (worker,) = await leases.list_workers()
        assert worker.expires_at == clock.now() + round(LEASE_SECONDS * MICROSECONDS)

    async def test_beat_of_an_ended_session_is_refused(self, leases: Leases) -> None:
        """So a worker that others have ended hears of it, and fences itself."""
        await enlist(leases, "worker-a")
        beat = leases.open_beat("worker-a")
        await leases.end_session("worker-a")

        assert beat.renew(lease_seconds=LEASE_SECONDS) is False

        beat.close()

    async def test_session_of_a_dead_process_is_lost(self, leases: Leases) -> None:
        """One whose process lives is not, nor one that cannot be looked at from here."""
        await enlist(leases, "worker-a", process=this_process())
        await enlist(leases, "worker-b", process=this_process())
        await enlist(leases, "recycled", process=f"{this_process()}7")
        await enlist(leases, "elsewhere", process="00000000-0000-0000-0000-000000000000/4026531836/1/1")
        await enlist(leases, "unknown")

        assert [worker.id for worker in await leases.find_lost("worker-a")] == ["recycled"]


async def share_three(store: Store, leases: Leases) -> None:
    """Two sessions; one owns two runs, the other one a third."""
    for worker_id, run_ids in (("worker-a", ("first", "second")), ("worker-b", ("third",))):
        await enlist(leases, worker_id)
        for run_id in run_ids:
            await begin(store, run_id, worker=worker_id)


async def enlist(leases: Leases, worker_id: str, *, process: str = "") -> None:
    """Begin a session."""
    worker = WorkerInfo(
        id=worker_id, name=worker_id, definitions=(DEFINITION,), started_at=0, expires_at=0, process=process
    )
    await leases.register(worker, lease_seconds=LEASE_SECONDS)
