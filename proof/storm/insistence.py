"""A store that does not answer is asked again: an outage is not a failure, neither of a verb nor of a process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import outlive
from outlive import errors

T = TypeVar("T")

AGAIN_SECONDS = 0.05
LIMITS = outlive.limits.Limits(attempts_max=1_000, processes_max=1)
"""Workers die by plan here, so a run with which many died is not a suspect. A process takes a second to begin."""


async def insist(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask until the store answers: a busy store is not an answer, and a lost one may be asked again."""
    while True:
        try:
            return await ask()
        except errors.StoreUnavailableError:
            await asyncio.sleep(AGAIN_SECONDS)


@asynccontextmanager
async def entered(url: str, **options: Any) -> AsyncIterator[outlive.Engine]:
    """An engine that waits for its store."""
    engine = outlive.Engine(url, limits=LIMITS, **options)
    await insist(engine.__aenter__)
    try:
        yield engine
    finally:
        await engine.__aexit__(None, None, None)
