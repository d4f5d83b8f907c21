"""What has ended leaves nothing behind: a run that has ended, a session that was lost, an engine that has stopped."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import outlive
from outlive import Retry
from outlive._kernel.runtime.gate.ticket import Ticket
from outlive._kernel.runtime.session import sessions as stations
from outlive._kernel.runtime.tree.attempt import Attempt
from outlive._kernel.runtime.tree.live import LiveTree
from outlive.limits import Limits, RateLimit, TokenBucket
from tests.engine.faults import FaultyStore, faulty, unavailable
from tests.engine.inside import committer_of, keeper_of, sessions_of, worker_of
from tests.engine.support import Place, hold, in_time, note, parks, stage, until, waits

pytestmark = pytest.mark.parametrize("place", ["memory"], indirect=True)


@outlive.step(limit=RateLimit("left", TokenBucket(1, burst=1)))
async def left_limited() -> None: ...


@outlive.step
def left_on_thread() -> str:
    return threading.current_thread().name


@outlive.step(retry=Retry(attempts=5, first=0.5, jitter=0))
async def left_failing() -> None:
    raise ConnectionError("not now")


@outlive.workflow
async def left_plain(name: str) -> str:
    await left_on_thread()
    return await note(name)


@outlive.workflow
async def left_held(name: str) -> str:
    return await hold(name)


@outlive.workflow
async def left_timing() -> None:
    await asyncio.gather(asyncio.sleep(0.6), hold("timing"))


@outlive.workflow
async def left_limits() -> None:
    await asyncio.gather(left_limited(), left_limited(), left_limited())


@outlive.workflow
async def left_retrying() -> None:
    await left_failing()


@outlive.workflow
async def left_failed() -> None:
    await asyncio.gather(hold("failed"), left_fails())


@outlive.step(retry=None)
async def left_fails() -> None:
    raise ValueError("no")


@outlive.workflow
async def left_waiting() -> str:
    return await outlive.wait_for_signal("go", str)


@outlive.workflow
async def left_nonsense() -> Any:
    return object()


LEFT_BY_OTHERS: list[object] = []
"""The objects that were there before the test began. Tests of frameworks leave some: their modules keep exceptions."""


@pytest.fixture(autouse=True)
def _what_others_left() -> Iterator[None]:
    gc.collect()
    LEFT_BY_OTHERS[:] = [each for each in gc.get_objects() if type(each) in (LiveTree, Attempt, Ticket)]
    yield
    LEFT_BY_OTHERS.clear()


def in_memory(*kinds: type) -> Counter[str]:
    """How many objects of these kinds there are since the test began."""
    gc.collect()
    earlier = {id(each) for each in LEFT_BY_OTHERS}
    return Counter(type(each).__name__ for each in gc.get_objects() if type(each) in kinds and id(each) not in earlier)


async def until_none(*kinds: type) -> None:
    """Return when there are no objects of these kinds."""

    async def are_none() -> bool:
        return not in_memory(*kinds)

    await until(are_none)


async def test_run_that_has_ended_leaves_memory(place: Place) -> None:
    """However it has ended, and whatever it had running, waiting or lined up then."""
    async with place.engine() as engine:
        assert "a" == await in_time((await engine.start(left_plain, "a")).result())
        failed = await engine.start(left_failed)
        with pytest.raises(outlive.errors.RunFailedError):
            await in_time(failed.result())
        for workflow in (left_limits, left_retrying, left_timing, left_waiting):
            run = await engine.start(workflow)
            if workflow is left_timing:
                await stage.gate("timing").reached()
            if workflow is left_waiting:
                await waits(run)
            await run.cancel()
            with pytest.raises(outlive.errors.RunCancelledError):
                await in_time(run.result())
        await parks(await engine.start(left_nonsense))
        await until_none(LiveTree, Attempt, Ticket)
        assert 0 == engine.counters.conflicts
        assert "b" == await in_time((await engine.start(left_plain, "b")).result())


async def test_engine_that_has_stopped_leaves_memory(place: Place) -> None:
    """Whatever its runs were doing: no thread, no alarm and no task keeps anything of it."""
    before = set(threading.enumerate())  # A step of another test may hang on one of these.
    async with place.engine(grace_seconds=0) as engine:
        await in_time((await engine.start(left_plain, "a")).result())
        for workflow in (left_limits, left_retrying, left_timing, left_nonsense):
            await engine.start(workflow)
        await waits(await engine.start(left_waiting))
        await engine.start(left_held, "held")
        await stage.gate("held").reached()
        kept = [weakref.ref(each) for each in (sessions_of(engine), worker_of(engine), committer_of(engine))]
    stage.clear()
    del engine
    await until_none(LiveTree, Attempt, Ticket)

    async def are_gone() -> bool:
        gc.collect()
        return [None, None, None] == [each() for each in kept]

    await until(are_gone)  # The thread of the lease holds them for the moment in which it ends.

    async def is_quiet() -> bool:
        threads = set(threading.enumerate()) - before
        return not [thread.name for thread in threads if thread.name.startswith("outlive-step")]

    await until(is_quiet)


@pytest.mark.parametrize("fault", ["away", "bug"])
async def test_run_begun_between_two_sessions_is_run_by_the_next(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    """The lease is lost: nothing begins under the old one, a new session is tried until it begins, and all goes on."""
    monkeypatch.setattr(stations, "SESSION_RETRY_SECONDS", 0.001)
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores), poll_seconds=60) as engine:
        held = await engine.start(left_held, "held")
        await stage.gate("held").reached()
        station: Any = sessions_of(engine)
        old = weakref.ref(worker_of(engine))
        ended = stores[0].gates["end_session"] = asyncio.Event()
        stores[0].before["register_worker"].append(unavailable() if fault == "away" else RuntimeError("a bug"))
        keeper_of(engine).end_session("a test says so")
        await in_time(stores[0].waiting["end_session"].wait())
        assert not station.is_resting
        run = await engine.start(left_plain, "meanwhile")
        await asyncio.sleep(0.01)
        assert "meanwhile" not in stage.calls
        del stores[0].gates["end_session"]
        ended.set()
        assert "meanwhile" == await in_time(run.result())
        await stage.gate("held").reached()
        stage.gate("held").open()
        assert "held" == await in_time(held.result())
        assert 3 == stores[0].calls["register_worker"]
        assert (2, 1) == (stage.count("held"), stage.count("held cancelled"))

        async def is_gone() -> bool:
            gc.collect()
            return old() is None or fault == "bug"  # What the log has of a bug has the frames of it.

        await until(is_gone)
    assert 1 == caplog.text.count("a new session has begun; this worker claims again")
    assert (1 if fault == "bug" else 0) == caplog.text.count("a new session could not begin; it is tried again")


async def test_limits_of_what_is_kept_in_memory_hold(place: Place) -> None:
    """Runs that sleep beyond the limit leave memory, the oldest first; each of them goes on all the same."""
    async with place.engine(limits=Limits(runs_cached_max=2)) as engine:
        runs = [await engine.start(left_waiting) for _ in range(4)]
        for run in runs:
            await waits(run)

        async def are_evicted() -> bool:
            return 2 == engine.counters.runs_evicted

        await until(are_evicted)
        assert {"LiveTree": 2} == in_memory(LiveTree)
        for run in runs:
            await run.signal("go", "here")
        assert ["here"] * 4 == [await in_time(run.result()) for run in runs]
        assert 4 == engine.counters.runs_claimed
        assert 2 <= engine.counters.runs_replayed
        await until_none(LiveTree)
