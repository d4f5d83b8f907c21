"""Work that takes long, in a line that senders share: one with much work does not make the others wait for all of it.

Few works are done at once, and one for each sender. When a place is free, it is the turn of the sender that has waited
longest since its last turn, however much others have in the line. A sender may have as many places in the line as are
free.

The work of a caller that waits no longer leaves the line. Once it has begun it keeps its place until it ends: whatever
it uses it goes on using.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

from outlive._tasks import own_task
from outlive.http.problem import RETRY_SECONDS, Problem

T = TypeVar("T")
AT_ONCE = 2


class _Work:
    """The work for which a sender waits."""

    __slots__ = ("do", "result", "sender")

    def __init__(self, sender: str, do: Callable[[], Awaitable[Any]], result: asyncio.Future[Any]) -> None:
        self.sender, self.do, self.result = sender, do, result


class Line:
    """Does the work of senders in turn.

    Args:
        what: the work, for a caller whose work is refused.
        waiting_max: how much may wait.
        seconds: how long a caller waits for its result.
    """

    def __init__(self, what: str, *, waiting_max: int, seconds: float) -> None:
        self._what, self._waiting_max, self._seconds = what, waiting_max, seconds
        self._busy: set[str] = set()
        """The senders whose work is under way."""
        self._waiting: dict[str, deque[_Work]] = {}
        """By the sender; the sender whose turn is next is the first."""

    async def do(self, sender: str, work: Callable[[], Awaitable[T]]) -> T:
        """The result of the work. It is done in an empty context.

        Raises:
            Problem: it was not done in time, or too much waits already. Whatever the work raises.
        """
        result: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        own = _Work(sender, work, result)
        free = self._waiting_max - sum(map(len, self._waiting.values()))
        # A sender may have as many places as are free: one fills half of the line, and there is a place for another
        # one.
        if not 0 < free > len(self._waiting.get(sender, ())):
            raise self._too_busy("there is too much to do before it")
        self._waiting.setdefault(sender, deque()).append(own)
        self._begin()
        try:
            await asyncio.wait([result], timeout=self._seconds)
            if not result.done():
                raise self._too_busy(f"it was not done within {self._seconds:g} s")
            return result.result()
        finally:
            result.cancel()
            self._leave(own)
            del result, own  # An error refers to this frame, and with it to all that the work had in hand.

    def _leave(self, work: _Work) -> None:
        works = self._waiting.get(work.sender, deque())
        with suppress(ValueError):  # It has begun.
            works.remove(work)
            if not works:
                del self._waiting[work.sender]

    def _begin(self) -> None:
        for sender in list(self._waiting):
            if len(self._busy) < AT_ONCE and sender not in self._busy:
                works = self._waiting.pop(sender)
                work = works.popleft()
                if works:
                    self._waiting[sender] = works  # Behind all others.
                self._busy.add(sender)
                own_task(self._do(work), name="outlive-http-line")

    async def _do(self, work: _Work) -> None:
        try:
            result = await work.do()
        except BaseException as error:
            if not work.result.done():
                work.result.set_exception(error)
        else:
            if not work.result.done():
                work.result.set_result(result)
        finally:
            self._busy.discard(work.sender)
            del work
            self._begin()

    def _too_busy(self, why: str) -> Problem:
        detail = f"{self._what} was not done: {why}"
        return Problem(503, "too_busy", detail, "Send the request again later.", {"retry-after": str(RETRY_SECONDS)})
