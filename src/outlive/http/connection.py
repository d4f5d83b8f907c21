"""Connections of uvicorn that do not wait for ever: for the head of a request, and for a reader that does not read.

uvicorn closes a connection that is idle between two requests. One that has never sent a request, that sends its head
byte by byte, or that reads no answer keeps its place as long as it likes, and some thousands of them keep everyone else
out. Here the head has to arrive within some seconds and some bytes, and what is sent has to be read. (How long a body
may take is a limit of the app: `ApiLimits.body_seconds`.)

What uvicorn says to a request that is no HTTP is said as everything else that is refused: RFC 9457. So is what is said
to connections beyond the limit. (At the limit of uvicorn, `limit_concurrency`, requests of all connections are refused,
those of the first too.)

uvicorn has two parsers, h11 and httptools, which is faster. `Guarded` is for both; `GuardedHttptools` adds the limits
that httptools does not have.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

import msgspec

from outlive.http.exchange import SECURITY
from outlive.http.one_write import OneWrite
from outlive.http.problem import MEDIA, RETRY_SECONDS, Problem, title_of

_Protocol: Any = object
"""What a protocol class of uvicorn has; it is loaded when a server is started."""
HEADER_SECONDS = 10.0
"""How long the head of a request may take to arrive, from when the connection is made or its first byte comes."""
HEAD_BYTES_MAX = 32 * 1024
UNREAD_BYTES_MAX = 8 * 1024 * 1024
"""How much of a body is read and dropped that the app has answered before it was there."""
AHEAD_MAX = 16
"""How many requests a sender may send before the first of them is answered."""
LINGER_SECONDS = 1.0
"""How long a connection that was refused, or whose server stops, stays open for its sender to read that."""
UNREAD_SECONDS = 10.0
"""How long the rest of such a body may take, of a sender that wants the connection closed."""
_END_OF_HEAD = re.compile(rb"\n\r?\n")
READ_SECONDS = 30.0
"""How long a reader may leave what was sent unread."""
CONNECTIONS_MAX = 4_000


class Guarded(_Protocol):  # type: ignore[misc]
    """What is added to a protocol class of uvicorn. Its names (`cycle`, `transport`, `send_400_response`) are used."""

    head_seconds = HEADER_SECONDS
    read_seconds = READ_SECONDS
    connections_max = CONNECTIONS_MAX
    _head_timer: asyncio.TimerHandle | None = None
    _read_timer: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _is_refused = False
    _is_stopping = False

    def connection_made(self, transport: Any) -> None:
        """A client is there, and should say what it wants."""
        super().connection_made(OneWrite(transport, self.loop, self._linger))
        if len(self.connections) <= self.connections_max:
            self._await_head()
            return
        detail = f"this server has {self.connections_max:,} connections, and takes no more"
        self._refuse(503, "TooManyConnections", detail, "Connect again later.", {"retry-after": str(RETRY_SECONDS)})

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
        if self._head_bytes > HEAD_BYTES_MAX and self._is_large_head(data):
            self._refuse_large_head()
            return
        super().data_received(data)
        if not self._is_idle():
            self._cancel_head_timer()
        else:
            self._look_at_head()

    def shutdown(self) -> None:
        """The server stops, and waits for no body that was answered."""
        self._is_stopping = True
        super().shutdown()

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
        if self._is_idle():
            self._refuse_malformed()
        elif self.cycle.response_started:
            self.transport.abort()
        else:
            # The app waits for the rest of a body, which cannot be read. It is to hear that its sender is gone.
            self._refuse_malformed()
            self.cycle.disconnected = True
            self.cycle.message_event.set()

    # -- Waiting for a request --------------------------------------------------------------------------------

    def _look_at_head(self) -> None:
        """What came is a part of a head; or of a body that the app has not read and has answered."""
        if self._is_refused or self.transport.is_closing():
            return
        if self._has_unread_body() and self._head_bytes > UNREAD_BYTES_MAX:
            self.transport.abort()
        self._await_head()

    def _is_large_head(self, data: bytes) -> bool:
        """Whether more than the bytes that a head may have came before its end, which may be in this part."""
        if not self._is_idle() or self._has_unread_body():
            return False
        end = _END_OF_HEAD.search(data)
        return end is None or self._head_bytes - len(data) + end.end() > HEAD_BYTES_MAX

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

    def _refuse_malformed(self) -> None:
        self._refuse(400, "Malformed", "this is no request of HTTP/1.1")

    def _refuse_large_head(self) -> None:
        self._refuse(431, "HeadTooLarge", f"the head of a request takes at most {HEAD_BYTES_MAX:,} bytes")

    def _refuse(
        self,
        status: int,
        error: str,
        detail: str,
        next: str = "Send the request again, whole and at once.",  # noqa: A002 (what it is called in the body)
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Answer without the app, and close when the sender had time to read it: a socket that is closed with data that
        it has not read takes its answer back."""
        body = msgspec.json.encode(Problem(status, error, detail, next).body)
        lines = {"content-type": MEDIA, "content-length": str(len(body)), "connection": "close", **headers}
        said = b"".join(b"%s: %s\r\n" % each for each in SECURITY)
        said += "".join(f"{name}: {value}\r\n" for name, value in lines.items()).encode()
        head = f"HTTP/1.1 {status} {title_of(status)}\r\n".encode() + said + b"\r\n"
        self._stop_timers()
        self._is_refused = True
        self.transport.write(head + body)
        self.transport.write_eof()
        self._head_timer = self.loop.call_later(LINGER_SECONDS, self.transport.close)

    def _linger(self) -> bool:
        """Whether the connection stays open although it is to be closed: its sender is still sending a body that was
        answered, and most senders read the answer after that. What comes is dropped. A reader that does not read is
        given up as before."""
        if self._is_refused or not self._is_idle() or not self._has_unread_body():
            return False
        self._cancel_head_timer()
        self._is_refused = True
        self.transport.write_eof()
        seconds = LINGER_SECONDS if self._is_stopping else UNREAD_SECONDS
        self._head_timer = self.loop.call_later(seconds, self.transport.close)
        return True

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


class GuardedHttptools(Guarded):
    """The same for the protocol class of httptools, whose parser has no limits: it keeps a head, and the lines after a
    chunked body, however long they are; it takes a request without a host; and it reads requests ahead, as many as one
    part of the data holds. Names of that class (`pipeline`, `headers`, `parser`, the callbacks `on_...`) are used."""

    _line_bytes = 0
    """How long the lines of the head, and those after the body, of the request that is read now are so far."""
    _unknown_bytes = 0
    """What has come since the last end of a head, or part of a body. While a request is under way that can be lines
    after a body, or the head of the next request."""

    def data_received(self, data: bytes) -> None:
        """Something came. What the parser keeps of it must not be more than a head."""
        self._unknown_bytes += len(data)
        super().data_received(data)
        if self._unknown_bytes > HEAD_BYTES_MAX and not self._is_idle() and not self._is_refused:
            self.send_400_response("")

    def on_message_begin(self) -> None:
        """A request begins. What is raised in a callback is malformed for uvicorn."""
        if len(self.pipeline) >= AHEAD_MAX:
            raise ValueError("too many requests ahead of their answers")
        self._line_bytes = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """A part of its target."""
        self._count_line(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """One of its headers, or a line after a chunked body."""
        self._count_line(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head is there."""
        self._unknown_bytes = 0
        names = [name for name, _ in self.headers]
        if names.count(b"host") != 1 and self.parser.get_http_version() == "1.1":
            raise ValueError("HTTP/1.1 names one host")
        # The parser leaves out the body of a request that wants another protocol, and there is none.
        if self.parser.should_upgrade() and (b"content-length" in names or b"transfer-encoding" in names):
            raise ValueError("a body behind an upgrade cannot be read")
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A part of a body."""
        self._unknown_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """A request is there, or the rest of a body that the app has not read: a head follows."""
        super().on_message_complete()
        if self.cycle.response_complete:
            self.cycle.more_body = False
            self._head_bytes = 0

    def send_400_response(self, msg: str) -> None:
        """See `Guarded`. What is under way is answered before the connection is closed, if that is one request."""
        if self.pipeline:
            self.transport.abort()
        elif not self._is_idle() and not self.cycle.more_body:
            self._is_refused = True
            self.cycle.keep_alive = False
        elif self._line_bytes > HEAD_BYTES_MAX and self._is_idle():
            self._refuse_large_head()
        else:
            super().send_400_response(msg)

    def _count_line(self, size: int) -> None:
        self._line_bytes += size
        if self._line_bytes > HEAD_BYTES_MAX:
            raise ValueError("a large head")


def guarded(
    base: Any,
    *,
    header_seconds: float = HEADER_SECONDS,
    read_seconds: float = READ_SECONDS,
    connections_max: int = CONNECTIONS_MAX,
) -> Any:
    """A protocol class of uvicorn, with these limits."""
    own = {"head_seconds": header_seconds, "read_seconds": read_seconds, "connections_max": connections_max}
    guard = GuardedHttptools if hasattr(base, "on_headers_complete") else Guarded
    return type(f"Guarded{base.__name__}", (guard, base), own)


def protocol_class() -> Any:
    """The protocol class of uvicorn that is there: the one of httptools if that is installed, else the one of h11.

    Raises:
        ImportError: uvicorn is not installed.
    """
    if find_spec("httptools") is not None:
        return import_module("uvicorn.protocols.http.httptools_impl").HttpToolsProtocol
    return import_module("uvicorn.protocols.http.h11_impl").H11Protocol
