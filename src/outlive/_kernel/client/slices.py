"""Long work on the event loop, in slices between which other requests have their turn.

A thread would not do: what strangers send is checked here, and many threads at work would take the processor from the
loop. Simulated time and tests need the same order every time, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator, Iterable
from contextlib import closing
from typing import Any, TypeVar

from outlive._kernel.journal.schema import Schema, check

T = TypeVar("T")

SLICE_SECONDS = 0.005
"""How long the loop waits for work that is done in small parts."""
LARGE_BYTES = 64 * 1024
"""JSON of this length takes some milliseconds to parse, and as long to write."""


async def in_slices(work: Generator[None, None, T]) -> T:
    """The return value of a generator; others have their turn where it yields."""
    with closing(work):  # Where its caller has gone.
        while True:
            try:
                next(work)
            except StopIteration as end:
                result: T = end.value
                return result
            await asyncio.sleep(0)


async def others_turn(size: int) -> None:
    """The turn of others behind so many bytes, if they are many: to parse them cannot be divided."""
    if size >= LARGE_BYTES:
        await asyncio.sleep(0)


async def mismatch_of(value: Any, schema: Schema) -> str | None:
    """Where and how a value of any length breaks a schema, for a person; None if it fits."""
    return await in_slices(check(value, schema))


async def giving_way(items: Iterable[T]) -> AsyncIterator[T]:
    """The items. Others have their turn when what is done with them has taken a slice of time."""
    until = _now() + SLICE_SECONDS
    for item in items:
        yield item
        if _now() >= until:
            await asyncio.sleep(0)
            until = _now() + SLICE_SECONDS


def _now() -> float:
    return asyncio.get_running_loop().time()
