"""Work that takes longer than the event loop may rest: on a thread.

A document of 1 MB takes seconds to be checked. Meanwhile the server answers other requests, as a thread of Python gives
way every few milliseconds.

A thread cannot be stopped. So the work has limits of its own, which make it end; the deadline of its `Line` is for what
they do not cover. A thread that never ends keeps its place, and the process can end without it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


async def on_thread(work: Callable[[], T]) -> T:
    """The result of the work, done on a thread of its own. Whatever the work raises is raised."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[T] = loop.create_future()
    Thread(target=_do, args=(work, result, loop), name="outlive-http-aside", daemon=True).start()
    try:
        return await result
    finally:
        del result  # An error refers to this frame, and with it to all that the work had in hand.


def _do(work: Callable[[], Any], result: asyncio.Future[Any], loop: asyncio.AbstractEventLoop) -> None:
    """On the thread."""
    with suppress(RuntimeError):  # The loop is closed: the server has stopped.
        try:
            value = work()
        except BaseException as error:
            loop.call_soon_threadsafe(_fail, result, error)
        else:
            loop.call_soon_threadsafe(_succeed, result, value)
        finally:
            del result


def _succeed(result: asyncio.Future[Any], value: object) -> None:
    if not result.done():
        result.set_result(value)


def _fail(result: asyncio.Future[Any], error: BaseException) -> None:
    if not result.done():
        result.set_exception(error)
