"""A workflow that was brought back after its end, with a golden history. Never change it: write another beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import outlive
from outlive import Retry
from outlive.errors import RunFailedError
from outlive.testing import TestEngine

is_repaired = False


@outlive.step(name="golden.weld", retry=Retry(attempts=2, first=1))
async def weld(part: str) -> str:
    """Fails until it is repaired."""
    if not is_repaired:
        raise ConnectionError(f"no current for {part}")
    return f"welded {part}"


@outlive.step(name="golden.paint")
async def paint(part: str) -> str:
    """Never fails."""
    return f"painted {part}"


@outlive.workflow(name="golden.wheel")
async def wheel(part: str) -> str:
    """A child that fails."""
    try:
        return await weld(part)
    finally:
        await paint("the floor")


@outlive.workflow(name="golden.car")
async def car() -> list[str]:
    """Paints one part while the child fails with another."""
    return list(await asyncio.gather(paint("door"), wheel("rim")))


async def tell_repair(url: str) -> str:
    """Fail, repair, go on."""
    global is_repaired  # noqa: PLW0603 (a step has no other way to know)
    is_repaired = False
    async with TestEngine(url) as engine:
        run = await engine.start(car, id="golden-car", timeout=3600)
        with suppress(RunFailedError):
            await run.result()
        is_repaired = True
        await engine.retry(run.id, reason="the current is back")
        await run.result()
        return await engine.export(run.id)


@outlive.step(name="golden.price")
async def price(part: str) -> int:
    """What a part costs."""
    return len(part)


@outlive.workflow(name="golden.offer")
async def offer(part: str) -> list[str]:
    """Depends on a price, and draws random numbers."""
    first = str(outlive.uuid4())
    cost = await price(part)
    await asyncio.sleep(60)
    return [first, await paint(f"{part} for {cost}"), str(outlive.uuid4())]


async def tell_fork(url: str) -> str:
    """What if it had cost something else?"""
    async with TestEngine(url) as engine:
        run = await engine.start(offer, "door", id="golden-offer")
        await run.result()
        fork = await engine.fork(run.id, at="golden.paint", set={"golden.price": 7}, id="golden-fork")
        await fork.result()
        return await engine.export(fork.id)


RETRY_STORIES: dict[str, Callable[[str], Awaitable[str]]] = {"repair": tell_repair, "fork": tell_fork}
