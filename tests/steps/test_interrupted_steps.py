"""A run that was cancelled, timed out, or lost its worker says which steps were under way."""

from __future__ import annotations

import asyncio
import logging

import pytest

import outlive
from outlive._kernel.journal import event as journal
from outlive._kernel.journal.words import in_words
from outlive.limits import Limits
from outlive.testing import TestEngine
from outlive.types import Recovery, WorkerOptions
from tests.engine.inside import crash, reporter_of
from tests.engine.support import Place, events_of, hold, in_time, note, parks, stage, until

pytestmark = pytest.mark.any_store


@outlive.step
async def hold_for_long(name: str) -> str:
    await stage.gate("held").pass_through()
    return name


@outlive.workflow
async def held_up() -> str:
    await note("before")
    return await hold_for_long("secret")


@outlive.workflow
async def held_up_by_child() -> str:
    return await held_up()


@outlive.workflow
async def held_up_twice() -> None:
    await asyncio.gather(hold_for_long("a"), hold_for_long("b"))


@outlive.workflow
async def held_up_to_clean() -> None:
    try:
        await hold_for_long("a")
    finally:
        await hold("cleaning")


@pytest.mark.every_store
async def test_a_cancelled_run_names_the_step_that_was_under_way(place: Place) -> None:
    """In its error, in `why`, in the journal, and in the history as people read it."""
    async with place.engine(name="w1") as engine:
        run = await engine.start(held_up, id="o-1")
        await stage.gate("held").reached()
        place.clock.skip(seconds=28 * 60)
        await run.cancel(reason="ann says so")
        with pytest.raises(
            outlive.errors.RunCancelledError, match="ann says so; it was in step hold_for_long, for 28 min on"
        ):
            await in_time(run.result())
        (ended,) = await events_of(run, journal.RunCancelled)
        (step,) = ended.interrupted
        assert (ended.reason, step.call, step.attempt, step.worker) == ("ann says so", "hold_for_long", 1, "w1")
        said = "ann says so; it was in step hold_for_long, for 28 min on w1"
        assert (await run.info()).reason == said
        assert said in await run.why()
        assert in_words(ended) == f"the run was cancelled: {said}"


async def test_a_run_that_timed_out_names_the_step_that_was_under_way() -> None:
    """A run that times out names the step of its child that was under way, and the child names it too."""
    async with TestEngine(worker=WorkerOptions(name="w1"), patience_seconds=0.01) as engine:
        run = await engine.start(held_up_by_child, id="o-1", timeout=3600)
        with pytest.raises(
            outlive.errors.RunTimedOutError, match="timeout: it was in step hold_for_long of child run 1, for 1 h on w1"
        ):
            await in_time(run.result())
        child = await engine.get("o-1~1").info()
        assert child.status == "cancelled"
        assert child.reason.endswith("; it was in step hold_for_long, for 1 h on w1")


async def test_steps_that_a_clean_up_runs_are_not_those_that_were_interrupted(place: Place) -> None:
    """The step that the cancellation stopped is named, also after the clean-up has ended."""
    async with place.engine() as engine:
        run = await engine.start(held_up_to_clean)
        await stage.gate("held").reached()
        await run.cancel()
        await stage.gate("cleaning").reached()
        stage.gate("cleaning").open()
        with pytest.raises(
            outlive.errors.RunCancelledError, match="was cancelled: it was in step hold_for_long, for 0 s on"
        ):
            await in_time(run.result())


async def test_a_worker_that_takes_over_during_the_clean_up_knows_the_call(place: Place) -> None:
    """The journal has nothing of an attempt that did not end: the replay shows what was cancelled."""
    engine = place.engine(lease_seconds=2)
    await engine.__aenter__()
    run = await engine.start(held_up_to_clean, id="o-1")
    await stage.gate("held").reached()
    await run.cancel(reason="ann")
    await stage.gate("cleaning").reached()
    await crash(engine)
    async with place.engine() as engine:
        await stage.gate("cleaning").reached()
        stage.gate("cleaning").open()
        with pytest.raises(outlive.errors.RunCancelledError, match=r"ann; it was in step hold_for_long$"):
            await in_time(engine.get("o-1").result())


async def test_a_run_that_ends_well_says_nothing_of_steps(place: Place) -> None:
    """Nor does one that was cancelled when none of its steps ran."""
    async with place.engine() as engine:
        run = await engine.start(held_up_twice)
        await stage.gate("held").reached()
        stage.gate("held").open()
        await in_time(run.result())
        assert (await run.info()).reason == ""


@pytest.mark.every_store
async def test_a_quarantined_run_says_what_was_under_way(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """A quarantined run and the log of the take-over name the step that the lost worker had reported beside its
    lease."""
    caplog.set_level(logging.INFO, logger="outlive")
    engine = place.engine(name="w1", limits=Limits(attempts_max=1))
    await engine.__aenter__()
    await engine.start(held_up, id="o-1")
    for name in ("w2", "w3"):
        await stage.gate("held").reached()
        place.clock.skip(seconds=60)
        reporter_of(engine).look()

        async def is_written(engine: outlive.Engine = engine) -> bool:
            return reporter_of(engine).is_resting

        await until(is_written)
        await crash(engine)
        engine = place.engine(name=name, limits=Limits(attempts_max=1))
        await engine.__aenter__()
    reason = await parks(engine.get("o-1"))
    await engine.__aexit__(None, None, None)
    assert reason.startswith("quarantined: 2 workers were interrupted")
    assert "; it was in step hold_for_long, for 1 min on w2" in reason
    assert (
        "its worker was lost (interruptions since it last made progress: 1); it was in step hold_for_long, for "
        in caplog.text
    )


async def test_a_run_that_is_held_back_says_it_too(place: Place) -> None:
    """A worker that died before it had said anything leaves nothing to say."""
    engine = place.engine(name="w1")
    await engine.__aenter__()
    await engine.start(held_up, id="o-1")
    await stage.gate("held").reached()
    await crash(engine)
    async with place.engine(name="w2", recovery=Recovery(auto_resume=False)) as engine:
        reason = await parks(engine.get("o-1"))
        assert reason.startswith("interrupted: its worker was lost")
        assert "it was in" not in reason
