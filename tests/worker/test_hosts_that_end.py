"""A worker whose host ends: it begins what fits, releases everything in time, and says what is left."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

import outlive
from outlive.errors import ConfigurationError, InvalidArgumentError
from outlive.events import RunClaimed, RunReleased, StepIntended
from outlive.types import Count, WorkDone
from tests.engine.jumping_loop import LoopClock, run_jumping
from tests.engine.support import Place, events_of, hold, in_time, note, reaches, stage


@outlive.step(timeout=60)
async def long_step(name: str) -> str:
    """May take longer than the hosts of these tests last."""
    return await note(name)


@outlive.step(timeout=60, once=True)
async def long_step_once(name: str) -> str:
    """The same, and never a second time."""
    return await note(name)


@outlive.step(timeout=0.5)
async def short_step(name: str) -> str:
    """Surely ends soon."""
    return await note(name)


@outlive.step
async def refuse() -> None:
    """Fail."""
    raise ValueError("no")


@outlive.workflow
async def notes(name: str) -> str:
    return await note(name)


@outlive.workflow
async def ticks() -> str:
    return await note("tick")


@outlive.workflow
async def refuses() -> None:
    await refuse()


@outlive.workflow
async def sleeps(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return await note("slept")


@outlive.workflow
async def holds(name: str) -> str:
    return await hold(name)


@outlive.workflow
async def needs_long(name: str) -> str:
    return await long_step(name)


@outlive.workflow
async def needs_long_once(name: str) -> str:
    return await long_step_once(name)


@outlive.workflow
async def after_a_hold(name: str) -> str:
    await hold(name)
    return await short_step(f"{name} behind")


@outlive.workflow
async def note_after_a_hold(name: str) -> str:
    await hold(name)
    return await note(f"{name} behind")


# -- Until nothing is due ----------------------------------------------------------------------------------------------


async def test_work_until_idle_does_everything_that_is_due_and_says_so(place: Place) -> None:
    """Runs that succeed and fail are counted, and nothing is left. [FE-W7]"""
    async with place.engine(worker=False) as client:
        await client.start(notes, "a", id="a")
        await client.start(notes, "b", id="b")
        await client.start(refuses, id="c")

    done = await in_time(place.engine().work(until_idle=True))

    assert ("idle", 3, 2, 1) == (done.ended_by, done.runs_taken, done.runs_succeeded, done.runs_failed)
    assert (3, Count(0), None) == (done.steps_begun, done.runs_due, done.next_due_at)
    assert not done.has_more


async def test_work_until_idle_says_when_the_next_run_is_due(place: Place) -> None:
    """A run that sleeps is not waited for. When its time has come, the next stretch of work fires its timer."""
    async with place.engine(worker=False) as client:
        run = await client.start(sleeps, 3600, id="a")
        first = await in_time(place.engine().work(until_idle=True))
        place.clock.skip(seconds=3601)
        second = await in_time(place.engine().work(until_idle=True))

        assert "slept" == await run.result(timeout=5)
    assert first.next_due_at is not None
    assert timedelta(minutes=59) < first.next_due_at - datetime.now(UTC) < timedelta(minutes=61)
    assert (0, 1) == (first.timers_fired, second.timers_fired)


async def test_work_until_idle_starts_the_runs_of_due_schedules(place: Place) -> None:
    """A schedule that only the store knows ticks too. [TS-R32]"""
    async with place.engine(worker=False) as client:
        await client.schedules.set("hourly", outlive.every(hours=1), ticks)
        place.clock.skip(seconds=3601)

        done = await in_time(place.engine().work(until_idle=True))

    assert ["tick"] == stage.calls
    assert (1, 1) == (done.ticks_started, done.runs_succeeded)
    assert done.next_due_at is not None


async def test_work_may_be_bounded_by_the_number_of_runs(place: Place) -> None:
    """It claims so many and no more, ends with the last of them, and says what is due."""
    async with place.engine(worker=False) as client:
        for number in range(5):
            await client.start(notes, str(number), id=f"run-{number}")

    done = await in_time(place.engine().work(runs_max=2))

    assert ("runs_max", 2, 2) == (done.ended_by, done.runs_taken, done.runs_succeeded)
    assert Count(3) == done.runs_due
    assert done.has_more


async def test_a_program_may_start_runs_while_it_works(place: Place) -> None:
    """The verbs of the engine are there inside the block, and its end waits for what they started."""
    engine = place.engine()

    async with engine.work(until_idle=True) as work:
        await engine.start(notes, "inside", id="a")

    assert work.done is not None
    assert ("idle", 1) == (work.done.ended_by, work.done.runs_succeeded)
    async with place.engine(worker=False) as client:
        assert "inside" == await client.get("a").result(timeout=5)


async def test_an_exception_of_the_program_ends_the_work_at_once(place: Place) -> None:
    """Everything is released all the same."""
    engine = place.engine()
    work = engine.work("1h")

    async def fail_inside() -> None:
        async with work:
            await engine.start(holds, "held", id="a")
            await stage.gate("held").reached()
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        await fail_inside()

    assert work.done is not None
    assert ("stopped", 1) == (work.done.ended_by, work.done.runs_released)


async def test_an_engine_that_has_worked_is_an_engine_as_before(place: Place) -> None:
    """It may work again, and after that run without bounds."""
    engine = place.engine()
    await in_time(engine.work(until_idle=True))
    await in_time(engine.work(until_idle=True))

    async with engine:
        assert "later" == await (await engine.start(notes, "later")).result(timeout=5)


async def test_work_without_a_bound_or_a_worker_is_refused(place: Place) -> None:
    """The messages say what to give."""
    with pytest.raises(ConfigurationError, match="no bound; give a lifetime"):
        place.engine().work()
    with pytest.raises(ConfigurationError, match="no worker"):
        place.engine(worker=False).work("5m")
    with pytest.raises(InvalidArgumentError, match="which leaves nothing; give more time, or a shorter grace"):
        place.engine(grace_seconds=20).work("15s")
    async with place.engine() as engine:
        with pytest.raises(ConfigurationError, match="running already"):
            await engine.work("5m")


# -- Until a deadline --------------------------------------------------------------------------------------------------


def test_work_releases_everything_before_its_lifetime_is_over() -> None:
    """A step that still runs is cancelled and its run released, and another worker goes on at once. [TS-R27]"""

    async def main() -> tuple[WorkDone, float, list[str], str]:
        stage.clear()
        place = Place(path=None, clock=LoopClock())
        loop = asyncio.get_running_loop()
        async with place.engine(worker=False) as client:
            run = await client.start(holds, "held", id="a")
            began_at = loop.time()
            done = await place.engine(grace_seconds=3).work("10s")
            seconds = loop.time() - began_at
            calls = list(stage.calls)
            stage.gate("held").open()
            await place.engine().work(until_idle=True)
            return done, seconds, calls, await run.result(timeout=5)

    done, seconds, calls, result = run_jumping(main())

    assert ["held", "held cancelled"] == calls
    assert "held" == result
    assert 9.0 <= seconds < 10.0
    assert ("deadline", 1, Count(1)) == (done.ended_by, done.runs_released, done.runs_due)


def test_work_ends_before_its_deadline_when_nothing_more_may_begin_and_nothing_runs() -> None:
    """In the last seconds, which steps have to finish, a worker without steps is of no use. [TS-R30]"""

    async def main() -> tuple[WorkDone, float]:
        stage.clear()
        place = Place(path=None, clock=LoopClock())
        began_at = asyncio.get_running_loop().time()
        done = await place.engine(grace_seconds=3).work("10s")
        return done, asyncio.get_running_loop().time() - began_at

    done, seconds = run_jumping(main())

    assert "deadline" == done.ended_by
    assert 6.0 <= seconds < 7.0


@pytest.mark.parametrize("workflow", [needs_long, needs_long_once], ids=lambda it: it.name)
async def test_a_step_whose_timeout_does_not_fit_is_left_to_another_worker(
    workflow: outlive.types.Workflow[[str], str], place: Place
) -> None:
    """It is not begun. Its run is released while the worker goes on with others, and is not claimed here again."""
    async with place.engine(worker=False) as client:
        run = await client.start(workflow, "long", id="long")
        await client.start(notes, "short", id="short")

        done = await in_time(place.engine(name="brief").work("20s", until_idle=True))

        assert ["short"] == stage.calls
        assert ("idle", 1, Count(1)) == (done.ended_by, done.steps_unfit, done.runs_due)
        (released,) = await events_of(run, RunReleased)
        assert "takes up to its timeout of 60 s, and worker brief had 1" in released.reason
        assert released.reason == await run.why() or "no live worker" in await run.why()
        assert 1 == len(await events_of(run, RunClaimed))
        intents = [event.attempt for event in await events_of(run, StepIntended)]
        assert intents in ([], [1, 0])

        await in_time(place.engine().work("2m", until_idle=True))
        assert "long" == await run.result(timeout=5)


async def test_workers_without_time_do_not_take_a_run_from_each_other_for_ever(place: Place) -> None:
    """Each sees that the run has not moved since it released it."""
    async with place.engine(worker=False) as client:
        run = await client.start(needs_long, "long", id="long")
        once = await client.start(needs_long_once, "long", id="once")

        await in_time(asyncio.gather(*(place.engine().work("20s", until_idle=True) for _ in range(3))))

        assert len(await events_of(run, RunClaimed)) <= 6
        assert len(await events_of(once, RunClaimed)) <= 6


def test_near_its_end_a_worker_begins_only_steps_that_surely_end_before_it() -> None:
    """A step with a short timeout begins; a step that may take any time does not, and its run is released.
    [TS-R24 FE-W7]
    """

    async def main() -> tuple[list[str], WorkDone]:
        stage.clear()
        place = Place(path=None, clock=LoopClock())
        engine = place.engine(grace_seconds=3)
        async with engine.work("10s") as work:
            await engine.start(after_a_hold, "sure", id="sure")
            await engine.start(note_after_a_hold, "unsure", id="unsure")
            await stage.gate("sure").reached()
            await stage.gate("unsure").reached()
            await asyncio.sleep(7)
            stage.gate("sure").open()
            stage.gate("unsure").open()
        assert work.done is not None
        return stage.calls, work.done

    calls, done = run_jumping(main())

    assert ["sure", "unsure", "sure behind"] == calls
    assert (1, 1, Count(1)) == (done.runs_succeeded, done.steps_unfit, done.runs_due)


async def test_a_step_that_is_called_once_and_did_not_fit_was_not_interrupted(place: Place) -> None:
    """Its intent is withdrawn, so that the next worker calls it."""
    async with place.engine(worker=False) as client:
        run = await client.start(needs_long_once, "long", id="a")
        await in_time(place.engine().work("20s", until_idle=True))
        async with place.engine():
            assert "long" == await run.result(timeout=5)  # It raises StepInterruptedError for a step that began.


async def test_a_running_worker_goes_on_with_a_run_that_a_brief_worker_releases(place: Place) -> None:
    """It goes on within a moment, as with every release."""
    async with place.engine(worker=False) as client:
        run = await client.start(needs_long, "long", id="a")
        brief = asyncio.ensure_future(in_time(place.engine().work("20s", until_idle=True)))
        async with place.engine():
            await in_time(reaches(run, "succeeded"))
        await brief
