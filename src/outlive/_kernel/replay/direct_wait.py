"""`asyncio.wait_for` of Python 3.11 does in a workflow what it does from 3.12 on: it awaits in the task of its caller.

On 3.11 `wait_for` makes a task for its argument. The calls inside would have another scope there, the tasks made after
it other numbers, and a run could not be moved from one Python to the next. It asks its loop for two things: a future to
wait for, and that task. The loop of a run gives it a `DirectWait` for both. On later versions nothing of this is used.
"""

from __future__ import annotations

import asyncio
import sys
import types
from asyncio import tasks as asyncio_tasks
from collections.abc import Callable, Generator
from typing import Any

IS_NEEDED = sys.version_info < (3, 12)
_WAIT_FOR = asyncio.wait_for.__code__


class DirectWait:
    """Awaits the argument of `wait_for` where it stands; done as soon as `wait_for` looks at it."""

    __slots__ = ("_awaited", "_cancelled", "_result", "_seconds")

    def __init__(self, awaited: Any, seconds: float) -> None:
        self._awaited = awaited
        self._seconds = seconds
        self._cancelled: tuple[Any, ...] | None = None
        self._result: Any = None

    def __await__(self) -> Generator[Any, None, None]:
        return self._wait().__await__()

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(self._seconds):
                self._result = await self._awaited
        except asyncio.CancelledError as error:
            self._cancelled = error.args
            raise

    # -- What `wait_for` asks of its task --------------------------------------------------------------------

    def add_done_callback(self, call: Callable[..., Any]) -> None:
        """Not called: `wait_for` goes on by itself."""

    def done(self) -> bool:
        """Whether the argument has an outcome. `wait_for` asks when it has waited."""
        return True

    def result(self) -> Any:
        """The result of the argument. If that raised, `wait_for` does not ask, unless it was cancelled."""
        if self._cancelled is not None:
            raise asyncio.CancelledError(*self._cancelled)
        return self._result


def begin(frame: types.FrameType) -> DirectWait | None:
    """A direct wait for the argument of `wait_for`, if this is the frame of a `wait_for` that makes a future; otherwise
    None."""
    if frame.f_code is not _WAIT_FOR:
        return None
    return DirectWait(frame.f_locals["fut"], frame.f_locals["timeout"])


def find(frame: types.FrameType | None) -> DirectWait | None:
    """The direct wait that belongs to a frame of `wait_for` that makes a task. A `wait_for` with no time to wait makes
    a task on all versions."""
    while frame is not None and frame.f_globals is asyncio_tasks.__dict__:
        if frame.f_code is _WAIT_FOR:
            waiter = frame.f_locals.get("waiter")
            return waiter if type(waiter) is DirectWait else None
        frame = frame.f_back
    return None
