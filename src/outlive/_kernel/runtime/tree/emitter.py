"""The items that one attempt of a step has emitted and the store does not have yet.

The step adds items from any thread, and the writer of streams takes them on the event loop. The buffer is bounded: who
adds to a full one is given something to wait for.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import NamedTuple

ITEMS_MAX = 1_000
BYTES_MAX = 1024 * 1024

Item = tuple[str, bytes]
"""The name of a stream, and the JSON of an item."""


class ItemSource(NamedTuple):
    """The source of these items: one attempt of a step, or a workflow."""

    root_id: str
    journal: int = 0
    run: int = 0
    call: str = ""
    """The call of the step; empty for the workflow itself."""
    attempt: int = 1
    epoch: int = 1


class Emitter:
    """The items of one attempt, in order."""

    def __init__(self, source: ItemSource, *, loop: asyncio.AbstractEventLoop, wake: Callable[[Emitter], None]) -> None:
        self.source = source
        self._loop = loop
        self._wake = wake
        self._lock = threading.Lock()
        self._items: list[Item] = []
        self._bytes = 0
        self._is_announced = False
        self._is_closed = False
        self._error: Exception | None = None
        self._room: Future[None] | None = None
        self._taken = 0
        """Items that the writer has and the store has not confirmed."""
        self._flushed: asyncio.Future[None] | None = None

    # -- For the step, from any thread -----------------------------------------------------------------------

    def add(self, name: str, data: bytes) -> Future[None] | None:
        """Emit an item; if the buffer is full, what is done when there is room.

        Raises:
            StreamFullError, UnserialisableError: why earlier items could not be written.
        """
        with self._lock:
            if self._error is not None:
                raise self._error
            if self._is_closed:
                return None  # No run waits for this attempt any more.
            self._items.append((name, data))
            self._bytes += len(data)
            is_new, self._is_announced = not self._is_announced, True
            room = None
            if len(self._items) >= ITEMS_MAX or self._bytes >= BYTES_MAX:
                room = self._room = self._room or Future()
        if is_new or room is not None:
            if asyncio._get_running_loop() is self._loop:
                self._wake(self)
            else:
                self._loop.call_soon_threadsafe(self._wake, self)
        return room

    # -- For the writer, on the event loop -------------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        """Whether the step waits for room."""
        return self._room is not None

    def take(self) -> list[Item]:
        """Everything that is to be written; `written` or `close` must follow."""
        with self._lock:
            items, self._items, self._bytes, self._is_announced = self._items, [], 0, False
            room, self._room = self._room, None
        self._taken += len(items)
        if room is not None:
            room.set_result(None)
        return items

    def written(self, count: int) -> None:
        """The store has so many of the items that were taken."""
        self._taken -= count
        self._settle()

    def fail(self, error: Exception) -> None:
        """Items could not be written, and no later ones are: the step hears of it."""
        with self._lock:
            self._error = self._error or error
        self.close()

    def close(self) -> None:
        """Write nothing more."""
        with self._lock:
            self._is_closed = True
            self._items, self._bytes = [], 0
            room, self._room = self._room, None
        self._taken = 0
        if room is not None:
            room.set_result(None)
        self._settle()

    def _settle(self) -> None:
        if self._flushed is not None and not self._items and self._taken <= 0 and not self._flushed.done():
            self._flushed.set_result(None)

    # -- For the executor ------------------------------------------------------------------------------------

    async def flush(self) -> None:
        """Return when everything that was emitted is durable, and take nothing more.

        Raises:
            StreamFullError, UnserialisableError: it could not be written.
        """
        if (self._items or self._taken > 0) and not self._is_closed:
            self._flushed = self._loop.create_future()
            self._wake(self)
            await self._flushed
        with self._lock:
            self._is_closed = True
        if self._error is not None:
            raise self._error

    @property
    def is_flushing(self) -> bool:
        """Whether the attempt has ended and waits for its items to be written."""
        return self._flushed is not None
