"""A caller that waits for a run that is parked, or parks meanwhile, gets an error; none waits for ever."""

from __future__ import annotations

import asyncio

import pytest

import outlive
from outlive.errors import RunParkedError
from outlive.testing import TestEngine
from tests.engine.faults import FaultyStore, faulty, unavailable
from tests.engine.support import Place, hold, in_time, parks, stage, until, waits


@outlive.workflow
async def parks_at_once() -> str:
    return await parks_unless("open")


async def parks_unless(gate: str) -> str:
    """What no journal can replay, until the test says that the code is better now."""
    if gate not in stage.values:
        await asyncio.to_thread(print)
    return "done"


@outlive.workflow
async def parks_at_signal() -> str:
    await outlive.wait_for_signal("go")
    return await parks_unless("open")


@outlive.workflow
async def has_a_child_that_parks() -> str:
    return await parks_at_signal()


@outlive.workflow
async def waits_for_a_run_that_parks() -> str:
    other = await outlive.start(parks_at_once, detached=True, id="other")
    return await other.result()


@outlive.workflow
async def parks_for_two(number: int) -> int:
    if number == 2:
        await parks_unless("open")
    return number


def refused(error: RunParkedError, run_id: str) -> None:
    """The error says everything."""
    assert run_id == error.run_id
    assert "is not durable" in error.reason
    assert error.reason in str(error)
    for verb in ("resume", "skip_step", "cancel"):
        assert f"engine.{verb}('{run_id}')" in str(error)


async def test_the_result_of_a_parked_run_is_an_error_with_the_reason(place: Place) -> None:
    """The result of a parked run raises RunParkedError, from its engine, from another handle and from a process without
    a worker."""
    async with place.engine() as engine, place.engine(worker=False) as client:
        run = await engine.start(parks_at_once, id="a")
        await parks(run)
        for handle in (run, engine.get("a"), client.get("a")):
            with pytest.raises(RunParkedError) as caught:
                await in_time(handle.result())
            refused(caught.value, "a")


async def test_waiting_for_a_run_that_parks_raises(place: Place) -> None:
    """In the process that runs it and in every other."""
    async with place.engine() as engine, place.engine(worker=False) as client:
        run = await engine.start(parks_at_signal, id="a")
        await waits(run)
        waiting = [asyncio.create_task(handle.result()) for handle in (run, client.get("a"))]
        await run.signal("go")
        for task in waiting:
            with pytest.raises(RunParkedError) as caught:
                await in_time(task)
            refused(caught.value, "a")


async def test_waiting_for_a_child_of_a_parked_run_raises() -> None:
    """A tree is parked as a whole."""
    place = Place(None)
    async with place.engine() as engine, place.engine(worker=False) as client:
        run = await engine.start(has_a_child_that_parks, id="a")
        await waits(run)
        waiting = [asyncio.create_task(each.get("a~1").result()) for each in (engine, client)]
        await asyncio.sleep(0)
        await engine.signal("a~1", "go")
        for task in waiting:
            with pytest.raises(RunParkedError):
                await in_time(task)
        with pytest.raises(RunParkedError) as caught:
            await in_time(client.get("a~1").result())
    assert "a~1" == caught.value.run_id


async def test_a_run_that_was_resumed_is_waited_for_again(place: Place) -> None:
    """From the moment at which the resume is accepted, also if no worker has taken the run up yet."""
    async with place.engine() as engine:
        run = await engine.start(parks_at_once, id="a")
        await parks(run)
    async with place.engine(worker=False) as client:
        stage.values["open"] = True
        await client.resume("a")
        waiting = asyncio.create_task(client.get("a").result())
        async with place.engine():
            assert "done" == await in_time(waiting)


async def test_waiting_for_a_run_that_parks_again_after_a_resume_raises_again() -> None:
    """A resume that does not help is not a reason to wait for ever."""
    async with Place(None).engine() as engine:
        run = await engine.start(parks_at_once, id="a")
        await parks(run)
        await run.resume()
        with pytest.raises(RunParkedError):
            await in_time(run.result())


async def test_a_workflow_goes_on_waiting_for_a_parked_run_and_says_so() -> None:
    """That a run is parked is not an end of it, so no workflow sees it; people do."""
    async with Place(None).engine() as engine:
        run = await engine.start(waits_for_a_run_that_parks, id="a")
        await parks(engine.get("other"))
        await waits(run)

        why = await run.why()

        assert why.startswith("it waits for run other, which is parked: ")
        stage.values["open"] = True
        await engine.resume("other")
        assert "done" == await in_time(run.result())


async def all_of(batch: outlive.types.Batch[int]) -> list[int | None]:
    """Every item, as they finish."""
    return [item.result async for item in batch.items()]


async def test_waiting_for_a_batch_with_a_parked_chunk_raises() -> None:
    """Its items, its results and its counts: what has finished comes first, and nothing waits for ever."""
    async with Place(None).engine() as engine:
        batch = await engine.start_batch(parks_for_two, [1, 2, 3], id="b")
        with pytest.raises(RunParkedError) as caught:
            await in_time(all_of(batch))
        refused(caught.value, caught.value.run_id)
        for waiting in (batch.results(), batch.result()):
            with pytest.raises(RunParkedError):
                await in_time(waiting)
        stage.values["open"] = True
        await engine.resume(caught.value.run_id)
        assert [1, 2, 3] == await in_time(batch.results())


@outlive.step
async def holds_an_item(number: int) -> int:
    return int(await hold(str(number)))


async def test_waiting_for_a_batch_outlasts_an_outage_of_the_store() -> None:
    """A caller that waits for a batch goes on waiting while the search for parked chunks finds the store away."""
    place = Place(None)
    stores: list[FaultyStore] = []
    async with place.engine() as engine, place.engine(worker=False, wrap=faulty(stores)) as client:
        await engine.start_batch(holds_an_item, [1], id="b")
        await stage.gate("1").reached()
        faults = stores[0].before["find_runs"]
        faults.extend(unavailable() for _ in range(6))
        waiting = asyncio.ensure_future(client.batches.get("b").result())

        async def is_back() -> bool:
            return not faults

        await until(is_back)
        stage.gate("1").open()
        assert {"total": 1, "succeeded": 1, "failed": 0} == await in_time(waiting)


async def test_a_test_engine_says_that_a_run_is_parked() -> None:
    """The result of a parked run in a TestEngine raises RunParkedError, too."""
    async with TestEngine() as engine:
        with pytest.raises(RunParkedError):
            await (await engine.start(parks_at_once)).result()


def test_waiting_in_sync_code_raises_too() -> None:
    """Sync code that waits for a parked run gets RunParkedError."""
    with outlive.Engine("memory:").sync as engine, pytest.raises(RunParkedError):
        engine.start(parks_at_once).result()
