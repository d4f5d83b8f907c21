"""Connections to a server: how many are kept, and what becomes of a call that was stopped."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import outlive
from outlive.remote.transport import KEPT_MAX, Answer, Call, Transport

SECONDS = 30.0


class Server(ThreadingHTTPServer):
    """Answers when as many requests are there as it waits for, and counts the connections that come and go."""

    daemon_threads = True
    request_queue_size = 2 * KEPT_MAX

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.opened, self.closed = 0, threading.Semaphore(0)
        self.together = threading.Barrier(1)


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
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

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
