"""Workers: a session is alive while its lease runs, by the clock of the store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.store.contract import Store, WorkerInfo
from outlive.errors.store import StoreWentBackError
from outlive.testing.clock import ManualClock
from outlive_conformance.suite.builders import DEFINITION, LEASE_SECONDS, begin, claim, hire
from outlive_conformance.suite.facet import Facet

PATIENCE_SECONDS = 10.0
"""How long a beat may take when the loop does not move."""


class WorkersConformance(Facet):
    """`register_worker`, `redefine_worker`, `open_beat`, `end_session` and `list_workers`."""

    async def test_registered_worker_is_listed(self, store: Store, clock: ManualClock) -> None:
        """With what it said of itself, and with the end of its lease by the store's clock. [SF-R1 SF-R3 FE-O10]"""
        worker = WorkerInfo(
            id="worker-a",
            name="höst:1",
            definitions=("greet@1", "order@2"),
            started_at=clock.now() - 7,
            expires_at=0,
            process="boot/4026531836/77/123",
            lease="etcd:/outlivé",
        )

        await store.register_worker(worker, lease_seconds=12.5)

        expected = WorkerInfo(
            id="worker-a",
            name="höst:1",
            definitions=("greet@1", "order@2"),
            started_at=clock.now() - 7,
            expires_at=clock.now() + 12_500_000,
            is_live=True,
            process="boot/4026531836/77/123",
            lease="etcd:/outlivé",
            runs=0,
        )
        assert await store.list_workers() == [expected]
        assert await store.list_workers(with_runs=False) == [expected]

    async def test_session_can_be_redefined(self, store: Store, clock: ManualClock) -> None:
        """The definitions of a session change, and its lease does not; a session that has ended, or never began, stays
        as it is, and so do other sessions, also when one can run nothing any more. [SF-R2 SF-R6]"""
        await hire(store, "worker-a")
        await hire(store, "worker-b")
        await hire(store, "worker-c")
        await begin(store, worker="worker-b")
        await store.end_session("worker-b")
        before = {worker.id: worker for worker in await store.list_workers()}
        clock.advance(seconds=1)

        for worker_id in ("worker-a", "worker-b", "ghost"):
            await store.redefine_worker(worker_id, ["greet@1", "återställd@281474976710655"])

        after = {worker.id: worker for worker in await store.list_workers()}
        assert after["worker-a"].definitions == ("greet@1", "återställd@281474976710655")
        assert after["worker-a"].expires_at == before["worker-a"].expires_at
        assert after["worker-b"] == before["worker-b"]
        assert after["worker-c"] == before["worker-c"]
        assert set(after) == {"worker-a", "worker-b", "worker-c"}
        await store.redefine_worker("worker-a", [])
        after = {worker.id: worker for worker in await store.list_workers()}
        assert (after["worker-a"].definitions, after["worker-c"]) == ((), before["worker-c"])

    async def test_store_without_workers_lists_none(self, store: Store) -> None:
        """An owner that never began a session is not a worker. [SF-R3]"""
        await begin(store, worker="ghost")

        assert await store.list_workers() == []

    async def test_worker_is_listed_with_the_trees_it_owns(self, store: Store) -> None:
        """Children do not count, nor do trees that it has let go of or ended."""
        await hire(store, "worker-a")
        await hire(store, "worker-b")
        await (await begin(store, "parent", worker="worker-a")).spawn(1)
        await begin(store, "second", worker="worker-a")
        await (await begin(store, "released", worker="worker-a")).release()
        await (await begin(store, "ended", worker="worker-a")).succeed()

        assert {worker.id: worker.runs for worker in await store.list_workers()} == {"worker-a": 2, "worker-b": 0}

    async def test_without_runs_only_the_living_are_listed(self, store: Store, clock: ManualClock) -> None:
        """Nothing is counted, so that looking at who lives is cheap however much they own."""
        await hire(store, "dead")
        await begin(store, "first", worker="dead")
        clock.advance(seconds=LEASE_SECONDS + 1)
        await hire(store, "worker-a")
        await begin(store, "second", worker="worker-a")

        (listed,) = await store.list_workers(with_runs=False)
        assert (listed.id, listed.is_live, listed.runs) == ("worker-a", True, 0)

    async def test_dead_worker_is_listed_while_it_owns_runs(self, store: Store, clock: ManualClock) -> None:
        """It is shown as not alive until others have taken its runs over."""
        await hire(store, "worker-a")
        await hire(store, "idle")
        await begin(store, worker="worker-a")
        clock.advance(seconds=LEASE_SECONDS + 1)
        await hire(store, "worker-b")

        listed = {worker.id: (worker.is_live, worker.runs) for worker in await store.list_workers()}
        assert listed == {"worker-a": (False, 1), "worker-b": (True, 0)}

        await claim(store, "worker-b")
        assert await list_ids(store) == {"worker-b"}

    async def test_retired_worker_is_listed_while_it_owns_runs(self, store: Store) -> None:
        """A session that ended with work left is distinguished from one that is alive."""
        await hire(store, "worker-a")
        await hire(store, "idle")
        await begin(store, worker="worker-a")

        await store.end_session("worker-a")
        await store.end_session("idle")

        (listed,) = await store.list_workers()
        assert (listed.id, listed.is_live, listed.runs) == ("worker-a", False, 1)

    async def test_beat_extends_the_lease(self, store: Store, clock: ManualClock) -> None:
        """By the store's clock, so a worker that beats in time is never taken for dead. [TS-S5 AK-L4 FB-S5 FE-P8]"""
        await hire(store, "worker-a")
        await hire(store, "worker-b", lease_seconds=3_600)
        await begin(store, worker="worker-a")
        beat = store.open_beat("worker-a")
        for _ in range(3):
            clock.advance(seconds=LEASE_SECONDS - 1)
            assert beat.renew(lease_seconds=LEASE_SECONDS) is True

        worker = next(worker for worker in await store.list_workers() if worker.id == "worker-a")
        assert worker.expires_at == clock.now() + round(LEASE_SECONDS * MICROSECONDS)
        assert await claim(store, "worker-b") == []
        clock.advance(seconds=LEASE_SECONDS + 1)
        assert await claim(store, "worker-b") == ["run-1"]
        beat.close()

    async def test_beat_needs_neither_the_thread_nor_the_loop_of_the_store(
        self, store: Store, clock: ManualClock
    ) -> None:
        """It is made, used and closed in another thread while the loop is blocked."""
        await hire(store, "worker-a")
        clock.advance(seconds=LEASE_SECONDS - 1)

        def beat_once() -> bool:
            beat = store.open_beat("worker-a")
            is_renewed = beat.renew(lease_seconds=LEASE_SECONDS)
            beat.close()
            return is_renewed

        with ThreadPoolExecutor(1) as thread:
            is_renewed = thread.submit(beat_once).result(timeout=PATIENCE_SECONDS)

        clock.advance(seconds=LEASE_SECONDS - 1)
        assert is_renewed is True
        assert await list_ids(store) == {"worker-a"}

    async def test_beat_renews_only_its_own_session(self, store: Store, clock: ManualClock) -> None:
        """No worker keeps the lease of another alive. [AK-L5]"""
        await hire(store, "worker-a")
        await hire(store, "worker-b")
        beat = store.open_beat("worker-a")
        clock.advance(seconds=LEASE_SECONDS - 1)
        beat.renew(lease_seconds=LEASE_SECONDS)
        clock.advance(seconds=2)

        assert await list_ids(store) == {"worker-a"}
        beat.close()

    async def test_beat_of_a_retired_session_is_refused(self, store: Store, clock: ManualClock) -> None:
        """The worker learns that it is over, and its session does not come back."""
        await hire(store, "worker-a")
        await begin(store)
        beat = store.open_beat("worker-a")
        await store.end_session("worker-a")

        assert beat.renew(lease_seconds=LEASE_SECONDS) is False
        assert await claim(store, "worker-a", definitions=[DEFINITION]) == []
        assert await list_ids(store) == set()
        beat.close()

    async def test_beat_notices_that_the_store_has_gone_back(self, store: Store, clock: ManualClock) -> None:
        """It has forgotten the last renewal, and perhaps more; nothing is extended."""
        await hire(store, "worker-a")
        beat = store.open_beat("worker-a")
        clock.advance(seconds=1)
        assert beat.renew(lease_seconds=LEASE_SECONDS) is True
        await hire(store, "worker-a", lease_seconds=LEASE_SECONDS - 1)  # The lease is as it was before the renewal.
        (before,) = await store.list_workers()

        with pytest.raises(StoreWentBackError, match="worker-a"):
            beat.renew(lease_seconds=LEASE_SECONDS)

        assert await store.list_workers() == [before]
        beat.close()

    async def test_beat_notices_that_the_store_has_forgotten_the_session(self, store: Store) -> None:
        """A store that went back to before it began."""
        beat = store.open_beat("worker-a")

        with pytest.raises(StoreWentBackError, match="worker-a"):
            beat.renew(lease_seconds=LEASE_SECONDS)

        assert await store.list_workers() == []
        beat.close()

    async def test_beat_goes_on_after_a_renewal_of_which_it_has_not_heard(
        self, store: Store, clock: ManualClock
    ) -> None:
        """A lease that ends later in the store than the beat knows does not mean that the store went back."""
        await hire(store, "worker-a")
        beat, other = store.open_beat("worker-a"), store.open_beat("worker-a")
        assert beat.renew(lease_seconds=LEASE_SECONDS) is True
        clock.advance(seconds=1)
        assert other.renew(lease_seconds=LEASE_SECONDS) is True

        assert beat.renew(lease_seconds=LEASE_SECONDS) is True
        beat.close()
        other.close()

    async def test_beat_may_be_closed_twice(self, store: Store) -> None:
        """The second time there is nothing to do."""
        await hire(store, "worker-a")
        beat = store.open_beat("worker-a")

        beat.close()
        beat.close()

    async def test_retiring_an_unknown_session_is_fine(self, store: Store) -> None:
        """So is retiring one twice: it is over either way."""
        await hire(store, "worker-a")

        await store.end_session("unknown")
        await store.end_session("worker-a")
        await store.end_session("worker-a")

        assert await list_ids(store) == set()

    async def test_session_is_seen_by_every_store(self, store: Store, other: Store) -> None:
        """A live session is a fact of the place and not of a connection."""
        await hire(store, "worker-a")
        await begin(store)

        assert await list_ids(other) == {"worker-a"}
        assert await claim(other, "worker-a") == ["run-1"]
        await other.end_session("worker-a")
        assert await claim(store, "worker-a") == []


async def list_ids(store: Store) -> set[str]:
    """The sessions that are listed."""
    return {worker.id for worker in await store.list_workers()}
