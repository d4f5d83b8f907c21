"""A golden story of a run that a person changes from outside. Never change it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import outlive
from outlive.testing import TestEngine


@outlive.workflow(name="golden.changed")
async def changed(number: int) -> dict[str, str]:
    """Sets tags before and after the change."""
    outlive.set_tags(stage="packing")
    await outlive.wait_for_signal("packed")
    outlive.set_tags(stage="sent")
    return dict(outlive.current_run().tags)


async def tell_changed(url: str) -> str:
    """A person gives it another tag and another deadline while it waits, and then no deadline."""
    async with TestEngine(url) as engine:
        run = await engine.start(changed, 7, id="golden-changed", tags={"tenant": "a"}, timeout="10d")
        await engine.settle()
        await engine.change(run.id, tags={"held": "yes", "tenant": None}, timeout="2d", reason="a customer called")
        await engine.settle()
        await engine.change(run.id, timeout=None)
        await engine.settle()
        await run.signal("packed")
        await run.result()
        return await engine.export(run.id)


CHANGE_STORIES: dict[str, Callable[[str], Awaitable[str]]] = {"changed": tell_changed}
