"""A golden story of tags: a run that says how far it is. Never change it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import outlive
from outlive.testing import TestEngine


@outlive.workflow(name="golden.tagged")
async def tagged(number: int) -> dict[str, str]:
    """Changes its tags, and removes one."""
    outlive.set_tags(stage="packing", courier="north")
    await outlive.wait_for_signal("packed")
    outlive.set_tags(stage="sent", courier=None)
    return outlive.current_run().tags


async def tell_tagged(url: str) -> str:
    """A signal comes between two changes of its tags."""
    async with TestEngine(url) as engine:
        run = await engine.start(tagged, 7, id="golden-tagged", tags={"tenant": "a"})
        await run.signal("packed")
        await run.result()
        return await engine.export("golden-tagged")


TAG_STORIES: dict[str, Callable[[str], Awaitable[str]]] = {"tagged": tell_tagged}
