"""A `TestEngine` is the engine, and its time skips when nothing is running and a run waits."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest

import outlive
from outlive import Retry
from outlive.errors import EngineClosedError, ResultTimeoutError, StandstillError
from outlive.testing import TestEngine
from outlive.testing.clock import EPOCH
from tests.engine.inside import journal_of

calls: list[str] = []


@pytest.fixture(autouse=True)
def _no_calls() -> None:
    calls.clear()


@outlive.workflow(name="skip.nap")
async def nap(days: int) -> str:
    """Sleep a day at a time; say when it woke."""
    for _ in range(days):
        await asyncio.sleep(24 * 3600)
    return outlive.now().isoformat()


@outlive.workflow(name="skip.refund")
async def refund(order_id: str) -> str:
    """Ask for a payment for two days."""
    paid = await outlive.wait_for_signal("paid", int)
    try:
        async with asyncio.timeout(2 * 24 * 3600):
            await outlive.wait_for_signal("approved", str)
    except TimeoutError:
        return f"{order_id}: {paid} expired"
    return "approved"


@outlive.step(name="skip.flaky", retry=Retry(attempts=4, first=3600, factor=2, cap=1e9, jitter=0.5))
async def flaky() -> str:
    """Fail three times."""
    calls.append("flaky")
    if len(calls) < 4:
        raise ConnectionError("not yet")
    return "done"


@outlive.workflow(name="skip.retrying")
async def retrying() -> str:
    """Retry for hours."""
    return await flaky()


@outlive.step(name="skip.slow")
async def slow() -> str:
    """Really wait."""
    await asyncio.sleep(0.05)
    return "slow"


@outlive.step(name="skip.on_thread")
def on_thread() -> str:
    """Really wait, on a thread."""
    time.sleep(0.05)
    return "slow"


@outlive.workflow(name="skip.race")
async def race(sync: bool) -> str:  # noqa: FBT001 (arguments of a run have no names)
    """A step that takes a moment against a timer of an hour."""
    try:
        async with asyncio.timeout(3600):
            return await (on_thread() if sync else slow())
    except TimeoutError:
        return "timed out"


@outlive.step(name="skip.hang")
async def hang() -> None:
    """Never end."""
    await asyncio.Event().wait()


@outlive.workflow(name="skip.hanging")
async def hanging() -> str:
    """A step that hangs against two timers."""
    try:
        async with asyncio.timeout(2 * 3600), asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(3600))
            group.create_task(hang())
    except TimeoutError:
        return "timed out"
    return "done"


@outlive.workflow(name="skip.slowly")
async def slowly() -> str:
    """Only a step that takes a moment."""
    return await slow()


@outlive.workflow(name="skip.stuck")
async def stuck() -> None:
    """Only a step that never ends."""
    await hang()


@outlive.step(name="skip.ask_async")
async def ask_async() -> datetime:
    """The time in an async step."""
    return outlive.now()


@outlive.step(name="skip.ask_thread")
def ask_thread() -> datetime:
    """The time on a thread."""
    return outlive.now()


@outlive.workflow(name="skip.clocks")
async def clocks() -> list[datetime]:
    """The time as everybody sees it."""
    return [outlive.now(), await ask_async(), await ask_thread()]


@outlive.workflow(name="skip.tick")
async def tick() -> None:
    """Never end."""
    while True:  # noqa: ASYNC110 (durable)
        await asyncio.sleep(60)


@outlive.workflow(name="skip.parent")
async def parent() -> str:
    """Start a run that sleeps, and wait for it."""
    child = await outlive.start(nap, 2, detached=True)
    return await child.result()


async def test_days_pass_in_milliseconds() -> None:
    """A run that sleeps for a year ends at once, and its time is a year later."""
    async with TestEngine() as engine:
        began = engine.now()
        run = await engine.start(nap, 365)

        async with asyncio.timeout(5):
            woke = await run.result()

        assert woke == (began + timedelta(days=365)).isoformat()
        assert engine.now() == began + timedelta(days=365)


async def test_the_example_of_the_front_door_holds() -> None:
    """A signal, then two days without an approval."""
    async with TestEngine() as engine:
        run = await engine.start(refund, "o-1")
        await engine.signal(run.id, "paid", 7)

        assert await run.result() == "o-1: 7 expired"


async def test_back_offs_are_skipped_without_spread() -> None:
    """1 + 2 + 4 hours, to the microsecond."""
    async with TestEngine() as engine:
        began = engine.now()
        run = await engine.start(retrying)

        assert await run.result() == "done"
        assert engine.now() - began == timedelta(hours=7)


@pytest.mark.parametrize("sync", [False, True])
async def test_a_step_that_really_waits_is_not_skipped_over(sync: bool) -> None:  # noqa: FBT001
    """Its timer of an hour does not go off while it runs."""
    async with TestEngine() as engine:
        run = await engine.start(race, sync)

        assert await run.result() == "slow"
        assert engine.clock.now() == EPOCH


async def test_a_step_that_hangs_does_not_hold_time_for_ever() -> None:
    """Its timer of an hour goes off when the patience of the test is over, and the next ones at once."""
    async with TestEngine(patience_seconds=0.05) as engine:
        began = engine.now()

        assert await (await engine.start(hanging)).result() == "timed out"
        assert engine.now() - began == timedelta(hours=2)


async def test_a_slow_step_is_waited_for_when_nothing_else_is_due() -> None:
    """Whatever the patience of the test."""
    async with TestEngine(patience_seconds=0.001) as engine:
        assert await (await engine.start(slowly)).result() == "slow"


async def test_a_step_that_never_ends_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the end."""
    monkeypatch.setattr("outlive.testing.skipper.HANGING_SECONDS_MAX", 0.02)
    async with TestEngine(patience_seconds=0.001) as engine:
        run = await engine.start(stuck)

        with pytest.raises(StandstillError, match="a step does not end"):
            await run.result()


async def test_a_timer_that_is_not_waited_for_moves_no_time() -> None:
    """The run has ended; its alarm went with it."""
    async with TestEngine(patience_seconds=0.3) as engine:
        await (await engine.start(race, False)).result()

        with pytest.raises(StandstillError):
            await (await engine.start(refund, "o-1")).result()

        assert engine.clock.now() == EPOCH


async def test_a_step_sees_the_time_of_its_engine() -> None:
    """A step sees the time of its TestEngine, on the event loop and on a thread."""
    async with TestEngine() as engine:
        await engine.skip(days=400)

        assert set(await (await engine.start(clocks)).result()) == {engine.now()}


async def test_time_stands_still_while_nothing_waits() -> None:
    """A run goes as far as it can without time, and no further."""
    async with TestEngine() as engine:
        run = await engine.start(tick)
        await engine.settle()

        assert engine.clock.now() == EPOCH
        assert await run.status() == "waiting"


async def test_skip_lets_everything_happen_that_is_due_in_it() -> None:
    """A timer every minute, for an hour."""
    async with TestEngine() as engine:
        began = engine.now()
        run = await engine.start(tick)

        await engine.skip(timedelta(minutes=30), minutes=30, seconds=1)

        fired = [event for event in await journal_of(run) if type(event).__name__ == "TimerFired"]
        assert len(fired) == 60
        assert engine.now() - began == timedelta(hours=1, seconds=1)


async def test_the_timeout_of_a_result_is_in_the_engines_time() -> None:
    """A result that comes in a day is not there after an hour."""
    async with TestEngine() as engine:
        run = await engine.start(nap, 1)

        with pytest.raises(ResultTimeoutError):
            await run.result(timeout=1e-9)
        with pytest.raises(ResultTimeoutError):
            await run.result(timeout=3600)

        assert engine.clock.now() == EPOCH + 3600 * 1_000_000
        assert await run.result(timeout=24 * 3600)


async def test_a_run_that_nothing_can_move_is_reported() -> None:
    """It waits for a signal that is never sent."""
    async with TestEngine(patience_seconds=0.02) as engine:
        run = await engine.start(refund, "o-1")

        with pytest.raises(StandstillError, match="signal 'paid'"):
            await run.result()


async def test_a_run_that_ticks_for_ever_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time is not skipped without end."""
    monkeypatch.setattr("outlive.testing.skipper.SKIPS_MAX", 50)
    async with TestEngine() as engine:
        run = await engine.start(tick)

        with pytest.raises(StandstillError, match="skipped 50 times"):
            await run.result()
        with pytest.raises(StandstillError, match="skipped 50 times"):
            await engine.skip(days=1)


async def test_a_signal_sent_while_others_wait_comes_in_time() -> None:
    """A verb under way holds the clock."""
    async with TestEngine() as engine:
        run = await engine.start(refund, "o-1")

        async def approve() -> None:
            await engine.signal(run.id, "paid", 1)
            await engine.signal(run.id, "approved", "yes")

        result, _ = await asyncio.gather(run.result(), approve())

        assert result == "approved"


async def test_detached_runs_are_skipped_to() -> None:
    """Another tree wakes up, ends, and tells its starter."""
    async with TestEngine() as engine:
        assert await (await engine.start(parent)).result()


async def test_two_engines_tell_the_same_story() -> None:
    """Ids, nonces, instants: all the same."""
    stories = []
    for _ in range(2):
        calls.clear()
        async with TestEngine() as engine:
            run = await engine.start(retrying)
            await run.result()
            stories.append((run.id, msgspec.json.encode(await journal_of(run))))

    assert stories[0] == stories[1]


async def test_a_run_on_a_file_goes_on_in_the_next_engine(tmp_path: Path) -> None:
    """A run whose time was skipped on a file goes on in another TestEngine."""
    async with TestEngine(f"sqlite:{tmp_path / 'runs.db'}") as engine:
        run = await engine.start(nap, 3)
        await engine.skip(days=1, hours=1)
        assert await run.status() == "waiting"
    async with TestEngine(f"sqlite:{tmp_path / 'runs.db'}") as engine:
        assert await engine.get(run.id).result()


async def test_engines_with_one_clock_wait_for_each_other(tmp_path: Path) -> None:
    """Time does not skip for one while a step runs in the other."""
    url = f"sqlite:{tmp_path / 'runs.db'}"
    async with TestEngine(url) as one, TestEngine(url, clock=one.clock) as other:
        began = one.now()
        await other.start(race, False, id="r")
        assert await one.get("r").result() == "slow"
        assert one.now() == began


def test_pytest_does_not_take_it_for_a_test() -> None:
    """Its name begins like one."""
    assert TestEngine.__test__ is False


@outlive.workflow(name="skip.asking")
async def asking(name: str) -> str:
    said: str = await outlive.wait_for_signal(name)
    return said


async def test_time_skips_for_who_looks_at_a_batch() -> None:
    """A timer of an item is skipped to, and items that cannot end are reported as a run is."""
    async with TestEngine(patience_seconds=0.05) as engine:
        began = engine.now()
        batch = await engine.start_batch(nap, [2, 1])
        assert [item.index async for item in batch.items()] == [1, 0]
        assert engine.now() - began == timedelta(days=2)

        stuck = await engine.start_batch(asking, ["never"])
        with pytest.raises(StandstillError, match="nothing moves"):
            [item async for item in stuck.items()]


async def test_a_start_that_death_overtakes_fails_and_begins_nothing() -> None:
    """The engine dies between the call and the moment at which the run would be begun."""
    loop, surprises = asyncio.get_running_loop(), []
    loop.set_exception_handler(lambda _, context: surprises.append(context))
    try:
        engine = TestEngine()
        async with engine:
            starting = asyncio.create_task(engine.start(asking, "go", id="run-1"))
            await asyncio.sleep(0)
            engine.abandon()
            with pytest.raises(EngineClosedError):
                await starting
    finally:
        loop.set_exception_handler(None)

    assert not surprises
