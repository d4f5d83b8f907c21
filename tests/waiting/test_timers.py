"""Timers: durable, never early, and once."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest

import outlive
from outlive.events import RunSuspended, TimerFired
from tests.engine.inside import crash, journal_of, row_of
from tests.engine.support import DAY, Place, events_of, hold, in_time, note, stage, until, until_calls, waits

pytestmark = pytest.mark.any_store

SHORT = 0.02


@outlive.workflow
async def sleeping(seconds: float) -> str:
    await note("before")
    await asyncio.sleep(seconds)
    return await note("after")


@outlive.workflow
async def sleeping_until(when: datetime) -> float:
    await outlive.sleep_until(when)
    return outlive.now().timestamp()


@outlive.workflow
async def sleeping_side_by_side(delays: list[float]) -> list[float]:
    done = []

    async def nap(seconds: float) -> None:
        await asyncio.sleep(seconds)
        done.append(seconds)

    async with asyncio.TaskGroup() as group:
        for seconds in delays:
            group.create_task(nap(seconds))
    return done


@outlive.workflow
async def sleeping_beside_a_step(seconds: float) -> list[str]:
    first = asyncio.create_task(asyncio.sleep(seconds, "timer"))
    second = asyncio.create_task(hold("beside"))
    done, _ = await asyncio.wait([first, second], return_when=asyncio.FIRST_COMPLETED)
    winner = done.pop().result()
    return [winner or "", await second]


@outlive.workflow
async def sleeping_often(times: int) -> int:
    for _ in range(times):
        await asyncio.sleep(0.001)
    return times


async def test_a_short_timer_fires(engine: outlive.Engine) -> None:
    """A near timer is waited for in memory: the run is not suspended for it."""
    run = await engine.start(sleeping, SHORT)

    assert "after" == await in_time(run.result())
    assert [] == await events_of(run, RunSuspended)


async def test_no_timer_fires_early(engine: outlive.Engine) -> None:
    """The event of a timer is not before its time."""
    run = await engine.start(sleeping, SHORT)
    await in_time(run.result())

    created, *_ = await journal_of(run)
    (fired,) = await events_of(run, TimerFired)
    assert fired.at - created.at >= SHORT * 1_000_000


async def test_a_run_with_a_long_timer_is_suspended(place: Place) -> None:
    """It costs no worker anything until it is due; then it goes on where it was. [TS-R21]"""
    async with place.engine() as engine:
        run = await engine.start(sleeping, 30 * DAY)
        await waits(run)
        assert "a timer at 20" in await run.why()
        assert (await row_of(run)).owner == ""

        place.clock.skip(seconds=30 * DAY)
        assert "after" == await in_time(run.result())
    assert ["before", "after"] == stage.calls


async def test_a_timer_waits_for_its_time_after_a_restart(place: Place) -> None:
    """A restart neither fires a timer early nor begins it again. [FE-W1]"""
    async with place.engine() as first:
        await waits(await first.start(sleeping, 2 * DAY, id="run-1"))
    place.clock.skip(seconds=DAY)

    async with place.engine() as second:
        run = second.get("run-1")
        assert await run.status() == "waiting"
        place.clock.skip(seconds=DAY)
        assert "after" == await in_time(run.result())
    assert ["before", "after"] == stage.calls


@pytest.mark.parametrize("is_killed", [False, True])
async def test_a_timer_that_was_due_while_no_worker_ran_fires_once_at_the_start(
    place: Place, *, is_killed: bool
) -> None:
    """Downtime delays a timer; it does not lose it and does not double it. [AK-X2]"""
    first = await place.engine().__aenter__()
    await waits(await first.start(sleeping, DAY, id="run-1"))
    await (crash(first) if is_killed else first.__aexit__(None, None, None))
    place.clock.skip(seconds=5 * DAY)

    async with place.engine() as second:
        run = second.get("run-1")
        assert "after" == await in_time(run.result())
        assert 1 == len(await events_of(run, TimerFired))
    assert ["before", "after"] == stage.calls


async def test_a_short_timer_survives_a_crash(place: Place) -> None:
    """A run that waited hot for a near timer is taken over like any other."""
    first = await place.engine().__aenter__()
    run = await first.start(sleeping, 0.5, id="run-1")

    await until_calls("before")
    assert await run.status() == "running"
    await crash(first)
    place.clock.skip(seconds=1)

    async with place.engine() as second:
        assert "after" == await in_time(second.get("run-1").result())
    assert 1 == stage.count("after")


async def test_sleeping_until_the_past_returns_at_once(place: Place) -> None:
    """`sleep_until` returns at once for an instant in the past, and waits for one in the future."""
    async with place.engine() as engine:
        now = place.clock.now() / 1_000_000
        past = outlive.now() - timedelta(days=1)
        assert now - 5 < await in_time((await engine.start(sleeping_until, past)).result())

        run = await engine.start(sleeping_until, outlive.now() + timedelta(days=1))
        await waits(run)
        place.clock.skip(seconds=DAY)
        assert now + DAY - 5 < await in_time(run.result())


async def test_an_instant_without_a_zone_is_refused(engine: outlive.Engine) -> None:
    """`sleep_until` takes no naive datetime: it could mean any time zone."""
    run = await engine.start(sleeping_until, datetime(2030, 1, 1))  # noqa: DTZ001

    with pytest.raises(outlive.errors.RunFailedError, match="give an aware datetime"):
        await in_time(run.result())


async def test_timers_fire_in_the_order_of_their_times(place: Place) -> None:
    """Timers that are all overdue fire in the order of their times."""
    async with place.engine() as engine:
        run = await engine.start(sleeping_side_by_side.bind([3 * DAY, DAY, 2 * DAY]))
        await waits(run)
        place.clock.skip(seconds=10 * DAY)

        assert [DAY, 2 * DAY, 3 * DAY] == await in_time(run.result())


async def test_timer_that_fires_late_says_when_it_fired(place: Place) -> None:
    """The run was asleep for longer than it wanted; its clock is that of the world, not that of its plan."""
    async with place.engine() as engine:
        run = await engine.start(sleeping_until, outlive.now() + timedelta(days=1))
        await waits(run)
        woken_at = place.clock.now() + 3 * DAY * 1_000_000
        place.clock.skip(seconds=3 * DAY)

        assert woken_at / 1_000_000 <= await in_time(run.result())
        (fired,) = await events_of(run, TimerFired)
        assert woken_at <= fired.at


async def test_a_timer_fires_while_a_step_runs(engine: outlive.Engine) -> None:
    """A timer beside a running step does not wait for the step."""
    run = await engine.start(sleeping_beside_a_step, SHORT)
    await stage.gate("beside").reached()

    async def has_fired() -> bool:
        return bool(await events_of(run, TimerFired))

    await until(has_fired)
    stage.gate("beside").open()
    assert ["timer", "beside"] == await in_time(run.result())


async def test_many_timers_in_a_row_are_kept(engine: outlive.Engine) -> None:
    """Each of a hundred short sleeps is an event of its own."""
    run = await engine.start(sleeping_often, 100)

    assert 100 == await in_time(run.result())
    assert 100 == len(await events_of(run, TimerFired))
