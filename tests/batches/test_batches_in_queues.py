"""Batches whose items wait in a queue: each item under way holds one slot."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest

import outlive
from outlive import Queue
from outlive._features.batches.starting import AHEAD_BYTES_MAX, counted
from outlive._features.batches.workflows import BATCH, TURN_SECONDS, Plan
from outlive._kernel.client.birth import birth, created
from outlive._kernel.client.slices import giving_way
from outlive._kernel.model import Payload
from outlive._kernel.store.contract import Outcome
from outlive.errors import InvalidArgumentError
from outlive.limits import Limits
from outlive.testing import TestEngine
from tests.engine.dying import die_at_each_commit
from tests.engine.inside import row_of
from tests.engine.support import Place, in_time, stage, until

pytestmark = pytest.mark.any_store

trio = Queue("trio", concurrency=3)
one_per_key = Queue("one_per_key", per_key=1)
batched = Queue("batched", concurrency=1, priorities=True)


class Line:
    """How many items are in their step at once."""

    now = most = 0


line = Line()


@outlive.step(raises=(ValueError,))
async def queued_item(n: int) -> int:
    line.now += 1
    line.most = max(line.most, line.now)
    stage.call(n)
    for _ in range(5):
        await asyncio.sleep(0)
    line.now -= 1
    if n < 0 and "repaired" not in stage.values:
        raise ValueError(n)
    return 2 * n


@outlive.workflow(queue=batched)
async def batched_run(n: int) -> int:
    return await queued_item(n)


@outlive.workflow
async def takes_the_slot() -> None:
    await outlive.wait_for_signal("go")


@pytest.fixture(autouse=True)
def _empty() -> None:
    line.now = line.most = 0


async def queues_of(engine: outlive.Engine, batch_id: str) -> set[str]:
    """The queues of the chunks of a batch."""
    return {run.queue for run in await engine.list(id_prefix=f"{batch_id}~chunk", roots_only=True)}


@pytest.mark.every_store
async def test_items_share_the_slots_of_workers_that_take_from_their_queue_only(place: Place) -> None:
    """A slot is an item; the run that looks after the batch is with them too, though it is in no queue."""
    async with place.engine(queues=["trio"]) as one, place.engine(queues=["trio"]):
        batch = await one.start_batch(queued_item, range(16), queue=trio, concurrency=6, id="b")

        assert await in_time(batch.results()) == [2 * n for n in range(16)]
        assert (await batch.run.info()).queue == ""
        assert await queues_of(one, "b") == {"trio"}
    assert 1 <= line.most <= 3


async def test_no_more_items_than_the_batch_asks_for() -> None:
    """However many slots there are, and however many items a chunk has: each runs one at a time."""
    async with TestEngine() as engine:
        batch = await engine.start_batch(queued_item, range(100), queue="wide", concurrency=2, id="b")

        assert await batch.results() == [2 * n for n in range(100)]
        # Each lane has about four chunks.
        assert len(await engine.list(id_prefix="b~chunk")) == 9
    assert line.most == 2


@outlive.workflow
async def slow_item(n: int) -> int:
    await asyncio.sleep(2)
    stage.call(n)
    return n


@outlive.workflow(queue=batched)
async def between() -> None:
    stage.call("between")


async def test_chunk_of_long_items_lets_others_have_its_slot() -> None:
    """A chunk gives its slot back after some seconds, and gets in line behind the runs that wait there; it goes on with
    the items that are left."""
    async with TestEngine() as engine:
        batch = await engine.start_batch(slow_item, range(40), queue=batched, concurrency=1, id="b")
        await engine.skip(seconds=1)
        await engine.start(between)

        assert await batch.results() == list(range(40))
        assert len(await engine.list(id_prefix="b~chunk", roots_only=True)) == 4
    assert stage.calls == [0, 1, 2, "between", *range(3, 40)]


async def test_chunk_of_quick_items_keeps_its_slot(engine: outlive.Engine) -> None:
    """A turn in the line costs two commits, and a chunk that ends within some seconds has one turn."""
    batch = await engine.start_batch(queued_item, range(40), queue=trio, concurrency=1, id="b")

    assert await in_time(batch.results()) == [2 * n for n in range(40)]
    assert [it for it in await engine.history("b~chunk1") if it.type == "RunSuspended"] == []


async def test_rows_of_a_generator_are_in_as_few_chunks_as_those_of_a_list() -> None:
    """Some of them are read ahead: a chunk for each of the first rows costs as much as a run."""
    async with TestEngine() as engine:
        batch = await engine.start_batch(queued_item, iter(range(100)), queue="wide", concurrency=2, id="u")
        assert await batch.results() == [2 * n for n in range(100)]
        assert len(await engine.list(id_prefix="u~chunk")) == 9
        more = await engine.start_batch(queued_item, iter(range(300)), queue="wide", concurrency=2, id="m")
        assert await more.results() == [2 * n for n in range(300)]
        assert len(await engine.list(id_prefix="m~chunk")) == 9


async def test_a_bounded_number_of_rows_is_read_ahead() -> None:
    """A batch reads ahead as many rows as a chunk needs, or some megabytes, and no more."""
    read: list[int] = []

    def rows(size: int) -> Iterator[bytes]:
        for number in range(100):
            read.append(number)
            yield bytes(size)

    for size, enough, ahead in ((1, 1_000, 100), (1, 10, 10), (AHEAD_BYTES_MAX // 4, 1_000, 4)):
        read.clear()
        all_rows, count = await counted(giving_way(rows(size)), enough=enough)
        assert (count, len(read)) == (ahead, ahead)
        assert len([row async for row in all_rows]) == 100


async def test_keys_have_their_slots() -> None:
    """The key of a batch is that of all its items."""
    async with TestEngine() as engine:
        batches = [
            await engine.start_batch(queued_item, range(8), queue=one_per_key, key=key, id=key) for key in ("a", "b")
        ]
        for batch in batches:
            assert await batch.result() == {"total": 8, "succeeded": 8, "failed": 0}
        (run, *_) = await engine.list(id_prefix="a~chunk")
        assert run.queue_key == "a"
    assert line.most <= 2


async def test_rate_of_a_queue_counts_items() -> None:
    """A chunk has one then."""
    slow = Queue("slow_items", rate=outlive.limits.TokenBucket(0.1, 2))
    async with TestEngine() as engine:
        began = engine.now()
        batch = await engine.start_batch(queued_item, range(6), queue=slow, id="b")
        await batch.result()

        assert timedelta(seconds=40) <= engine.now() - began < timedelta(seconds=60)
        assert len(await engine.list(id_prefix="b~chunk")) == 6


async def test_queue_of_the_workflow_is_that_of_its_items() -> None:
    """Unless another one is said, or none."""
    async with TestEngine() as engine:
        for name, options in (
            ("own", {}),
            ("first", {"priority": 2}),
            ("other", {"queue": trio}),
            ("none", {"queue": "default"}),
        ):
            batch = await engine.start_batch(batched_run, [1, 2], id=name, **options)
            assert await batch.results() == [2, 4]

        assert [await queues_of(engine, name) for name in ("own", "first", "other", "none")] == [
            {"batched"},
            {"batched"},
            {"trio"},
            {""},
        ]
        assert {
            (await row_of(engine, run.id)).lead for run in await engine.list(id_prefix="first~chunk", roots_only=True)
        } == {120_000_000}


async def test_batch_says_that_it_waits_in_line() -> None:
    """`why` of a batch and of its chunk name the queue, the place in line and the run with the slot; the batch goes on
    when there is a slot."""
    async with TestEngine() as engine:
        holder = await engine.start(takes_the_slot, queue=batched, id="holder")
        await engine.settle()
        batch = await engine.start_batch(queued_item, [1, 2], queue=batched, id="b")
        await engine.settle()

        why = await batch.run.why()
        assert why == (
            "it waits for run b~chunk1 or run b~chunk2; run b~chunk1 is in line in queue batched, in place 1; "
            "the only slot is taken: holder"
        )
        assert (await engine.get("b~chunk1").why()).startswith("it is in line in queue batched, in place 1")
        await engine.signal(holder.id, "go")
        assert await batch.results() == [2, 4]


async def test_rows_that_failed_wait_in_the_same_queue_again() -> None:
    """With the same key."""
    async with TestEngine() as engine:
        batch = await engine.start_batch(queued_item, [1, -2, -3], queue=one_per_key, key="k", id="b")
        assert await batch.result() == {"total": 3, "succeeded": 1, "failed": 2}
        stage.values["repaired"] = True
        again = await batch.retry(id="again")
        assert await again.results() == [-4, -6]
        assert {run.queue_key for run in await engine.list(queue="one_per_key", id_prefix="again", internal=True)} == {
            "k"
        }


async def test_batch_in_line_can_be_cancelled(place: Place) -> None:
    """The batch ends at once; what is in line ends when it is its turn, and none of its items begins."""
    async with place.engine() as engine:
        holder = await engine.start(takes_the_slot, queue=batched, id="holder")
        await until(lambda: has_slot(engine, "holder"))
        batch = await engine.start_batch(queued_item, range(3), queue=batched, id="b")
        await until(lambda: exists(engine, "b~chunk3"))
        await batch.cancel()

        with pytest.raises(outlive.errors.RunCancelledError):
            await in_time(batch.result())
        await engine.signal(holder.id, "go")
        await in_time(holder.result())
        await until(lambda: have_ended(engine, "b~chunk", 3))
    assert stage.calls == []


async def has_slot(engine: outlive.Engine, run_id: str) -> bool:
    return (await engine.get(run_id).info()).status == "waiting"


async def exists(engine: outlive.Engine, run_id: str) -> bool:
    return await engine.count(id_prefix=run_id) == 1


async def have_ended(engine: outlive.Engine, prefix: str, count: int) -> bool:
    return await engine.count(id_prefix=prefix, status="cancelled") == count


@pytest.mark.parametrize("turn_seconds", [TURN_SECONDS, 0.0], ids=["one turn", "a turn for each item"])
async def test_worker_that_dies_at_any_commit_loses_and_doubles_no_item(
    place: Place, monkeypatch: pytest.MonkeyPatch, turn_seconds: float
) -> None:
    """Nor a slot: the last worker takes from the queue only, and finishes."""
    monkeypatch.setattr("outlive._features.batches.workflows.TURN_SECONDS", turn_seconds)
    async with place.engine(worker=False) as client:
        batch = await client.start_batch(queued_item, range(8), queue=trio, concurrency=1, id="b")
        # Each worker claims the batch with all of its chunks, and commits for one of them at most before it dies.
        async for _ in die_at_each_commit(place, "b", limits=Limits(attempts_max=1_000)):
            pass
        assert await batch.results() == [2 * n for n in range(8)]
        assert (await client.queues.stats("trio")).running == 0
    assert line.most <= 3


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"key": "a"}, "runs with a queue"),
        ({"queue": trio, "priority": 1}, "queue trio has no priorities"),
        ({"queue": "a,b"}, "commas"),
    ],
    ids=str,
)
async def test_bad_place_is_refused_before_a_row_is_read(options: dict[str, Any], text: str) -> None:
    """Rows can be read once only."""
    rows = iter(range(3))
    async with TestEngine() as engine:
        with pytest.raises(InvalidArgumentError, match=f"start_batch.*{text}"):
            await engine.start_batch(queued_item, rows, **options)
    assert list(rows) == [0, 1, 2]


PLAN = (
    b'[{"item":"outlive.batch.step:queued_item","version":1,"chunks":[["{\\"v\\":[0,[[1],[2]]]}",2],'
    b'["{\\"v\\":[2,[[3],[4],[5]]]}",3]],"concurrency":6,"failures_max":null}]'
)
"""As batches were written before they had queues."""


async def test_batch_of_an_earlier_release_goes_on_as_it_was(place: Place) -> None:
    """In no queue, with as many items at once in each chunk as before."""
    (plan,), _ = BATCH.signature.decode(PLAN)
    assert isinstance(plan, Plan)
    assert (plan.place, plan.open_max) == (None, 2)
    async with place.engine() as engine:
        event = created(workflow=BATCH, arguments=Payload(v=msgspec.Raw(PLAN)), at=place.clock.now(), nonce=7)
        store = place.store()
        await store.open()
        ((outcome, _),) = await store.commit([birth("old", event, [])])
        assert outcome is Outcome.COMMITTED

        batch = engine.batches.get("old")
        assert await in_time(batch.results()) == [2, 4, 6, 8, 10]
        chunks = await engine.list(id_prefix="old~chunk")
        assert {(run.queue, run.tags["outlive.lanes"]) for run in chunks} == {("", "3")}
        await store.close()
