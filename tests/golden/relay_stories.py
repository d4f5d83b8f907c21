"""A workflow of two generations whose first end is proved, with a golden history. Never change it: write another
beside it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import outlive
from outlive.testing import TestEngine


@outlive.step(name="golden.lap")
async def lap(runner: str) -> str:
    """Never fails."""
    return f"{runner} has run"


@outlive.workflow(name="golden.relay")
async def relay(runners: list[str]) -> str:
    """Hands over to the next runner as a new generation."""
    said = await lap(runners[0])
    if runners[1:]:
        outlive.continue_as_new(runners[1:])
    return said


async def tell_relay(url: str) -> str:
    """The first of two generations: its end says the digest of the events before it."""
    async with TestEngine(url) as engine:
        run = await engine.start(relay, ["ann", "ben"], id="golden-relay")
        await run.result()
        return await engine.export("golden-relay~gen1")


RELAY_STORIES: dict[str, Callable[[str], Awaitable[str]]] = {"relay": tell_relay}
"""The file of each story is `tests/golden/<name>.jsonl`."""
