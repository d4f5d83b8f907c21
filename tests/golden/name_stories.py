"""A workflow that hears of failures by the names that classes had, with a golden history. Never change it: write
another beside it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import outlive
from outlive.testing import TestEngine


class LeakError(Exception):
    """Of a class that no workflow registers."""


@outlive.step(name="golden.pour")
async def pour() -> None:
    """Always fails."""
    raise LeakError("it is wet")


@outlive.workflow(name="golden.cup")
async def cup() -> None:
    """A child that fails with the failure of its step."""
    await pour()


@outlive.workflow(name="golden.tray")
async def tray() -> str:
    """Says what it heard of."""
    try:
        await cup()
    except outlive.errors.RunFailedError as error:
        cause = error.__cause__
        assert isinstance(cause, outlive.errors.StepFailedError)
        return cause.type_name
    return "nothing"


async def tell_names(url: str) -> str:
    """Written before every exception ended in Error: the journal says `outlive.errors.StepFailed`."""
    async with TestEngine(url) as engine:
        run = await engine.start(tray, id="golden-tray")
        await run.result()
        return await engine.export(run.id)


NAME_STORIES: dict[str, Callable[[str], Awaitable[str]]] = {"old-names": tell_names}
