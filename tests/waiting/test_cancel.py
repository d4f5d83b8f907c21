"""Cancelling: durable, reaching, tidy, and once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import outlive
from outlive.errors import RunFinishedError
from outlive.events import CancelRequested, StepSucceeded
from outlive.testing import replay
from tests.engine.inside import crash
from tests.engine.support import DAY, Place, events_of, hold, in_time, note, parks, reaches, stage, until_calls, waits

pytestmark = pytest.mark.any_store


@outlive.workflow
async def cancelled_in_step(name: str) -> str:
    try:
        return await hold(name)
    finally:
        await note("clean-up 1")
        await asyncio.sleep(0.005)
        await note("clean-up 2")


@outlive.workflow
async def cancelled_in_wait() -> str:
    try:
        return await outlive.wait_for_signal("go", str)
    finally:
        await note("clean-up")


@outlive.workflow
async def cancelled_in_clean_up() -> str:
    try:
        return await outlive.wait_for_signal("go", str)
    finally:
        await hold("clean-up")


@outlive.workflow
async def cancelled_in_parallel() -> Any:
    async with asyncio.TaskGroup() as group:
        group.create_task(hold("a"))
        group.create_task(asyncio.sleep(DAY))
        group.create_task(outlive.wait_for_signal("go"))


@outlive.workflow
async def cancelled_when_parked() -> None:
    await asyncio.Event().wait()


@outlive.workflow
async def cancelled_too_late() -> str:
    return await note("done")


async def is_cancelled(run: Any, reason: str = "enough") -> None:
    """Return when a run has ended as cancelled, for this reason."""
    with pytest.raises(outlive.errors.RunCancelledError, match=reason):
        await in_time(run.result())
    assert await run.status() == "cancelled"


async def test_a_cancel_reaches_a_running_step(engine: outlive.Engine) -> None:
    """The step is cancelled, the `finally` block runs with its steps and timers, then the run has ended.
    [FB-R17 FE-R10]
    """
    run = await engine.start(cancelled_in_step, "a")
    await stage.gate("a").reached()
    await run.cancel(reason="enough")

    await is_cancelled(run)
    assert ["a", "a cancelled", "clean-up 1", "clean-up 2"] == stage.calls
    assert ["note", "note#2"] == [event.call for event in await events_of(run, StepSucceeded)]


async def test_a_suspended_run_is_woken_to_be_cancelled(engine: outlive.Engine) -> None:
    """A run that waits for a signal cleans up too."""
    run = await engine.start(cancelled_in_wait)
    await waits(run)
    await run.cancel(reason="enough")

    await is_cancelled(run)
    assert ["clean-up"] == stage.calls


async def test_every_branch_is_cancelled(engine: outlive.Engine) -> None:
    """Steps, timers and waits of a task group all end."""
    run = await engine.start(cancelled_in_parallel)
    await stage.gate("a").reached()
    await run.cancel(reason="enough")

    await is_cancelled(run)
    await until_calls("a", "a cancelled")


async def test_cancelling_twice_is_cancelling_once(engine: outlive.Engine) -> None:
    """The second call is not a second cancellation, neither during the clean-up nor after the end."""
    run = await engine.start(cancelled_in_clean_up)
    await waits(run)
    await run.cancel(reason="enough")
    await stage.gate("clean-up").reached()
    await run.cancel(reason="enough, I said")
    stage.gate("clean-up").open()

    await is_cancelled(run, "enough$")
    await run.cancel()
    assert 1 == len(await events_of(run, CancelRequested))
    assert 0 == stage.count("clean-up cancelled")


@pytest.mark.parametrize("is_killed", [False, True])
async def test_a_cancel_is_durable_before_it_is_delivered(place: Place, *, is_killed: bool) -> None:
    """A cancel that was accepted while no worker ran is carried out when one starts. [FE-R10]"""
    first = await place.engine(grace_seconds=0).__aenter__()
    await first.start(cancelled_in_step, "a", id="run-1")
    await stage.gate("a").reached()
    await (crash(first) if is_killed else first.__aexit__(None, None, None))
    async with place.engine(worker=False) as client:
        await client.cancel("run-1", reason="enough")

    stage.gate("a").open()
    async with place.engine() as second:
        await is_cancelled(second.get("run-1"))
    assert 1 == stage.count("clean-up 2")


async def test_a_clean_up_goes_on_after_a_crash(place: Place) -> None:
    """An engine that dies during the clean-up leaves the rest of it to the next one."""
    first = await place.engine().__aenter__()
    run = await first.start(cancelled_in_clean_up, id="run-1")
    await waits(run)
    await run.cancel(reason="enough")
    await stage.gate("clean-up").reached()
    await crash(first)

    async with place.engine() as second:
        await stage.gate("clean-up").reached()
        stage.gate("clean-up").open()
        await is_cancelled(second.get("run-1"))


async def test_a_cancel_reaches_a_run_of_another_engine(place: Place) -> None:
    """The worker that runs it finds the request in the store."""
    async with place.engine() as worker, place.engine(worker=False) as client:
        run = await worker.start(cancelled_in_step, "a")
        await stage.gate("a").reached()
        await client.cancel(run.id, reason="enough")

        await is_cancelled(client.get(run.id))
        assert 1 == stage.count("a cancelled")


async def test_a_run_may_be_cancelled_before_anybody_has_claimed_it(place: Place) -> None:
    """Its first step never runs."""
    async with place.engine(worker=False) as client:
        await client.start(cancelled_in_step, "a", id="run-1")
        await client.cancel("run-1", reason="enough")

        async with place.engine():
            await is_cancelled(client.get("run-1"))
    assert 0 == stage.count("a")


@outlive.workflow
async def cancelled_before_its_only_word() -> str:
    return "at once"


async def test_a_run_that_was_cancelled_before_it_began_can_be_replayed(place: Place, tmp_path: Path) -> None:
    """Its code never ran, so whatever it would have said contradicts nothing."""
    async with place.engine(worker=False) as client:
        run = await client.start(cancelled_before_its_only_word)
        await run.cancel(reason="enough")
        await is_cancelled(run)
        await run.export(tmp_path / "run.jsonl")

    assert [tmp_path / "run.jsonl"] == replay(tmp_path / "run.jsonl")


async def test_a_parked_run_is_cancelled_at_once(engine: outlive.Engine) -> None:
    """Its code cannot clean up, so the cancel does not wait for that."""
    run = await engine.start(cancelled_when_parked)
    await parks(run)
    await run.cancel(reason="enough")

    with pytest.raises(outlive.errors.RunCancelledError, match="enough"):
        await in_time(run.result())
    assert await run.status() == "cancelled"


async def test_a_finished_run_cannot_be_cancelled(engine: outlive.Engine) -> None:
    """The caller hears how the run ended."""
    run = await engine.start(cancelled_too_late)
    await in_time(run.result())

    with pytest.raises(RunFinishedError, match="succeeded"):
        await run.cancel()


async def test_a_handle_of_a_cancelled_run_says_why(engine: outlive.Engine) -> None:
    """The reason is kept with the run; without one it says so."""
    run = await engine.start(cancelled_in_wait)
    await run.cancel()
    await reaches(run, "cancelled")

    with pytest.raises(outlive.errors.RunCancelledError, match="no reason given"):
        await in_time(run.result())
