"""Connections of uvicorn that do not wait for ever: for the head of a request, and for a reader that does not read.

uvicorn closes a connection that is idle between two requests. One that has never sent a request, that sends its head
byte by byte, or that reads no answer keeps its place as long as it likes, and some thousands of them keep everyone else
out. Here the head has to arrive within some seconds and some bytes, and what is sent has to be read. (How long a body
may take is a limit of the app: `ApiLimits.body_seconds`.)

What uvicorn says to a request that is no HTTP is said as everything else that is refused: RFC 9457.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any

import msgspec

from outlive.http.problem import MEDIA, Problem

_Protocol: Any = object
"""What a protocol class of uvicorn has; it is loaded when a server is started."""
HEADER_SECONDS = 10.0
"""How long the head of a request may take to arrive, from when the connection is made or its first byte comes."""
HEAD_BYTES_MAX = 32 * 1024
UNREAD_BYTES_MAX = 8 * 1024 * 1024
"""How much of a body is read and dropped that the app has answered before it was there."""
LINGER_SECONDS = 1.0
READ_SECONDS = 30.0
"""How long a reader may leave what was sent unread."""


class Guarded(_Protocol):  # type: ignore[misc]
    """What is added to a protocol class of uvicorn. Its names (`cycle`, `transport`, `send_400_response`) are used."""

    head_seconds = HEADER_SECONDS
    read_seconds = READ_SECONDS
    _head_timer: asyncio.TimerHandle | None = None
    _read_timer: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _is_refused = False

    def connection_made(self, transport: Any) -> None:
        """A client is there, and should say what it wants."""
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone. Nothing may keep what it has sent: after a reset, uvicorn's own timer would for half a minute."""
        self._stop_timers()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        if self.cycle is not None:
            self.cycle.body = b""

    def data_received(self, data: bytes) -> None:
        """Something came: a part of a head, or of a body."""
        if self._is_refused:
            return
        self._head_bytes += len(data)
        super().data_received(data)
        if not self._is_idle():
            self._cancel_head_timer()
        else:
            self._look_at_head()

    def pause_writing(self) -> None:
        """The reader is slower than the app."""
        super().pause_writing()
        self._read_timer = self.loop.call_later(self.read_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """It has read."""
        super().resume_writing()
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None

    def send_400_response(self, msg: str) -> None:
        """Say that this is no HTTP; after an answer has begun, nothing can be said any more."""
        if self._is_idle() and self._head_bytes > HEAD_BYTES_MAX:
            self._refuse_large_head()
        elif self._is_idle() or not self.cycle.response_started:
            self._refuse(400, "Malformed", "this is no request of HTTP/1.1")
        else:
            self.transport.abort()

    # -- Waiting for a request --------------------------------------------------------------------------------

    def _look_at_head(self) -> None:
        """What came is a part of a head; or of a body that the app has not read and has answered."""
        if self._is_refused or self.transport.is_closing():
            return
        if self._has_unread_body():
            if self._head_bytes > UNREAD_BYTES_MAX:
                self.transport.abort()
        elif self._head_bytes > HEAD_BYTES_MAX:
            self._refuse_large_head()
            return
        self._await_head()

    def _has_unread_body(self) -> bool:
        return bool(self.cycle) and bool(self.cycle.more_body)

    def _is_idle(self) -> bool:
        """Whether no request is under way."""
        return self.cycle is None or bool(self.cycle.response_complete)

    def _await_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self.head_seconds, self._head_is_late)

    def _head_is_late(self) -> None:
        self._head_timer = None
        if not self._is_idle() or self.transport.is_closing():
            return
        if self._has_unread_body():
            self.transport.abort()
        else:
            self._refuse(408, "TooSlow", f"the head of a request has to arrive within {self.head_seconds:g} s")

    def _refuse_large_head(self) -> None:
        self._refuse(431, "HeadTooLarge", f"the head of a request takes at most {HEAD_BYTES_MAX:,} bytes")

    def _refuse(self, status: int, error: str, detail: str) -> None:
        """Answer without the app, and close when the sender had time to read it: a socket that is closed with data that
        it has not read takes its answer back."""
        body = msgspec.json.encode(Problem(status, error, detail, "Send the request again, whole and at once.").body)
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: {MEDIA}\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self._stop_timers()
        self._is_refused = True
        self.transport.write(head.encode() + body)
        self.transport.write_eof()
        self._head_timer = self.loop.call_later(LINGER_SECONDS, self.transport.close)

    def _cancel_head_timer(self) -> None:
        self._head_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _stop_timers(self) -> None:
        self._cancel_head_timer()
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None


def guarded(base: Any, *, header_seconds: float = HEADER_SECONDS, read_seconds: float = READ_SECONDS) -> Any:
    """A protocol class of uvicorn, with these limits."""
    own = {"head_seconds": header_seconds, "read_seconds": read_seconds}
    return type(f"Guarded{base.__name__}", (Guarded, base), own)
