"""The session of a worker: how it stops, how it is cut short, and what it does when it is lost meanwhile."""

from __future__ import annotations

import asyncio
import threading

import pytest

import outlive
from outlive import Retry
from outlive._kernel.runtime.session import sessions as stations
from outlive.events import AttemptFailed, RunReleased
from tests.engine.faults import FaultyStore, faulty, unavailable, unknown
from tests.engine.inside import keeper_of
from tests.engine.support import Place, SkippingClock, events_of, hold, in_time, note, stage, turns_of_the_loop, until

pytestmark = pytest.mark.parametrize("place", ["memory"], indirect=True)


@outlive.workflow
async def session_held(name: str) -> str:
    return await note(f"{await hold(name)} and on")


@outlive.step(retry=Retry(attempts=2, first=10, factor=1, jitter=0.4))
async def session_failing() -> str:
    if outlive.current_step().attempt == 1:
        raise ConnectionError("not yet")
    return "at last"


@outlive.workflow
async def session_retrying() -> str:
    return await session_failing()


THREADS_BEFORE: set[threading.Thread] = set()


@pytest.fixture(autouse=True)
def threads_before() -> None:
    """Note the threads of other tests: a step that hangs may have left its own behind."""
    THREADS_BEFORE.clear()
    THREADS_BEFORE.update(threading.enumerate())


async def until_no_threads() -> None:
    """Return when no thread of an engine of this test runs."""

    async def are_none() -> bool:
        threads = set(threading.enumerate()) - THREADS_BEFORE
        return not [thread.name for thread in threads if thread.name.startswith("outlive-")]

    await until(are_none)


async def live_sessions(place: Place) -> int:
    """How many sessions of workers the store takes for alive."""
    store = place.store()
    await store.open()
    sessions = sum(worker.is_live for worker in await store.list_workers())
    await store.close()
    return sessions


async def test_step_that_ends_within_the_grace_is_not_called_again(place: Place) -> None:
    """The engine waits for it, writes what it returned, begins nothing more, and lets go of the run."""
    engine = await place.engine(grace_seconds=20).__aenter__()
    run = await engine.start(session_held, "a", id="run-1")
    await stage.gate("a").reached()
    stopping = asyncio.ensure_future(engine.__aexit__(None, None, None))
    await asyncio.sleep(0.03)
    assert not stopping.done()
    stage.gate("a").open()
    await in_time(stopping)
    assert ["a"] == stage.calls
    assert 0 == await live_sessions(place)
    async with place.engine() as second:
        assert "a and on" == await in_time(second.get(run.id).result())
        assert 1 == len(await events_of(second.get(run.id), RunReleased))
    assert ["a", "a and on"] == stage.calls
    await until_no_threads()


async def test_step_that_outlasts_the_grace_is_cancelled(place: Place) -> None:
    """A step that outlasts the grace is cancelled and its run released, so that another engine calls it again at
    once."""
    async with place.engine(grace_seconds=0.03) as engine:
        await engine.start(session_held, "a", id="run-1")
        await stage.gate("a").reached()
    assert ["a", "a cancelled"] == stage.calls
    assert 0 == await live_sessions(place)
    stage.gate("a").open()
    async with place.engine() as second:
        assert "a and on" == await in_time(second.get("run-1").result())


async def test_stop_that_is_cut_short_ends_the_session_all_the_same(place: Place) -> None:
    """A cancelled engine has no time to wait for a step; nothing of the engine goes on, and others take its runs."""
    engine = await place.engine(grace_seconds=1_000).__aenter__()
    await engine.start(session_held, "a", id="run-1")
    await stage.gate("a").reached()
    stopping = asyncio.ensure_future(engine.__aexit__(None, None, None))
    await asyncio.sleep(0.01)
    stopping.cancel()
    await in_time(asyncio.wait([stopping]))
    assert stopping.cancelled()
    await turns_of_the_loop(5)
    assert ["a", "a cancelled"] == stage.calls
    assert 0 == await live_sessions(place)
    await until_no_threads()
    stage.gate("a").open()
    async with place.engine() as second:
        assert "a and on" == await in_time(second.get("run-1").result())


async def test_lease_that_is_lost_while_the_engine_stops_begins_no_session(place: Place) -> None:
    """An engine that loses its lease while it stops discards what it held and begins no new session."""
    stores: list[FaultyStore] = []
    engine = await place.engine(wrap=faulty(stores), grace_seconds=0.05).__aenter__()
    await engine.start(session_held, "a", id="run-1")
    await stage.gate("a").reached()
    stopping = asyncio.ensure_future(engine.__aexit__(None, None, None))
    await asyncio.sleep(0.01)
    keeper_of(engine).end_session("a test says so")
    await in_time(stopping)
    assert 1 == stores[0].calls["register_worker"]
    assert ["a", "a cancelled"] == stage.calls
    assert 0 == await live_sessions(place)
    await until_no_threads()


@pytest.mark.parametrize(("fault", "ended"), [("away", 1), ("unknown", 2)])
async def test_session_that_may_have_begun_is_ended(
    place: Place, monkeypatch: pytest.MonkeyPatch, fault: str, ended: int
) -> None:
    """The store did not answer: its lease would keep the runs from everybody. One that did not begin needs no end."""
    monkeypatch.setattr(stations, "SESSION_RETRY_SECONDS", 0.001)
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores)) as engine:
        run = await engine.start(session_held, "a")
        await stage.gate("a").reached()
        if fault == "away":
            stores[0].before["register_worker"].append(unavailable())
        else:
            stores[0].after["register_worker"].append(unknown())
        keeper_of(engine).end_session("a test says so")
        keeper_of(engine).end_session("and once more")
        await stage.gate("a").reached()
        assert 3 == stores[0].calls["register_worker"]
        assert ended == stores[0].calls["end_session"]
        assert 1 == await live_sessions(place)
        stage.gate("a").open()
        assert "a and on" == await in_time(run.result())
    assert 0 == await live_sessions(place)
    await until_no_threads()


async def test_session_that_cannot_be_ended_is_said(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """The engine stops all the same; the lease will run out."""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores)):
        stores[0].before["end_session"].append(unavailable())
    assert "the session could not be ended" in caplog.text
    assert "its lease will run out" in caplog.text
    assert 1 == await live_sessions(place)


class ChanceClock(SkippingClock):
    """Chance as the test wants it."""

    chance = 0.5

    def random(self) -> float:
        """As it is set."""
        return self.chance


@pytest.mark.parametrize(("chance", "seconds"), [(0.0, 6.0), (0.5, 10.0), (0.75, 12.0)])
async def test_back_off_is_spread_around_what_the_policy_says(place: Place, chance: float, seconds: float) -> None:
    """By its jitter, to either side."""
    place.clock = ChanceClock()
    place.clock.chance = chance
    async with place.engine() as engine:
        run = await engine.start(session_retrying)

        async def has_failed() -> bool:
            return bool(await events_of(run, AttemptFailed))

        await until(has_failed)
        (failed,) = await events_of(run, AttemptFailed)
        assert round(seconds * 1_000_000) == failed.retry_at - failed.at
        assert 1 == engine.counters.steps_retried
        await run.cancel()
