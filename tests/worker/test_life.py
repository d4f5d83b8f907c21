"""The life of an engine: it starts cleanly, stops cleanly, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import pytest

import outlive
from outlive.errors import ConfigurationError, EngineClosedError
from outlive.errors.store import NotADatabaseError
from outlive.events import RunClaimed, RunReleased
from tests.engine.faults import FaultyStore, faulty
from tests.engine.inside import clock_of, fence, store_of
from tests.engine.support import (
    PATIENCE_SECONDS,
    Place,
    events_of,
    hold,
    in_time,
    note,
    stage,
    until,
    until_calls,
    waits,
)


@outlive.workflow
async def lively(name: str) -> str:
    before = await note(f"{name} before")
    await hold(name)
    return f"{before} {await note(f'{name} after')}"


@outlive.workflow
async def lively_wait() -> str:
    return await outlive.wait_for_signal("go", str)


@outlive.workflow
async def lively_mix(name: str) -> str:
    await note(name)
    await asyncio.sleep(0.001)
    return await on_thread(name)


@outlive.step
def on_thread(name: str) -> str:
    return name


@outlive.step
def on_stuck_thread() -> None:
    stage.gate("thread").pass_on_thread()


@outlive.workflow
async def lively_thread() -> None:
    await on_stuck_thread()


@outlive.step
async def deaf() -> str:
    while True:
        try:
            await stage.gate("deaf").pass_through()
        except asyncio.CancelledError:
            stage.call("deaf")
        else:
            return "heard"


@outlive.workflow
async def lively_deaf() -> str:
    return await deaf()


async def test_running_steps_may_finish_within_the_grace(place: Place) -> None:
    """A stopping engine keeps the step that ends within the grace, and leaves the next step to another engine.
    [TS-R24]"""
    engine = await place.engine(grace_seconds=5).__aenter__()
    await engine.start(lively, "a", id="run-1")
    await stage.gate("a").reached()
    stopping = asyncio.create_task(engine.__aexit__(None, None, None))
    await asyncio.sleep(0.01)
    stage.gate("a").open()
    await in_time(stopping)
    assert ["a before", "a"] == stage.calls

    async with place.engine() as second:
        assert "a before a after" == await in_time(second.get("run-1").result())
    assert ["a before", "a", "a after"] == stage.calls


async def test_steps_that_take_longer_are_cancelled(place: Place) -> None:
    """The engine does not wait for them, and the next engine goes on at once: nothing was interrupted."""
    engine = await place.engine(grace_seconds=0).__aenter__()
    await engine.start(lively, "a", id="run-1")
    await stage.gate("a").reached()
    await in_time(engine.__aexit__(None, None, None))
    assert 1 == stage.count("a cancelled")

    async with place.engine() as second:
        run = second.get("run-1")
        await stage.gate("a").reached()
        stage.gate("a").open()
        assert "a before a after" == await in_time(run.result())
        assert 1 == len(await events_of(run, RunReleased))
        assert [False] == [claim.interrupted for claim in await events_of(run, RunClaimed)]


@pytest.mark.parametrize("workflow", [lively_thread, lively_deaf])
async def test_a_step_that_cannot_be_stopped_does_not_keep_the_engine(
    place: Place, workflow: outlive.types.Workflow[[], object]
) -> None:
    """A blocked thread, or a step that ignores its cancellation, is left behind when the grace is over."""
    engine = await place.engine(grace_seconds=0.02).__aenter__()
    run = await engine.start(workflow, id="run-1")
    await stage.gate("thread" if workflow is lively_thread else "deaf").reached()
    began = time.monotonic()
    await in_time(engine.__aexit__(None, None, None))

    assert time.monotonic() - began < PATIENCE_SECONDS / 2, "the thread and the step would go on for ever"
    async with place.engine(worker=False) as client:
        assert await client.get(run.id).status() == "pending"


async def test_another_engine_goes_on_with_what_a_stopping_one_releases(place: Place) -> None:
    """A hand-over takes no lease time. [TS-R27]"""
    async with place.engine(worker=False) as client:
        first = await place.engine(grace_seconds=0).__aenter__()
        runs = [await first.start(lively, f"{number}", id=f"{number}") for number in range(5)]
        for number in range(5):
            await stage.gate(f"{number}").reached()
        async with place.engine():
            await first.__aexit__(None, None, None)
            for number in range(5):
                stage.gate(f"{number}").open()
            results = [await in_time(client.get(run.id).result()) for run in runs]
    assert [f"{number} before {number} after" for number in range(5)] == results


async def test_a_stopped_engine_says_so(place: Place) -> None:
    """Every verb, and every handle that it gave out, tells what to do."""
    engine = place.engine()
    with pytest.raises(EngineClosedError, match="async with"):
        await engine.start(lively_wait)
    async with engine:
        run = await engine.start(lively_wait)
        await waits(run)
        waiting = asyncio.create_task(run.result())
        await asyncio.sleep(0)

    with pytest.raises(EngineClosedError):
        await in_time(waiting)
    for verb in (run.status, run.why, run.history, run.result, run.cancel, run.resume):
        with pytest.raises(EngineClosedError):
            await in_time(verb())
    with pytest.raises(EngineClosedError):
        await run.signal("go", "x")
    with pytest.raises(EngineClosedError):
        engine.get(run.id)
    with pytest.raises(EngineClosedError):
        await engine.list()


@outlive.workflow(signals={"lively go": str})
async def lively_declared() -> str:
    return await outlive.wait_for_signal("lively go", str)


async def test_a_stopped_engine_says_so_to_whom_sends_a_declared_signal(place: Place) -> None:
    """Its type is looked up in the store, which is closed: that is not what the sender has to hear."""
    async with place.engine() as engine:
        run = await engine.start(lively_declared)
    with pytest.raises(EngineClosedError):
        await run.signal("lively go", "x")


async def test_an_engine_is_entered_once_at_a_time(place: Place) -> None:
    """Twice at once is refused; again after it has stopped is a new life."""
    engine = place.engine()
    async with engine:
        run = await engine.start(lively_wait, id="run-1")
        await waits(run)
        with pytest.raises(ConfigurationError, match="running already"):
            await engine.__aenter__()
        assert await run.status() == "waiting"
    async with engine:
        await engine.signal("run-1", "go", "again")
        assert "again" == await in_time(engine.get("run-1").result())


async def test_a_failed_entry_can_be_tried_again(tmp_path: Path) -> None:
    """An engine that could not be entered is closed and leaves nothing behind."""
    path = tmp_path / "a.db"
    path.write_text("not a database, " * 100)
    engine = outlive.Engine(f"sqlite:{path}")
    before = threading.active_count()
    with pytest.raises(NotADatabaseError):
        await engine.__aenter__()
    await threads_fall_to(before)
    path.unlink()

    async with engine:
        stage.gate("a").open()
        assert "a before a after" == await in_time((await engine.start(lively, "a")).result())


async def test_an_error_in_the_block_is_not_hidden(place: Place) -> None:
    """The engine stops, and the exception goes on."""

    async def fail() -> None:
        async with place.engine() as engine:
            await engine.start(lively, "a", id="run-1")
            await stage.gate("a").reached()
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await fail()
    async with place.engine(worker=False) as client:
        assert await client.get("run-1").status() == "pending"


async def test_twenty_lives_leave_nothing_behind(place: Place) -> None:
    """No task, no thread and no descriptor outlives its engine."""
    stage.gate("held").open()
    await live_once(place)
    before = inventory()
    for _ in range(20):
        await live_once(place)

    async def is_as_before() -> bool:
        return all(now <= then for now, then in zip(inventory(), before, strict=True))

    await until(is_as_before)


def inventory() -> tuple[int, int, int]:
    """How many threads, descriptors and tasks there are."""
    descriptors = list(Path("/proc/self/fd").iterdir())
    return threading.active_count(), len(descriptors), len(asyncio.all_tasks())


async def live_once(place: Place) -> None:
    """One life with a bit of everything."""
    async with place.engine() as engine:
        run = await engine.start(lively_mix, "a")
        await waits(await engine.start(lively_wait))
        assert "a" == await in_time(run.result())
        await engine.start(lively, "held")


async def threads_fall_to(count: int) -> None:
    """Return when no more threads than this are alive; they end a moment after they were stopped."""

    async def is_so() -> bool:
        return threading.active_count() <= count

    await until(is_so)


async def test_an_engine_without_references_is_collected() -> None:
    """Neither the engine nor its clock stays in memory after its life."""
    engine = outlive.Engine("memory:")
    async with engine:
        assert "a" == await in_time((await engine.start(lively_mix, "a")).result())
    traces: list[weakref.ref[Any]] = [weakref.ref(engine), weakref.ref(clock_of(engine)), weakref.ref(store_of(engine))]
    del engine

    async def are_gone() -> bool:
        gc.collect()
        return [None] * 3 == [trace() for trace in traces]

    await until(are_gone)


async def test_an_engine_may_stop_while_it_begins_a_new_session(place: Place) -> None:
    """Its lease is lost, its store is away, and it stops all the same, with its threads."""
    stores: list[FaultyStore] = []
    before = threading.active_count()
    engine = await place.engine(lease_seconds=2, wrap=faulty(stores)).__aenter__()
    await in_time((await engine.start(lively_mix, "a")).result())
    await engine.start(lively, "held", id="run-1")
    await stage.gate("held").reached()
    stores[0].is_down = True
    await until_calls("a", "held before", "held", "held cancelled")
    await in_time(engine.__aexit__(None, None, None))

    await threads_fall_to(before)
    stores[0].is_down = False


async def test_a_lease_lost_while_stopping_begins_no_new_session(place: Place) -> None:
    """The steps are cancelled, nothing is committed for a lease that may be gone, and the engine stops."""
    engine = await place.engine(grace_seconds=5).__aenter__()
    await engine.start(lively, "held", id="run-1")
    await stage.gate("held").reached()
    stopping = asyncio.create_task(engine.__aexit__(None, None, None))
    await asyncio.sleep(0.01)
    fence(engine, "another worker has ended this session")
    await in_time(stopping)

    assert 1 == stage.count("held cancelled")
    async with place.engine() as second:
        await stage.gate("held").reached()
        stage.gate("held").open()
        assert "held before held after" == await in_time(second.get("run-1").result())
