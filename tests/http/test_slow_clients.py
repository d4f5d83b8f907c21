"""Clients that are slow on purpose: bodies that do not come, answers that are not read. What a server of ours cannot
limit with ASGI and the documented settings of uvicorn is a reverse proxy's: see docs/guides/deploying.md."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

import outlive
from outlive.http import Api, ApiLimits
from outlive.http.server import STOP_SECONDS
from outlive.testing import TestEngine
from tests.http.caller import served

GET = b"GET /health/live HTTP/1.1\r\nhost: localhost\r\n"
POST = b"POST /api/v1/runs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
FOLLOW = b"GET /api/v1/runs/big/streams/parts HTTP/1.1\r\nhost: localhost\r\n\r\n"

COUNT, SIZE = 20, 256 * 1024


@outlive.workflow
async def slow_clients_big() -> None:
    """Emits more than any buffer holds."""
    for _ in range(COUNT):
        await outlive.emit("parts", "x" * SIZE)


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


async def test_requests_beyond_the_limit_of_connections_are_refused(engine: TestEngine, parser: str) -> None:
    """Up to the limit each one is served."""
    async with (
        served(Api(engine), http=parser, connections_max=2) as port,
        connected(port),
        connected(port, GET + b"\r\n") as (second, _),
    ):
        assert (await second.readuntil(b"}")).startswith(b"HTTP/1.1 200 ")
        async with connected(port, GET + b"\r\n") as (third, _):
            assert (await third.readline()).startswith(b"HTTP/1.1 503 ")


async def test_a_body_that_does_not_arrive_is_not_waited_for(engine: TestEngine, parser: str) -> None:
    """The sender gets an answer, and then the connection is closed. [S35]"""
    api = Api(engine, limits=ApiLimits(body_seconds=0.02))
    async with (
        served(api, http=parser) as port,
        connected(port, POST + b"content-length: 9\r\n\r\nhalf") as (reader, writer),
    ):
        assert (await reader.readuntil(b'."}')).startswith(b"HTTP/1.1 408 ")
        writer.write(b" body")
        assert await asyncio.wait_for(reader.read(), 10) == b""


async def test_a_follower_that_does_not_read_is_given_up(
    engine: TestEngine, parser: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It leaves its place to others. [S35]"""
    caplog.set_level(logging.INFO, "outlive")
    await (await engine.start(slow_clients_big, id="big")).result()
    api = Api(engine, limits=ApiLimits(read_seconds=0.05, followers_max=1))
    async with served(Watched(api, ended := asyncio.Event()), http=parser) as port:
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.setblocking(False)
            await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", port))
            await asyncio.get_running_loop().sock_sendall(client, FOLLOW)
            await asyncio.wait_for(ended.wait(), 10)
            async with connected(port, FOLLOW) as (reader, _):
                assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")

    assert "its answer was not read for 0.05 s" in caplog.text


class Watched:
    """An app that says when it has ended its first answer."""

    def __init__(self, app: Callable[..., Any], ended: asyncio.Event) -> None:
        self._app, self._ended = app, ended

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """See ASGI."""
        try:
            await self._app(scope, receive, send)
        finally:
            self._ended.set()


async def test_a_server_does_not_wait_for_half_a_body_when_it_stops(engine: TestEngine, parser: str) -> None:
    """A server that stops does not wait for the rest of a body whose request it has answered."""
    loop = asyncio.get_running_loop()
    half = GET.replace(b"/health/live", b"/nothing") + b"content-length: 9\r\n\r\nhalf"
    api = Api(engine)
    async with served(api, http=parser) as port, connected(port, half) as (reader, _):
        await reader.readuntil(b"}")
        api.close()
        asked_at = loop.time()
    assert loop.time() - asked_at < STOP_SECONDS / 2


async def test_a_client_in_time_is_left_alone(engine: TestEngine, parser: str) -> None:
    """A large answer whole, then another request on the same connection."""
    await (await engine.start(slow_clients_big, id="big")).result()
    api = Api(engine, limits=ApiLimits(read_seconds=5))
    async with served(api, http=parser) as port, connected(port, FOLLOW) as (reader, writer):
        read = b""
        while not read.endswith(b"\r\n0\r\n\r\n"):
            read += await reader.read(1024 * 1024)
        writer.write(GET + b"\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")

    assert read.count(b"x" * SIZE) == COUNT
