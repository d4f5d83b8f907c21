"""The lanes of steps: threads are used again, and a coroutine runs in its own context to the end."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Generator

from outlive._runtime.clock import SystemClock
from outlive._runtime.lane import in_context
from outlive._runtime.threads import ThreadLane

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


def test_a_coroutine_that_is_closed_cleans_up_in_its_own_context() -> None:
    """What it awaited is gone, and what it set is still there."""
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
