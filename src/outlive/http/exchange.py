"""One HTTP request and its answer, over ASGI and without a framework."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from functools import cached_property
from typing import Any, TypeAlias
from urllib.parse import parse_qsl

import msgspec

from outlive.http.problem import Problem, refusal
from outlive.http.proxies import FORWARDED_FOR, NO_PROXIES, Proxies

DIGITS_MAX = 18
"""The limit for a number in a header: a longer number means nothing, and reading it takes time."""
UNREAD_BYTES_MAX = 16 * 1024 * 1024
"""How much of a body is read and dropped that was answered before it had arrived."""
UNREAD_SECONDS = 10.0
"""How long such a body may take."""
BUSY_SECONDS = 5
"""When a request may come again for which there was no room."""

GONE = 499
"""The status, in logs of applications around us, of a request whose sender has gone; nginx calls it so."""

SECURITY = [
    (b"cache-control", b"no-store"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        b"frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    ),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
]
"""On every answer, whatever it is."""

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Gone(Exception):
    """The sender closed the connection before its request was complete: there is nothing to answer."""


class Unread(Exception):
    """The sender does not read its answer."""


class ByteBudget:
    """How many bytes the bodies of requests under way may have together.

    A sender may have as many as are free. So one sender gets half of them, two get a third each, and there is always
    room for another one.
    """

    def __init__(self, most: int) -> None:
        self._left = most
        self._taken: Counter[str] = Counter()
        """By the sender."""

    def take(self, count: int, sender: str) -> bool:
        """Take so many bytes, if there are as many left; a sender without a name may have all."""
        if not count:
            return True
        own = self._taken[sender] + count if sender else 0
        if count > self._left or own > self._left - count:
            return False
        self._left -= count
        self._taken[sender] += count
        return True

    def give_back(self, count: int, sender: str) -> None:
        """A request of this sender that has taken them is answered."""
        self._left += count
        self._taken -= Counter({sender: count})  # A sender without bytes is forgotten.


class Request:
    """A request."""

    def __init__(self, scope: Scope, receive: Receive, proxies: Proxies = NO_PROXIES) -> None:
        self.method: str = scope["method"]
        self.path = str(scope["path"]).removeprefix(str(scope.get("root_path") or "").rstrip("/")) or "/"
        self.headers: dict[str, str] = {}
        self.repeated: set[str] = set()
        """The names of headers that came more than once."""
        for name, value in scope["headers"]:
            key = name.decode("latin-1").lower()
            own = value.decode("latin-1")
            if key in self.headers:
                # Two of one name could mean two things to two readers; joined they match no signature.
                self.repeated.add(key)
                own = f"{self.headers[key]}, {own}"
            self.headers[key] = own
        client = scope.get("client")
        self.peer = str(client[0]) if client else ""
        """Where the connection comes from; empty if that is not known."""
        self.address = proxies.sender(self.peer, self.headers.get(FORWARDED_FOR, ""))
        """Where the request comes from: as listed proxies say, if one of them has sent it."""
        self.http_version = str(scope.get("http_version") or "1.1")
        self._scope, self._receive = scope, receive
        self._is_gone = False
        """Whether its sender has closed the connection."""
        self._has_none = self.headers.get("content-length", "0") == "0" and "transfer-encoding" not in self.headers
        """Whether it has no body."""
        self._is_read = self._has_none
        self._budget: ByteBudget | None = None
        self._sender = ""
        self._taken = 0
        """Bytes of that budget."""

    @cached_property
    def query(self) -> dict[str, str]:
        """The parameters behind the question mark, the last one of each name."""
        return dict(parse_qsl(self._scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True))

    async def body(
        self, *, bytes_max: int, seconds: float, budget: ByteBudget | None = None, sender: str = ""
    ) -> bytes:
        """The body, as it was sent. Its bytes count in a budget, if there is one, as those of the sender, from when
        they arrive until `close`.

        Raises:
            Problem: it is larger than that, or than what the budget has left, or has not arrived within so many
                seconds. Gone: the sender has closed the connection.
        """
        self._budget, self._sender = budget, sender
        try:
            async with asyncio.timeout(seconds):
                return await self._whole(bytes_max)
        except TimeoutError:
            late = f"the body has not arrived within {seconds:g} s"
            raise refusal(408, late, {"connection": "close"}) from None

    @property
    def size(self) -> int:
        """How many bytes of its body have arrived and count."""
        return self._taken

    def close(self) -> None:
        """It is answered: give back what its body took."""
        if self._budget is not None:
            self._budget.give_back(self._taken, self._sender)
            self._taken = 0

    async def answer(self, send: Send, body: bytes) -> None:
        """Send the whole body of an answer.

        Most senders read it only after they have sent all of theirs, and a connection that is closed before takes the
        answer back. So the answer ends when what is left of the body of the request was read and dropped, up to a
        limit.
        """
        if not self._is_read:
            await send({"type": "http.response.body", "body": body, "more_body": True})
            await self._drop_rest()
            body = b""
        await send({"type": "http.response.body", "body": body})

    async def _drop_rest(self) -> None:
        size = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(UNREAD_SECONDS):
                while not self._is_read and size < UNREAD_BYTES_MAX:
                    size += len(await self._part())

    async def _part(self) -> bytes:
        """A part of the body; the last one is marked."""
        message = await self._receive()
        self._is_read = not message.get("more_body")
        self._is_gone = message["type"] == "http.disconnect"
        return bytes(message.get("body", b""))

    async def _whole(self, bytes_max: int) -> bytes:
        length = self.headers.get("content-length", "0")
        if not length.isascii() or not length.isdecimal():
            raise refusal(400, "the header Content-Length is not a number")
        if len(length) > DIGITS_MAX or int(length) > bytes_max:
            raise _too_large(bytes_max)
        # No list of parts: many small ones would take twenty times the bytes that are counted.
        body = bytearray()
        while True:
            part = await self._part()
            if self._is_gone:
                raise Gone
            body += part
            if len(body) > bytes_max:
                raise _too_large(bytes_max)
            self._take(len(part))
            if self._is_read:
                break
        if not body and not self._has_none and "upgrade" in self.headers:
            # A parser that hears of another protocol takes what follows for that one.
            raise refusal(400, "the body behind a header Upgrade cannot be read; leave that header out")
        return bytes(body)

    def _take(self, count: int) -> None:
        if self._budget is not None:
            if not self._budget.take(count, self._sender):
                raise _too_busy()
            self._taken += count


def _too_large(bytes_max: int) -> Problem:
    # Not a name in the function that raises it: the error, its traceback and that frame would refer to each other, and
    # the parts that have arrived would stay until the garbage collector comes by.
    return refusal(413, f"the body is larger than {bytes_max:,} bytes")


def _too_busy() -> Problem:
    detail = "the requests under way have as many bytes together as this server takes; send it again later"
    return refusal(503, detail, {"retry-after": str(BUSY_SECONDS)})


def in_time(send: Send, seconds: float) -> Send:
    """A `send` that raises `Unread` when a message was not taken within this time."""

    async def send_in_time(message: MutableMapping[str, Any]) -> None:
        try:
            async with asyncio.timeout(seconds):
                await send(message)
        except TimeoutError:
            raise Unread from None

    return send_in_time


async def answer(
    send: Send, request: Request, status: int, data: Any, headers: Mapping[str, str] | None = None
) -> None:
    """Answer with JSON."""
    body = msgspec.json.encode(data)
    own = {"content-type": "application/json", "content-length": str(len(body)), **(headers or {})}
    lines = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in own.items()]
    await send({"type": "http.response.start", "status": status, "headers": [*SECURITY, *lines]})
    await request.answer(send, body)


async def send_to_gone(send: Send) -> None:
    """Answer a request whose sender has gone. No one reads it, but middleware of an application around us takes a
    request without an answer for a failure of ours."""
    with suppress(OSError):  # Some servers raise it for a connection that is closed.
        await send({"type": "http.response.start", "status": GONE, "headers": [*SECURITY, (b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})


async def live(receive: Receive, send: Send) -> None:
    """Take part in the start and the end of the server, for which there is nothing to do."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
