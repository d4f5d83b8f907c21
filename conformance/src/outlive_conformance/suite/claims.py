"""Claims: each tree has one owner, taking over is an event, and a former owner can write nothing."""

from __future__ import annotations

import asyncio

from outlive._kernel.journal.event import RunClaimed, RunCreated, RunReleased
from outlive._kernel.model import RunStatus
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.store.contract import Outcome, Store
from outlive.testing.clock import ManualClock
from outlive_conformance.suite.builders import (
    DEFINITION,
    LEASE_SECONDS,
    Writer,
    begin,
    blob,
    claim,
    get_run,
    hire,
    message,
    new_tree,
    read_events,
    read_message_ids,
    see_everything,
    send,
    stepped,
)
from outlive_conformance.suite.facet import Facet


class ClaimsConformance(Facet):
    """`claim_runs`: which runs, for whom, and what it means for the owner before."""

    # -- Which runs ----------------------------------------------------------------------------------------

    async def test_new_run_is_claimed(self, store: Store) -> None:
        """The claim is the last event of the journal, and the row is its fold. [AK-L1 SF-J6 FB-G1]"""
        await hire(store, "worker-a")
        tree = await begin(store)

        (taken,) = (await store.claim_runs("worker-a", [DEFINITION], limit=10)).claims

        await tree.catch_up()
        assert (await read_events(tree))[-1] == RunClaimed(at=store.now(), worker="worker-a", epoch=1, begins=True)
        assert taken.seq == tree.seq == 1
        assert taken.run == await get_run(store, "run-1")
        assert (taken.run.status, taken.run.owner, taken.run.epoch) == (RunStatus.RUNNING, "worker-a", 1)
        await assert_row_is_fold(tree)

    async def test_owner_writes_after_its_claim(self, store: Store) -> None:
        """The seq of the claim is where the owner goes on. [FB-G1]"""
        await hire(store, "worker-a")
        tree = await begin(store)
        (taken,) = (await store.claim_runs("worker-a", [DEFINITION], limit=10)).claims
        change = tree.change(stepped(store), stepped(store))
        change.after, change.prior, change.rows = taken.seq, taken.crc, change.rows[1:]

        assert await store.commit([change]) == [(Outcome.COMMITTED, tree.journal)]

    async def test_oldest_wake_up_is_claimed_first(self, store: Store, clock: ManualClock) -> None:
        """Runs are taken in the order in which they became due, not in which they were made."""
        await hire(store, "worker-a", lease_seconds=3_600)
        for run_id, seconds in (("third", 30), ("first", 10), ("second", 20)):
            await (await begin(store, run_id)).suspend(wake_at=clock.now() + seconds * MICROSECONDS)
        clock.advance(seconds=60)

        assert await claim(store, "worker-a", limit=2) == ["first", "second"]
        assert await claim(store, "worker-a", limit=2) == ["third"]

    async def test_no_more_than_the_limit_is_claimed(self, store: Store) -> None:
        """The others stay free, for this worker or another one. [FE-R8]"""
        await hire(store, "worker-a")
        for number in range(5):
            await begin(store, f"run-{number}")

        assert len(await claim(store, "worker-a", limit=3)) == 3
        assert len(await claim(store, "worker-a", limit=3)) == 2
        assert len(await claim(store, "worker-a", limit=3)) == 0

    async def test_worker_claims_what_it_can_run(self, store: Store) -> None:
        """Only workflows and versions among its definitions. [FB-G2]"""
        await hire(store, "worker-a")
        await begin(store, "greet-1", workflow="greet", version=1)
        await begin(store, "greet-2", workflow="greet", version=2)
        await begin(store, "order-1", workflow="order", version=1)

        assert await claim(store, "worker-a", definitions=[]) == []
        assert await claim(store, "worker-a", definitions=["order@2", "greet"]) == []
        assert set(await claim(store, "worker-a", definitions=["greet@2", "order@1"])) == {"greet-2", "order-1"}

    async def test_worker_may_have_many_definitions(self, store: Store) -> None:
        """It claims what is free and what a dead worker has left, and nothing that it cannot run."""
        await hire(store, "worker-a")
        await hire(store, "worker-b")
        many = [f"other-{number}@1" for number in range(500)]
        for run_id in ("left", "free", "foreign"):
            await begin(store, run_id, workflow="foreign" if run_id == "foreign" else "order", version=1)
            if run_id == "left":
                assert await claim(store, "worker-a", definitions=["order@1"]) == ["left"]
        await store.end_session("worker-a")

        assert await claim(store, "worker-b", definitions=many) == []
        assert set(await claim(store, "worker-b", definitions=[*many, "order@1"])) == {"left", "free"}

    async def test_ready_runs_are_claimed_and_no_others(self, store: Store, clock: ManualClock) -> None:
        """Neither owned, future, ended nor child runs. [AK-L7 SF-U12]"""
        await hire(store, "worker-a")
        await hire(store, "worker-b")
        parent = await begin(store, "parent", worker="worker-b")
        await parent.spawn(1)
        await (await begin(store, "future")).suspend(wake_at=clock.now() + 1)
        await (await begin(store, "ended")).succeed()
        await begin(store, "ready")

        assert await claim(store, "worker-a") == ["ready"]

    # -- Whose runs ----------------------------------------------------------------------------------------

    async def test_run_of_a_living_worker_is_not_claimed(self, store: Store, clock: ManualClock) -> None:
        """Neither by another worker nor by itself, until the lease has run out. [TS-S3 AK-L2]"""
        await hire(store, "worker-a")
        await hire(store, "worker-b", lease_seconds=3_600)
        await begin(store)
        assert await claim(store, "worker-a") == ["run-1"]

        assert await claim(store, "worker-a") == []
        clock.advance(seconds=LEASE_SECONDS - 0.000_001)
        assert await claim(store, "worker-b") == []
        clock.advance(seconds=0.000_002)
        assert await claim(store, "worker-b") == ["run-1"]

    async def test_run_that_was_created_with_an_owner_has_it(self, store: Store) -> None:
        """Creating and claiming in one step leaves nothing for others while the owner lives."""
        await hire(store, "worker-a")
        await hire(store, "worker-b")
        await begin(store, worker="worker-a")

        assert await claim(store, "worker-b") == []

    async def test_run_of_a_dead_worker_is_taken_over(self, store: Store, clock: ManualClock) -> None:
        """The new owner hears that the former one was interrupted. [TS-S4 AK-L3 FB-G3]"""
        await hire(store, "worker-a")
        tree = await begin(store)
        await claim(store, "worker-a")
        clock.advance(seconds=LEASE_SECONDS + 1)
        await hire(store, "worker-b")

        assert await claim(store, "worker-b") == ["run-1"]

        await tree.catch_up()
        claimed = RunClaimed(at=store.now(), worker="worker-b", epoch=2, interrupted=True)
        assert (await read_events(tree))[-1] == claimed
        assert (await get_run(store, "run-1")).attempts == 1
        await assert_row_is_fold(tree)

    async def test_run_of_a_retired_worker_is_free_at_once(self, store: Store) -> None:
        """No lease has to run out when a worker says that it is going. [AK-L10]"""
        await hire(store, "worker-a")
        await hire(store, "worker-b")
        await begin(store)
        await claim(store, "worker-a")

        await store.end_session("worker-a")

        (taken,) = (await store.claim_runs("worker-b", [DEFINITION], limit=10)).claims
        assert (taken.run.owner, taken.run.epoch, taken.run.attempts) == ("worker-b", 2, 1)

    async def test_run_of_an_unknown_worker_is_taken_over(self, store: Store) -> None:
        """An owner that never began a session is not alive."""
        await hire(store, "worker-a")
        await begin(store, worker="ghost")

        (taken,) = (await store.claim_runs("worker-a", [DEFINITION], limit=10)).claims

        assert (taken.run.owner, taken.run.epoch, taken.run.attempts) == ("worker-a", 2, 1)

    async def test_released_run_is_free_at_once_and_was_not_interrupted(self, store: Store) -> None:
        """Its owner let go of it, so the take-over is not an interruption. [AK-L9]"""
        await hire(store, "worker-a")
        await hire(store, "worker-b")
        tree = await begin(store, worker="worker-a")
        await tree.release()

        assert await claim(store, "worker-b") == ["run-1"]

        await tree.catch_up()
        assert (await read_events(tree))[-1] == RunClaimed(at=store.now(), worker="worker-b", epoch=2)
        assert (await get_run(store, "run-1")).attempts == 0
        await assert_row_is_fold(tree)

    async def test_declined_run_is_left_alone_until_its_wake_up_changes(self, store: Store, clock: ManualClock) -> None:
        """By the worker that declined it; others take it, those behind it are taken, and none is asked to come again
        for it."""
        await hire(store, "worker-a")
        await hire(store, "worker-b")
        trees = {name: await begin(store, name) for name in ("run-1", "run-2")}
        clock.advance(seconds=1)
        (first, _) = (await store.claim_runs("worker-a", [DEFINITION], limit=2)).claims
        for tree in trees.values():
            await tree.catch_up()
            moved_at = store.now() - 1 if tree.run_id == "run-1" else store.now()
            await tree.write(RunReleased(at=store.now(), reason="newer code has moved it", moved_at=moved_at))
        declined = {(first.run.journal, store.now() - 1)}

        taken = await store.claim_runs("worker-a", [DEFINITION], limit=1, declined=declined)
        again = await store.claim_runs("worker-a", [DEFINITION], limit=1, declined=declined)

        assert [claim.run.id for claim in taken.claims] == ["run-2"]
        assert (again.claims, again.next_wake_at) == ([], None)
        others = await store.claim_runs("worker-b", [DEFINITION], limit=1)
        assert [claim.run.id for claim in others.claims] == ["run-1"]
        await trees["run-1"].catch_up()
        await trees["run-1"].write(RunReleased(at=store.now(), reason="newer code has moved it", moved_at=store.now()))
        moved = await store.claim_runs("worker-a", [DEFINITION], limit=1, declined=declined)
        assert [claim.run.id for claim in moved.claims] == ["run-1"]

    async def test_epoch_rises_with_every_claim(self, store: Store) -> None:
        """The epoch also rises when the same worker takes the run again; interruptions add up until there is
        progress."""
        await begin(store)
        for number in range(1, 4):
            await hire(store, f"worker-{number}")
            await claim(store, f"worker-{number}")
            await store.end_session(f"worker-{number}")

            run = await get_run(store, "run-1")
            assert (run.epoch, run.attempts) == (number, number - 1)

    async def test_worker_that_is_not_alive_claims_nothing(self, store: Store, clock: ManualClock) -> None:
        """Neither an unknown session nor one that ran out or was retired. [FB-G4]"""
        await hire(store, "expired", lease_seconds=1)
        await hire(store, "retired", lease_seconds=3_600)
        await store.end_session("retired")
        clock.advance(seconds=2)
        tree = await begin(store)

        for worker_id in ("expired", "retired", "unknown", ""):
            assert await claim(store, worker_id) == []
        assert len(await store.read_journal(tree.journal)) == 1

    # -- Many at once --------------------------------------------------------------------------------------

    async def test_concurrent_claims_are_disjoint(self, store: Store, other: Store) -> None:
        """Every run goes to exactly one of the callers, on whatever store they call. [AK-L8]"""
        workers = [f"worker-{number}" for number in range(6)]
        for worker_id in workers:
            await hire(store, worker_id)
        await store.commit([new_tree(store, f"run-{number}") for number in range(30)])

        taken = await asyncio.gather(
            *(claim(there, worker_id, limit=7) for worker_id, there in zip(workers, [store, other] * 3, strict=True))
        )

        ids = [run_id for ids in taken for run_id in ids]
        assert len(ids) == len(set(ids)) == 30

    # -- The former owner ----------------------------------------------------------------------------------

    async def test_zombie_commits_nothing(self, store: Store, other: Store, clock: ManualClock) -> None:
        """A worker that slept through its lease finds its next seq taken, and leaves no trace at all. [FE-P9]"""
        zombie, friend = await begin(store, worker="worker-a"), await begin(store, "friend", worker="worker-b")
        await send(store, message(store, "run-1"))
        clock.advance(seconds=LEASE_SECONDS + 1)
        await hire(other, "worker-b")
        assert await claim(other, "worker-b", limit=1) == ["run-1"]
        before = await see_everything(store, zombie)

        outcome = await zombie.try_write(
            stepped(store),
            consumed=await read_message_ids(store, zombie),
            blobs=[blob(b"zombie")],
            starts=[new_tree(store, "never")],
            messages=[message(store, "friend")],
        )

        assert outcome is Outcome.CONFLICT
        assert await see_everything(store, zombie) == before
        assert await store.read_inbox([friend.journal]) == {}
        assert await store.get_blobs([blob(b"zombie").id]) == {}
        assert await store.find_run("never") is None

    async def test_former_owner_cannot_release_the_run(self, store: Store) -> None:
        """Letting go is a write like any other: the run stays with its new owner. [AK-L5 AK-L6 SF-L9]"""
        await hire(store, "worker-b")
        former = await begin(store, worker="worker-a")
        await claim(store, "worker-b")

        outcome = await former.try_write(RunReleased(at=store.now()))

        assert outcome is Outcome.CONFLICT
        assert (await get_run(store, "run-1")).owner == "worker-b"

    async def test_claim_does_not_touch_other_trees(self, store: Store) -> None:
        """An owner goes on undisturbed while others are claimed."""
        await hire(store, "worker-a")
        await hire(store, "worker-b")
        mine = await begin(store, "mine", worker="worker-a")
        await begin(store, "free")
        await claim(store, "worker-b")

        assert await mine.try_write(stepped(store)) is Outcome.COMMITTED
        assert isinstance((await read_events(mine))[0], RunCreated)


async def assert_row_is_fold(tree: Writer) -> None:
    """Check that the row which the store has made is the fold of the journal."""
    run = await get_run(tree.store, tree.run_id)
    folded = tree.fold.root
    assert (run.status, run.owner, run.epoch, run.attempts) == (
        folded.status,
        folded.owner,
        folded.epoch,
        folded.attempts,
    )
    assert (run.waits, run.wake_at, run.reason, run.updated_at) == (
        folded.waits,
        folded.wake_at,
        folded.reason,
        folded.updated_at,
    )
