"""What a run has lived through it lives through again in a replay: failures, children, and whatever came first."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

import outlive
from outlive.events import RunCreated, StepSucceeded
from outlive.testing.fsck import check_store
from tests.engine.dying import die_at_each_commit
from tests.engine.inside import crash
from tests.engine.support import DAY, Place, events_of, hold, in_time, stage, until_calls, waits

pytestmark = pytest.mark.any_store


class OutOfStock(Exception):
    def __init__(self, item: str) -> None:
        super().__init__(f"no {item} left")
        self.item = item


@outlive.step(raises=(OutOfStock,))
async def take_from_stock(item: str) -> None:
    stage.call(f"take {item}")
    if item in stage.gates:
        await stage.gate(item).pass_through()
    raise OutOfStock(item)


@outlive.workflow
async def replayed_failure() -> list[str]:
    seen = []
    try:
        await take_from_stock("tea")
    except OutOfStock as error:
        seen.append(f"{error} ({error.item})")
    return [*seen, await hold("held")]


async def test_failure_is_raised_again_in_a_replay(place: Place) -> None:
    """A replay raises the recorded exception with its attributes, and does not call the step that raised it.
    [TS-R6 FE-R14]
    """
    first = await place.engine().__aenter__()
    await first.start(replayed_failure, id="run-1")
    await stage.gate("held").reached()
    await crash(first)

    stage.gate("held").open()
    async with place.engine() as second:
        assert ["no tea left (tea)", "held"] == await in_time(second.get("run-1").result())
        assert 1 == second.counters.runs_replayed
    assert 1 == stage.count("take tea")


@outlive.step
async def never_ends(name: str) -> None:
    """Ends neither by itself nor when it is cancelled."""
    gate = stage.gate(name)
    while name in stage.gates:
        try:
            await gate.pass_through()
        except asyncio.CancelledError:
            stage.call(f"{name} asked to end")


@outlive.workflow
async def failing_beside_a_hang() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(never_ends("sibling"))
        group.create_task(take_from_stock("tea"))


async def test_branch_that_fails_fails_the_run_though_its_sibling_hangs(engine: outlive.Engine) -> None:
    """The sibling is cancelled at once, and the run does not wait until it has ended. [FB-R14 FB-R15]"""
    failing = stage.gate("tea")
    run = await engine.start(failing_beside_a_hang)
    await failing.reached()
    await stage.gate("sibling").reached()
    failing.open()

    with pytest.raises(outlive.errors.RunFailedError, match="1 sub-exception") as caught:
        await in_time(run.result())
    assert "no tea left" in caught.value.failure.traceback
    assert await run.status() == "failed"
    await until_calls("take tea", "sibling asked to end")


@outlive.workflow
async def in_two_deadlines(seconds: float) -> str:
    try:
        async with asyncio.timeout(seconds):
            return await outlive.wait_for_signal("go", str)
    except TimeoutError:
        return "gave up"


async def test_the_earlier_of_two_deadlines_counts(place: Place) -> None:
    """That of the run, or that of a block of its code. [TS-R31]"""
    async with place.engine() as engine:
        patient = await engine.start(in_two_deadlines, 2 * DAY, timeout=DAY)
        impatient = await engine.start(in_two_deadlines, DAY, timeout=2 * DAY)
        for run in (patient, impatient):
            await waits(run)
        place.clock.skip(seconds=DAY)

        assert "gave up" == await in_time(impatient.result())
        with pytest.raises(outlive.errors.RunTimedOutError):
            await in_time(patient.result())


@outlive.step
async def name_of(step: str) -> str:
    """Its result says which call it was, in the journal too."""
    stage.call(step)
    return step


@outlive.workflow
async def one_of_a_tree(name: str, steps: int) -> list[str]:
    return [await name_of(f"{name} {number}") for number in range(steps)]


@outlive.workflow
async def sleeper_of_a_tree() -> list[str]:
    await asyncio.sleep(0.001)
    return [await name_of("sleeper")]


@outlive.workflow
async def replayed_tree() -> list[Any]:
    """Children that are not begun, under way, asleep and at their ends, all at the same time."""
    early = await one_of_a_tree("early", 1)
    several = await asyncio.gather(one_of_a_tree("a", 3), sleeper_of_a_tree(), one_of_a_tree("none", 0))
    return [early, await name_of("root"), *several, await one_of_a_tree("late", 2)]


async def test_tree_survives_a_death_around_every_commit(place: Place) -> None:
    """Worker after worker dies just before and just after its commits. After each death every run row is what its
    journal says; no child is begun twice, none is forgotten, and no completed step of any of them is called again.
    [SF-U11 SF-U16 SF-U19 SF-U22 SF-U23 SF-U24 SF-U25 SF-U26 SF-U27]"""
    async with place.engine(worker=False) as client:
        await client.start(replayed_tree, id="run-1")
    limits = outlive.limits.Limits(attempts_max=1_000)
    deaths = 0
    calls_when_done: dict[str, int] = {}
    async for _ in die_at_each_commit(place, "run-1", limits=limits):
        deaths += 1
        store = place.store()
        await store.open()
        assert [] == await check_store(store)
        await store.close()
        async with place.engine(worker=False) as client:
            for event in await events_of(client.get("run-1"), StepSucceeded):
                name = json.loads(bytes(event.result.v))  # type: ignore[arg-type]
                calls_when_done.setdefault(name, stage.count(name))

    async with place.engine(worker=False) as client:
        run = client.get("run-1")
        assert await in_time(run.result()) == [
            ["early 0"],
            "root",
            ["a 0", "a 1", "a 2"],
            ["sleeper"],
            [],
            ["late 0", "late 1"],
        ]
        calls = [(event.run, event.call) for event in await events_of(run, StepSucceeded)]
        assert 8 == len(calls) == len(set(calls))
        children = [event.call for event in await events_of(run, RunCreated) if event.run]
        assert 5 == len(children) == len(set(children))
        assert {"succeeded"} == {run.status for run in await client.list()}
    assert 8 == len(calls_when_done)
    assert calls_when_done == {name: stage.count(name) for name in calls_when_done}, "a completed step ran again"
    assert deaths > 10
