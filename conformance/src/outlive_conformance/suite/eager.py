"""Runs that begin at once: in a queue that limits nothing a worker may own a run from its birth."""

from __future__ import annotations

from outlive._kernel.model.pause import Pause
from outlive._kernel.model.queue import QueueLimits, QueueRecord, RateTier
from outlive._kernel.model.run import HELD
from outlive._kernel.store.contract import Change, Outcome, Store
from outlive_conformance.suite.builders import DEFINITION, claim, get_run, hire, new_tree
from outlive_conformance.suite.facet import Facet
from outlive_conformance.suite.queues import QUEUE, limit, line_up, put_record


class EagerConformance(Facet):
    """`Change.eager`, and the queues that a claim finds open."""

    async def test_owned_run_begins_at_once_where_nothing_is_limited(self, store: Store) -> None:
        """It has a slot from its birth."""
        ((outcome, _),) = await store.commit([eager(store, "run-1")])

        run = await get_run(store, "run-1")
        assert outcome is Outcome.COMMITTED
        assert (run.slot, run.owner) == (HELD, "worker-a")

    async def test_owned_run_must_wait_where_anything_is_limited(self, store: Store) -> None:
        """By any limit, or by a pause; nothing of it is written, and what is committed with it is."""
        rate = (RateTier("window", 5, 60.0),)
        for number, record in enumerate(
            (
                QueueRecord(declared=QueueLimits(concurrency=5)),
                QueueRecord(declared=QueueLimits(per_worker=5)),
                QueueRecord(declared=QueueLimits(per_key=5)),
                QueueRecord(declared=QueueLimits(rate=rate)),
                QueueRecord(changed={"concurrency": 5}),
                QueueRecord(changed={"rate": [{"kind": "window", "amount": 5, "extent": 60}]}),
                QueueRecord(paused=Pause(at=1, by="ann", reason="a \0 in it")),
            )
        ):
            await put_record(store, record)

            outcomes = await store.commit([new_tree(store, f"other-{number}"), eager(store, "run-1")])

            assert [outcome for outcome, _ in outcomes] == [Outcome.COMMITTED, Outcome.MUST_WAIT]
            assert await store.find_run("run-1") is None
            assert await store.find_run(f"other-{number}") is not None

    async def test_owned_run_overtakes_no_run_in_line(self, store: Store) -> None:
        """None that is in line already, and none that gets in line before it in the same commit."""
        await line_up(store, "first")
        outcomes = await store.commit([eager(store, "second"), eager(store, "elsewhere", queue="others")])
        assert [outcome for outcome, _ in outcomes] == [Outcome.MUST_WAIT, Outcome.COMMITTED]

        await hire(store, "worker-a")
        await claim(store, "worker-a")
        ((outcome, _),) = await store.commit([eager(store, "second")])
        assert outcome is Outcome.COMMITTED
        outcomes = await store.commit([new_tree(store, "third", queue=QUEUE), eager(store, "fourth")])
        assert [outcome for outcome, _ in outcomes] == [Outcome.COMMITTED, Outcome.MUST_WAIT]
        await claim(store, "worker-a")
        outcomes = await store.commit([eager(store, "fifth"), new_tree(store, "sixth", queue=QUEUE)])
        assert [outcome for outcome, _ in outcomes] == [Outcome.COMMITTED, Outcome.COMMITTED]

    async def test_claim_says_which_queues_are_open(self, store: Store) -> None:
        """A claim names the queues that it has emptied and that limit nothing; not a queue in which a run stays in
        line."""
        await line_up(store, "one", "two")
        await hire(store, "worker-a")

        seen = [await store.claim_runs("worker-a", [DEFINITION], limit=limit) for limit in (1, 5)]
        await limit(store, concurrency=5)
        await line_up(store, "three")
        seen.append(await store.claim_runs("worker-a", [DEFINITION], limit=5))

        assert [claims.claims[0].run.id for claims in seen] == ["one", "two", "three"]
        assert [claims.open_queues for claims in seen] == [frozenset(), frozenset({QUEUE}), frozenset()]


def eager(store: Store, run_id: str, *, queue: str = QUEUE) -> Change:
    """The change that creates a tree which a worker owns from the beginning."""
    change = new_tree(store, run_id, queue=queue, worker="worker-a")
    change.eager = queue
    return change
