"""A golden story of asks: answered, failed, refused when it is taken, and open at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import outlive
from outlive.testing import TestEngine


def even(number: int) -> None:
    """Refuse odd numbers."""
    if number % 2:
        raise ValueError(f"{number} is odd")


@outlive.workflow(name="golden.sums")
async def sums() -> int:
    """Adds what it is asked to add."""
    total = 0
    await asyncio.sleep(60)
    async for ask in outlive.asks("add", int, validate=even):
        if ask.body < 0:
            ask.fail(ArithmeticError("negative"))
            continue
        total += ask.body
        if total > 9:
            break
        ask.reply(total)
    return total


async def tell_sums(url: str) -> str:
    """Two asks come before it serves them, three later."""
    async with TestEngine(url) as engine:
        run = await engine.start(sums, id="golden-sums")
        await asyncio.gather(
            *(run.ask("add", number, key=f"early-{number}") for number in (2, 3)), return_exceptions=True
        )
        await asyncio.gather(
            *(run.ask("add", number, key=f"late-{number}") for number in (-2, 8)), return_exceptions=True
        )
        await run.result()
        return await engine.export(run.id)


async def tell_asked_fork(url: str) -> str:
    """A fork with asks of its origin, taken and not taken, and one of its own with the same key."""
    async with TestEngine(url) as engine:
        run = await engine.start(sums, id="golden-origin")
        early = [run.ask("add", number, key=f"early-{number}") for number in (2, 3)]
        await asyncio.gather(*early, run.ask("add", 8, key="late"), run.result(), return_exceptions=True)
        fork = await engine.fork(run.id, at="@answer/add/early-2", id="golden-asked-fork")
        await asyncio.gather(fork.ask("add", 8, key="early-2"), fork.result(), return_exceptions=True)
        return await engine.export(fork.id)


ASK_STORIES: dict[str, Callable[[str], Awaitable[str]]] = {"sums": tell_sums, "asked-fork": tell_asked_fork}
