"""Connections to a server: how many are kept, and what becomes of a call that was stopped."""

from __future__ import annotations

import asyncio
import http.client
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import outlive
from outlive.errors import InvalidArgumentError
from outlive.remote.transport import KEPT_MAX, SILENCE_SECONDS, Answer, Call, Transport

SECONDS = 30.0


class Server(ThreadingHTTPServer):
    """Answers when as many requests are there as it waits for, and counts the connections that come and go."""

    daemon_threads = True
    request_queue_size = 2 * KEPT_MAX

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.opened, self.closed = 0, threading.Semaphore(0)
        self.together = threading.Barrier(1)
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.shown = threading.Event()
        """Set when the streams end."""


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: Server

    def setup(self) -> None:
        """A connection came."""
        super().setup()
        self.server.opened += 1

    def finish(self) -> None:
        """It went."""
        super().finish()
        self.server.closed.release()

    def do_GET(self) -> None:
        """Answer with nothing, when all are there."""
        self.server.together.wait(SECONDS)
        self.server.asked.append((f"{self.command} {self.path}", {k.lower(): v for k, v in self.headers.items()}))
        if self.path == "/noise":
            self.wfile.write(b"noise\r\n")
            return
        self.send_response(200)
        if self.headers["accept"] == "text/event-stream":
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            self.server.shown.wait(SECONDS)
            self.close_connection = True
            return
        self.send_header("content-length", "0")
        self.end_headers()

    def do_DELETE(self) -> None:
        """The same."""
        self.do_GET()

    def do_POST(self) -> None:
        """Read what is sent first."""
        self.rfile.read(int(self.headers["content-length"]))
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that runs."""
    with Server() as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        yield server
        server.shutdown()
        serving.join()


@pytest.fixture
def transport(server: Server) -> Iterator[Transport]:
    """A client of it."""
    transport = Transport(f"http://127.0.0.1:{server.server_port}", key=None, timeout=SECONDS)
    yield transport
    transport.close()


def send(transport: Transport, call: Call) -> Answer:
    """One request."""
    return transport.send("GET", "/", key="k", timeout=SECONDS, call=call)


def test_a_call_that_was_stopped_before_it_began_sends_nothing(server: Server, transport: Transport) -> None:
    """The thread that was to send it may come late to it."""
    call = Call()
    call.stop()

    with pytest.raises(ConnectionAbortedError, match="was stopped"):
        send(transport, call)

    assert server.opened == 0


def test_connections_are_kept_up_to_a_limit(server: Server, transport: Transport) -> None:
    """A burst of requests opens as many connections; one more than are kept is closed, and later requests open none."""
    burst = KEPT_MAX + 1
    server.together = threading.Barrier(burst)
    with ThreadPoolExecutor(burst) as pool:
        answers = list(pool.map(lambda _: send(transport, Call()), range(burst)))
    assert [answer.status for answer in answers] == [200] * burst

    assert server.closed.acquire(timeout=SECONDS)
    server.together = threading.Barrier(1)
    for _ in range(KEPT_MAX):
        send(transport, Call())

    assert server.opened == burst
    transport.close()
    for _ in range(KEPT_MAX):
        assert server.closed.acquire(timeout=SECONDS)


async def test_a_connection_says_which_server_it_talks_to() -> None:
    """A program that has several of them can tell them apart."""
    remote = outlive.connect("https://runs.example.com:8443/api", key="secret")

    assert remote.url == "https://runs.example.com:8443"
    assert repr(remote) == "<Remote https://runs.example.com:8443>"


def test_a_request_has_the_headers_that_it_needs(server: Server) -> None:
    """A request that changes something has a key by which it is known again. A request with a body says of which kind
    it is, and each has the key of the caller. The path of the address comes first, and what was not given is not in the
    query."""
    transport = Transport(f"http://127.0.0.1:{server.server_port}/a b/", key="secret", timeout=SECONDS)
    query = {"tag": ["a=1", "b=2"], "after": None, "limit": 3}
    transport.send("GET", "/runs", query=query, key="k", timeout=SECONDS, call=Call())
    transport.send("POST", "/runs", body=b"{}", key="k", timeout=SECONDS, call=Call())
    transport.send("DELETE", "/runs", key="k", timeout=SECONDS, call=Call())
    transport.listen("/follow", last_id="7", call=Call()).close()
    transport.close()

    server.shown.set()
    common = {
        "accept": "application/json",
        "accept-encoding": "gzip",
        "authorization": "Bearer secret",
        "host": f"127.0.0.1:{server.server_port}",
        "user-agent": "outlive",
    }
    stream = common | {"accept": "text/event-stream", "accept-encoding": "identity", "last-event-id": "7"}
    assert server.asked == [
        ("GET /a%20b/runs?tag=a%3D1&tag=b%3D2&limit=3", common),
        (
            "POST /a%20b/runs",
            common | {"content-length": "2", "content-type": "application/json", "idempotency-key": "k"},
        ),
        ("DELETE /a%20b/runs", common | {"idempotency-key": "k"}),
        ("GET /a%20b/follow", stream),
    ]


def test_kept_connection_is_used_again_with_another_time_limit(
    server: Server, transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is connected twice, and each request has its own time."""
    waits: list[float] = []
    send(transport, Call())
    monkeypatch.setattr(socket.socket, "settimeout", lambda self, seconds: waits.append(seconds))
    for seconds in (5.0, 7.0):
        transport.send("GET", "/", key="k", timeout=seconds, call=Call())

    assert server.opened == 1
    assert [it for it in waits if it in (5.0, 7.0)] == [5.0, 7.0]


def test_stream_may_be_silent_for_longer_than_an_answer(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream says that it is alive less often than an answer may take, where callers have little time."""
    waits: list[float] = []
    transport = Transport(f"http://127.0.0.1:{server.server_port}", key=None, timeout=1)
    monkeypatch.setattr(socket.socket, "settimeout", lambda self, seconds: waits.append(seconds))

    transport.listen("/follow", call=Call()).close()

    server.shown.set()
    assert waits[-1] == SILENCE_SECONDS > 1


def test_thread_that_reads_a_stream_is_let_go_when_it_is_closed(server: Server, transport: Transport) -> None:
    """Closing a connection does not wake the thread that reads from it; so the call is stopped."""
    listening = transport.listen("/follow", call=Call())
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(listening.read)
        listening.close()
        assert reading.exception(timeout=SECONDS) is not None or reading.result() is None
    server.shown.set()


def test_connection_that_gave_noise_is_closed(server: Server, transport: Transport) -> None:
    """For a stream as for an answer; the next request has another one."""
    with pytest.raises(http.client.HTTPException):
        transport.listen("/noise", call=Call())
    assert server.closed.acquire(timeout=SECONDS)
    with pytest.raises(http.client.HTTPException):
        transport.send("GET", "/noise", key="k", timeout=SECONDS, call=Call())
    assert server.closed.acquire(timeout=SECONDS)

    send(transport, Call())

    assert server.opened == 3


async def test_closed_connection_gives_its_kept_ones_back(server: Server) -> None:
    """It belongs to the loop that opened it, until it is closed."""
    remote = outlive.connect(f"http://127.0.0.1:{server.server_port}")
    loops = [remote.loop]
    async with remote:
        loops.append(remote.loop)
        with pytest.raises(outlive.errors.ServerError):
            await remote.operate("health.get")

    assert [*loops, remote.loop] == [None, asyncio.get_running_loop(), None]
    assert await asyncio.to_thread(server.closed.acquire, timeout=SECONDS)


def test_an_address_has_two_thousand_characters_at_most() -> None:
    """One more is refused."""
    address = "https://runs.example.com/" + "a" * 1_975

    assert Transport(address, key=None, timeout=1).origin == "https://runs.example.com"
    with pytest.raises(InvalidArgumentError, match="1 to 2,000 characters"):
        Transport(address + "a", key=None, timeout=1)
