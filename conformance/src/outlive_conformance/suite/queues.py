"""Queues: how many slots are given, to whom, and in which order."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec.structs import replace

from outlive._kernel.journal.event import RunCancelled, RunContinued, RunReleased, RunRetried
from outlive._kernel.journal.fold import Fold
from outlive._kernel.model import Run, RunFilter, RunStatus
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.pause import Pause
from outlive._kernel.model.queue import QueueLimits, QueueRecord, RateTier, queue_cell, queue_data, queue_in
from outlive._kernel.model.run import HELD, IN_LINE, OUTSIDE, definition_key
from outlive._kernel.store.contract import Change, Declared, Forgotten, MessageKind, Outcome, Store
from outlive.testing.clock import ManualClock
from outlive_conformance.suite.builders import (
    DEFINITION,
    LEASE_SECONDS,
    NONCE,
    WORKFLOW,
    Writer,
    begin,
    claim,
    created,
    follow,
    get_run,
    hire,
    message,
    new_tree,
    send,
)
from outlive_conformance.suite.facet import Facet

QUEUE = "emails"
LONG_SECONDS = 3_600


class QueuesConformance(Facet):
    """`claim_runs` of runs that have a queue."""

    # -- Slots -----------------------------------------------------------------------------------------------

    async def test_run_gets_a_slot_and_keeps_it_to_its_end(self, store: Store) -> None:
        """In line, then with a slot while it runs and while it waits, and at the end outside."""
        await hire(store, "worker-a")
        await begin(store, queue=QUEUE)
        assert (await get_run(store, "run-1")).slot == IN_LINE

        assert await claim(store, "worker-a") == ["run-1"]
        tree = await follow(store, "run-1")
        assert (await get_run(store, "run-1")).slot == HELD
        await tree.suspend(wake_at=store.now())
        assert (await get_run(store, "run-1")).slot == HELD
        assert await claim(store, "worker-a") == ["run-1"]
        await tree.catch_up()
        await tree.succeed()
        run = await get_run(store, "run-1")
        assert (run.slot, run.queue) == (OUTSIDE, QUEUE)

    async def test_no_more_slots_than_the_concurrency(self, store: Store) -> None:
        """The next one gets a slot when one has ended."""
        await limit(store, concurrency=2)
        await line_up(store, "a", "b", "c", "d")
        await hire(store, "worker-a")
        await hire(store, "worker-b")

        assert await claim(store, "worker-a", limit=1) == ["a"]
        assert await claim(store, "worker-b") == ["b"]
        assert await claim(store, "worker-a") == []
        await (await follow(store, "a")).succeed()
        assert await claim(store, "worker-b") == ["c"]
        assert await claim(store, "worker-b") == []

    async def test_no_more_slots_than_one_worker_may_have(self, store: Store) -> None:
        """Another worker may have as many. What a claim takes over and what it takes from the line count together."""
        await limit(store, per_worker=1)
        await line_up(store, "a", "b", "c")
        await hire(store, "worker-a")
        await hire(store, "worker-b")

        assert await claim(store, "worker-a") == ["a"]
        assert await claim(store, "worker-a") == []
        assert await claim(store, "worker-b") == ["b"]
        await (await follow(store, "a")).suspend(wake_at=store.now())
        assert await claim(store, "worker-a") == ["a"]

    async def test_worker_with_all_its_slots_takes_over_no_other_run_of_the_queue(self, store: Store) -> None:
        """A run that holds a slot and is due waits for a worker that has room, and no time is named for that."""
        await limit(store, per_worker=1)
        await line_up(store, "a", "b")
        await hire(store, "worker-a")
        await hire(store, "worker-b")
        await claim(store, "worker-a")
        await claim(store, "worker-b")
        await (await follow(store, "b")).suspend(wake_at=store.now())

        claims = await store.claim_runs("worker-a", [DEFINITION], limit=10)

        assert (claims.claims, claims.next_wake_at) == ([], None)
        assert await claim(store, "worker-b") == ["b"]

    async def test_no_more_slots_than_one_key_may_have(self, store: Store) -> None:
        """The other keys go on; runs without a key are not limited by it."""
        await limit(store, per_key=1)
        await line_up(store, "a1", "a2", "b1", "x", "y", keys={"a1": "a", "a2": "a", "b1": "b"})
        await hire(store, "worker-a")

        assert set(await claim(store, "worker-a")) == {"a1", "b1", "x", "y"}
        assert await claim(store, "worker-a") == []
        await (await follow(store, "a1")).succeed()
        assert await claim(store, "worker-a") == ["a2"]

    async def test_several_limits_hold_at_once(self, store: Store) -> None:
        """The narrowest one decides."""
        await limit(store, concurrency=3, per_worker=2, per_key=1)
        await line_up(store, "a1", "a2", "b1", "c1", "d1", keys=first_letters("a1", "a2", "b1", "c1", "d1"))
        await hire(store, "worker-a")
        await hire(store, "worker-b")

        assert await claim(store, "worker-a") == ["a1", "b1"]
        assert await claim(store, "worker-b") == ["c1"]
        await (await follow(store, "b1")).succeed()
        assert await claim(store, "worker-a") == ["d1"]

    async def test_a_run_takes_as_many_slots_as_it_says(self, store: Store) -> None:
        """A run of three slots leaves that many fewer to others, and gives them back at its end."""
        await limit(store, concurrency=4)
        await line_up(store, "a", slots=3)
        await line_up(store, "b", "c")
        await hire(store, "worker-a")

        assert await claim(store, "worker-a") == ["a", "b"]
        await (await follow(store, "a")).succeed()
        assert await claim(store, "worker-a") == ["c"]

    async def test_nothing_overtakes_a_run_that_waits_for_more_slots_than_are_free(self, store: Store) -> None:
        """Once its turn has come, what becomes free is for it, and no line that is made later is served before."""
        await limit(store, concurrency=3)
        await line_up(store, "a1", "b1", "c1", keys=first_letters("a1", "b1", "c1"))
        await hire(store, "worker-a")
        await hire(store, "worker-b")
        assert await claim(store, "worker-a") == ["a1", "b1", "c1"]
        await line_up(store, "z1", keys=first_letters("z1"), slots=3)
        await (await follow(store, "b1")).succeed()
        assert await claim(store, "worker-a") == []
        await line_up(store, "e1", "f1", "z2", keys=first_letters("e1", "f1", "z2"))

        assert await claim(store, "worker-b") == []
        await (await follow(store, "a1")).succeed()
        assert await claim(store, "worker-a") == []
        await (await follow(store, "c1")).succeed()

        assert await claim(store, "worker-b") == ["z1"]
        assert await claim(store, "worker-a") == []
        await (await follow(store, "z1")).succeed()
        assert await claim(store, "worker-a") == ["e1", "f1", "z2"]

    async def test_a_run_that_waited_for_slots_and_is_gone_holds_no_other_up(self, store: Store) -> None:
        """It was cancelled, or its workers are gone: others go on with their turns."""
        await limit(store, concurrency=2)
        await line_up(store, "a1", keys=first_letters("a1"))
        await hire(store, "worker-a")
        assert await claim(store, "worker-a") == ["a1"]
        await line_up(store, "z1", keys=first_letters("z1"), slots=2)
        assert await claim(store, "worker-a") == []
        assert queue_in(await store.read_cell(queue_cell(QUEUE))).first == ("z", 0.0)
        await line_up(store, "b1", "c1", keys=first_letters("b1", "c1"))
        await (await follow(store, "z1")).write(RunCancelled(at=store.now()))

        assert await claim(store, "worker-a") == ["b1"]
        await (await follow(store, "a1")).succeed()
        assert await claim(store, "worker-a") == ["c1"]

    async def test_a_run_that_waits_for_slots_holds_no_worker_up_that_cannot_run_it(self, store: Store) -> None:
        """A worker whose code lacks it goes on with the runs that it has, and the run keeps its place."""
        await limit(store, concurrency=2)
        await line_up(store, "a1", keys=first_letters("a1"))
        await hire(store, "worker-a")
        assert await claim(store, "worker-a") == ["a1"]
        await line_up(store, "z1", keys=first_letters("z1"), slots=2)
        assert await claim(store, "worker-a") == []
        await line_up(store, "b1", keys=first_letters("b1"), workflow="elsewhere")

        elsewhere = definition_key("elsewhere", 1)
        assert await claim(store, "worker-a", definitions=[elsewhere]) == ["b1"]
        await (await follow(store, "a1")).succeed()
        await (await follow(store, "b1")).succeed()
        await line_up(store, "c1", keys=first_letters("c1"))
        assert await claim(store, "worker-a") == ["z1"]

    async def test_one_claim_gives_no_more_slots_than_there_are(self, store: Store) -> None:
        """Runs are taken in their order until the next one does not fit."""
        await limit(store, concurrency=6)
        for number, slots in enumerate((1, 2, 1, 3, 1), 1):
            await line_up(store, f"run-{number}", slots=slots)
        await hire(store, "worker-a")

        assert await claim(store, "worker-a") == ["run-1", "run-2", "run-3"]
        await (await follow(store, "run-1")).succeed()
        assert await claim(store, "worker-a") == ["run-4"]

    async def test_a_run_of_more_slots_than_there_are_holds_no_other_up(self, store: Store) -> None:
        """It stays in line, and is taken when the limit is raised."""
        await limit(store, concurrency=2)
        await line_up(store, "a", slots=3)
        await line_up(store, "b", "c", slots=2)
        await hire(store, "worker-a")

        assert await claim(store, "worker-a") == ["b"]
        await (await follow(store, "b")).succeed()
        assert await claim(store, "worker-a") == ["c"]
        await (await follow(store, "c")).succeed()
        assert await claim(store, "worker-a") == []
        assert (await get_run(store, "a")).slot == IN_LINE
        await limit(store, concurrency=3)
        assert await claim(store, "worker-a") == ["a"]

    async def test_a_worker_has_no_more_slots_than_it_may(self, store: Store) -> None:
        """The runs that it takes out of the line count, and so do runs with slots that are due."""
        await limit(store, per_worker=3)
        await line_up(store, "a", "b", slots=2)
        await line_up(store, "c")
        await hire(store, "worker-a")
        await hire(store, "worker-b")

        assert await claim(store, "worker-a") == ["a"]
        assert await claim(store, "worker-a") == []
        assert await claim(store, "worker-b") == ["b", "c"]
        for run_id in ("b", "c"):
            await (await follow(store, run_id)).suspend(wake_at=store.now())
        assert await claim(store, "worker-a") == []
        assert await claim(store, "worker-b") == ["b", "c"]

    async def test_a_worker_takes_over_a_run_with_more_slots_than_it_may_have_if_it_has_none(
        self, store: Store
    ) -> None:
        """The limit was lowered while the run was under way; it must not stand still."""
        await line_up(store, "a", slots=3)
        await line_up(store, "b")
        await hire(store, "worker-a")
        assert await claim(store, "worker-a") == ["a", "b"]
        await limit(store, per_worker=2)
        await (await follow(store, "a")).suspend(wake_at=store.now())

        assert await claim(store, "worker-a") == []
        await (await follow(store, "b")).succeed()
        assert await claim(store, "worker-a") == ["a"]

    async def test_a_run_of_many_slots_uses_up_many_turns_of_its_key(self, store: Store) -> None:
        """A key that takes three slots at once has one run for three runs of another key."""
        await limit(store, concurrency=100)
        await line_up(store, "a1", "a2", "a3", keys=first_letters("a1", "a2", "a3"), slots=3)
        await line_up(store, "b1", "b2", "b3", "b4", keys=first_letters("b1", "b2", "b3", "b4"))
        await hire(store, "worker-a")

        taken = [run_id for _ in range(5) for run_id in await claim(store, "worker-a", limit=1)]

        assert taken == ["a1", "b1", "b2", "b3", "a2"]

    async def test_a_key_is_limited_by_its_runs_whatever_slots_they_take(self, store: Store) -> None:
        """`per_key` counts runs."""
        await limit(store, concurrency=9, per_key=2)
        await line_up(store, "a1", "a2", "a3", keys=first_letters("a1", "a2", "a3"), slots=3)
        await hire(store, "worker-a")

        assert await claim(store, "worker-a") == ["a1", "a2"]

    async def test_limits_of_one_queue_are_not_those_of_another(self, store: Store) -> None:
        """A full queue stands in the way of no other run."""
        await limit(store, concurrency=1)
        await line_up(store, "a", "b")
        await begin(store, "other", queue="other")
        await begin(store, "plain")
        await hire(store, "worker-a")

        assert set(await claim(store, "worker-a")) == {"a", "other", "plain"}

    async def test_two_claimers_never_give_too_many_slots(self, store: Store, other: Store) -> None:
        """However they overlap, with all limits at once. [DB-P11]"""
        await limit(store, concurrency=5, per_worker=4, per_key=2)
        await store.commit(
            [
                new_tree(store, f"{key}{number}", queue=QUEUE, queue_key=key)
                for number in range(4)
                for key in ("a", "b", "c")
            ]
        )
        for worker_id in ("worker-a", "worker-b"):
            await hire(store, worker_id)
        taken: list[str] = []
        while len(taken) < 12:
            found = await asyncio.gather(
                *(claim(each, worker, limit=3) for worker, each in (("worker-a", store), ("worker-b", other)) * 2)
            )
            now = [run_id for ids in found for run_id in ids]
            assert 0 < len(now) <= 5
            assert max(len([run for run in now if run[0] == key]) for key in "abc") <= 2
            taken += now
            for run_id in now:
                await (await follow(store, run_id)).succeed()
        assert len(set(taken)) == 12

    # -- Who is next -----------------------------------------------------------------------------------------

    async def test_runs_of_one_line_come_in_the_order_in_which_they_were_due(
        self, store: Store, clock: ManualClock
    ) -> None:
        """Whatever order they were made in."""
        for run_id in ("first", "second", "third"):
            await begin(store, run_id, queue=QUEUE)
            clock.advance(seconds=1)
        await hire(store, "worker-a")

        assert await claim(store, "worker-a", limit=2) == ["first", "second"]
        assert await claim(store, "worker-a", limit=2) == ["third"]

    async def test_priority_brings_a_run_forward(self, store: Store, clock: ManualClock) -> None:
        """By a span of time, so that the others have their turn in the end."""
        await begin(store, "old", queue=QUEUE)
        clock.advance(seconds=10)
        await begin(store, "plain", queue=QUEUE)
        await begin(store, "urgent", queue=QUEUE, lead=5 * MICROSECONDS)
        await begin(store, "very-urgent", queue=QUEUE, lead=60 * MICROSECONDS)
        await hire(store, "worker-a")

        assert await claim(store, "worker-a") == ["very-urgent", "old", "urgent", "plain"]

    async def test_keys_have_their_turns_one_after_the_other(self, store: Store, clock: ManualClock) -> None:
        """A key with many runs does not keep the others waiting, in one claim and over many."""
        runs = [*(f"a{number}" for number in range(6)), "b0", "b1", "c0"]
        await line_up(store, *runs, keys=first_letters(*runs))
        await hire(store, "worker-a")

        first = await claim(store, "worker-a", limit=4)
        rest = [*await claim(store, "worker-a", limit=1), *await claim(store, "worker-a", limit=10)]

        assert sorted(first[:3]) == ["a0", "b0", "c0"]
        assert sorted([first[3], rest[0]]) == ["a1", "b1"]
        assert rest[1:] == ["a2", "a3", "a4", "a5"]
        await line_up(store, "c1", keys={"c1": "c"})
        assert await claim(store, "worker-a") == ["c1"]

    async def test_key_that_comes_back_has_saved_nothing(self, store: Store) -> None:
        """It has the next turn, and then one like the others."""
        await line_up(store, *(f"a{number}" for number in range(9)), keys={f"a{number}": "a" for number in range(9)})
        await line_up(store, "b0", keys={"b0": "b"})
        await hire(store, "worker-a")
        assert sorted(await claim(store, "worker-a", limit=2)) == ["a0", "b0"]
        assert await claim(store, "worker-a", limit=4) == ["a1", "a2", "a3", "a4"]

        await line_up(store, "b1", "b2", "b3", keys={"b1": "b", "b2": "b", "b3": "b"})
        taken = await claim(store, "worker-a", limit=4)

        assert len([run_id for run_id in taken if run_id.startswith("b")]) == 2

    async def test_key_with_a_weight_has_more_turns(self, store: Store) -> None:
        """In proportion to those of the others."""
        await limit(store, weights={"a": 3})
        runs = [f"{key}{number}" for key in "ab" for number in range(8)]
        await line_up(store, *runs, keys=first_letters(*runs))
        await hire(store, "worker-a")

        taken = await claim(store, "worker-a", limit=8)

        assert len([run_id for run_id in taken if run_id.startswith("a")]) == 6

    async def test_many_keys_are_served_one_claim_after_the_other(self, store: Store) -> None:
        """Keys are served in turn, also when most of their lines are empty by now. [DB-P9]"""
        await store.commit([new_tree(store, f"run-{n}", queue=QUEUE, queue_key=f"key-{n}") for n in range(120)])
        await hire(store, "worker-a")
        taken: list[str] = []
        for _ in range(8):  # Twice as often as it takes: a store that gives a run again and again fails, and this ends.
            taken += await claim(store, "worker-a", limit=30)

        assert len(set(taken)) == len(taken) == 120
        await line_up(store, "again", keys={"again": "key-7"})
        for _ in range(3):
            taken += await claim(store, "worker-a", limit=1)
        assert taken[120:] == ["again"]

    async def test_only_runs_of_known_definitions_leave_the_line(self, store: Store) -> None:
        """Runs of others stay in line, and hold no one up."""
        unknown = definition_key("unknown", 1)
        await begin(store, "unknown", queue=QUEUE, workflow="unknown")
        await begin(store, "later", queue=QUEUE)
        await hire(store, "worker-a")

        assert await claim(store, "worker-a") == ["later"]
        assert await claim(store, "worker-a", definitions=[DEFINITION, unknown]) == ["unknown"]

    async def test_line_is_shared_by_definitions(self, store: Store, clock: ManualClock) -> None:
        """The order within a key is that of being due, whatever the workflow."""
        await begin(store, "first", queue=QUEUE, workflow="elsewhere")
        clock.advance(seconds=1)
        await begin(store, "second", queue=QUEUE)
        clock.advance(seconds=1)
        await begin(store, "third", queue=QUEUE, workflow="elsewhere")
        await hire(store, "worker-a")

        both = [DEFINITION, definition_key("elsewhere", 1)]
        assert await claim(store, "worker-a", definitions=both) == ["first", "second", "third"]

    # -- Rate and pause --------------------------------------------------------------------------------------

    async def test_no_more_runs_begin_than_the_rate_allows(self, store: Store, clock: ManualClock) -> None:
        """The claim says when the next one may."""
        await limit(store, rate=(RateTier("bucket", 0.5, 2),))
        await line_up(store, "a", "b", "c")
        await hire(store, "worker-a")

        first = await store.claim_runs("worker-a", [DEFINITION], limit=10)
        assert [each.run.id for each in first.claims] == ["a", "b"]
        assert first.next_wake_at == store.now() + 2 * MICROSECONDS
        assert await claim(store, "worker-a") == []
        clock.advance(seconds=2)
        assert await claim(store, "worker-a") == ["c"]

    async def test_paused_queue_gives_no_slot(self, store: Store) -> None:
        """A run that has a slot goes on."""
        await line_up(store, "a", "b")
        await hire(store, "worker-a")
        await claim(store, "worker-a", limit=1)
        await (await follow(store, "a")).suspend(wake_at=store.now())
        await put_record(store, QueueRecord(paused=Pause(store.now())))

        assert await claim(store, "worker-a") == ["a"]
        await put_record(store, QueueRecord())
        assert await claim(store, "worker-a") == ["b"]

    async def test_state_that_cannot_be_read_limits_nothing(self, store: Store) -> None:
        """A damaged cell must not stop a queue."""
        await store.change_cell(queue_cell(QUEUE), lambda *_: (b"?", None))
        await line_up(store, "a")
        await hire(store, "worker-a")

        assert await claim(store, "worker-a") == ["a"]

    # -- Into the line ---------------------------------------------------------------------------------------

    async def test_delayed_run_gets_in_line_when_it_is_due(self, store: Store, clock: ManualClock) -> None:
        """Not before, and the claim says when that is; messages do not hurry it."""
        await limit(store, concurrency=1)
        start_at = store.now() + 60 * MICROSECONDS
        await begin(store, queue=QUEUE, start_at=start_at)
        await hire(store, "worker-a", lease_seconds=LONG_SECONDS)
        await send(store, message(store, "run-1"))

        early = await store.claim_runs("worker-a", [DEFINITION], limit=10)
        assert (early.claims, early.next_wake_at) == ([], start_at)
        clock.advance(seconds=60)
        assert await claim(store, "worker-a") == ["run-1"]

    async def test_run_that_has_not_begun_gets_into_another_queue(self, store: Store) -> None:
        """With another key and priority, or into none: it leaves its line, and is found in its new queue."""
        await limit(store, concurrency=1)
        for run_id in ("first", "other queue", "no queue"):
            await line_up(store, run_id)
        await hire(store, "worker-a", lease_seconds=LONG_SECONDS)

        await requeue(store, "other queue", queue="fast", queue_key="b", lead=7)
        await requeue(store, "no queue")

        moved, freed = await get_run(store, "other queue"), await get_run(store, "no queue")
        assert (moved.queue, moved.queue_key, moved.lead, moved.slot) == ("fast", "b", 7, IN_LINE)
        assert (freed.queue, freed.queue_key, freed.slot) == ("", "", OUTSIDE)
        assert [run.id for run in await store.list_runs(RunFilter(queue="fast"))] == ["other queue"]
        assert [run.id for run in await store.list_runs(RunFilter(queue=QUEUE))] == ["first"]
        assert sorted(await claim(store, "worker-a")) == ["first", "no queue", "other queue"]

    async def test_run_without_a_queue_can_begin_later_too(self, store: Store, clock: ManualClock) -> None:
        """Neither before its time nor because of a message."""
        await begin(store, start_at=store.now() + 60 * MICROSECONDS)
        await hire(store, "worker-a", lease_seconds=LONG_SECONDS)
        await send(store, message(store, "run-1"))

        assert await claim(store, "worker-a") == []
        clock.advance(seconds=60)
        assert await claim(store, "worker-a") == ["run-1"]

    async def test_waiting_run_gives_its_slot_back_if_it_is_to(self, store: Store, clock: ManualClock) -> None:
        """It gets in line again when it is due, by its timer or by a message."""
        await limit(store, concurrency=1)
        await line_up(store, "a", frees_slot=True)
        await line_up(store, "b")
        await hire(store, "worker-a", lease_seconds=LONG_SECONDS)
        assert await claim(store, "worker-a") == ["a"]

        await (await follow(store, "a")).suspend(wake_at=store.now() + 60 * MICROSECONDS)
        assert (await get_run(store, "a")).slot == OUTSIDE
        assert await claim(store, "worker-a") == ["b"]
        await send(store, message(store, "a"))
        assert await claim(store, "worker-a") == []
        await (await follow(store, "b")).succeed()
        assert await claim(store, "worker-a") == ["a"]

    async def test_parked_run_gives_its_slot_back(self, store: Store) -> None:
        """A run that cannot go on does not block its queue; resumed, it gets in line again."""
        await limit(store, concurrency=1)
        await line_up(store, "a", "b")
        await hire(store, "worker-a")
        await claim(store, "worker-a")

        await (await follow(store, "a")).park()
        assert await claim(store, "worker-a") == ["b"]
        await send(store, message(store, "a", kind=MessageKind.RESUME))
        assert await claim(store, "worker-a") == []
        await (await follow(store, "b")).succeed()
        assert await claim(store, "worker-a") == ["a"]

    async def test_released_run_keeps_its_slot(self, store: Store) -> None:
        """It goes on before the runs in line."""
        await limit(store, concurrency=1)
        await line_up(store, "a", "b")
        await hire(store, "worker-a")
        await claim(store, "worker-a")

        await (await follow(store, "a")).write(RunReleased(at=store.now()))

        assert await claim(store, "worker-a") == ["a"]

    async def test_run_in_line_can_be_ended(self, store: Store) -> None:
        """It leaves the line, and no slot is needed for that."""
        await limit(store, concurrency=1)
        await line_up(store, "a", "b", "c")
        await hire(store, "worker-a")
        await claim(store, "worker-a")

        await (await follow(store, "b")).write(RunCancelled(at=store.now()))
        await (await follow(store, "a")).succeed()

        assert await claim(store, "worker-a") == ["c"]

    async def test_run_that_is_retried_gets_in_line(self, store: Store, clock: ManualClock) -> None:
        """A retried run gets in line as a new one does, behind the others."""
        await limit(store, concurrency=1)
        await line_up(store, "a", "b")
        await hire(store, "worker-a")
        await claim(store, "worker-a")
        tree = await follow(store, "a")
        clock.advance(seconds=1)
        await tree.write(RunCancelled(at=store.now()))

        await store.commit([reopening(tree, RunRetried(at=store.now(), undone=(2,), since=2))])

        assert (await get_run(store, "a")).slot == IN_LINE
        assert await claim(store, "worker-a") == ["b"]
        await (await follow(store, "b")).succeed()
        assert await claim(store, "worker-a") == ["a"]

    async def test_next_generation_has_the_slot_of_the_one_before(self, store: Store) -> None:
        """It goes on at once, and the others wait as before."""
        await limit(store, concurrency=1)
        await line_up(store, "a", "b")
        await hire(store, "worker-a")
        await claim(store, "worker-a")
        tree = await follow(store, "a")
        successor = new_tree(store, "a", queue=QUEUE, has_slot=True)
        successor.successor_of = tree.journal
        successor.renames = [renamed(await get_run(store, "a"))]
        await tree.write(RunContinued(at=store.now(), workflow=WORKFLOW, version=1), starts=[successor])

        assert (await get_run(store, "a")).slot == HELD
        assert await claim(store, "worker-a") == ["a"]
        assert await claim(store, "worker-a") == []

    # -- Workers ---------------------------------------------------------------------------------------------

    async def test_slot_of_a_lost_worker_goes_with_its_run(self, store: Store, clock: ManualClock) -> None:
        """The worker that takes the run over has the slot; no other run gets one."""
        await limit(store, concurrency=1)
        await line_up(store, "a", "b")
        await hire(store, "worker-a")
        await claim(store, "worker-a")
        clock.advance(seconds=LEASE_SECONDS + 1)
        await hire(store, "worker-b")

        (taken,) = (await store.claim_runs("worker-b", [DEFINITION], limit=10)).claims

        assert (taken.run.id, taken.interrupted) == ("a", True)
        assert (await store.claim_runs("worker-b", [DEFINITION], limit=10, orphans_max=0)).claims == []

    async def test_worker_that_is_not_alive_takes_nothing_out_of_a_line(self, store: Store, clock: ManualClock) -> None:
        """A dead worker takes nothing out of a line, as it claims nothing else."""
        await line_up(store, "a")
        await hire(store, "worker-a")
        clock.advance(seconds=LEASE_SECONDS + 1)

        assert await claim(store, "worker-a") == []
        assert await claim(store, "unknown") == []

    async def test_only_named_queues_are_taken_from_in_their_order(self, store: Store, clock: ManualClock) -> None:
        """The empty name stands for the runs without a queue."""
        await begin(store, "plain")
        await begin(store, "other", queue="other")
        clock.advance(seconds=1)
        await line_up(store, "a")
        await hire(store, "worker-a")

        assert await claim(store, "worker-a", queues=["gone"]) == []
        assert await claim(store, "worker-a", queues=[QUEUE, ""]) == ["a", "plain"]
        await (await follow(store, "a")).suspend(wake_at=store.now())
        assert await claim(store, "worker-a", queues=["other"]) == ["other"]
        assert await claim(store, "worker-a", queues=["other", QUEUE]) == ["a"]

    async def test_without_names_every_queue_comes_first_in_its_turn(self, store: Store) -> None:
        """A queue with much to do does not starve the others."""
        await store.commit([new_tree(store, f"plain-{number}") for number in range(8)])
        await line_up(store, *(f"a{number}" for number in range(8)))
        await hire(store, "worker-a")

        taken = [*await claim(store, "worker-a", limit=2), *await claim(store, "worker-a", limit=2)]

        assert len([run_id for run_id in taken if run_id.startswith("a")]) == 2

    async def test_declared_limits_are_written_by_the_claim_of_newer_code(self, store: Store) -> None:
        """Limits that older code declares do not count any more, and limits set at run time stay."""
        await put_record(store, QueueRecord(changed={"per_key": 7}))
        await line_up(store, "a", "b", "c")
        await hire(store, "worker-a")

        for at, concurrency, taken in ((5, 1, ["a"]), (9, 2, ["b"]), (6, 9, [])):
            declared = Declared(at, {QUEUE: QueueLimits(concurrency=concurrency)})
            claims = await store.claim_runs("worker-a", [DEFINITION], limit=10, declared=declared)
            assert [each.run.id for each in claims.claims] == taken
        state = queue_in(await store.read_cell(queue_cell(QUEUE)))
        assert (state.limits.concurrency, state.limits.per_key, state.declared_at) == (2, 7, 9)

    # -- How full it is --------------------------------------------------------------------------------------

    async def test_queues_are_listed_by_name(self, store: Store) -> None:
        """The queues of runs are listed, ended runs too, and the queues that have a cell."""
        assert await store.list_queues() == []
        await (await begin(store, "a", queue="b-queue")).write(RunCancelled(at=store.now()))
        await begin(store, "b", queue="a-queue")
        await begin(store, "c")
        await limit(store)

        assert await store.list_queues() == ["a-queue", "b-queue", QUEUE]

    async def test_queue_is_measured(self, store: Store, clock: ManualClock) -> None:
        """Runs in line, with a slot, and to come; never more than was asked for."""
        oldest_at = store.now()
        await line_up(store, "a", slots=3)
        await line_up(store, "b", "c", "d")
        await begin(store, "later", queue=QUEUE, start_at=store.now() + 60 * MICROSECONDS)
        await begin(store, "other", queue="other")
        await hire(store, "worker-a")
        await claim(store, "worker-a", limit=1, queues=[QUEUE])
        clock.advance(seconds=5)
        await line_up(store, "e", slots=7)

        found = await store.measure_queue(QUEUE, limit=100)
        few = await store.measure_queue(QUEUE, limit=2)
        nothing = await store.measure_queue("nothing", limit=100)

        assert (found.in_line, found.held, found.later, found.oldest_at) == (4, 1, 1, oldest_at)
        assert (found.slots, nothing.slots) == (3, 0)
        assert [run.id for run in found.holders] == ["a"]
        assert (few.in_line, few.held) == (2, 1)
        assert (nothing.in_line, nothing.held, nothing.later, nothing.oldest_at) == (0, 0, 0, None)

    async def test_keys_that_wait_longest_are_known(self, store: Store, clock: ManualClock) -> None:
        """Each once, whatever the workflows of its runs: since when it waits, and how many of its runs are in line."""
        began = store.now()
        for run_id, key in (("a", "late"), ("b", "early"), ("c", "early"), ("d", "")):
            await begin(store, run_id, queue=QUEUE, queue_key=key)
            clock.advance(seconds=1)
        await begin(store, "e", queue=QUEUE, queue_key="late", workflow="elsewhere")
        await begin(store, "f", queue="other", queue_key="other")

        found = await store.measure_queue(QUEUE, limit=100)
        few = await store.measure_queue(QUEUE, limit=1)

        waits = [(key, (oldest_at - began) // MICROSECONDS, count) for oldest_at, key, count in found.keys]
        assert waits == [("late", 0, 2), ("early", 1, 2), ("", 3, 1)]
        assert [key.in_line for key in few.keys] == [1]

    async def test_place_in_line_is_known(self, store: Store, clock: ManualClock) -> None:
        """Among the runs of its key, whatever their workflow."""
        for run_id, key, lead in (("a", "x", 0), ("b", "x", 0), ("c", "y", 0), ("d", "x", 60 * MICROSECONDS)):
            await begin(store, run_id, queue=QUEUE, queue_key=key, lead=lead)
            clock.advance(seconds=1)
        await begin(store, "e", queue=QUEUE, queue_key="x", workflow="elsewhere")

        ahead = {run: (await store.measure_queue(QUEUE, limit=2, run_id=run)).ahead for run in "abcde"}

        assert ahead == {"d": 0, "a": 1, "b": 2, "c": 0, "e": 2}

    async def test_runs_are_found_by_their_queue(self, store: Store) -> None:
        """The runs of one queue are found, or the runs without any."""
        await line_up(store, "a", "b")
        await begin(store, "other", queue="other")
        await begin(store, "plain")

        found = {
            name: {run.id for run in await store.list_runs(RunFilter(queue=name))}
            for name in (QUEUE, "other", "", "no")
        }

        assert found == {QUEUE: {"a", "b"}, "other": {"other"}, "": {"plain"}, "no": set()}
        assert await store.count_runs(RunFilter(queue=QUEUE), limit=10) == 2
        assert await store.count_runs(RunFilter(queue=QUEUE, statuses=(RunStatus.FAILED,)), limit=10) == 0

    # -- What a row says -------------------------------------------------------------------------------------

    async def test_queue_is_stored_with_the_run(self, store: Store) -> None:
        """Whatever text the names are."""
        await begin(store, queue="sch\u00f6n", queue_key="k\u00e4y\x00", lead=7, slots=3)
        await hire(store, "worker-a")

        run = await get_run(store, "run-1")
        assert (run.queue, run.queue_key, run.lead, run.slot) == ("sch\u00f6n", "k\u00e4y\x00", 7, IN_LINE)
        assert run.slots == 3
        assert (await claim(store, "worker-a")) == ["run-1"]
        assert (await get_run(store, "run-1")).status is RunStatus.RUNNING

    async def test_line_that_is_not_known_is_seen_and_repaired(self, store: Store) -> None:
        """The examiner says of each run in line whether a claim finds it."""
        await line_up(store, "a")
        journal = (await get_run(store, "a")).journal

        (tree,) = await store.examiner.examine([journal])

        assert [row.is_unlined for row in tree.runs] == [False]


def reopening(tree: Writer, event: RunRetried) -> Change:
    """The change that lets an ended tree go on."""
    change = tree.change(event)
    change.reopens = True
    return change


def renamed(root: Run) -> Run:
    """The row of a run that makes room for the next generation."""
    return replace(root, id=f"{root.id}~gen1", root_id=f"{root.id}~gen1")


def first_letters(*runs: str) -> dict[str, str]:
    """The keys of runs whose ids begin with them."""
    return {run: run[0] for run in runs}


async def line_up(store: Store, *run_ids: str, keys: dict[str, str] | None = None, **fields: Any) -> None:
    """Start runs in the queue, one after the other."""
    for run_id in run_ids:
        await begin(store, run_id, queue=QUEUE, queue_key=(keys or {}).get(run_id, ""), **fields)


async def limit(store: Store, **limits: Any) -> None:
    """Declare the limits of the queue."""
    await put_record(store, QueueRecord(declared=QueueLimits(**limits)))


async def put_record(store: Store, record: QueueRecord) -> None:
    """Write the cell of the queue."""
    await store.change_cell(queue_cell(QUEUE), lambda *_: (queue_data(record), None))
    assert queue_in(await store.read_cell(queue_cell(QUEUE))) == record


async def requeue(store: Store, run_id: str, **place: Any) -> None:
    """Put another first event in the place of the one of a run that has not begun."""
    tree = await follow(store, run_id)
    fold, event = Fold(run_id), created(store, nonce=NONCE, before=tree.seq + 1, **place)
    fold.apply(event)
    change = tree.change(event, forgets=Forgotten(before=tree.seq + 1, below=0))
    change.runs, change.requeued = [replace(fold.root, journal=tree.journal)], True
    assert (await store.commit([change]))[0][0] is Outcome.COMMITTED
