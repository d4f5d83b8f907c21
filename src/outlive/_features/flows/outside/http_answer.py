"""The answer of an HTTP/1.1 server, read from a stream of bytes within bounds.

Of the protocol this is what a client needs that asks once for each connection: the head, and a body that ends with its
length, with its last chunk or with the connection. What a server may not send is refused and not guessed at.
"""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from outlive.errors.outside import AnswerError

HEAD_BYTES_MAX = 64 * 1024
HEADERS_MAX = 200
INTERIM_MAX = 8
"""Answers of the kind 1xx before the real one."""
READ_BYTES = 64 * 1024

_STATUS = re.compile(rb"HTTP/1\.[01] ([1-9][0-9]{2})(?: [\t -~\x80-\xff]*)?")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t -~\x80-\xff]*)")
_LENGTH = re.compile(r"[0-9]{1,15}")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,12})[ \t]*(?:;[^\r\n]*)?\r\n")
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
    *,
    origin: str,
    method: str,
    bytes_max: int,
    is_complete: Callable[[bytes], bool] | None = None,
) -> Answer:
    """Read one answer.

    Args:
        is_complete: asked with the body so far; when it says True the rest is not waited for.

    Raises:
        AnswerError: it is not one, or larger than allowed.
        EOFError: the connection ended in the middle of it.
    """
    for _ in range(INTERIM_MAX):
        status, headers = await _read_head(reader, origin)
        if status >= 200:
            break
        if status == 101:
            raise AnswerError(origin, "changes the protocol, which was not asked for")
    else:
        raise AnswerError(origin, f"is more than {INTERIM_MAX} times not the last one (1xx)")
    if method == "HEAD" or status in (204, 304):
        return Answer(status=status, headers=headers, body=b"")
    body = bytearray()
    async for part in _parts(reader, origin, headers, bytes_max):
        body += part
        if len(body) > bytes_max:
            raise _too_large(origin, bytes_max)
        if is_complete is not None and is_complete(bytes(body)):
            break
    return Answer(status=status, headers=headers, body=_decoded(bytes(body), headers, origin, bytes_max))


async def _read_head(reader: asyncio.StreamReader, origin: str) -> tuple[int, dict[str, str]]:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise AnswerError(origin, f"has a head of more than {HEAD_BYTES_MAX} bytes") from None
    first, *lines = head[:-4].split(b"\r\n")
    match = _STATUS.fullmatch(first)
    if match is None:
        raise AnswerError(origin, f"is no HTTP/1.1: it begins with {first[:40]!r}")
    if len(lines) > HEADERS_MAX:
        raise AnswerError(origin, f"has more than {HEADERS_MAX} headers")
    headers: dict[str, str] = {}
    for line in lines:
        found = _HEADER.fullmatch(line)
        if found is None:
            raise AnswerError(origin, f"has a header that is none: {line[:40]!r}")
        name, value = found[1].decode("ascii").lower(), found[2].decode("latin-1").strip()
        if name in headers:
            value = f"{headers[name]}{chr(10) if name == 'set-cookie' else ', '}{value}"
        headers[name] = value
    return int(match[1]), headers


async def _parts(
    reader: asyncio.StreamReader, origin: str, headers: dict[str, str], bytes_max: int
) -> AsyncIterator[bytes]:
    coding = headers.get("transfer-encoding")
    if coding is not None:
        if coding.lower() != "chunked":
            raise AnswerError(origin, f"is transferred as {coding[:40]!r}, which was not asked for")
        async for part in _chunks(reader, origin, bytes_max):
            yield part
    elif (length := headers.get("content-length")) is not None:
        # One length, given twice, is accepted. Two lengths are an attempt to hide an answer in an answer.
        lengths = set(length.split(", "))
        if len(lengths) != 1 or not _LENGTH.fullmatch(length := lengths.pop()):
            raise AnswerError(origin, f"has the length {length[:40]!r}")
        left = int(length)
        if left > bytes_max:
            raise _too_large(origin, bytes_max)
        while left:
            part = await reader.read(min(left, READ_BYTES))
            if not part:
                raise EOFError(f"{left} bytes are missing")
            left -= len(part)
            yield part
    else:
        while part := await reader.read(READ_BYTES):
            yield part


async def _chunks(reader: asyncio.StreamReader, origin: str, bytes_max: int) -> AsyncIterator[bytes]:
    while True:
        match = _CHUNK.fullmatch(await _line(reader, origin))
        if match is None:
            raise AnswerError(origin, "has a chunk without a size")
        left = int(match[1], 16)
        if not left:
            break
        if left > bytes_max:
            raise _too_large(origin, bytes_max)
        while left:
            part = await reader.read(min(left, READ_BYTES))
            if not part:
                raise EOFError(f"{left} bytes of a chunk are missing")
            left -= len(part)
            yield part
        if await reader.readexactly(2) != b"\r\n":
            raise AnswerError(origin, "has a chunk that is longer than it says")
    for _ in range(HEADERS_MAX):  # Headers after the body mean nothing to a flow.
        if await _line(reader, origin) == b"\r\n":
            return
    raise AnswerError(origin, f"has more than {HEADERS_MAX} headers after its body")


async def _line(reader: asyncio.StreamReader, origin: str) -> bytes:
    try:
        return await reader.readuntil(b"\r\n")
    except asyncio.LimitOverrunError:
        raise AnswerError(origin, "has a line that does not end") from None


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
        raise AnswerError(origin, f"is no {coding}: {error}") from None
    if len(text) > bytes_max:
        raise _too_large(origin, bytes_max)
    if not unpacker.eof:
        raise AnswerError(origin, f"is no {coding}: its end is missing")
    return text


def _too_large(origin: str, bytes_max: int) -> AnswerError:
    return AnswerError(origin, f"is larger than {bytes_max} bytes; allow more with `bytes_max`, or ask for less")
