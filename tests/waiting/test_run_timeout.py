"""The timeout of a run: durable, tidy, and for the whole of it."""

from __future__ import annotations

import asyncio

import pytest

import outlive
from outlive.errors import DefinitionError
from tests.engine.inside import crash
from tests.engine.support import DAY, Place, hold, in_time, note, stage, waits

pytestmark = pytest.mark.any_store


@outlive.workflow(timeout=DAY)
async def timed() -> str:
    try:
        return await outlive.wait_for_signal("go", str)
    finally:
        await note("clean-up")


@outlive.workflow
async def timed_in_step() -> str:
    try:
        return await hold("step")
    finally:
        await note("clean-up")


@outlive.workflow(timeout=DAY)
async def timed_and_quick() -> str:
    return await note("quick")


@outlive.workflow
async def timed_and_stubborn() -> str:
    try:
        await asyncio.sleep(DAY)
    except asyncio.CancelledError:
        await note("stubborn")
    return "went on"


async def times_out(run: outlive.types.RunHandle[str]) -> None:
    """Return when a run has timed out."""
    with pytest.raises(outlive.errors.RunTimedOutError, match="did not end within its timeout"):
        await in_time(run.result())
    assert await run.status() == "timed_out"


async def test_a_run_that_takes_too_long_ends(place: Place) -> None:
    """Its workflow is cancelled, cleans up, and the run has timed out. [FB-R17 FE-R4]"""
    async with place.engine() as engine:
        run = await engine.start(timed)
        await waits(run)
        place.clock.skip(seconds=DAY)

        await times_out(run)
    assert ["clean-up"] == stage.calls


async def test_why_tells_the_timeout_of_a_run_from_its_timers(engine: outlive.Engine) -> None:
    """It stands last: what a person looks for first is what lets the run go on."""
    run = await engine.start(timed)
    await waits(run)
    timeout_at = (await run.info()).timeout_at
    assert timeout_at is not None
    assert await run.why() == f"it waits for signal 'go' or its timeout at {timeout_at.isoformat(timespec='seconds')}"
    assert [wait.kind for wait in (await run.info()).waits] == ["signal", "timer"]


async def test_a_run_within_its_timeout_just_ends(engine: outlive.Engine) -> None:
    """A timeout that was not needed leaves no trace."""
    run = await engine.start(timed_and_quick)

    assert "quick" == await in_time(run.result())


async def test_a_timeout_reaches_a_running_step(engine: outlive.Engine) -> None:
    """A run that is in the middle of a step when its time is over does not wait for it."""
    run = await engine.start(timed_in_step, timeout=0.03)

    await times_out(run)
    assert ["step", "step cancelled", "clean-up"] == stage.calls


async def test_a_start_may_state_another_timeout(place: Place) -> None:
    """The one given at the start counts, not the workflow's."""
    async with place.engine() as engine:
        run = await engine.start(timed, timeout=10 * DAY)
        await waits(run)
        place.clock.skip(seconds=2 * DAY)
        await run.signal("go", "in time")

        assert "in time" == await in_time(run.result())


async def test_a_timeout_counts_from_the_start_through_restarts(place: Place) -> None:
    """Neither a restart nor downtime gives a run more time."""
    first = await place.engine().__aenter__()
    await waits(await first.start(timed, id="run-1"))
    await crash(first)
    place.clock.skip(seconds=2 * DAY)

    async with place.engine() as second:
        await times_out(second.get("run-1"))
    assert ["clean-up"] == stage.calls


async def test_a_stubborn_run_has_timed_out_all_the_same(place: Place) -> None:
    """A workflow that swallows the cancellation does not succeed after its time."""
    async with place.engine() as engine:
        run = await engine.start(timed_and_stubborn, timeout=DAY / 2)
        await waits(run)
        place.clock.skip(seconds=DAY / 2)

        await times_out(run)
    assert ["stubborn"] == stage.calls


@pytest.mark.parametrize("seconds", [0, -1])
async def test_a_timeout_of_nothing_is_refused(engine: outlive.Engine, seconds: float) -> None:
    """Where it is declared and where it is given."""
    with pytest.raises(DefinitionError):
        outlive.workflow(timeout=seconds)(undefined)
    with pytest.raises(ValueError, match="timeout"):
        await engine.start(timed, timeout=seconds)


async def undefined() -> None:
    """Never becomes a workflow."""
