"""Tasks of the engine, in contexts of their own, and how they are waited for. Imports nothing of ours: for every room.

A task that asyncio makes copies the context of the code that makes it. The engine makes its tasks when they are wanted
for the first time, which is inside some caller's `start` or `result`: they would show the context variables of that
caller to the steps of all others, and keep alive what hangs on them. So the engine's tasks begin in an empty context.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextvars import Context
from typing import Any, TypeVar

T = TypeVar("T")


def own_task(work: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]:
    """A task on the running loop that begins in an empty context."""
    # Not loop.create_task: a host application's task factory has no business with the engine's tasks.
    return asyncio.Task(work, loop=asyncio.get_running_loop(), name=name, context=Context())


async def within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """The result of the work; it is cancelled when it takes longer.

    Raises:
        TimeoutError: it does.
    """
    task = own_task(work, name="outlive-bounded")
    try:
        await asyncio.wait([task], timeout=seconds)
        if not task.done():
            raise TimeoutError(f"it took longer than {seconds:g} s")
        return task.result()
    finally:
        task.cancel()


async def in_callback(work: Callable[[], None]) -> None:
    """Do something in a plain callback of the loop: executions are never fed from inside a task."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def call() -> None:
        if done.cancelled():
            return
        try:
            work()
        except BaseException as error:
            done.set_exception(error)
        else:
            done.set_result(None)

    loop.call_soon(call)
    await done


async def cancel_all(tasks: Iterable[asyncio.Future[Any]]) -> None:
    """Cancel the tasks that have not ended, and wait for all of them, however often the wait is cancelled itself.

    Raises:
        asyncio.CancelledError: it was, and all of them have ended.
    """
    tasks = list(tasks)
    for task in tasks:
        task.cancel()
    cancelled: asyncio.CancelledError | None = None
    while left := [task for task in tasks if not task.done()]:
        try:
            await asyncio.wait(left)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
