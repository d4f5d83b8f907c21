"""Flowbot's seven defects, with flows: each as a test that we do not have it; the sixth is in `test_pinning`."""

from __future__ import annotations

import pytest

from outlive import flow
from outlive.errors import CommitUnknownError, RunNotFoundError, StoreUnavailableError
from outlive.errors.run import RunNotParkedError
from outlive.events import RunClaimed
from tests.engine.faults import FaultyStore, faulty, unavailable, unknown
from tests.engine.inside import crash
from tests.engine.support import Place, events_of, in_time, stage, until
from tests.flow import shop

LINE = flow.parse("""
name: flowbot-line
concurrency: 1
steps:
  one: { use: note, with: { what: one } }
  two: { use: hold, with: { name: two } }
  three: { use: note, with: { what: three } }
output: ["${{ steps.one }}", "${{ steps.two }}", "${{ steps.three }}"]
""")
EMPTY = flow.parse("""
name: flowbot-empty
steps:
  none: { use: shop.say, with: { what: null } }
  map: { use: shop.say, with: { what: {} } }
  text: { use: shop.say, with: { what: "" } }
  wait: { use: hold, with: { name: wait }, after: [none, map, text] }
output: ["${{ steps.none }}", "${{ steps.map }}", "${{ steps.text }}", "${{ steps.wait }}"]
""")
SOLD = flow.parse("""
name: flowbot-sold
input: { what: string }
triggers: [{ event: flowbot.sold }]
steps: { say: { use: note, with: { what: "${{ input.what }}" } } }
output: "${{ steps.say }}"
""")
UNRESUMABLE = flow.parse("""
name: flowbot-unresumable
resumable: false
steps:
  one: { use: note, with: { what: one } }
  two: { use: hold, with: { name: two }, after: [one] }
output: "${{ steps.two }}"
""")


async def test_the_step_that_was_interrupted_is_not_skipped(place: Place) -> None:
    """Defect 1: Flowbot writes the index before the step, and goes on behind it. [FB-R1 FB-R9]"""
    first = await place.engine().__aenter__()
    await first.start(LINE, id="run-1")
    await stage.gate("two").reached()
    await crash(first)

    async with place.engine() as second:
        await stage.gate("two").reached()
        stage.gate("two").open()
        assert await in_time(second.get("run-1").result()) == ["one", "two", "three"]
    assert stage.calls == ["one", "two", "two cancelled", "two", "three"]


@pytest.mark.any_store
async def test_a_step_with_an_empty_result_is_not_run_again(place: Place) -> None:
    """Defect 2: Flowbot takes a task without a result for one that has not run. [FB-R11]"""
    shop.clear()
    first = await place.engine().__aenter__()
    await first.start(EMPTY, id="run-1")
    await stage.gate("wait").reached()
    await crash(first)

    async with place.engine() as second:
        await stage.gate("wait").reached()
        stage.gate("wait").open()
        assert await in_time(second.get("run-1").result()) == [None, {}, "", "wait"]
    assert len(shop.CALLS) == 3


@pytest.mark.any_store
async def test_an_event_is_not_consumed_without_its_run(place: Place) -> None:
    """Defect 3: Flowbot writes that it has consumed an event, and then the run; a crash between loses the event. Here a
    sender whose commit failed, or got no answer, sends it again, and there is one run. [FB-R3]"""
    stores: list[FaultyStore] = []
    async with place.engine(worker=False, wrap=faulty(stores)) as sender:
        stores[0].before["commit"].append(unavailable())
        with pytest.raises(StoreUnavailableError):
            await sender.events.send("flowbot.sold", {"what": "it"}, id="e1")
        assert await sender.count(workflow="flowbot-sold") == 0
        stores[0].after["commit"].append(unknown())
        with pytest.raises(CommitUnknownError):
            await sender.events.send("flowbot.sold", {"what": "it"}, id="e1")
        (again,) = (await sender.events.send("flowbot.sold", {"what": "it"}, id="e1")).runs
    async with place.engine() as engine:
        assert await in_time(engine.get(again.run_id).result()) == "it"
        assert (again.is_new, int(await engine.count(workflow="flowbot-sold"))) == (False, 1)
    assert stage.calls == ["it"]


@pytest.mark.any_store
async def test_a_result_that_cannot_be_written_stops_the_flow(place: Place) -> None:
    """Defect 4: Flowbot only logs that a checkpoint cannot be saved, and goes on. Here no step begins before the result
    of the one before it is durable, and nothing runs again when the store is back. [FB-R9]"""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores)) as engine:
        run = await engine.start(LINE, id="run-1")
        await stage.gate("two").reached()
        stores[0].before["commit"].extend([unavailable(), unavailable(), unavailable()])
        stage.gate("two").open()

        async def has_tried() -> bool:
            return not stores[0].before["commit"]

        await until(has_tried)
        assert "three" not in stage.calls
        assert await in_time(run.result()) == ["one", "two", "three"]
    assert stage.calls == ["one", "two", "three"]


async def test_a_run_is_taken_over_by_one_worker(place: Place) -> None:
    """Defect 5: nothing keeps two callers of Flowbot from resuming one run. [FB-R4]"""
    first = await place.engine().__aenter__()
    await first.start(LINE, id="run-1")
    await stage.gate("two").reached()
    await crash(first)

    async with place.engine() as second, place.engine():
        await stage.gate("two").reached()
        stage.gate("two").open()
        run = second.get("run-1")
        assert await in_time(run.result()) == ["one", "two", "three"]
        assert len(await events_of(run, RunClaimed)) == 1
    assert stage.count("two") == 2


@pytest.mark.any_store
async def test_a_resume_that_cannot_be_leaves_the_run_as_it_is(place: Place) -> None:
    """Defect 7: Flowbot says that a run is started before it has found its checkpoint. [FB-R2 FB-R10]"""
    async with place.engine() as engine:
        run = await engine.start(LINE, id="run-1")
        await stage.gate("two").reached()
        before = await run.info()
        with pytest.raises(RunNotParkedError):
            await engine.resume("run-1")
        with pytest.raises(RunNotFoundError):
            await engine.resume("run-2")

        assert (await run.info()).status is before.status
        stage.gate("two").open()
        await in_time(run.result())
        with pytest.raises(RunNotParkedError):
            await engine.resume("run-1")
    assert stage.calls == ["one", "two", "three"]


@pytest.mark.any_store
async def test_a_run_whose_worker_was_lost_is_parked_if_its_flow_says_so(place: Place) -> None:
    """`resumable: false`: a person decides, and then it goes on where it was. [FB-R10]"""
    first = await place.engine().__aenter__()
    await first.start(UNRESUMABLE, id="run-1")
    await stage.gate("two").reached()
    await crash(first)

    async with place.engine() as second:
        run = second.get("run-1")

        async def is_parked() -> bool:
            return await run.status() == "parked"

        await until(is_parked)
        await second.resume("run-1")
        await stage.gate("two").reached()
        stage.gate("two").open()
        assert await in_time(run.result()) == "two"
    assert stage.count("one") == 1
