"""What the server says to clients that send no HTTP, and what it keeps of those that are gone."""

from __future__ import annotations

import asyncio
import re
import socket
import struct
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from outlive.http import Api
from outlive.http.connection import AHEAD_MAX, HEAD_BYTES_MAX, Guarded, guarded
from outlive.http.exchange import SECURITY
from outlive.http.server import new_server, serve
from outlive.testing import TestEngine

GET = b"GET /health/live HTTP/1.1\r\nhost: localhost\r\n"


POST = b"POST /api/v1/runs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
CHUNKED = POST + b"transfer-encoding: chunked\r\n\r\n"


@asynccontextmanager
async def served(protocol: Any, app: Any = None) -> AsyncIterator[int]:
    """The port of a server whose connections are of this class."""
    async with TestEngine() as engine:
        server = new_server(app or Api(engine), port=0)
        server.config.http = guarded(protocol, header_seconds=0.05)
        port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        task = asyncio.ensure_future(serve(server, ready=lambda url: port.set_result(int(url.rpartition(":")[2]))))
        yield await port
        server.should_exit = True
        await task


async def said(port: int, *parts: bytes) -> bytes:
    """Everything that the server says to this until it closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with suppress(ConnectionError):
        for part in parts:
            writer.write(part)
            await writer.drain()
    answer = await reader.read()
    writer.close()
    return answer


def check_head(answer: bytes) -> None:
    """See that an answer has the headers of all others, though no app has given it."""
    lines = answer.partition(b"\r\n\r\n")[0].split(b"\r\n")
    assert set(lines) >= {b": ".join(each) for each in (*SECURITY, (b"content-type", b"application/problem+json"))}


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (b"hello\r\n\r\n", b"HTTP/1.1 400 "),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"HTTP/1.1 4"),
        (GET + b"no colon\r\n\r\n", b"HTTP/1.1 400 "),
        (GET + b"x: " + b"y" * 30 * HEAD_BYTES_MAX + b"\r\n\r\n", b"HTTP/1.1 431 "),
        (GET + b"x: " + b"y" * 2 * HEAD_BYTES_MAX, b"HTTP/1.1 431 "),
        (GET + b"x: " + b"y" * 2 * HEAD_BYTES_MAX + b"\r\n\r\n", b"HTTP/1.1 431 "),
        (b"GET /" + b"y" * HEAD_BYTES_MAX + b" HTTP/1.1\r\nhost: localhost\r\n\r\n", b"HTTP/1.1 431 "),
        (b"GET /health/live HTTP/1.1\r\n\r\n", b"HTTP/1.1 400 "),
        (GET + b"host: example.org\r\n\r\n", b"HTTP/1.1 400 "),
        (POST + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}", b"HTTP/1.1 400 "),
        (POST + b"content-length: 2\r\ntransfer-encoding: rot13\r\n\r\n{}", b"HTTP/1.1 400 "),
        (CHUNKED + b"zz\r\n", b"HTTP/1.1 400 "),
        (CHUNKED + b"2\r\n{}\r\n0\r\nx: " + b"y" * 20 * HEAD_BYTES_MAX, b"HTTP/1.1 400 "),
        (CHUNKED + b"2\r\n{}\r\n0\r\n" + b"x: y\r\n" * HEAD_BYTES_MAX, b"HTTP/1.1 400 "),
    ],
    ids=lambda given: given[:40].decode("latin-1").encode("unicode_escape").decode() + f"-{len(given)}",
)
async def test_what_is_no_request_has_an_answer(protocol: Any, sent: bytes, answer: bytes) -> None:
    """A problem with a name, as everything else that is refused; then the connection is closed. [S13]"""
    async with served(protocol) as port:
        found = await said(port, sent)

    assert found.startswith(answer)
    check_head(found)
    assert b"application/problem+json" in found
    assert b'"error":' in found


async def test_nothing_keeps_what_a_client_has_sent_that_is_gone(
    protocol: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even the timer of its idle connection, when it has reset that one after the answer."""
    gone: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    lose = Guarded.connection_lost

    def connection_lost(self: Any, exc: Exception | None) -> None:
        lose(self, exc)
        gone.set_result((self.timeout_keep_alive_task, bytes(self.cycle.body)))

    monkeypatch.setattr(Guarded, "connection_lost", connection_lost)
    async with served(protocol) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(POST + b"content-length: 9999999\r\n\r\n" + b"x" * 50_000)
        assert (await reader.readline()).startswith(b"HTTP/1.1 413 ")
        client = writer.get_extra_info("socket")
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

        assert (None, b"") == await gone


async def test_small_parts_of_an_answer_are_sent_at_once(protocol: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each answer takes the 40 ms for which the system of a client keeps back an acknowledgement."""
    made: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    make = Guarded.connection_made

    def connection_made(self: Any, transport: Any) -> None:
        make(self, transport)
        made.set_result(transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    monkeypatch.setattr(Guarded, "connection_made", connection_made)
    async with served(protocol) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await made
        writer.close()


async def test_a_large_body_in_one_part_with_its_head_is_no_large_head(protocol: Any) -> None:
    """Only what comes before the empty line counts."""
    body = b'{"workflow": "%b"}' % (b"x" * 3 * HEAD_BYTES_MAX)
    async with served(protocol) as port:
        found = await said(port, POST + b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body) + body)

    assert found.startswith(b"HTTP/1.1 4")
    assert b"HeadTooLarge" not in found


async def test_requests_ahead_of_their_answers_are_answered_in_turn(protocol: Any) -> None:
    """As HTTP/1.1 lets clients send them."""
    missing = b"GET /nothing HTTP/1.1\r\nhost: localhost\r\n\r\n"
    async with served(protocol) as port:
        found = await said(port, GET + b"\r\n" + missing + GET + b"connection: close\r\n\r\n")

    assert [b"200", b"404", b"200"] == re.findall(rb"HTTP/1.1 (\d+)", found)


async def test_what_follows_a_request_takes_nothing_from_its_answer(protocol: Any) -> None:
    """The request is done and answered; what is behind it cannot be read, and the connection is closed."""
    async with served(protocol) as port:
        found = await said(port, GET + b"\r\n" + b"\x00hello\r\n\r\n")

    assert found.startswith(b"HTTP/1.1 200 ")


class Line:
    """A transport that notes how it is called."""

    def __init__(self) -> None:
        self.sent = b""
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self.sent += b"" if self.is_closed else data

    def close(self) -> None:
        self.is_closed = True

    abort = write_eof = close

    def is_closing(self) -> bool:
        return self.is_closed

    def get_extra_info(self, name: str) -> None:
        """Nothing."""

    def pause_reading(self) -> None:
        """It is given no more than it can take."""

    resume_reading = pause_reading


async def test_a_sender_that_reads_after_its_body_gets_to_know_that_it_is_too_large(protocol: Any) -> None:
    """As `urllib` does, which wants the connection closed then."""
    body = b" " * 12 * 1024 * 1024
    async with served(protocol) as port:
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{port}/api/v1/runs", body, headers)
        with pytest.raises(urllib.error.HTTPError, match="413") as refused:
            await asyncio.to_thread(urllib.request.urlopen, request)
        refused.value.close()
        answers = await said(port, POST + b"connection: close\r\ncontent-length: 9999999\r\n\r\n" + body[:9999999], GET)
        assert answers.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    ("parts", "answered"),
    [
        pytest.param([GET + b"\r\n", (GET + b"\r\n") * (AHEAD_MAX + 1)], 0, id="many requests"),
        pytest.param([GET + b"\r\n", GET + b"x: ", *[b"y" * 1024] * 33], 1, id="a large head"),
        pytest.param([CHUNKED, b"2\r\n{}\r\n", b"0\r\nx: ", *[b"y" * 1024] * 33], 0, id="a large line after a body"),
        pytest.param([CHUNKED, b"2;", *[b"y" * 1024] * 33], 0, id="a large line before a chunk"),
    ],
)
async def test_what_comes_while_a_request_is_under_way_has_a_limit(parts: list[bytes], answered: int) -> None:
    """httptools reads it, and has no limit of its own. The request is answered if it is there as a whole, and the
    connection is closed."""
    go = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await go.wait()
        if scope["method"] == "POST":
            while (await receive()).get("more_body"):
                pass
            return
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    config = new_server(app).config
    config.load()
    line, connection = Line(), guarded(HttpToolsProtocol)(config, ServerState(), {})
    connection.connection_made(line)
    for part in parts:
        connection.data_received(part)
    go.set()
    for task in list(connection.tasks):
        await task
    await asyncio.sleep(0)
    connection.connection_lost(None)

    assert answered == line.sent.count(b"HTTP/1.1 200 ")
    assert line.is_closed


async def test_a_body_behind_an_upgrade_is_refused() -> None:
    """httptools leaves it out: the app would get half of the request."""
    async with served(HttpToolsProtocol) as port:
        found = await said(port, POST + b"upgrade: h2c\r\nconnection: upgrade\r\ncontent-length: 2\r\n\r\n{}")
        fine = await said(port, GET + b"upgrade: h2c\r\nconnection: upgrade, close\r\n\r\n")

    assert found.startswith(b"HTTP/1.1 400 ")
    assert fine.startswith(b"HTTP/1.1 200 ")


async def test_a_server_without_httptools_parses_with_h11(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it cannot be installed, the limits are the same."""
    monkeypatch.setattr("outlive.http.connection.find_spec", lambda name: None)
    without = new_server(None).config.http
    monkeypatch.undo()

    assert [H11Protocol, HttpToolsProtocol] == [without.__bases__[1], new_server(None).config.http.__bases__[1]]
    assert {Guarded} <= set(without.__mro__)
