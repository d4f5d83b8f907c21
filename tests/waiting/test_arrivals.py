"""`run.until` and `run.published(key)`: a program waits for a status, or for what a run shows of itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

import outlive
from outlive.errors import ResultTimeoutError, RunFinishedError
from outlive.testing import TestEngine
from tests.engine.support import in_time

pytestmark = pytest.mark.any_store


@outlive.workflow
async def packed(name: str) -> str:
    """Shows a stage before and after it was paid."""
    outlive.publish(stage="reserved")
    await outlive.wait_for_signal("paid")
    outlive.publish(progress=1.0)
    await asyncio.sleep(3_600)
    return name


@pytest.fixture
async def engine() -> AsyncIterator[outlive.Engine]:
    """An engine in real time."""
    async with outlive.Engine("memory:") as engine:
        yield engine


async def test_a_program_waits_until_a_run_waits(engine: outlive.Engine) -> None:
    """It gets the run as it is then."""
    handle = await engine.start(packed, "a", id="arrival-1")

    run = await handle.until("waiting", timeout="20s")

    assert (run.status, [wait.name for wait in run.waits]) == ("waiting", ["paid"])
    await handle.cancel()
    assert (await in_time(handle.until("cancelled"))).has_ended


async def test_a_status_that_cannot_come_any_more_is_an_error(engine: outlive.Engine) -> None:
    """The run has ended otherwise; a wait for what can still come times out."""
    handle = await engine.start(packed, "a")
    with pytest.raises(ResultTimeoutError, match=r"has not come to succeeded within 0.05 s .*waits for signal 'paid'"):
        await handle.until("succeeded", timeout=0.05)
    await handle.cancel()

    with pytest.raises(RunFinishedError, match=r"\(cancelled\) and will not be succeeded any more"):
        await in_time(handle.until("succeeded"))


async def test_a_program_waits_for_one_field_that_a_run_publishes(engine: outlive.Engine) -> None:
    """The field that is there at once is given at once."""
    handle = await engine.start(packed, "a")
    assert await in_time(handle.published("stage")) == "reserved"
    with pytest.raises(ResultTimeoutError, match="has not published 'progress' within"):
        await handle.published("progress", timeout=0.05)

    waiting = asyncio.ensure_future(handle.published("progress"))
    await handle.signal("paid")

    assert await in_time(waiting) == 1.0
    await handle.cancel()
    with pytest.raises(RunFinishedError, match="has not published 'weight'"):
        await in_time(handle.published("weight"))


async def test_a_test_sees_a_run_before_time_skips() -> None:
    """It waits for an hour, and the wait for that spends nothing of it."""
    async with TestEngine() as engine:
        handle = await engine.start(packed, "a")
        await handle.until("waiting")
        await handle.signal("paid")
        before = engine.now()

        assert (await handle.until("waiting")).waits[0].kind == "timer"
        assert engine.now() == before
        assert await handle.result() == "a"
