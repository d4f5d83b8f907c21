"""A workflow that gave a step up, which ended all the same. Never change it: write another beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import outlive
from outlive.testing import TestEngine


@outlive.step(name="golden.slow_letter", timeout=5)
async def slow_letter(to: str) -> str:
    """Is too late, and arrives."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return f"{to} has it"
    return ""


@outlive.step(name="golden.call_instead")
async def call_instead(to: str) -> str:
    """Takes long enough for the letter to arrive."""
    await asyncio.sleep(0.05)
    return f"{to} was called instead"


@outlive.workflow(name="golden.post")
async def post(to: str) -> str:
    """Goes on without the letter."""
    try:
        return await slow_letter(to)
    except TimeoutError:
        return await call_instead(to)


async def tell_late(url: str) -> str:
    """A letter that comes too late."""
    async with TestEngine(url) as engine:
        run = await engine.start(post, "ann", id="golden-post")
        await run.result()
        return await engine.export(run.id)


LATE_STORIES: dict[str, Callable[[str], Awaitable[str]]] = {"late": tell_late}
