"""The answer of an HTTP/1.1 server, read from a stream of bytes within bounds.

h11 reads the protocol: the head, and a body that ends with its length, with its last chunk or with the connection. The
bounds are ours: of the head, of the answers before the real one, of the body as it was sent and of the body unpacked.
"""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import h11

from outlive.errors.outside import AnswerError

HEAD_BYTES_MAX = 64 * 1024
HEADERS_MAX = 200
INTERIM_MAX = 8
"""Answers of the kind 1xx before the real one."""
READ_BYTES = 64 * 1024

_VERSIONS = (b"1.0", b"1.1")
_TOO_LONG = 431
"""The status by which h11 says that a head, or a line between two parts of a body, is longer than it may be."""
_WINDOW_BITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer of a server."""

    status: int
    headers: dict[str, str]
    """By lower-case name; what came more than once is joined with commas, and `set-cookie` with line breaks."""
    body: bytes
    url: str = ""
    """Where it came from, after redirects."""

    @property
    def media_type(self) -> str:
        """Without its parameters, in lower case."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def text(self) -> str:
        """The body as text, in the charset that it names."""
        found = re.search(r"charset=\"?([\w-]+)", self.headers.get("content-type", ""), re.IGNORECASE)
        try:
            return self.body.decode(found[1] if found else "utf-8", "replace")
        except LookupError:
            return self.body.decode("utf-8", "replace")


async def read_answer(
    reader: asyncio.StreamReader,
    connection: h11.Connection,
    *,
    origin: str,
    bytes_max: int,
    is_complete: Callable[[bytes], bool] | None = None,
) -> Answer:
    """Read one answer.

    Args:
        connection: knows the request, on which it depends whether the answer has a body.
        is_complete: asked with the body so far; when it says True the rest is not waited for.

    Raises:
        AnswerError: it is not one, or larger than allowed.
        EOFError: the connection ended in the middle of it.
    """
    head = await _read_head(reader, connection, origin)
    headers = _joined(head.headers)
    length = int(headers.get("content-length", 0))
    body = bytearray()
    while isinstance(event := await _next_event(reader, connection, origin), h11.Data):
        body += event.data
        if max(len(body), length) > bytes_max:
            raise _too_large(origin, bytes_max)
        if is_complete is not None and is_complete(bytes(body)):
            break
    return Answer(status=head.status_code, headers=headers, body=_decoded(bytes(body), headers, origin, bytes_max))


async def _read_head(reader: asyncio.StreamReader, connection: h11.Connection, origin: str) -> h11.Response:
    for _ in range(INTERIM_MAX + 1):
        event = await _next_event(reader, connection, origin)
        if isinstance(event, h11.InformationalResponse):
            continue
        if not isinstance(event, h11.Response) or event.http_version not in _VERSIONS:
            break
        if len(event.headers) > HEADERS_MAX:
            raise AnswerError(origin, f"has more than {HEADERS_MAX} headers")
        if sum(len(name) + len(value) + 4 for name, value in event.headers) > HEAD_BYTES_MAX:
            raise _long_head(origin)
        return event
    else:
        raise AnswerError(origin, f"is more than {INTERIM_MAX} times not the last one (1xx)")
    raise AnswerError(origin, "is not HTTP/1.1")


async def _next_event(reader: asyncio.StreamReader, connection: h11.Connection, origin: str) -> object:
    """The next part of an answer.

    Raises:
        AnswerError: the server may not send that.
        EOFError: the connection ended before the answer did.
    """
    has_ended = False
    while True:
        try:
            event = connection.next_event()
        except h11.RemoteProtocolError as error:
            if has_ended:
                raise EOFError("it ended before the answer did") from None
            if error.error_status_hint == _TOO_LONG:
                raise _long_head(origin) from None
            raise AnswerError(origin, f"is not HTTP/1.1: {error}") from None
        if event is not h11.NEED_DATA:
            return event
        data = await reader.read(READ_BYTES)
        has_ended = not data
        connection.receive_data(data)


def _joined(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("ascii"), raw_value.decode("latin-1")
        if name in found:
            value = f"{found[name]}{chr(10) if name == 'set-cookie' else ', '}{value}"
        found[name] = value
    return found


def _long_head(origin: str) -> AnswerError:
    return AnswerError(origin, f"has a head or a line of more than {HEAD_BYTES_MAX} bytes")


def _decoded(body: bytes, headers: dict[str, str], origin: str, bytes_max: int) -> bytes:
    """Some servers compress although the request asks them not to."""
    coding = headers.get("content-encoding", "identity").lower()
    if coding == "identity" or not body:
        return body
    if coding not in _WINDOW_BITS:
        raise AnswerError(origin, f"is encoded as {coding[:40]!r}, which was not asked for")
    unpacker = zlib.decompressobj(_WINDOW_BITS[coding])
    try:
        text = unpacker.decompress(body, bytes_max + 1)
    except zlib.error as error:
        raise AnswerError(origin, f"is not valid {coding}: {error}") from None
    if len(text) > bytes_max:
        raise _too_large(origin, bytes_max)
    if not unpacker.eof:
        raise AnswerError(origin, f"is not valid {coding}: its end is missing")
    return text


def _too_large(origin: str, bytes_max: int) -> AnswerError:
    return AnswerError(origin, f"is larger than {bytes_max} bytes; allow more with `bytes_max`, or ask for less")
