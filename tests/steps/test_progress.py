"""Heartbeats: how far a step came is in the journal, and its next attempt gets it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import outlive
from outlive import Retry
from outlive.errors import PayloadTooLargeError, UnserialisableError
from outlive.events import StepProgressed, StepSucceeded
from outlive.limits import Limits
from outlive.types import RunHandle
from tests.engine.inside import crash, journal_of
from tests.engine.support import Place, events_of, in_time, note, stage, until

pytestmark = pytest.mark.any_store

AGAIN = Retry(attempts=2, first=0, jitter=0)


@outlive.step(retry=AGAIN)
async def copy_rows(rows: int) -> int:
    me = outlive.current_step()
    begun_at = me.last_progress or 0
    stage.call((me.attempt, begun_at))
    for row in range(begun_at, rows):
        me.heartbeat(row + 1)
        await stage.gate(f"row {row}").pass_through()
    return rows


@outlive.step(retry=AGAIN)
async def fail_half_way() -> Any:
    me = outlive.current_step()
    if me.attempt == 1:
        me.heartbeat({"page": 3, "seen": ("a", "b")})
        raise OSError("half way")
    return me.last_progress


@outlive.step(retry=AGAIN)
def fail_half_way_on_thread() -> Any:
    me = outlive.current_step()
    if me.attempt == 1:
        me.heartbeat({"page": 3, "seen": ("a", "b")})
        raise OSError("half way")
    return me.last_progress


@outlive.step
async def beat_often(times: int) -> str:
    for time in range(times):
        outlive.current_step().heartbeat(time)
    return "done"


@outlive.step
async def beat_without_news() -> None:
    outlive.current_step().heartbeat()


@outlive.step
async def beat_when_cancelled() -> None:
    try:
        await stage.gate("beat").pass_through()
    except asyncio.CancelledError:
        outlive.current_step().heartbeat("too late")
        raise


@outlive.step
async def beat_wrongly(what: str) -> str:
    me = outlive.current_step()
    try:
        me.heartbeat(object() if what == "object" else "x" * 2_000)
    except (UnserialisableError, PayloadTooLargeError) as error:
        return type(error).__name__
    return "accepted"


@outlive.workflow
async def progressing(rows: int) -> int:
    return await copy_rows(rows)


@outlive.workflow
async def progressing_half_way(on_thread: bool) -> Any:  # noqa: FBT001
    return await (fail_half_way_on_thread() if on_thread else fail_half_way())


@outlive.workflow
async def progressing_often(times: int) -> list[str]:
    return [await beat_often(times), await note("after")]


@outlive.workflow
async def progressing_without_news() -> None:
    await beat_without_news()


@outlive.workflow
async def progressing_too_late() -> str:
    try:
        async with asyncio.timeout(0.02):
            await beat_when_cancelled()
    except TimeoutError:
        return await note("gave up")
    return "went on"


@outlive.workflow
async def progressing_wrongly(what: str) -> list[str]:
    return [await beat_wrongly(what), await note("after")]


async def has_saved(run: RunHandle[Any], times: int) -> None:
    """Return when a run has saved its progress this many times."""

    async def is_so() -> bool:
        return len(await events_of(run, StepProgressed)) == times

    await until(is_so)


@pytest.mark.parametrize("on_thread", [False, True])
async def test_the_next_attempt_gets_how_far_the_last_one_came(engine: outlive.Engine, *, on_thread: bool) -> None:
    """Progress is any plain value, and comes back as it was."""
    run = await engine.start(progressing_half_way, on_thread)

    assert {"page": 3, "seen": ("a", "b")} == await in_time(run.result())


@pytest.mark.parametrize("is_killed", [False, True])
async def test_progress_survives_a_restart(place: Place, *, is_killed: bool) -> None:
    """An attempt on another engine goes on where the interrupted one saved last."""
    first = await place.engine(grace_seconds=0).__aenter__()
    run = await first.start(progressing, 3, id="run-1")
    stage.gate("row 0").open()
    await has_saved(run, 2)
    await (crash(first) if is_killed else first.__aexit__(None, None, None))

    async with place.engine() as second:
        stage.gate("row 2").open()
        assert 3 == await in_time(second.get("run-1").result())
    assert [(1, 0), (1, 2)] == stage.calls


async def test_heartbeats_in_quick_succession_cost_few_events(engine: outlive.Engine) -> None:
    """While one is being saved only the latest of the others is kept, and none of them outlives its step."""
    run = await engine.start(progressing_often, 1_000)

    assert ["done", "after"] == await in_time(run.result())
    events = await journal_of(run)
    succeeded = next(index for index, event in enumerate(events) if isinstance(event, StepSucceeded))
    saved = [index for index, event in enumerate(events) if isinstance(event, StepProgressed)]
    assert 1 <= len(saved) <= 2
    assert saved[-1] < succeeded


async def test_a_heartbeat_without_progress_saves_nothing(engine: outlive.Engine) -> None:
    """`heartbeat()` alone is a sign of life and no fact."""
    run = await engine.start(progressing_without_news)
    await in_time(run.result())

    assert [] == await events_of(run, StepProgressed)


async def test_a_cancelled_step_can_save_nothing_any_more(engine: outlive.Engine) -> None:
    """A heartbeat of a step that no workflow waits for neither reaches the journal nor hurts the run."""
    run = await engine.start(progressing_too_late)

    assert "gave up" == await in_time(run.result())
    assert [] == await events_of(run, StepProgressed)


@pytest.mark.parametrize(("what", "expected"), [("object", "UnserialisableError"), ("large", "PayloadTooLargeError")])
async def test_progress_that_cannot_be_stored_is_refused_in_the_step(place: Place, what: str, expected: str) -> None:
    """The step hears of it where it calls `heartbeat`, and the run is none the worse for it."""
    limits = Limits(payload_bytes_max=1_000, payload_inline_bytes_max=1_000)
    async with place.engine(limits=limits) as engine:
        run = await engine.start(progressing_wrongly, what)

        assert [expected, "after"] == await in_time(run.result())
