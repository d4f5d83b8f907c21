"""A transport that sends what is written in one turn of the event loop at once.

uvicorn writes the head of an answer and then its body. Each write is a call of the system, for which Python lets the
other threads of the process have the interpreter, and a packet of its own; a small answer needs one of both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

HELD_BYTES_MAX = 64 * 1024
"""What is held back until the end of the turn: more than this is sent at once, so that a reader who is slower than the
app is noticed as early as without."""


class OneWrite:
    """A transport of asyncio; what is not here is that transport's own."""

    __slots__ = ("_held", "_linger", "_loop", "_size", "_transport")

    def __init__(
        self, transport: Any, loop: asyncio.AbstractEventLoop, linger: Callable[[], bool] = lambda: False
    ) -> None:
        """`linger` is asked before it is closed: whether it stays open for now."""
        self._transport, self._loop, self._linger = transport, loop, linger
        self._held: list[bytes] = []
        self._size = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send it at the end of this turn of the event loop at the latest."""
        if not self._held:
            self._loop.call_soon(self._flush)
        self._held.append(data)
        self._size += len(data)
        if self._size > HELD_BYTES_MAX:
            self._flush()

    def write_eof(self) -> None:
        """Send what is held back, and say that nothing follows."""
        self._flush()
        self._transport.write_eof()

    def close(self) -> None:
        """Send what is held back, then close."""
        self._flush()
        if not self._linger():
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        self._held.clear()
        self._size = 0
        self._transport.abort()

    def _flush(self) -> None:
        if self._held:
            data = b"".join(self._held) if len(self._held) > 1 else self._held[0]
            self._held.clear()
            self._size = 0
            self._transport.write(data)
