"""What is made of answers that no etcd in good health gives."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from outlive._lease.etcd.gateway import AwayError, Gateway, LeaseGoneError, RefusedError
from outlive._lease.etcd.leases import ASK_SECONDS, EtcdLeases
from outlive._lease.etcd.place import place_of
from outlive._lease.etcd.wire import Found, Granted, Heard
from outlive._runtime.clock import SystemClock
from outlive._store.memory import MemoryStore
from outlive.errors import StoreUnavailableError


class Stub(HTTPServer):
    """Answers everything the same."""

    status, kind, body = 200, "application/json", b""
    tokens: list[str | None]
    """What each request said about who asks."""

    @property
    def url(self) -> str:
        """As an address of leases."""
        return f"etcd://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Stub
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer as told; whoever authenticates is let in."""
        self.rfile.read(int(self.headers["Content-Length"]))
        is_login = self.path.endswith("authenticate")
        body = b'{"token":"abc"}' if is_login else self.server.body
        if not is_login:
            self.server.tokens.append(self.headers["Authorization"])
        self.send_response(200 if is_login else self.server.status)
        self.send_header("Content-Type", self.server.kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name is the standard library's)
        """Say nothing."""


@pytest.fixture
def stub() -> Iterator[Stub]:
    """A server that is no etcd."""
    with Stub(("127.0.0.1", 0), Handler) as server:
        server.tokens = []
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def gateway(stub: Stub) -> Iterator[Gateway]:
    """A client of it."""
    gateway = Gateway(place_of(stub.url), monotonic=time.monotonic)
    yield gateway
    gateway.close()


def test_server_without_a_gateway_is_told_apart(stub: Stub, gateway: Gateway) -> None:
    """Too old, or switched off: the error says what is needed."""
    stub.status, stub.kind, stub.body = 404, "text/plain", b"404 page not found"

    with pytest.raises(StoreUnavailableError, match=r"no JSON gateway; etcd 3\.4 or later is needed"):
        gateway.ask("kv/range", {}, Found, seconds=5)


@pytest.mark.parametrize("body", [b"<html>Welcome</html>", b"", b"[]", b'{"ID":"many"}', b'{"error":[]}', b'{"no":1}'])
def test_answer_of_something_else_is_no_answer(stub: Stub, gateway: Gateway, body: bytes) -> None:
    """A web server at that port, or a proxy with an opinion."""
    stub.body = body

    with pytest.raises(StoreUnavailableError, match="no answer of an etcd"):
        gateway.ask("lease/grant", {}, Granted, seconds=5)


def test_fields_that_we_do_not_know_are_passed_over(stub: Stub, gateway: Gateway) -> None:
    """Later versions of etcd say more."""
    stub.body = b'{"ID":"9223372036854775807","TTL":"2","news":{"a":[1]}}'

    assert gateway.ask("lease/grant", {}, Granted, seconds=5).id == 2**63 - 1


@pytest.mark.parametrize(
    ("code", "error"),
    [(5, LeaseGoneError), (14, StoreUnavailableError), (8, StoreUnavailableError), (7, StoreUnavailableError)],
)
def test_code_says_what_an_error_means(stub: Stub, gateway: Gateway, code: int, error: type[Exception]) -> None:
    """A lease that is gone is an answer; everything else is none."""
    stub.status, stub.body = 500, b'{"error":"etcdserver: so it is","message":"","code":%d}' % code

    with pytest.raises(error, match="so it is"):
        gateway.ask("lease/revoke", {}, Found, seconds=5)


def test_token_that_a_stream_refuses_is_forgotten(stub: Stub) -> None:
    """Listening again begins with saying who we are."""
    stub.body = b'{"error":{"grpc_code":16,"http_code":401,"message":"etcdserver: invalid auth token"}}'
    gateway = Gateway(place_of(stub.url.replace("://", "://me:secret@")), monotonic=time.monotonic)

    with pytest.raises(AwayError, match="invalid auth token"):
        list(gateway.listen("watch", {}, Heard, seconds=5, silence=5))

    assert stub.tokens == ["abc"]
    assert gateway._token == ""


def test_stream_that_is_refused_says_why(stub: Stub, gateway: Gateway) -> None:
    """With what to do."""
    stub.body = b'{"error":{"grpc_code":7,"message":"etcdserver: permission denied"}}'

    with pytest.raises(RefusedError, match="permission denied; its user needs to read and write"):
        list(gateway.listen("watch", {}, Heard, seconds=5, silence=5))


@pytest.mark.parametrize("host", ["x" * 64 + ".invalid", "a..b"])
def test_name_that_cannot_be_one_is_an_endpoint_that_is_away(host: str) -> None:
    """As is one that nobody knows; the others are asked."""
    gateway = Gateway(place_of(f"etcd://{host}"), monotonic=time.monotonic)

    with pytest.raises(StoreUnavailableError, match="is unavailable"):
        gateway.ask("kv/range", {}, Found, seconds=5)
    gateway.close()


async def test_leases_are_closed_while_etcd_is_silent() -> None:
    """A worker that stops does not wait for the answer to what it has asked."""
    clock = SystemClock()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        leases = EtcdLeases(MemoryStore(clock=clock.now), place_of(f"etcd://127.0.0.1:{port}"), clock=clock)
        opening = asyncio.ensure_future(leases.open())
        asked, _ = await asyncio.to_thread(silent.accept)
        began_at = time.monotonic()
        await leases.close()
        seconds = time.monotonic() - began_at
        asked.close()
    with pytest.raises(StoreUnavailableError):
        await opening

    assert seconds < ASK_SECONDS - 1
