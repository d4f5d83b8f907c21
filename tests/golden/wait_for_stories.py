"""A workflow with `asyncio.wait_for` whose history is golden. Never change it: write another beside it.

The history was recorded on Python 3.14. On 3.11 `wait_for` makes a task of its own for what it waits for, and the run's
loop has to hide that: otherwise a run could not be moved from one version to the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import outlive
from outlive.testing import TestEngine


@outlive.step(name="golden.ask")
async def ask(whom: str) -> str:
    """Return at once."""
    return f"{whom} answers"


@outlive.workflow(name="golden.guest")
async def guest(name: str) -> str:
    """A child, whose number depends on when it begins."""
    return await ask(name)


async def late(name: str) -> str:
    """Cleans up when it is cancelled."""
    try:
        await asyncio.sleep(3600)
    finally:
        await ask(f"{name}, too late,")
    return name


@outlive.workflow(name="golden.dinner")
async def dinner() -> list[str]:
    """Waits for coroutines, tasks, gathers and other waits; some come in time."""
    heard = [await asyncio.wait_for(ask("cook"), 60)]
    heard += await asyncio.wait_for(asyncio.gather(ask("ann"), asyncio.wait_for(ask("ben"), 60)), 60)
    heard += await asyncio.gather(asyncio.wait_for(guest("cleo"), 60), guest("dan"))
    with suppress(TimeoutError):
        heard.append(await asyncio.wait_for(asyncio.wait_for(late("eve"), 600), 60))
    with suppress(TimeoutError):
        heard.append(await asyncio.wait_for(asyncio.create_task(late("fay")), 60))
    with suppress(TimeoutError):
        heard.append(await asyncio.wait_for(outlive.wait_for_signal("doorbell"), 60))
    done, _ = await asyncio.wait({asyncio.create_task(ask(f"guest {number}")) for number in range(4)})
    return [*heard, *[await ask(task.result()) for task in done]]


async def tell_dinner(url: str) -> str:
    """Three are late."""
    async with TestEngine(url) as engine:
        run = await engine.start(dinner, id="golden-dinner")
        await run.result()
        return await engine.export(run.id)


WAIT_FOR_STORIES: dict[str, Callable[[str], Awaitable[str]]] = {"dinner": tell_dinner}
