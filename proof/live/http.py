"""Requests as clients of the application send them: one connection each, and server-sent events that are read on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

ANSWER_SECONDS = 10.0
HEAD_BYTES_MAX = 65_536


class Answer(msgspec.Struct, frozen=True):
    """What was answered."""

    status: int
    body: Any


@asynccontextmanager
async def opened(
    port: int, method: str, path: str, body: Any = None, *, headers: dict[str, str] | None = None
) -> AsyncIterator[tuple[int, AsyncIterator[bytes]]]:
    """Send a request: the status of its answer, and the parts of its body as they come. Closes the connection at the
    end."""
    content = b"" if body is None else msgspec.json.encode(body)
    lines = [f"{method} {path} HTTP/1.1", "host: localhost", "connection: close", f"content-length: {len(content)}"]
    lines += ["content-type: application/json", *(f"{name}: {value}" for name, value in (headers or {}).items())]
    async with asyncio.timeout(ANSWER_SECONDS):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=HEAD_BYTES_MAX)
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + content)
            head = await reader.readuntil(b"\r\n\r\n")
        is_chunked = b"\r\ntransfer-encoding: chunked\r\n" in head.lower()
        yield int(head.split(b" ", 2)[1]), _chunks(reader) if is_chunked else _until_closed(reader)
    except (asyncio.IncompleteReadError, ValueError) as error:
        raise ConnectionResetError("the connection was closed before the end of the answer") from error
    finally:
        writer.close()


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := int(await reader.readline(), 16):
        yield (await reader.readexactly(size + 2))[:-2]


async def _until_closed(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while part := await reader.read(HEAD_BYTES_MAX):
        yield part


async def ask(port: int, method: str, path: str, body: Any = None) -> Answer:
    """The whole answer.

    Raises:
        OSError: there is none.
    """
    async with opened(port, method, path, body) as (status, parts):
        async with asyncio.timeout(ANSWER_SECONDS):
            said = b"".join([part async for part in parts])
    try:
        return Answer(status, msgspec.json.decode(said) if said else None)
    except msgspec.DecodeError:
        return Answer(status, said.decode("utf-8", "replace"))


async def events(port: int, path: str, *, after: str = "") -> AsyncIterator[tuple[str, str, str]]:
    """Server-sent events: the id, the kind and the data of each, until the server ends or something breaks.

    Raises:
        OSError: the connection broke, or the answer was none of 200.
    """
    headers = {"last-event-id": after} if after else {}
    async with opened(port, "GET", path, headers=headers) as (status, parts):
        if status != 200:
            raise ConnectionRefusedError(f"{path} was answered with {status}")
        found, rest = {"id": after, "event": "message", "data": ""}, b""
        async for part in parts:
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                name, _, value = line.decode("utf-8", "replace").partition(": ")
                if name in found:
                    found[name] = value
                elif not name and found["data"]:
                    yield found["id"], found["event"], found["data"]
                    found |= {"event": "message", "data": ""}
