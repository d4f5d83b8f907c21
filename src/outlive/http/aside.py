"""Work that takes longer than the event loop may rest: on a thread, with a deadline for its caller.

A document of 1 MB takes seconds to be checked. Meanwhile the server answers other requests, as a thread of Python gives
way every few milliseconds. Few threads work at once, and one for each sender: a sender of many documents waits for its
own and not for those of others.

A thread cannot be stopped. So the work has limits of its own, which make it end; the deadline is for what they do not
cover. A thread that never ends keeps its place, and the process can end without it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from threading import Thread
from typing import Any, TypeVar

from outlive.http.problem import RETRY_SECONDS, Problem

T = TypeVar("T")
AT_ONCE = 2
WAITING_MAX = 100


class _Work:
    """The work for which a sender waits."""

    __slots__ = ("do", "result", "sender")

    def __init__(self, sender: str, do: Callable[[], Any], result: asyncio.Future[Any]) -> None:
        self.sender, self.do, self.result = sender, do, result


class Aside:
    """Does work beside the event loop."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._busy: set[str] = set()
        """The senders whose work is under way."""
        self._waiting: list[_Work] = []

    async def do(self, sender: str, work: Callable[[], T]) -> T:
        """The result of the work, which sees the context variables of its caller.

        Raises:
            Problem: it was not done in time, or too much waits already. Whatever the work raises.
        """
        result: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        own = _Work(sender, partial(copy_context().run, work), result)
        waits = sum(each.sender == sender for each in self._waiting)
        # A sender may have as many places as are free: one fills half of the line, and there is a place for another
        # one.
        if len(self._waiting) >= WAITING_MAX or (waits and waits >= WAITING_MAX - len(self._waiting)):
            raise _too_busy("there is too much to check before it")
        self._waiting.append(own)
        self._begin()
        try:
            await asyncio.wait([result], timeout=self._seconds)
            if not result.done():
                raise _too_busy(f"it was not checked within {self._seconds:g} s")
            return result.result()
        finally:
            result.cancel()
            with suppress(ValueError):
                self._waiting.remove(own)

    def _begin(self) -> None:
        for work in list(self._waiting):
            if len(self._busy) < AT_ONCE and work.sender not in self._busy:
                self._waiting.remove(work)
                self._busy.add(work.sender)
                loop = asyncio.get_running_loop()
                Thread(target=self._do, args=(work, loop), name="outlive-http-aside", daemon=True).start()

    def _do(self, work: _Work, loop: asyncio.AbstractEventLoop) -> None:
        """On the thread."""
        try:
            end = partial(_succeed, work.result, work.do())
        except BaseException as error:
            end = partial(_fail, work.result, error)
        with suppress(RuntimeError):  # The loop is closed: the server has stopped.
            loop.call_soon_threadsafe(self._end, work.sender, end)

    def _end(self, sender: str, end: Callable[[], None]) -> None:
        end()
        self._busy.discard(sender)
        self._begin()


def _succeed(result: asyncio.Future[Any], value: object) -> None:
    if not result.done():
        result.set_result(value)


def _fail(result: asyncio.Future[Any], error: BaseException) -> None:
    if not result.done():
        result.set_exception(error)


def _too_busy(why: str) -> Problem:
    detail = f"the document was not taken: {why}"
    return Problem(503, "TooBusy", detail, "Send the request again later.", {"retry-after": str(RETRY_SECONDS)})
