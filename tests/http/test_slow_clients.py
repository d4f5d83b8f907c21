"""Clients that are slow on purpose: sockets that say nothing, headers byte by byte, answers that are not read."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import pytest

from outlive.http.connection import guarded
from outlive.http.server import STOP_SECONDS, new_server, serve

HEAD = b"GET / HTTP/1.1\r\nhost: localhost\r\n"
LATE = b"HTTP/1.1 408 "
LARGE = b"x" * (8 * 1024 * 1024)


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answers what fits the path: a little, or more than any buffer holds."""
    body = LARGE if scope["path"] == "/large" else b"fine"
    length = str(len(body)).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
    for begin in range(0, len(body), 64 * 1024):
        await send({"type": "http.response.body", "body": body[begin : begin + 64 * 1024], "more_body": True})
    await send({"type": "http.response.body", "body": b""})


@asynccontextmanager
async def serving(protocol: Any, what: Any = app, **limits: Any) -> AsyncIterator[int]:
    """A server with these limits; its port."""
    server = new_server(what, port=0)
    server.config.http_protocol_class = server.config.http = guarded(protocol, **limits)
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = asyncio.ensure_future(serve(server, ready=ready.set_result))
    try:
        yield int((await ready).rpartition(":")[2])
    finally:
        server.should_exit = True
        await task


@asynccontextmanager
async def connected(port: int, said: bytes = b"") -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection to the server, which finds there what was said when it looks for the first time."""
    client = socket.create_connection(("127.0.0.1", port))
    client.sendall(said)
    reader, writer = await asyncio.open_connection(sock=client)
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def closed(reader: asyncio.StreamReader) -> bytes:
    """What is sent until the connection is closed."""
    return await asyncio.wait_for(reader.read(), 10)


async def test_connections_beyond_the_limit_are_refused_and_the_others_served(protocol: Any) -> None:
    """With a problem that says when to come again; those that were there first do not notice."""
    async with (
        serving(protocol, connections_max=2) as port,
        connected(port) as (first, writer),
        connected(port, HEAD + b"\r\n") as (second, _),
    ):
        await second.readuntil(b"fine")
        async with connected(port, HEAD + b"\r\n") as (third, _):
            refused = await third.readuntil(b"}")
        writer.write(HEAD + b"\r\n")
        answer = await first.readuntil(b"fine")

    assert refused.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert b"application/problem+json" in refused
    assert b"retry-after: 5\r\n" in refused
    assert b'"error":"TooManyConnections"' in refused
    assert answer.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("said", [b"", HEAD[:9], HEAD], ids=["nothing", "half a line", "half a header"])
async def test_a_connection_without_a_request_is_closed(protocol: Any, said: bytes) -> None:
    """However little it has said, and also after a request that was answered. [S35]"""
    async with serving(protocol, header_seconds=0.02) as port:
        async with connected(port, said) as (reader, _):
            assert (await closed(reader)).startswith(LATE)
        async with connected(port, HEAD + b"\r\n") as (reader, writer):
            await reader.readuntil(b"fine")
            writer.write(said or HEAD)
            assert (await closed(reader)).startswith(LATE)


async def test_an_answer_that_is_not_read_is_given_up(protocol: Any) -> None:
    """Else it would lie in the memory of the server for as long as its reader likes. [S35]"""
    ended = asyncio.Event()

    async def watched(scope: Any, receive: Any, send: Any) -> None:
        await app(scope, receive, send)
        ended.set()

    async with serving(protocol, watched, read_seconds=0.02) as port:
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.setblocking(False)
            await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", port))
            await asyncio.get_running_loop().sock_sendall(client, HEAD.replace(b"/ ", b"/large ") + b"\r\n")
            await asyncio.wait_for(ended.wait(), 10)


async def test_an_answer_is_given_up_that_a_sender_of_half_a_body_does_not_read(protocol: Any) -> None:
    """Its connection waits for the rest of the body, and that is no reason to keep the answer for ever. [S35]"""
    lost = asyncio.Event()

    class Watched(protocol):  # type: ignore[misc]
        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            lost.set()

    async def in_one_piece(scope: Any, receive: Any, send: Any) -> None:
        length = str(len(LARGE)).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
        await send({"type": "http.response.body", "body": LARGE})

    async with serving(Watched, in_one_piece, read_seconds=0.02) as port:
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.setblocking(False)
            await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", port))
            half = HEAD + b"connection: close\r\ncontent-length: 9\r\n\r\nhalf"
            await asyncio.get_running_loop().sock_sendall(client, half)
            await asyncio.wait_for(lost.wait(), 5)


async def test_a_server_does_not_wait_for_half_a_body_when_it_stops(protocol: Any) -> None:
    """Of a request that was answered; its sender has a moment to read that."""
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as after:
        async with serving(protocol) as port:
            half = HEAD + b"content-length: 9\r\n\r\nhalf"
            reader, _ = await after.enter_async_context(connected(port, half))
            await reader.readuntil(b"fine")
            asked_at = loop.time()
        assert loop.time() - asked_at < STOP_SECONDS / 2


async def test_a_client_in_time_is_left_alone(protocol: Any) -> None:
    """A whole large answer, then another request on the same connection."""
    async with serving(protocol) as port, connected(port) as (reader, writer):
        for path, size in ((b"/large", len(LARGE)), (b"/", 4)):
            writer.write(b"GET %s HTTP/1.1\r\nhost: localhost\r\n\r\n" % path)
            await reader.readuntil(b"\r\n\r\n")
            assert len(await reader.readexactly(size)) == size


async def test_many_idle_sockets_leave_room_for_others(protocol: Any) -> None:
    """They are closed after a while, and requests are answered meanwhile. [S35]"""
    async with serving(protocol, header_seconds=0.2) as port, AsyncExitStack() as open_ones:
        idle = [await open_ones.enter_async_context(connected(port)) for _ in range(100)]
        reader, _ = await open_ones.enter_async_context(connected(port, HEAD + b"\r\n"))
        await asyncio.wait_for(reader.readuntil(b"fine"), 5)
        assert {(await closed(each))[: len(LATE)] for each, _ in idle} == {LATE}
