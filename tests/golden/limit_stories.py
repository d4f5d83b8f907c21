"""A workflow with a rate limit whose history is golden. Never change it: write another beside it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import outlive
from outlive.testing import TestEngine


@outlive.step(name="golden.ring", limit=outlive.limits.RateLimit("golden.bell", outlive.limits.FixedWindow(1, 3600)))
async def ring(times: int) -> int:
    """A bell that may be rung once in an hour."""
    return times


@outlive.workflow(name="golden.hours")
async def hours(until: int) -> int:
    """Rings every hour."""
    return sum([await ring(hour) for hour in range(1, until + 1)])


async def tell_hours(url: str) -> str:
    """One o'clock, two o'clock."""
    async with TestEngine(url) as engine:
        run = await engine.start(hours, 2, id="golden-hours")
        await run.result()
        return await engine.export(run.id)


LIMIT_STORIES: dict[str, Callable[[str], Awaitable[str]]] = {"hours": tell_hours}
