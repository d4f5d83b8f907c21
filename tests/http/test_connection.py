"""What the server says to clients that send no HTTP, and what it keeps of those that are gone."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from outlive.http import Api
from outlive.http.connection import HEAD_BYTES_MAX, Guarded
from outlive.http.server import new_server, serve
from outlive.testing import TestEngine

GET = b"GET /health/live HTTP/1.1\r\nhost: localhost\r\n"


@asynccontextmanager
async def served() -> AsyncIterator[int]:
    """The port of a server."""
    async with TestEngine() as engine:
        server = new_server(Api(engine), port=0, header_seconds=0.05)
        port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        task = asyncio.ensure_future(serve(server, ready=lambda url: port.set_result(int(url.rpartition(":")[2]))))
        yield await port
        server.should_exit = True
        await task


async def said(port: int, *parts: bytes) -> bytes:
    """Everything that the server says to this until it closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for part in parts:
        writer.write(part)
        await writer.drain()
    answer = await reader.read()
    writer.close()
    return answer


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (b"hello\r\n\r\n", b"HTTP/1.1 400 "),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"HTTP/1.1 4"),
        (GET + b"no colon\r\n\r\n", b"HTTP/1.1 400 "),
        (GET + b"x: " + b"y" * 30 * HEAD_BYTES_MAX + b"\r\n\r\n", b"HTTP/1.1 431 "),
        (GET + b"x: " + b"y" * 2 * HEAD_BYTES_MAX, b"HTTP/1.1 431 "),
    ],
)
async def test_what_is_no_request_has_an_answer(sent: bytes, answer: bytes) -> None:
    """A problem with a name, as everything else that is refused; then the connection is closed."""
    async with served() as port:
        found = await said(port, sent)

    assert found.startswith(answer)
    assert b"application/problem+json" in found
    assert b'"error":' in found


async def test_nothing_keeps_what_a_client_has_sent_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even the timer of its idle connection, when it has reset that one after the answer."""
    gone: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    lose = Guarded.connection_lost

    def connection_lost(self: Any, exc: Exception | None) -> None:
        lose(self, exc)
        gone.set_result((self.timeout_keep_alive_task, bytes(self.cycle.body)))

    monkeypatch.setattr(Guarded, "connection_lost", connection_lost)
    post = b"POST /api/v1/runs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    async with served() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(post + b"content-length: 9999999\r\n\r\n" + b"x" * 50_000)
        assert (await reader.readline()).startswith(b"HTTP/1.1 413 ")
        client = writer.get_extra_info("socket")
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

        assert (None, b"") == await gone


async def test_small_parts_of_an_answer_are_sent_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each answer takes the 40 ms for which the system of a client keeps back an acknowledgement."""
    made: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    make = Guarded.connection_made

    def connection_made(self: Any, transport: Any) -> None:
        make(self, transport)
        made.set_result(transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    monkeypatch.setattr(Guarded, "connection_made", connection_made)
    async with served() as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await made
        writer.close()
