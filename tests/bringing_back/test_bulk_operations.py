"""`engine.bulk`: one verb for many runs, which goes on when its caller and its workers are gone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import outlive
from outlive._features.bulk import verbs, workflow
from outlive.errors import InvalidArgumentError, RunNotFoundError
from outlive.events import RunRetried
from tests.engine.inside import crash, hold_pages
from tests.engine.support import Place, events_of, in_time, reaches, registry_of, waits

pytestmark = pytest.mark.any_store


class World:
    """What steps find."""

    is_repaired = False


world = World()


@pytest.fixture(autouse=True)
def fresh() -> None:
    """Nothing works."""
    world.is_repaired = False


@outlive.step
async def many_ship(number: int) -> int:
    """Works when it is repaired."""
    if not world.is_repaired:
        raise ValueError("no truck")
    return number


@outlive.workflow
async def many_order(number: int) -> int:
    """Fails until its step is repaired; the third fails by itself."""
    if number == 3:
        raise KeyError(number)
    return await many_ship(number)


@outlive.workflow
async def many_patient(number: int) -> int:
    """Waits."""
    await outlive.wait_for_signal("go")
    return number


async def fail_all(engine: outlive.Engine, count: int) -> None:
    """Start so many runs that fail."""
    runs = [await engine.start(many_order, number, id=f"o-{number:03}") for number in range(count)]
    for run in runs:
        await reaches(run, "failed")


async def test_all_that_fit_are_retried_and_refusals_are_listed(place: Place) -> None:
    """By a worker, for a program that has gone since and does not have the code."""
    async with place.engine() as engine:
        await fail_all(engine, 8)
        world.is_repaired = True
        async with place.engine(worker=False, registry=registry_of()) as client:
            with engine.audit.acting("ann"):
                operation = await client.bulk.start("retry", workflow="many_order", reason="a truck came")
        found = await in_time(engine.bulk.get(operation.id).result())

        assert (found.verb, found.status, found.by, found.reason) == (
            "retry",
            "succeeded",
            "ann",
            "a truck came",
        )
        assert (found.found, found.done, found.refused) == (8, 7, 1)
        (refusal,) = found.refusals
        assert (refusal.id, refusal.error) == ("o-003", "RunNotRetriableError")
        assert "its workflow raised KeyError" in refusal.message
        for number in (0, 7):
            assert await in_time(engine.get(f"o-{number:03}").result()) == number
        said = await engine.audit.list(target="o-000")
        assert [(it.actor, it.verb, it.via, it.reason) for it in said] == [("ann", "retry", "bulk", "a truck came")]
        assert [it.id for it in await engine.bulk.list()] == [operation.id]


async def test_runs_that_the_engine_makes_for_itself_are_hidden(place: Place) -> None:
    """From lists and counts, unless they are asked for."""
    async with place.engine() as engine:
        await fail_all(engine, 3)
        world.is_repaired = True
        await in_time((await engine.bulk.start("retry", workflow="many_order")).result())
        batch = await engine.start_batch(many_ship, [1, 2], id="batch")
        await in_time(batch.result())

        assert {run.workflow for run in await engine.list()} == {"many_order", "outlive.batch"}
        assert int(await engine.count()) == 4
        shown = {run.workflow for run in await engine.list(internal=True)}
        assert shown > {"outlive.bulk", "outlive.intervention:many_order", "outlive.batch.step:many_ship"}
        assert int(await engine.count(internal=True)) == len(await engine.list(internal=True)) > 4
        assert [run.workflow for run in await engine.list(workflow="outlive.bulk")] == ["outlive.bulk"]


async def test_operation_goes_on_after_a_kill(place: Place) -> None:
    """The next worker does what is left, and what was done is done once."""
    async with place.engine() as engine:
        await fail_all(engine, 8)
        world.is_repaired = True
        operation = await engine.bulk.start("retry", workflow="many_order")
        await crash(engine)
    async with place.engine() as engine:
        found = await in_time(engine.bulk.get(operation.id).result())
        assert (found.found, found.done, found.refused) == (8, 7, 1)
        for number in (0, 1, 2, 4, 5, 6, 7):
            run = engine.get(f"o-{number:03}")
            assert await in_time(run.result()) == number
            assert len(await events_of(run, RunRetried)) == 1


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> tuple[asyncio.Event, asyncio.Event]:
    """Pages of two runs. The second one is asked for when the first event is set, and found when the second one is."""
    asked, go_on = asyncio.Event(), asyncio.Event()
    monkeypatch.setattr(verbs, "PAGE_RUNS", 2)
    hold_pages(monkeypatch, asked, go_on)
    return asked, go_on


async def test_progress_is_shown_page_by_page(place: Place, held: tuple[asyncio.Event, asyncio.Event]) -> None:
    """In the middle of an operation it says what is done so far; it ends at its limit, inside of a page."""
    asked, go_on = held
    async with place.engine() as engine:
        for number in range(7):
            await waits(await engine.start(many_patient, number, id=f"p-{number}"))
        operation = await engine.bulk.start("cancel", workflow="many_patient", limit=5)
        await in_time(asked.wait())
        seen = await operation.progress()
        assert (seen.found, seen.done, seen.refused, seen.finished_at) == (2, 2, 0, None)
        assert repr(seen) == f"<BulkProgress {operation.id}: cancel, running, 2 done, 0 refused>"
        go_on.set()

        found = await in_time(operation.result())

        assert (found.found, found.done, found.status) == (5, 5, "succeeded")
        assert found.finished_at is not None
        for number in range(5):
            await reaches(engine.get(f"p-{number}"), "cancelled")
        assert {(await engine.get(f"p-{number}").info()).status for number in (5, 6)} == {"waiting"}


async def test_operation_goes_on_behind_the_pages_that_are_done(
    place: Place, held: tuple[asyncio.Event, asyncio.Event]
) -> None:
    """A worker that takes it over after the first page does the others, and no run twice."""
    asked, go_on = held
    async with place.engine() as engine:
        await fail_all(engine, 7)
        world.is_repaired = True
        operation = await engine.bulk.start("retry", workflow="many_order")
        await in_time(asked.wait())
        await crash(engine)
    go_on.set()
    async with place.engine() as engine:
        found = await in_time(engine.bulk.get(operation.id).result())

        assert (found.found, found.done, found.refused) == (7, 6, 1)
        for number in (0, 1, 2, 4, 5, 6):
            run = engine.get(f"o-{number:03}")
            assert await in_time(run.result()) == number
            assert len(await events_of(run, RunRetried)) == 1


async def test_of_many_refusals_the_first_are_listed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """All refusals are counted, also where a page has only some of the last ones that are listed."""
    monkeypatch.setattr(verbs, "PAGE_RUNS", 2)
    monkeypatch.setattr(workflow, "REFUSALS_MAX", 3)
    async with place.engine() as engine:
        await fail_all(engine, 7)
    async with place.engine(registry=registry_of()) as engine:
        found = await in_time((await engine.bulk.start("retry", workflow="many_order")).result())

    assert (found.found, found.done, found.refused) == (7, 0, 7)
    assert [it.id for it in found.refusals] == ["o-000", "o-001", "o-002"]


async def test_few_refusals_are_shown_while_it_goes_on(
    place: Place, held: tuple[asyncio.Event, asyncio.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Progress is written again and again, so it has fewer of them than the answer."""
    asked, go_on = held
    monkeypatch.setattr(workflow, "REFUSALS_SHOWN", 1)
    async with place.engine() as engine:
        for number in range(3):
            await in_time((await engine.start(many_patient, number, id=f"p-{number}")).cancel())
            await reaches(engine.get(f"p-{number}"), "cancelled")
        operation = await engine.bulk.start("pause", workflow="many_patient", status="cancelled")
        await in_time(asked.wait())
        seen = await operation.progress()
        assert (seen.refused, [it.id for it in seen.refusals]) == (2, ["p-0"])
        go_on.set()

        found = await in_time(operation.result())
        assert (found.refused, [it.id for it in found.refusals]) == (3, ["p-0", "p-1", "p-2"])


async def test_many_are_cancelled_paused_resumed_and_deleted(place: Place) -> None:
    """Each verb takes the runs that it is for."""
    async with place.engine() as engine:
        for number in range(4):
            await waits(await engine.start(many_patient, number, id=f"p-{number}", tags={"odd": str(number % 2)}))

        async def done(verb: Any, **options: Any) -> int:
            return (await in_time((await engine.bulk.start(verb, workflow="many_patient", **options)).result())).done

        assert await done("pause", tags={"odd": "1"}, by="ann", reason="lunch") == 2
        await reaches(engine.get("p-1"), "parked")
        assert "paused by ann" in await engine.get("p-1").why()
        await reaches(engine.get("p-3"), "parked")
        assert await done("resume", limit=1) == 1
        await waits(engine.get("p-1"))
        assert await done("cancel") == 4
        for number in range(4):
            await reaches(engine.get(f"p-{number}"), "cancelled")
        assert await done("purge") == 0
        assert await done("purge", older_than=0, limit=3) == 3
        assert [run.id for run in await engine.list(workflow="many_patient")] == ["p-3"]


async def test_runs_without_a_worker_for_their_code_are_refused(place: Place) -> None:
    """At once, and the operation ends."""
    async with place.engine() as engine:
        await fail_all(engine, 2)
    async with place.engine(registry=registry_of()) as engine:
        found = await in_time((await engine.bulk.start("retry", workflow="many_order")).result())
        assert (found.done, found.refused) == (0, 2)
        assert "no live worker has many_order@1" in found.refusals[0].message


async def test_operation_that_is_cancelled_says_how_far_it_came(place: Place) -> None:
    """Before any worker has begun it."""
    async with place.engine(worker=False) as client:
        operation = await client.bulk.start("cancel", workflow="many_order", id="stop")
        assert (await client.bulk.start("cancel", workflow="many_order", id="stop")).id == "stop"
        await operation.cancel()
        found = await operation.progress()
        assert (found.status, found.found) == ("cancelled", 0)
        with pytest.raises(InvalidArgumentError, match="say by a filter which runs"):
            await client.bulk.start("cancel")
        with pytest.raises(InvalidArgumentError, match="only runs that ended go"):
            await client.bulk.start("purge", status=["running", "failed"])
        with pytest.raises(RunNotFoundError):
            await client.bulk.get("none").progress()
