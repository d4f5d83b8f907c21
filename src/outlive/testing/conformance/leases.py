"""Leases: a session is alive while it is renewed, and a tree is owned by one live session at most."""

from __future__ import annotations

import pytest

from outlive._lease.contract import Leases, OwnedBy
from outlive._lease.process import this_process
from outlive._lease.sessions import StoreLeases
from outlive._store.contract import Claim, Store, WorkerInfo
from outlive.errors import NotOwnerError, RunNotFoundError
from outlive.testing.clock import ManualClock
from outlive.testing.conformance.builders import DEFINITION, LEASE_SECONDS, begin
from outlive.testing.conformance.facet import Facet


class LeasesConformance(Facet):
    """What every kind of leases keeps. A class that tests another kind than the store's overrides `leases`."""

    @pytest.fixture
    def leases(self, store: Store) -> Leases:
        """The leases under test, on the store under test."""
        return StoreLeases(store)

    async def test_free_run_is_acquired(self, store: Store, leases: Leases) -> None:
        """By a claim like any other: its epoch rises. [SF-L1 AK-L1]"""
        await enlist(leases, "worker-a")
        await begin(store)

        claim = await leases.acquire("run-1", "worker-a")

        assert isinstance(claim, Claim)
        assert (claim.run.owner, claim.run.epoch, claim.seq) == ("worker-a", 1, 1)

    async def test_owner_is_shown_after_acquiring(self, store: Store, leases: Leases) -> None:
        """With the end of its lease. [SF-L2]"""
        await enlist(leases, "worker-a")
        await begin(store)
        await leases.acquire("run-1", "worker-a")

        owned = await leases.get("run-1")

        assert owned is not None
        assert owned.owner == "worker-a"
        assert owned.expires_at > store.now()

    async def test_nobody_is_shown_before(self, store: Store, leases: Leases) -> None:
        """Nor for a run that does not exist. [SF-L3]"""
        await begin(store)

        assert await leases.get("run-1") is None
        assert await leases.get("unknown") is None

    async def test_released_run_is_nobodys(self, store: Store, leases: Leases) -> None:
        """And due at once for others. [SF-L4 AK-L6]"""
        await enlist(leases, "worker-a")
        await enlist(leases, "worker-b")
        await begin(store)
        await leases.acquire("run-1", "worker-a")

        await leases.release("run-1", "worker-a")

        assert await leases.get("run-1") is None
        claims = await store.claim_runs("worker-b", [DEFINITION], limit=10)
        assert [claim.run.id for claim in claims.claims] == ["run-1"]

    async def test_second_worker_hears_who_owns_it(self, store: Store, leases: Leases) -> None:
        """And until when; nothing changes. [SF-L7 AK-L2 TS-S3]"""
        await enlist(leases, "worker-a")
        await enlist(leases, "worker-b")
        await begin(store)
        await leases.acquire("run-1", "worker-a")

        answer = await leases.acquire("run-1", "worker-b")

        assert isinstance(answer, OwnedBy)
        assert answer == await leases.get("run-1")
        assert answer.owner == "worker-a"

    async def test_owner_acquires_its_own_run_again(self, store: Store, leases: Leases) -> None:
        """As often as it likes, and nothing is written for it. [SF-L8]"""
        await enlist(leases, "worker-a")
        await begin(store)

        first = await leases.acquire("run-1", "worker-a")

        assert await leases.acquire("run-1", "worker-a") == first

    async def test_only_the_owner_releases(self, store: Store, leases: Leases) -> None:
        """Others are told whose it is, and nothing changes. [SF-L9 AK-L5]"""
        await enlist(leases, "worker-a")
        await enlist(leases, "worker-b")
        await begin(store)
        with pytest.raises(NotOwnerError, match="nobody does"):
            await leases.release("run-1", "worker-a")
        await leases.acquire("run-1", "worker-a")

        with pytest.raises(NotOwnerError, match="worker worker-a does"):
            await leases.release("run-1", "worker-b")

        owned = await leases.get("run-1")
        assert owned is not None
        assert owned.owner == "worker-a"

    async def test_releasing_an_unknown_run_is_an_error(self, leases: Leases) -> None:
        """It was never anybody's."""
        await enlist(leases, "worker-a")

        with pytest.raises(RunNotFoundError):
            await leases.release("unknown", "worker-a")

    async def test_workers_are_listed_with_their_counts(self, store: Store, leases: Leases) -> None:
        """Each with what it owns. [SF-L6 SF-L10]"""
        await enlist(leases, "worker-a")
        await enlist(leases, "worker-b")
        for run_id, worker_id in (("first", "worker-a"), ("second", "worker-a"), ("third", "worker-b")):
            await begin(store, run_id)
            await leases.acquire(run_id, worker_id)

        assert {worker.id: worker.runs for worker in await leases.list_workers()} == {"worker-a": 2, "worker-b": 1}

    async def test_release_all_frees_everything_of_one_session(self, store: Store, leases: Leases) -> None:
        """And nothing of another one; twice is fine. [SF-L11]"""
        await enlist(leases, "worker-a")
        await enlist(leases, "worker-b")
        for run_id, worker_id in (("first", "worker-a"), ("second", "worker-a"), ("third", "worker-b")):
            await begin(store, run_id)
            await leases.acquire(run_id, worker_id)

        await leases.release_all("worker-a")
        await leases.release_all("worker-a")

        assert await leases.get("first") is None
        assert await leases.get("second") is None
        owned = await leases.get("third")
        assert owned is not None
        assert owned.owner == "worker-b"
        claims = await store.claim_runs("worker-b", [DEFINITION], limit=10)
        assert sorted(claim.run.id for claim in claims.claims) == ["first", "second"]

    async def test_beat_succeeds_while_the_session_lives(self, leases: Leases) -> None:
        """As often as it likes; letting go of it twice is fine. [SF-L5]"""
        await enlist(leases, "worker-a")
        beat = leases.open_beat("worker-a")

        assert beat.renew(lease_seconds=LEASE_SECONDS) is True

        beat.close()
        beat.close()

    async def test_session_that_is_over_acquires_nothing(self, store: Store, leases: Leases) -> None:
        """Whoever was ended by others hears it here at the latest."""
        await enlist(leases, "worker-a")
        await begin(store)
        await leases.release_all("worker-a")

        assert await leases.acquire("run-1", "worker-a") is None
        assert await leases.acquire("run-1", "nobody") is None

    async def test_what_cannot_be_owned_is_not_acquired(self, store: Store, leases: Leases) -> None:
        """An ended run, a parked one, a child, and one that does not exist."""
        await enlist(leases, "worker-a")
        await (await begin(store, "ended", worker="worker-a")).succeed()
        await (await begin(store, "parked", worker="worker-a")).park("look at this")
        child = await (await begin(store, "parent", worker="worker-a")).spawn(1)

        for run_id in ("ended", "parked", child, "unknown"):
            assert await leases.acquire(run_id, "worker-a") is None

    async def test_nobody_alive_is_taken_for_lost(self, leases: Leases) -> None:
        """One's own session never is."""
        await enlist(leases, "worker-a")

        assert await leases.find_lost("worker-a") == []


class StoreLeasesConformance(LeasesConformance):
    """What only leases keep that the store judges by its own clock, with an eye on the processes of this machine."""

    async def test_run_of_an_expired_session_is_acquired(
        self, store: Store, leases: Leases, clock: ManualClock
    ) -> None:
        """Not before, and as an interruption; the former owner releases nothing of it. [AK-L3 TS-S3 TS-S4]"""
        await enlist(leases, "worker-a")
        await begin(store)
        await leases.acquire("run-1", "worker-a")
        clock.advance(seconds=LEASE_SECONDS - 1)
        await enlist(leases, "worker-b")
        assert isinstance(await leases.acquire("run-1", "worker-b"), OwnedBy)
        clock.advance(seconds=2)
        assert await leases.get("run-1") is None

        claim = await leases.acquire("run-1", "worker-b")

        assert isinstance(claim, Claim)
        assert (claim.run.owner, claim.run.epoch, claim.run.attempts) == ("worker-b", 2, 1)
        assert claim.interrupted
        with pytest.raises(NotOwnerError, match="worker worker-b does"):
            await leases.release("run-1", "worker-a")

    async def test_beat_moves_the_expiry_that_others_see(
        self, store: Store, leases: Leases, clock: ManualClock
    ) -> None:
        """By the store's clock. [TS-S5 AK-L4]"""
        await enlist(leases, "worker-a")
        await begin(store)
        await leases.acquire("run-1", "worker-a")
        clock.advance(seconds=10)
        beat = leases.open_beat("worker-a")

        beat.renew(lease_seconds=LEASE_SECONDS)

        beat.close()
        assert await leases.get("run-1") == OwnedBy("worker-a", clock.now() + round(LEASE_SECONDS * 1_000_000))

    async def test_beat_of_an_ended_session_is_refused(self, leases: Leases) -> None:
        """So a worker that others have ended hears of it, and fences itself."""
        await enlist(leases, "worker-a")
        beat = leases.open_beat("worker-a")
        await leases.release_all("worker-a")

        assert beat.renew(lease_seconds=LEASE_SECONDS) is False

        beat.close()

    async def test_session_of_a_dead_process_is_lost(self, leases: Leases) -> None:
        """One whose process lives is not, nor one that nobody here can look at."""
        await enlist(leases, "worker-a", process=this_process())
        await enlist(leases, "worker-b", process=this_process())
        await enlist(leases, "recycled", process=f"{this_process()}7")
        await enlist(leases, "elsewhere", process="00000000-0000-0000-0000-000000000000/4026531836/1/1")
        await enlist(leases, "unknown")

        assert [worker.id for worker in await leases.find_lost("worker-a")] == ["recycled"]


async def enlist(leases: Leases, worker_id: str, *, process: str = "") -> None:
    """Begin a session."""
    worker = WorkerInfo(
        id=worker_id, name=worker_id, definitions=(DEFINITION,), started_at=0, expires_at=0, process=process
    )
    await leases.register(worker, lease_seconds=LEASE_SECONDS)
