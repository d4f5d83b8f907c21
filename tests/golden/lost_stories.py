"""A workflow whose worker was lost, with a golden history. Never change it: write another beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import outlive
from outlive.testing import SkipClock, TestEngine
from tests.engine.inside import crash

begun = asyncio.Event()


@outlive.step(name="golden.weigh")
async def weigh(part: str) -> int:
    """Never fails."""
    return len(part)


@outlive.step(name="golden.lift")
async def lift(kilos: int) -> str:
    """Is under way when its first worker dies."""
    if not begun.is_set():
        begun.set()
        await asyncio.Event().wait()
    return f"{kilos} kg are up"


@outlive.workflow(name="golden.crane")
async def crane(part: str) -> str:
    """Weighs, lifts, and weighs once more."""
    lifted = await lift(await weigh(part))
    await weigh(lifted)
    return lifted


async def tell_lost(url: str) -> str:
    """Lose the worker, let ten minutes pass, and go on with another."""
    clock = SkipClock()
    begun.clear()
    first = TestEngine(url, clock=clock)
    await first.__aenter__()
    await first.start(crane, "girder", id="golden-crane")
    await begun.wait()
    await first.skip(seconds=5)
    await crash(first)
    async with TestEngine(url, clock=clock, worker=False) as client:
        await client.skip(seconds=600)
    async with TestEngine(url, clock=clock) as second:
        await second.get("golden-crane").result()
        return await second.export("golden-crane")


LOST_STORIES: dict[str, Callable[[str], Awaitable[str]]] = {"lost": tell_lost}
"""The file of each story is `tests/golden/<name>.jsonl`."""
