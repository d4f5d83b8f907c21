"""Batches: many items, each with an outcome of its own, in bounded memory, shared by all workers."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import outlive
from outlive._features.batches.batch import CHUNK_ITEMS_MAX
from outlive._features.batches.starting import CHUNK_BYTES_MAX
from outlive._kernel.define.registry import Registry
from outlive._kernel.store.contract import PAGE_SIZE_MAX
from outlive.errors import (
    ConfigurationError,
    DefinitionError,
    ResultTimeoutError,
    RunCancelledError,
    RunExistsError,
    RunFailedError,
    StepFailedError,
    UnserialisableError,
)
from outlive.errors.run import InvalidRunIdError, RunNotRetriableError
from outlive.events import DetachedCancelled, DetachedStarted
from outlive.limits import Limits, Tolerance
from tests.engine.dying import die_at_each_commit
from tests.engine.support import Place, events_of, in_time, note, registry_of, stage, until

pytestmark = pytest.mark.any_store


@dataclass(frozen=True)
class Row:
    """Something to import."""

    number: int
    price: Decimal


@outlive.step
async def double_row(n: int) -> int:
    stage.call(n)
    return 2 * n


@outlive.step
def halve_on_thread(n: int) -> int:
    return n // 2


@outlive.step(raises=(ZeroDivisionError,))
async def refuse_odd(n: int) -> int:
    if n % 2:
        raise ZeroDivisionError(f"{n} is odd")
    return n


class Unregistered(Exception):
    """A class that no step names."""


@outlive.step
async def raise_unregistered(n: int) -> int:
    raise Unregistered(n)


@outlive.step
async def price_of_row(row: Row) -> Decimal:
    return row.price * row.number


@outlive.step
async def grow_row(n: int) -> str:
    return "x" * n


@outlive.step
async def hold_item(n: int) -> int:
    now = stage.values["now"] = stage.values.get("now", 0) + 1
    stage.values["most"] = max(stage.values.get("most", 0), now)
    try:
        await hold_gate("item")
    finally:
        stage.values["now"] -= 1
    return n


async def hold_gate(name: str) -> None:
    await stage.gate(name).pass_through()


@outlive.step
async def takes_two(a: int, b: int) -> int:
    return a + b


@outlive.workflow
async def import_one(row: Row) -> Decimal:
    if row.number < 0:
        raise ValueError(f"row {row.number}")
    await note(f"row {row.number}")
    return await price_of_row(row)


@outlive.workflow
async def waits_for_ever(n: int) -> None:
    await outlive.wait_for_signal("never")


@outlive.workflow
async def cancels_detached() -> str:
    child = await outlive.start(waits_for_ever, 1, detached=True, id="other")
    child.cancel()
    try:
        await child.result()
    except RunCancelledError:
        return "cancelled"
    return "ended"


@outlive.workflow
async def cancels_child() -> str:
    child = await outlive.start(waits_for_ever, 1)
    child.cancel()
    try:
        await child.result()
    except RunCancelledError:
        return "cancelled"
    return "ended"


async def collect(batch: outlive.types.Batch[Any]) -> list[outlive.types.BatchItem[Any]]:
    """All items, as they come."""
    async with asyncio.timeout(60):
        return [item async for item in batch.items()]


async def read_into(seen: list[outlive.types.BatchItem[Any]], batch: outlive.types.Batch[Any]) -> None:
    """The same, for a batch that fails in the end."""
    async for item in batch.items():
        seen.append(item)  # noqa: PERF401 (what was seen before the failure counts)


# -- Results -------------------------------------------------------------------------------------------------------


async def test_results_come_in_the_order_of_the_rows(engine: outlive.Engine) -> None:
    """More than one chunk of them. [FE-S6]"""
    batch = await engine.start_batch(double_row, range(600), concurrency=50)

    assert await in_time(batch.results()) == [2 * n for n in range(600)]
    assert await batch.result() == {"total": 600, "succeeded": 600, "failed": 0}
    assert await batch.status() == "succeeded"
    assert sorted(stage.calls) == list(range(600))


@pytest.mark.parametrize("how", ["ended", "in time", "cancelled"])
async def test_wait_for_a_batch_leaves_no_task_behind(engine: outlive.Engine, how: str) -> None:
    """Neither after its end, nor after a timeout, nor when its caller is cancelled does anything look at the batch."""
    batch = await engine.start_batch(double_row if how == "ended" else hold_row, [1])
    waiting = asyncio.create_task(batch.result(0.01 if how == "in time" else None))
    if how == "cancelled":
        await stage.gate("row").reached()
        waiting.cancel()
    with suppress(ResultTimeoutError, asyncio.CancelledError):
        await in_time(waiting)

    async def is_alone() -> bool:
        return not [task for task in asyncio.all_tasks() if task.get_name().startswith("outlive-batch-")]

    await until(is_alone)
    stage.gate("row").open()


@outlive.step
async def hold_row(n: int) -> int:
    await stage.gate("row").pass_through()
    return n


async def test_items_come_as_they_finish_and_again_later(engine: outlive.Engine) -> None:
    """Each once, with the place of its row. [FE-S6]"""
    batch = await engine.start_batch(double_row, range(600), concurrency=50)

    for _ in range(2):
        items = await collect(batch)
        assert sorted((item.index, item.result) for item in items) == [(n, 2 * n) for n in range(600)]
        assert all(item.error is None for item in items)


async def test_items_are_seen_while_others_are_under_way(engine: outlive.Engine) -> None:
    """The first one does not wait for the last."""
    batch = await engine.start_batch(hold_first_row, [0, 1, 2], concurrency=3)
    seen = []
    async with asyncio.timeout(20):
        async for item in batch.items():
            seen.append(item.index)
            if len(seen) == 2:
                assert await batch.status() != "succeeded"
                stage.gate("first").open()

    assert sorted(seen[:2]) == [1, 2]
    assert seen[2] == 0


@outlive.step
async def hold_first_row(n: int) -> int:
    if n == 0:
        await hold_gate("first")
    return n


async def test_values_have_the_types_of_the_annotations(engine: outlive.Engine) -> None:
    """Items arrive and results come back with their annotated types, for steps and for workflows."""
    rows = [Row(n, Decimal("1.10")) for n in range(5)]
    of_steps = await engine.start_batch(price_of_row, rows)
    of_runs = await engine.start_batch(import_one, rows)
    wanted = [Decimal("1.10") * n for n in range(5)]

    assert await in_time(of_steps.results()) == wanted
    assert await in_time(of_runs.results()) == wanted
    assert sorted(item.index for item in await collect(of_runs)) == list(range(5))


async def test_rows_may_come_from_anything_that_can_be_iterated(engine: outlive.Engine) -> None:
    """A generator, an async generator, nothing at all; sync steps too."""

    def some() -> Iterator[int]:
        yield from range(10)

    async def others() -> AsyncIterator[int]:
        for n in range(10):
            yield n

    assert await in_time((await engine.start_batch(halve_on_thread, some())).results()) == [n // 2 for n in range(10)]
    assert await in_time((await engine.start_batch(double_row, others())).results()) == [2 * n for n in range(10)]
    nothing = await engine.start_batch(double_row, [])
    assert await in_time(nothing.results()) == []
    assert await collect(nothing) == []


async def test_large_results_and_rows_are_blobs(engine: outlive.Engine) -> None:
    """Chunks are bounded in bytes too. [FE-P5]"""
    batch = await engine.start_batch(grow_row, [40_000, 5, 50_000])
    long = await engine.start_batch(measure_row, ["x" * (CHUNK_BYTES_MAX // 2)] * 4)

    assert [len(str(each)) for each in await in_time(batch.results())] == [40_000, 5, 50_000]
    assert await in_time(long.results()) == [CHUNK_BYTES_MAX // 2] * 4
    assert len(await events_of(long.run, DetachedStarted)) == 4


@outlive.step
async def measure_row(text: str) -> int:
    return len(text)


class Reversed:
    """A payload codec that anybody can see through."""

    name = "reversed"

    def encode(self, data: bytes) -> bytes:
        """Back to front."""
        return data[::-1]

    def decode(self, data: bytes) -> bytes:
        """And back."""
        return data[::-1]


async def test_rows_and_results_go_through_the_payload_codecs(place: Place) -> None:
    """The items and results of a batch come back right through a payload codec."""
    async with place.engine(codecs=[Reversed()]) as engine:
        batch = await engine.start_batch(double_row, range(300))

        assert await in_time(batch.results()) == [2 * n for n in range(300)]


# -- Failures ------------------------------------------------------------------------------------------------------


async def test_a_failing_item_does_not_fail_the_batch(engine: outlive.Engine) -> None:
    """Its exception stands in the place of its result, as its own class where that is registered."""
    batch = await engine.start_batch(refuse_odd, range(5))
    results = await in_time(batch.results())

    assert [type(each) for each in results] == [int, ZeroDivisionError, int, ZeroDivisionError, int]
    assert await batch.result() == {"total": 5, "succeeded": 3, "failed": 2}
    odd = await engine.start_batch(raise_unregistered, [1])
    (item,) = await collect(odd)
    assert isinstance(item.error, StepFailedError)
    assert "Unregistered" in str(item.error)


async def test_a_failing_run_does_not_fail_the_batch(engine: outlive.Engine) -> None:
    """Nor does one that was cancelled by itself."""
    rows = [Row(number, Decimal(1)) for number in (1, -1, 2)]
    batch = await engine.start_batch(import_one, rows, id="b")

    first, second, third = await in_time(batch.results())
    assert (first, third) == (Decimal(1), Decimal(2))
    assert isinstance(second, ValueError)


async def test_an_item_of_a_batch_can_be_cancelled(engine: outlive.Engine) -> None:
    """An item of a batch can be cancelled like any run."""
    batch = await engine.start_batch(waits_for_ever, [1], id="b")
    await until(lambda: _exists(engine, "b~chunk1~1"))
    await engine.cancel("b~chunk1~1", reason="enough")

    (result,) = await in_time(batch.results())
    assert isinstance(result, RunCancelledError)
    assert "enough" in str(result)


async def _exists(engine: outlive.Engine, run_id: str) -> bool:
    return any(run.id == run_id for run in await engine.list(internal=True))


@pytest.mark.parametrize("tolerate", [Tolerance(failures=10), Tolerance(ratio=0.02), Tolerance(failures=10, ratio=0.5)])
async def test_more_failures_than_are_tolerated_fail_the_batch(engine: outlive.Engine, tolerate: Tolerance) -> None:
    """It stops soon after; what has ended stays to be read."""
    batch = await engine.start_batch(refuse_odd, range(600), concurrency=4, tolerate=tolerate)

    with pytest.raises(RunFailedError, match=r"of 600 items failed, and 1[02] were tolerated"):
        await in_time(batch.results())
    seen: list[outlive.types.BatchItem[int]] = []
    with pytest.raises(RunFailedError, match="were tolerated"):
        await read_into(seen, batch)
    assert 10 < sum(item.error is not None for item in seen) < 60


@outlive.step
async def refuse_until_repaired(n: int) -> int:
    """Odd numbers fail until the test says so."""
    stage.call(n)
    if n % 2 and "repaired" not in stage.values:
        raise ZeroDivisionError(f"{n} is odd")
    return 10 * n


async def test_rows_that_have_not_succeeded_are_a_batch_of_their_own(engine: outlive.Engine, place: Place) -> None:
    """Failed items and items that were never begun, in their order; from a program without the code."""
    rows, allowed = range(3 * CHUNK_ITEMS_MAX), Tolerance(failures=1)
    batch = await engine.start_batch(
        refuse_until_repaired, rows, id="b", tolerate=allowed, tags={"team": "a"}, headers={"tenant": "x"}
    )
    with pytest.raises(RunFailedError):
        await batch.result()
    done = {item.result async for item in batch_items(batch) if item.error is None}
    assert 0 < len(done) < CHUNK_ITEMS_MAX
    with pytest.raises(RunNotRetriableError, match=r"it is a batch.*batches\.retry\('b'\)"):
        await engine.retry("b~chunk1")
    stage.values["repaired"] = True
    stage.calls.clear()

    async with place.engine(registry=Registry(), worker=False) as stranger:
        again = await stranger.batches.get("b").retry(id="b-2")

    left = [n for n in rows if 10 * n not in done]
    assert [10 * n for n in left] == await engine.batches.get("b-2").results()
    assert sorted(stage.calls) == left
    assert (await engine.get(again.id).info()).tags == {"team": "a"}
    with pytest.raises(RunNotRetriableError, match=f"all of its {len(left)} items have succeeded"):
        await engine.batches.get("b-2").retry()
    assert "b-2" == (await batch.retry(id="b-2")).id
    await (await engine.start_batch(double_row, [1], id="other")).results()
    with pytest.raises(RunExistsError, match="use another id"):
        await batch.retry(id="other")


async def test_a_batch_that_goes_on_has_no_rest(engine: outlive.Engine) -> None:
    """Its items may still succeed."""
    batch = await engine.start_batch(hold_item, [1])
    with pytest.raises(RunNotRetriableError, match="wait for its end, or cancel it"):
        await batch.retry()
    stage.gate("item").open()
    await batch.result()


async def batch_items(batch: outlive.types.Batch[Any]) -> AsyncIterator[outlive.types.BatchItem[Any]]:
    """All outcomes of a batch that has failed."""
    try:
        async for item in batch.items():
            yield item
    except RunFailedError:
        return


async def test_as_many_failures_as_are_tolerated_do_not_fail_a_batch(engine: outlive.Engine) -> None:
    """A batch with exactly as many failures as it tolerates succeeds."""
    batch = await engine.start_batch(refuse_odd, range(600), tolerate=Tolerance(failures=300))

    assert await in_time(batch.result()) == {"total": 600, "succeeded": 300, "failed": 300}


# -- Identity ------------------------------------------------------------------------------------------------------


async def test_the_same_id_again_is_the_same_batch(engine: outlive.Engine) -> None:
    """Its rows are not even looked at."""

    def poisoned() -> Iterator[int]:
        yield 0
        pytest.fail("no row should be asked for")

    first = await engine.start_batch(double_row, range(3), id="b", tags={"shop": "north"})
    again = await engine.start_batch(double_row, poisoned(), id="b")
    found = engine.batches.get("b")

    assert await in_time(first.results()) == await in_time(again.results()) == await in_time(found.results())
    assert sorted(stage.calls) == [0, 1, 2]
    assert (await found.run.info()).tags == {"shop": "north"}


async def test_an_id_of_something_else_is_refused(engine: outlive.Engine) -> None:
    """Whether that is a run or another batch."""
    await engine.start(waits_for_ever, 1, id="run")
    await engine.start_batch(double_row, [1], id="batch")

    with pytest.raises(RunExistsError, match="waits_for_ever"):
        await engine.start_batch(double_row, [1], id="run")
    with pytest.raises(RunExistsError, match="a batch of double_row"):
        await engine.start_batch(grow_row, [1], id="batch")
    with pytest.raises(RunExistsError, match="not of a batch"):
        await collect(engine.batches.get("run"))


async def test_wrong_arguments_of_a_batch_are_refused_before_it_reads_a_row(engine: outlive.Engine) -> None:
    """A batch with wrong arguments is refused with the reason before it reads a row."""
    with pytest.raises(TypeError, match="give it a step or a workflow"):
        await engine.start_batch(print, [1])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="one argument"):
        await engine.start_batch(takes_two, [1])  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="options of a call"):
        await engine.start_batch(double_row.options(timeout=1), [1])
    with pytest.raises(ConfigurationError, match="concurrency=0"):
        await engine.start_batch(double_row, [1], concurrency=0)
    with pytest.raises(InvalidRunIdError):
        await engine.start_batch(double_row, [1], id="no/slash")
    rows = iter([1])
    with pytest.raises(TypeError, match="give text by name"):
        await engine.start_batch(double_row, rows, tags={"year": 2026})  # type: ignore[dict-item]
    assert list(rows) == [1]
    with pytest.raises(UnserialisableError):
        await engine.start_batch(double_row, [object()])  # type: ignore[arg-type]
    assert await engine.list() == []


def test_names_of_ours_cannot_be_taken() -> None:
    """A worker would not know whose code to run."""
    with pytest.raises(DefinitionError, match="Outlive's own"):
        outlive.workflow(name="outlive.batch")(plain)


async def plain() -> None:
    """Wants a name of ours."""


# -- Sharing, stopping, dying --------------------------------------------------------------------------------------


async def test_no_more_items_run_at_once_than_asked_for(engine: outlive.Engine) -> None:
    """In all chunks together."""
    batch = await engine.start_batch(hold_item, range(600), concurrency=7)
    for _ in range(7):
        await stage.gate("item").reached()
    assert stage.values["now"] == 7
    stage.gate("item").open()

    await in_time(batch.results())
    assert stage.values["most"] == 7


async def test_a_chunk_is_claimed_only_by_a_worker_that_has_the_step(place: Place) -> None:
    """Everybody can look after the batch; the chunk says what is missing."""
    registry = registry_of(import_one)
    async with place.engine(registry=registry) as engine:
        batch = await engine.start_batch(double_row, range(3), id="b")
        chunk = engine.get("b~chunk1")
        await until(lambda: _exists(engine, "b~chunk1"))
        missing = "no live worker has outlive.batch.step:double_row@1; start one that defines it"
        assert await chunk.why() == missing
        able = Registry()
        able.add_step(double_row.spec)
        async with place.engine(registry=able):
            # Who does not know the type gets the values as they are stored.
            assert await in_time(batch.results()) == [0, 2, 4]


async def test_workers_share_a_batch(place: Place) -> None:
    """Chunks are runs that anybody may claim, and a client without a worker sees everything."""
    async with place.engine(worker=False) as client:
        batch = await client.start_batch(double_row, range(1_000), concurrency=20)
        limits = Limits(runs_active_max=2)
        async with place.engine(limits=limits), place.engine(limits=limits):
            assert sorted(item.index for item in await collect(batch)) == list(range(1_000))


async def test_cancelling_a_batch_cancels_its_chunks(engine: outlive.Engine) -> None:
    """Items that have not ended stop, and no others begin."""
    batch = await engine.start_batch(hold_item, range(600), concurrency=4, id="b")
    for _ in range(4):
        await stage.gate("item").reached()
    await batch.cancel(reason="enough")

    with pytest.raises(RunCancelledError, match="enough"):
        await in_time(batch.results())
    with pytest.raises(RunCancelledError, match="enough"):
        await collect(batch)
    assert len(await events_of(batch.run, DetachedCancelled)) == 3

    async def is_quiet() -> bool:
        runs = await engine.list(internal=True)
        return stage.values["now"] == 0 and all(run.status == "cancelled" for run in runs)

    await until(is_quiet)


async def test_a_chunk_that_was_cancelled_from_outside_fails_the_batch(engine: outlive.Engine) -> None:
    """Its items have no outcome: that must not pass for success."""
    batch = await engine.start_batch(hold_item, range(600), concurrency=2, id="b")
    await stage.gate("item").reached()
    await engine.cancel("b~chunk1")

    with pytest.raises(RunFailedError, match="b~chunk1 was cancelled"):
        await in_time(batch.results())
    stage.gate("item").open()


@pytest.mark.parametrize("workflow", [cancels_detached, cancels_child])
async def test_a_workflow_cancels_a_run_that_it_started(engine: outlive.Engine, workflow: Any) -> None:
    """In its own tree or detached."""
    run = await engine.start(workflow)

    assert await in_time(run.result()) == "cancelled"


@pytest.mark.parametrize("work", [double_row, import_one])
async def test_a_worker_that_dies_at_any_commit_loses_and_doubles_no_item(place: Place, work: Any) -> None:
    """Every item has one outcome, and the sums are right."""
    rows: list[Any] = list(range(20)) if work is double_row else [Row(n, Decimal(2)) for n in range(4)]
    async with place.engine(worker=False) as client:
        batch = await client.start_batch(work, rows, concurrency=3, id="b")
        deaths = 0
        async for _ in die_at_each_commit(place, "b"):
            deaths += 1

        assert deaths > 10
        assert await batch.results() == [2 * n for n in range(len(rows))]
        assert await batch.result() == {"total": len(rows), "succeeded": len(rows), "failed": 0}
        assert sorted(item.index for item in await collect(batch)) == list(range(len(rows)))


async def test_two_thousand_items(engine: outlive.Engine) -> None:
    """A batch of two thousand items gives each item one outcome."""
    batch = await engine.start_batch(double_row, range(2_000), concurrency=100)

    assert sorted(item.index for item in await collect(batch)) == list(range(2_000))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_hundred_thousand_items_need_little_memory(kind: str, tmp_path: Path) -> None:
    """Neither the client nor the worker holds more than the chunks that are under way."""
    place = Place(tmp_path / "batch.db" if kind == "sqlite" else None)

    async def rows() -> AsyncIterator[int]:
        for n in range(100_000):
            yield n

    async with place.engine() as engine:
        warm = await engine.start_batch(quick_row, range(2_000), concurrency=200)
        await warm.result()
        gc.collect()
        tracemalloc.start()
        batch = await engine.start_batch(quick_row, rows(), concurrency=200)
        seen = 0
        async for item in batch.items():
            assert item.result == item.index
            seen += 1
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()

        assert seen == 100_000
        if kind == "sqlite":
            assert peak < 40 * 1024 * 1024


@outlive.step
async def quick_row(n: int) -> int:
    return n


def test_chunks_are_small_enough_to_be_read_at_once() -> None:
    """A reader takes a whole chunk in one page."""
    assert CHUNK_ITEMS_MAX <= PAGE_SIZE_MAX
