"""A workflow that waited for a worker, with a golden history. Never change it: write another beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import outlive
from outlive.errors import RunFailedError
from outlive.testing import SkipClock, TestEngine

is_repaired = False


@outlive.step(name="golden.measure")
async def measure(part: str) -> str:
    """Fails until it is repaired."""
    if not is_repaired:
        raise ValueError(f"no rule for {part}")
    return f"measured {part}"


@outlive.workflow(name="golden.tailor")
async def tailor(part: str) -> str:
    """Sleeps, and asks a person, beside a step that fails."""
    asked = asyncio.ensure_future(outlive.wait_for_approval("cut", assignees=["ann"], deadline=7200))
    nap = asyncio.ensure_future(asyncio.sleep(1800))
    measured = await measure(part)
    await nap
    return f"{measured}, {(await asked).by}"


async def tell_rest(url: str) -> str:
    """Stand in line, fail, be retried, stand in line again, and ask again."""
    global is_repaired  # noqa: PLW0603 (a step has no other way to know)
    is_repaired, clock = False, SkipClock()
    async with TestEngine(url, clock=clock, worker=False) as client:
        await client.start(tailor, "sleeve", id="golden-tailor", timeout=3600, begin_within=7200)
        await client.skip(seconds=5000)
    async with TestEngine(url, clock=clock) as engine:
        with suppress(RunFailedError):
            await engine.get("golden-tailor").result()
    is_repaired = True
    async with TestEngine(url, clock=clock, worker=False) as client:
        await client.skip(seconds=5000)
        await client.retry("golden-tailor", reason="the rule is back")
        await client.skip(seconds=5000)
    async with TestEngine(url, clock=clock) as engine:
        await engine.approvals.approve("golden-tailor", "cut", by="ann")
        await engine.get("golden-tailor").result()
        return await engine.export("golden-tailor")


REST_STORIES: dict[str, Callable[[str], Awaitable[str]]] = {"rest": tell_rest}
"""The file of each story is `tests/golden/<name>.jsonl`."""
