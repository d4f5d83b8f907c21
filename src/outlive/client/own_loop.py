"""An engine belongs to one event loop: its futures, its tasks and its store's answers come there."""

from __future__ import annotations

import asyncio

from outlive._replay.ask import current_execution
from outlive.errors import NotDurableError, OtherLoopError


def check_loop(own: asyncio.AbstractEventLoop) -> None:
    """See that this is called on the loop that something belongs to.

    Raises:
        NotDurableError: it is called in a workflow, whose loop is another one by nature.
        OtherLoopError: it is called on any other loop, or on none.
    """
    running = asyncio._get_running_loop()
    if running is own:
        return
    if current_execution() is not None:
        raise NotDurableError("an engine's verb")
    if own.is_closed():
        raise OtherLoopError("after that loop was closed without leaving the engine")
    raise OtherLoopError("where no event loop runs" if running is None else "on another one")
