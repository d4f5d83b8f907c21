"""A golden story of queues: a run that waits for its turn, and gives its slot back while it waits. Never change it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import outlive
from outlive.testing import TestEngine


@outlive.workflow(name="golden.queued")
async def queued(left: int) -> str:
    """Waits, and goes on as the next generation."""
    await outlive.wait_for_signal("go")
    if left:
        outlive.continue_as_new(left - 1)
    return "done"


async def tell_queued(url: str) -> str:
    """It begins later, in a queue with priorities."""
    return await _tell(url, "golden-queued", 0)


async def tell_queued_generation(url: str) -> str:
    """The second one has the slot of the first."""
    return await _tell(url, "golden-queued-generation", 1)


async def _tell(url: str, run_id: str, left: int) -> str:
    line = outlive.Queue("golden", concurrency=1, priorities=True, hold="running")
    async with TestEngine(url) as engine:
        run = await engine.start(queued, left, id=run_id, queue=line, key="a", priority=2, delay=60)
        for _ in range(left + 1):
            await engine.settle()
            await run.signal("go")
        await run.result()
        return await engine.export(run_id)


async def tell_debounced(url: str) -> str:
    """Three starts are one run, and its journal begins with the last of them."""
    async with TestEngine(url) as engine:
        how = outlive.limits.Debounce(key="a", quiet=60)
        await engine.start(queued, 2, debounce=how)
        await engine.start(queued, 1, debounce=how)
        run = await engine.start(queued, 0, debounce=how)
        await engine.skip(seconds=61)
        await run.signal("go")
        await run.result()
        return await engine.export(run.id)


QUEUE_STORIES: dict[str, Callable[[str], Awaitable[str]]] = {
    "queued": tell_queued,
    "queued-generation": tell_queued_generation,
    "debounced": tell_debounced,
}
