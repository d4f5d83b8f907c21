"""Turns of verbs that callers call in bursts, such as starts and signals.

So many begin in one turn of the event loop, and so many messages are with the store at a time. What runs in the same
process goes on between them, and its commits do not stand behind a burst.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import TypeVar

from outlive.errors import EngineClosedError, StoreUnavailableError

T = TypeVar("T")
CALLS_PER_TURN_MAX = 100
"""Calls that begin in one turn of the event loop."""
SENDS_MAX = 100
"""Messages of callers that the store has at a time: a store of one file writes them in one transaction."""


class Turns:
    """Calls of one client, the first one first."""

    def __init__(self) -> None:
        self.in_turn = 0
        """Calls that began in this turn of the event loop. `Engine.start` counts them before it does anything else, so
        that one of a hundred thousand does almost nothing before it waits."""
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take(self) -> None:
        """Return when a call may begin."""
        self.in_turn += 1
        if self.in_turn > CALLS_PER_TURN_MAX:
            await self.wait()
        elif self.in_turn == 1:
            asyncio.get_running_loop().call_soon(self.next_turn, context=Context())

    def wait(self) -> asyncio.Future[None]:
        """Done when a call that has come to a full turn may go on."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        return turn

    def next_turn(self) -> None:
        """Let the next calls go on that wait for a turn."""
        self.in_turn = 0
        while self._waiting and self.in_turn < CALLS_PER_TURN_MAX:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                self.in_turn += 1
        if self.in_turn:
            asyncio.get_running_loop().call_soon(self.next_turn, context=Context())

    def close(self) -> None:
        """Let every call go on that waits: the engine has stopped, and it raises."""
        for turn in self._waiting:
            if not turn.done():
                turn.set_result(None)


class Sends:
    """Messages of the callers of one client, of which so many are with the store at a time."""

    def __init__(self, *, seconds: float) -> None:
        self._seconds = seconds
        """How long a caller waits for a store that does not answer."""
        self._under_way = 0
        self._resuming = 0
        """Callers that have got room and have not gone on yet: none that comes now may overtake them."""
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def send(self, deliver: Callable[[], Awaitable[T]]) -> T:
        """The result of `deliver`, which is called when there is room.

        Raises:
            StoreUnavailableError: the store fell silent before that. Nothing was sent.
        """
        if self._under_way >= SENDS_MAX or self._resuming:
            await self._room()
        else:
            self._under_way += 1
        loop = asyncio.get_running_loop()
        since = loop.time()
        try:
            return await deliver()
        except StoreUnavailableError as error:
            if loop.time() >= since + self._seconds:
                self._refuse_waiting(error)
            raise
        finally:
            self._leave()

    async def _room(self) -> None:
        room: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(room)
        try:
            await room
        except asyncio.CancelledError:
            if not room.cancelled() and room.exception() is None:
                self._resuming -= 1
                self._leave()  # It got the room and does not need it.
            raise
        self._resuming -= 1

    def _leave(self) -> None:
        """Give the room of a message to the next one."""
        while self._waiting:
            room = self._waiting.popleft()
            if not room.done():
                room.set_result(None)
                self._resuming += 1
                return
        self._under_way -= 1

    def _refuse_waiting(self, error: StoreUnavailableError) -> None:
        """The store is silent: callers that wait for room have waited for the store too."""
        waiting, self._waiting = self._waiting, deque()
        for room in waiting:
            if not room.done():
                reason = f"it has not answered for {self._seconds:g} s; the message was not sent"
                room.set_exception(StoreUnavailableError(error.place, reason))

    def close(self) -> None:
        """The engine has stopped: callers that wait for room raise."""
        for room in self._waiting:
            if not room.done():
                room.set_exception(EngineClosedError("sending a message"))
