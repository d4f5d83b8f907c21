"""The lanes of steps: threads are used again, and a coroutine runs in its own context to the end."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Generator
from contextlib import suppress

import pytest

import outlive
from outlive._kernel.runtime.clock import SystemClock
from outlive._kernel.runtime.steps.context import in_context
from outlive._kernel.runtime.steps.threads import ThreadLane
from tests.engine.support import in_time

PLACE = contextvars.ContextVar("PLACE", default="outside")


async def test_a_thread_that_is_free_is_used_again() -> None:
    """Another one is made only for a call that would have to wait, and a call that has ended counts no longer."""
    lane = ThreadLane(SystemClock(), threads_max=2)
    first = await lane.run(threading.current_thread)
    assert lane.busy == 0

    assert await lane.run(threading.current_thread) is first

    together = threading.Barrier(2)
    await asyncio.gather(lane.run(together.wait), lane.run(together.wait))
    lane.close()


async def test_no_more_threads_than_the_limit_and_none_when_the_lane_is_closed() -> None:
    """Calls beyond the limit wait in order; one that is cancelled while it waits is not made."""
    lane = ThreadLane(SystemClock(), threads_max=1)
    may_go, calls = threading.Event(), list[str]()

    def first() -> threading.Thread:
        assert may_go.wait(20)
        calls.append("first")
        return threading.current_thread()

    running = asyncio.ensure_future(lane.run(first))
    waiting = [asyncio.ensure_future(lane.run(lambda name=name: calls.append(name))) for name in ("second", "third")]  # type: ignore[misc]
    await asyncio.sleep(0)
    assert lane.busy == 3
    waiting[0].cancel()
    may_go.set()
    thread = await running
    await waiting[1]
    assert ["first", "third"] == calls
    assert lane.busy == 0
    lane.close()
    await asyncio.to_thread(thread.join, 20)
    assert not thread.is_alive()


async def test_exception_of_a_call_comes_back_and_the_thread_lives_on() -> None:
    """The caller gets the exception of its call, even StopIteration and SystemExit, and the thread makes the next
    call."""
    lane = ThreadLane(SystemClock(), threads_max=1)

    def stop() -> None:
        raise StopIteration(7)

    def leave() -> None:
        raise SystemExit(3)

    thread = await lane.run(threading.current_thread)
    with pytest.raises(RuntimeError, match=r"StopIteration\(7\)"):
        await lane.run(stop)
    with pytest.raises(SystemExit):
        await lane.run(leave)
    assert await lane.run(threading.current_thread) is thread
    lane.close()


def test_a_coroutine_that_is_closed_cleans_up_in_its_own_context() -> None:
    """The clean-up of a closed coroutine still sees the context variable that the coroutine had set."""
    cleaned: list[str] = []

    class Forever:
        def __await__(self) -> Generator[None, None, None]:
            yield

    async def work() -> None:
        PLACE.set("inside")
        try:
            await Forever()
        finally:
            cleaned.append(PLACE.get())

    driven = in_context(work(), contextvars.copy_context())
    driven.send(None)
    driven.close()

    assert cleaned == ["inside"]


BEGUN: dict[str, asyncio.Event] = {}


@outlive.step
async def lane_stubborn() -> None:
    """Waits until it is cancelled, and returns all the same."""
    BEGUN["step"].set()
    with suppress(asyncio.CancelledError):
        await asyncio.Event().wait()


@outlive.step
async def lane_cancels() -> int:
    """How many cancels its task knows of."""
    task = asyncio.current_task()
    assert task is not None
    return task.cancelling()


@outlive.workflow
async def lane_of_two() -> int:
    """Gives up a step while another one is in line behind it."""
    first, second = asyncio.ensure_future(lane_stubborn()), asyncio.ensure_future(lane_cancels())
    await outlive.wait_for_signal("enough")
    first.cancel()
    return await second


async def test_a_step_behind_a_cancelled_one_has_a_task_without_a_cancel() -> None:
    """A cancel that its task knew of would end its own `asyncio.timeout`."""
    BEGUN["step"] = asyncio.Event()
    async with outlive.Engine("memory:", limits=outlive.limits.Limits(steps_running_max=1)) as engine:
        run = await engine.start(lane_of_two)
        await in_time(BEGUN["step"].wait())
        await run.signal("enough")

        assert await in_time(run.result()) == 0
