"""Orphans: runs of workers that are not alive any more. How many of them one claim takes, and how soon."""

from __future__ import annotations

from outlive._kernel.store.contract import Store
from outlive.testing.clock import ManualClock
from outlive_conformance.suite.builders import DEFINITION, LEASE_SECONDS, begin, claim, hire
from outlive_conformance.suite.facet import Facet

STALE_SECONDS = 20


class OrphansConformance(Facet):
    """`claim_runs` with `orphans_max` and `stale_seconds`."""

    # -- How many ------------------------------------------------------------------------------------------

    async def test_no_more_orphans_are_claimed_than_are_wanted(self, store: Store, clock: ManualClock) -> None:
        """The oldest come first, and the others stay where they are."""
        await leave_orphans(store, clock, 5)
        await hire(store, "worker-a")

        assert await claim(store, "worker-a", orphans_max=2) == ["orphan-0", "orphan-1"]
        assert await claim(store, "worker-a", orphans_max=0) == []
        assert await claim(store, "worker-a", orphans_max=1) == ["orphan-2"]
        assert await claim(store, "worker-a") == ["orphan-3", "orphan-4"]

    async def test_orphans_that_are_left_keep_no_run_waiting(self, store: Store, clock: ManualClock) -> None:
        """The rest of a claim, beyond the limit of orphans, goes to other runs, also if these have waited for a shorter
        time."""
        await leave_orphans(store, clock, 5)
        for number in range(3):
            clock.advance(seconds=0.001)
            await begin(store, f"new-{number}")
        await hire(store, "worker-a")

        assert await claim(store, "worker-a", limit=3, orphans_max=1) == ["orphan-0", "new-0", "new-1"]
        assert await claim(store, "worker-a", limit=3, orphans_max=1) == ["orphan-1", "new-2"]

    async def test_oldest_wake_up_is_first_among_orphans_and_others(self, store: Store, clock: ManualClock) -> None:
        """The run that is due for longest is taken first, whatever it is."""
        await begin(store, "older")
        clock.advance(seconds=0.001)
        await leave_orphans(store, clock, 1)
        await begin(store, "newer")
        await hire(store, "worker-a")

        assert await claim(store, "worker-a", orphans_max=1) == ["older", "orphan-0", "newer"]

    async def test_claim_says_whether_it_is_of_an_orphan(self, store: Store, clock: ManualClock) -> None:
        """So that its new owner knows before it reads the journal."""
        await leave_orphans(store, clock, 1)
        await begin(store, "new")
        await hire(store, "worker-a")

        claims = (await store.claim_runs("worker-a", [DEFINITION], limit=10)).claims

        assert {taken.run.id: taken.interrupted for taken in claims} == {"orphan-0": True, "new": False}

    async def test_orphans_beyond_the_limit_are_no_reason_to_come_back(self, store: Store, clock: ManualClock) -> None:
        """A worker that may take no more of them hears of the next run that it may take; else of the next orphan."""
        await leave_orphans(store, clock, 3)
        orphan_at = [run.wake_at for run in (await store.find_runs(["orphan-2"])).values()]
        later_at = clock.now() + 3_600_000_000
        await (await begin(store, "sleeper")).suspend(wake_at=later_at)
        await hire(store, "worker-a")

        none = await store.claim_runs("worker-a", [DEFINITION], limit=10, orphans_max=0)
        one = await store.claim_runs("worker-a", [DEFINITION], limit=10, orphans_max=1)
        full = await store.claim_runs("worker-a", [DEFINITION], limit=1, orphans_max=2)

        assert [none.next_wake_at, one.next_wake_at] == [later_at, later_at]
        assert [full.next_wake_at] == orphan_at

    async def test_orphans_of_all_lost_workers_are_one_line(self, store: Store, clock: ManualClock) -> None:
        """Oldest first, whichever worker had them; a worker that lives keeps its own."""
        await hire(store, "alive", lease_seconds=3_600)
        for number in range(6):
            await begin(store, f"run-{number}", worker=("lost-a", "lost-b", "alive")[number % 3])
            clock.advance(seconds=0.001)
        await hire(store, "worker-a")

        assert await claim(store, "worker-a", orphans_max=3) == ["run-0", "run-1", "run-3"]
        assert await claim(store, "worker-a", orphans_max=3) == ["run-4"]

    # -- How soon ------------------------------------------------------------------------------------------

    async def test_orphan_is_left_alone_until_it_is_stale(self, store: Store, clock: ManualClock) -> None:
        """From the end of its owner's lease on, to the microsecond; other workers may be in more of a hurry."""
        await hire(store, "worker-a")
        await hire(store, "worker-b", lease_seconds=3_600)
        await begin(store, "run-1", worker="worker-a")
        await begin(store, "run-2", worker="worker-a")
        clock.advance(seconds=LEASE_SECONDS + STALE_SECONDS - 0.000_001)

        assert await claim(store, "worker-b", stale_seconds=STALE_SECONDS) == []
        assert await claim(store, "worker-b", limit=1) == ["run-1"]
        clock.advance(seconds=0.000_001)
        assert await claim(store, "worker-b", stale_seconds=STALE_SECONDS) == ["run-2"]

    async def test_orphan_of_a_retired_worker_is_stale_after_that(self, store: Store, clock: ManualClock) -> None:
        """The lease ended when the session did; ending it again changes nothing."""
        await hire(store, "worker-a", lease_seconds=3_600)
        await hire(store, "worker-b", lease_seconds=3_600)
        await begin(store, worker="worker-a")
        await store.end_session("worker-a")

        clock.advance(seconds=STALE_SECONDS - 0.000_001)
        await store.end_session("worker-a")
        assert await claim(store, "worker-b", stale_seconds=STALE_SECONDS) == []
        clock.advance(seconds=0.000_001)
        assert await claim(store, "worker-b", stale_seconds=STALE_SECONDS) == ["run-1"]

    async def test_worker_that_is_retired_late_was_lost_before(self, store: Store, clock: ManualClock) -> None:
        """Its lease had ended by itself, and an orphan does not wait twice."""
        await hire(store, "worker-a")
        await hire(store, "worker-b", lease_seconds=3_600)
        await begin(store, worker="worker-a")
        clock.advance(seconds=LEASE_SECONDS + STALE_SECONDS)
        await store.end_session("worker-a")

        assert await claim(store, "worker-b", stale_seconds=STALE_SECONDS) == ["run-1"]

    async def test_orphan_of_an_unknown_worker_is_stale(self, store: Store) -> None:
        """It is not known when its owner was lost, so it need not wait."""
        await hire(store, "worker-a")
        await begin(store, worker="ghost")

        assert await claim(store, "worker-a", stale_seconds=STALE_SECONDS) == ["run-1"]

    async def test_run_without_an_owner_is_never_left_alone(self, store: Store) -> None:
        """Only orphans are stale or not."""
        await hire(store, "worker-a")
        await begin(store)

        assert await claim(store, "worker-a", orphans_max=0, stale_seconds=STALE_SECONDS) == ["run-1"]


async def leave_orphans(store: Store, clock: ManualClock, count: int) -> None:
    """Runs `orphan-0` and so on, oldest first, of a worker whose lease has run out."""
    await hire(store, "lost")
    for number in range(count):
        await begin(store, f"orphan-{number}", worker="lost")
        clock.advance(seconds=0.001)
    clock.advance(seconds=LEASE_SECONDS + 1)
