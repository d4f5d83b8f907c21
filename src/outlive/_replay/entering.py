"""How a thread enters the event loop of a run, in the middle of what it does, and leaves it again."""

from __future__ import annotations

import asyncio
import sys
from asyncio import tasks as asyncio_tasks
from collections.abc import AsyncGenerator, Callable
from typing import Any, NamedTuple


class Outer(NamedTuple):
    """What a thread was doing when it entered the loop of a run."""

    loop: asyncio.AbstractEventLoop | None
    task: asyncio.Task[Any] | None
    hooks: Any


def enter_loop(loop: asyncio.AbstractEventLoop, *, finish: Callable[[AsyncGenerator[Any, Any]], None]) -> Outer:
    """Make this the running loop of the thread, outside of all tasks. `finish` gets async generators let go of."""
    outer = asyncio._get_running_loop()
    task = None if outer is None else asyncio.current_task(outer)
    if outer is not None and task is not None:
        asyncio_tasks._leave_task(outer, task)
    hooks = sys.get_asyncgen_hooks()
    asyncio._set_running_loop(loop)
    sys.set_asyncgen_hooks(remember_nothing, finish)
    return Outer(outer, task, hooks)


def leave_loop(outer: Outer) -> None:
    """Put the thread back to where it was."""
    sys.set_asyncgen_hooks(*outer.hooks)
    asyncio._set_running_loop(outer.loop)
    if outer.loop is not None and outer.task is not None:
        asyncio_tasks._enter_task(outer.loop, outer.task)


def remember_nothing(generator: AsyncGenerator[Any, Any]) -> None:
    """Keep asyncio's own hooks from adopting a workflow's async generators."""
