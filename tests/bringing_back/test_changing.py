"""Changing an open run from outside: its tags and its timeout, and where and when it begins before that."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

import outlive
from outlive._features.fsck.checker import check_store
from outlive.errors import InvalidArgumentError, RunFinishedError, RunTimedOutError
from outlive.errors.run import RunNotChangeableError
from outlive.events import RunChanged, RunCreated
from outlive.testing import TestEngine
from tests.engine.inside import journal_of, store_of
from tests.engine.support import reaches, until, waits

HOLD: dict[str, asyncio.Event] = {}


@outlive.step
async def hold_to_change() -> None:
    await HOLD["end"].wait()


@outlive.workflow
async def changed_from_outside(work: str = "") -> dict[str, str]:
    """Returns its tags after the signal."""
    outlive.set_tags(stage="packing")
    if work:
        await hold_to_change()
    await outlive.wait_for_signal("go")
    outlive.set_tags(stage="sent")
    return dict(outlive.current_run().tags)


async def tags_of(engine: Any, run_id: str) -> dict[str, str]:
    """The tags in the row."""
    tags: dict[str, str] = (await engine.info(run_id)).tags
    return tags


async def is_sound(engine: Any) -> bool:
    """Whether the rows say what the journals say."""
    return not await check_store(store_of(engine))


@pytest.mark.every_store
async def test_tags_of_a_waiting_run_are_changed_and_its_code_sees_them(engine: Any) -> None:
    """A list finds it by the new tags and no longer by the old ones; what the code sets later counts as well."""
    run = await engine.start(changed_from_outside, id="run-1", tags={"tenant": "a", "old": "1"})
    await waits(run)

    await engine.change("run-1", tags={"held": "yes", "old": None}, reason="a customer called")

    assert await tags_of(engine, "run-1") == {"tenant": "a", "stage": "packing", "held": "yes"}
    assert [it.id for it in await engine.list(tags={"held": "yes", "tenant": "a"})] == ["run-1"]
    assert await engine.list(tags={"old": "1"}) == []
    await run.signal("go")
    assert await run.result() == {"tenant": "a", "stage": "sent", "held": "yes"}
    [changed] = [event for event in await journal_of(run) if isinstance(event, RunChanged)]
    assert (changed.reason, changed.moves_deadline) == ("a customer called", False)
    said = [event.words for event in await run.history() if event.type == "RunChanged"]
    assert said == ["a person changed the run: its tags are now tenant=a, stage=packing, held=yes (a customer called)"]
    assert await is_sound(engine)


@pytest.mark.every_store
async def test_a_run_at_work_gets_the_change_as_a_message(engine: Any) -> None:
    """Its owner alone writes its journal, and applies the change between two events."""
    HOLD["end"] = asyncio.Event()
    run = await engine.start(changed_from_outside, "work", id="run-1")
    await reaches(run, "running")

    await run.change(tags={"held": "yes"}, timeout="1h")

    async def is_changed() -> bool:
        return await tags_of(engine, "run-1") == {"stage": "packing", "held": "yes"}

    await until(is_changed)
    info = await run.info()
    assert timedelta(minutes=59) < info.timeout_at - info.created_at < timedelta(minutes=61)
    HOLD["end"].set()
    await run.signal("go")
    assert (await run.result())["held"] == "yes"
    assert await is_sound(engine)


@pytest.mark.every_store
async def test_a_run_that_no_worker_has_begun_gets_another_queue_start_and_timeout(engine: Any) -> None:
    """Its first event says so, and it runs as if it had been started like that."""
    run = await engine.start(changed_from_outside, id="run-1", delay="1d", queue="slow", key="a", tags={"t": "1"})

    await engine.change("run-1", queue="fast", key="b", delay="2d", timeout="3h", tags={"t": "2"})

    info = await run.info()
    assert (info.queue, info.queue_key, info.status, info.tags) == ("fast", "b", "pending", {"t": "2"})
    assert timedelta(days=2) <= info.wake_at - info.created_at < timedelta(days=2, minutes=1)
    assert info.timeout_at - info.wake_at == timedelta(hours=3)
    assert [it.id for it in await engine.list(queue="fast", tags={"t": "2"})] == ["run-1"]
    assert await engine.list(queue="slow") == [] == await engine.list(tags={"t": "1"})
    assert await is_sound(engine)

    await engine.change("run-1", delay=0)
    await run.signal("go")
    assert await run.result() == {"t": "2", "stage": "sent"}
    created = (await journal_of(run))[0]
    assert isinstance(created, RunCreated)
    assert (created.queue, created.queue_key, created.timeout) == ("fast", "b", 3 * 3600 * 1_000_000)
    assert await is_sound(engine)


@pytest.mark.every_store
async def test_a_run_in_line_leaves_a_paused_queue(engine: Any) -> None:
    """For another queue, or for none; the line that it has left serves the others."""
    await engine.queues.set("stopped", concurrency=1)
    await engine.queues.pause("stopped", reason="for the test")
    for run_id in ("stays", "moves", "leaves"):
        await engine.start(changed_from_outside, id=run_id, queue="stopped")
        await engine.signal(run_id, "go")

    await engine.change("moves", queue="open")
    await engine.change("leaves", queue="default")

    assert await engine.get("moves").result() == await engine.get("leaves").result() == {"stage": "sent"}
    assert [(await engine.info(it)).queue for it in ("stays", "moves", "leaves")] == ["stopped", "open", ""]
    await engine.queues.resume("stopped")
    assert await engine.get("stays").result() == {"stage": "sent"}
    assert await is_sound(engine)


async def test_a_waiting_run_ends_at_its_new_deadline_and_another_at_none() -> None:
    """A shorter timeout ends the run at its time; None takes the deadline away."""
    async with TestEngine() as engine:
        short = await engine.start(changed_from_outside, id="short", timeout="10d")
        none = await engine.start(changed_from_outside, id="none", timeout="1h")
        await engine.settle()
        await engine.change("short", timeout="2h")
        await engine.change("none", timeout=None)
        await engine.settle()
        assert "its timeout" in await short.why()
        assert (await none.info()).timeout_at is None

        with pytest.raises(RunTimedOutError):
            await short.result()
        info = await short.info()
        assert info.finished_at is not None
        assert timedelta(hours=2) <= info.finished_at - info.created_at < timedelta(hours=2, minutes=1)
        await none.signal("go")
        assert await none.result() == {"stage": "sent"}


async def test_a_parked_run_is_found_by_its_new_tags_at_once() -> None:
    """No worker has it, and none needs to."""
    async with TestEngine() as engine:
        run = await engine.start(changed_from_outside, id="run-1")
        await engine.settle()
        await engine.pause("run-1")
        await run.change(tags={"looked_at_by": "ann"})
        assert [it.id for it in await engine.list(tags={"looked_at_by": "ann"}, status="parked")] == ["run-1"]
        await engine.resume("run-1")
        await run.signal("go")
        assert await run.result() == {"stage": "sent", "looked_at_by": "ann"}


async def test_a_change_that_cannot_work_is_refused_in_one_sentence() -> None:
    """A run that has ended or begun, a run that is not there, and nothing to change."""
    async with TestEngine() as engine:
        run = await engine.start(changed_from_outside, id="run-1")
        await engine.settle()
        for place in ({"queue": "other"}, {"delay": 5}, {"priority": 3}, {"key": "a"}):
            with pytest.raises(RunNotChangeableError, match="it has begun, so its queue and its start are settled"):
                await run.change(**place)
        with pytest.raises(InvalidArgumentError, match="say what to change"):
            await run.change()
        with pytest.raises(ValueError, match="give text by name"):
            await run.change(tags=["a"])  # type: ignore[arg-type]
        await run.signal("go")
        await run.result()
        with pytest.raises(RunFinishedError):
            await run.change(tags={"a": "b"})
        with pytest.raises(outlive.errors.RunNotFoundError):
            await engine.change("unknown", tags={"a": "b"})


async def test_a_run_takes_its_slots_along_to_a_queue_that_has_as_many() -> None:
    """A smaller one refuses it: there it could never begin."""
    async with TestEngine() as engine:
        for name, slots in (("wide", 4), ("narrow", 2), ("wider", 5)):
            await engine.queues.set(name, concurrency=slots)
        run = await engine.start(changed_from_outside, id="run-1", delay="1d", queue="wide", slots=3)
        with pytest.raises(InvalidArgumentError, match="queue narrow has at most 2 for a run"):
            await run.change(queue="narrow")
        await run.change(queue="wider")
        info = await run.info()
        assert (info.queue, info.slots) == ("wider", 3)
        await run.change(queue="default", delay=0)
        await run.signal("go")
        assert await run.result() == {"stage": "sent"}
        assert await is_sound(engine)


async def test_a_run_that_waits_with_signals_of_the_run_before_it_gets_other_tags_only() -> None:
    """Its journal begins with more than one event, and no other first event can take the place of all."""
    async with TestEngine() as engine:
        before = await engine.start(changed_from_outside, id="run-1")
        await engine.settle()
        await before.signal("later")
        await engine.settle()
        await before.signal("go")
        await before.result()
        run = await engine.start(changed_from_outside, id="run-1", delay="1d", on_conflict="attach_open")
        for change in ({"queue": "other"}, {"delay": 5}, {"timeout": "1h"}):
            with pytest.raises(RunNotChangeableError, match="signals of the run before it and has not begun"):
                await run.change(**change)
        await run.change(tags={"held": "yes"})
        assert await tags_of(engine, "run-1") == {"held": "yes"}
        await run.signal("go")
        assert await run.result() == {"stage": "sent", "held": "yes"}
        assert await is_sound(engine)


async def test_a_change_survives_a_restart_and_a_fork_keeps_the_tags() -> None:
    """A replay feeds the change where it happened; a fork has a deadline of its own."""
    async with TestEngine() as engine:
        run = await engine.start(changed_from_outside, id="run-1")
        await engine.settle()
        await run.change(tags={"a": "b"}, timeout="1h")
        await engine.settle()
        fork = await engine.fork("run-1", id="fork-1")
        await engine.settle()
        assert (await fork.info()).timeout_at is None
        await fork.signal("go")
        assert await fork.result() == {"stage": "sent", "a": "b"}
