"""What is made of answers that no etcd in good health gives."""

from __future__ import annotations

import asyncio
import http.client
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import msgspec
import pytest

from outlive._kernel.lease.etcd import keys
from outlive._kernel.lease.etcd.address import parse_address
from outlive._kernel.lease.etcd.beat import BACKSTOP_SECONDS_MIN, DUE_SHARE, EtcdBeat
from outlive._kernel.lease.etcd.gateway import AwayError, Gateway, LeaseGoneError, RefusedError
from outlive._kernel.lease.etcd.keys import ENLIST_TRIES, enlist
from outlive._kernel.lease.etcd.leases import ASK_SECONDS, EtcdLeases
from outlive._kernel.lease.etcd.watch import PAUSE_SECONDS_MAX, PAUSE_SECONDS_MIN, EtcdWatch
from outlive._kernel.lease.etcd.wire import LeaseAnswer, RangeAnswer, TransactionAnswer, WatchAnswer
from outlive._kernel.runtime.clock import SystemClock
from outlive._kernel.store.contract import WorkerInfo
from outlive._kernel.store.memory import MemoryStore
from outlive.errors import StoreUnavailableError
from outlive.testing.clock import ManualClock
from outlive_conformance.suite import MemoryFactory


class Stub(HTTPServer):
    """Answers everything the same."""

    status, kind, body = 200, "application/json", b""
    missing = 0
    """How many bytes of the answer are cut off."""
    tokens: list[str | None]
    """What each request said about who asks."""
    logins = 0
    """How often a client has said who it is."""

    @property
    def url(self) -> str:
        """As an address of leases."""
        return f"etcd://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Stub
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer with the body of the server; every login succeeds."""
        self.rfile.read(int(self.headers["Content-Length"]))
        is_login = self.path.endswith("authenticate")
        body = b'{"token":"abc"}' if is_login else self.server.body
        if is_login:
            self.server.logins += 1
        else:
            self.server.tokens.append(self.headers["Authorization"])
        self.send_response(200 if is_login else self.server.status)
        self.send_header("Content-Type", self.server.kind)
        self.send_header("Content-Length", str(len(body) + self.server.missing))
        self.end_headers()
        self.close_connection = bool(self.server.missing)
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name is the standard library's)
        """Say nothing."""


@contextmanager
def running(server: Stub) -> Iterator[Stub]:
    """Let it answer, one connection after the other."""
    with server:
        server.tokens = []
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def stub() -> Iterator[Stub]:
    """A server that is not etcd."""
    with running(Stub(("127.0.0.1", 0), Handler)) as server:
        yield server


@pytest.fixture
def gateway(stub: Stub) -> Iterator[Gateway]:
    """A client of it."""
    gateway = Gateway(parse_address(stub.url), monotonic=time.monotonic)
    yield gateway
    gateway.close()


def test_server_without_a_gateway_has_an_error_of_its_own(stub: Stub, gateway: Gateway) -> None:
    """Too old, or switched off: the error says what is needed."""
    stub.status, stub.kind, stub.body = 404, "text/plain", b"404 page not found"

    with pytest.raises(StoreUnavailableError, match=r"no JSON gateway; etcd 3\.4 or later is needed"):
        gateway.ask("kv/range", {}, RangeAnswer, seconds=5)


@pytest.mark.parametrize("body", [b"<html>Welcome</html>", b"", b"[]", b'{"ID":"many"}', b'{"error":[]}', b'{"no":1}'])
def test_an_answer_of_another_program_counts_as_unavailable(stub: Stub, gateway: Gateway, body: bytes) -> None:
    """An answer of another program at the port of etcd counts as unavailable."""
    stub.body = body

    with pytest.raises(StoreUnavailableError, match="no answer of an etcd"):
        gateway.ask("lease/grant", {}, LeaseAnswer, seconds=5)


def test_fields_that_we_do_not_know_are_passed_over(stub: Stub, gateway: Gateway) -> None:
    """Later versions of etcd say more."""
    stub.body = b'{"ID":"9223372036854775807","TTL":"2","news":{"a":[1]}}'

    assert gateway.ask("lease/grant", {}, LeaseAnswer, seconds=5).id == 2**63 - 1


@pytest.mark.parametrize(
    ("code", "error"),
    [(5, LeaseGoneError), (14, StoreUnavailableError), (8, StoreUnavailableError), (7, StoreUnavailableError)],
)
def test_code_says_what_an_error_means(stub: Stub, gateway: Gateway, code: int, error: type[Exception]) -> None:
    """A lease that is gone is an answer; everything else is none."""
    stub.status, stub.body = 500, b'{"error":"etcdserver: so it is","message":"","code":%d}' % code

    with pytest.raises(error, match="so it is"):
        gateway.ask("lease/revoke", {}, RangeAnswer, seconds=5)


def test_token_that_a_stream_refuses_is_forgotten(stub: Stub) -> None:
    """Listening again begins with saying who we are."""
    stub.body = b'{"error":{"grpc_code":16,"http_code":401,"message":"etcdserver: invalid auth token"}}'
    gateway = Gateway(parse_address(stub.url.replace("://", "://me:secret@")), monotonic=time.monotonic)

    for _ in range(2):
        with pytest.raises(AwayError, match="invalid auth token"):
            list(gateway.listen("watch", {}, WatchAnswer, seconds=5, silence=5))

    assert (stub.logins, stub.tokens) == (2, ["abc", "abc"])


def test_token_that_is_refused_again_is_not_asked_for_for_ever(stub: Stub) -> None:
    """We say once more who we are, and then ask another endpoint, if there is one."""
    stub.body = b'{"error":"etcdserver: invalid auth token","code":16}'
    gateway = Gateway(parse_address(stub.url.replace("://", "://me:secret@")), monotonic=time.monotonic)

    with pytest.raises(StoreUnavailableError, match="invalid auth token"):
        gateway.ask("kv/range", {}, RangeAnswer, seconds=5)

    assert stub.tokens == ["abc", "abc"]
    gateway.close()


def test_endpoint_that_refuses_every_token_is_left_for_the_next_one(stub: Stub) -> None:
    """Over a connection of its own, of course."""
    with running(Stub(("127.0.0.1", 0), Handler)) as other:
        stub.body = b'{"error":"etcdserver: invalid auth token","code":16}'
        other.body = b'{"ID":"7"}'
        place = parse_address(f"etcd://me:secret@127.0.0.1:{stub.server_port},127.0.0.1:{other.server_port}")
        gateway = Gateway(place, monotonic=time.monotonic)

        assert gateway.ask("lease/grant", {}, LeaseAnswer, seconds=5).id == 7

        gateway.close()


def test_an_answer_that_is_cut_off_counts_as_unavailable(stub: Stub, gateway: Gateway) -> None:
    """An endpoint that dies in the middle of its answer counts as unavailable."""
    stub.body, stub.missing = b'{"ID":"1"}', 10

    with pytest.raises(StoreUnavailableError, match="is unavailable"):
        gateway.ask("lease/grant", {}, LeaseAnswer, seconds=5)


def test_stream_that_breaks_says_how(stub: Stub, gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not only that it has ended."""

    def fail(_response: http.client.HTTPResponse) -> bytes:
        raise ConnectionResetError("reset by peer")

    stub.body = b"{}"
    monkeypatch.setattr(http.client.HTTPResponse, "readline", fail)

    with pytest.raises(AwayError, match="reset by peer"):
        list(gateway.listen("watch", {}, WatchAnswer, seconds=5, silence=5))


def test_gateway_that_was_interrupted_asks_no_endpoint(stub: Stub, gateway: Gateway) -> None:
    """The thread that closes the gateway does not wait for one more answer."""
    stub.body = b'{"ID":"1"}'
    gateway.interrupt()

    with pytest.raises(StoreUnavailableError, match="interrupted"):
        gateway.ask("lease/grant", {}, LeaseAnswer, seconds=5)

    assert stub.tokens == []


def test_lease_that_runs_out_before_it_is_used_is_asked_for_again(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This process may stand still at any moment; but not every time."""
    asked: list[str] = []
    gone_leases = 1

    def answer(path: str, _body: object, _kind: object, *, seconds: float) -> LeaseAnswer | TransactionAnswer:
        assert seconds == 5
        asked.append(path)
        if path == "lease/grant":
            return LeaseAnswer(id=len(asked))
        if len(asked) <= 2 * gone_leases:
            raise LeaseGoneError("requested lease not found")
        return TransactionAnswer(succeeded=True)

    monkeypatch.setattr(gateway, "ask", answer)
    assert enlist(gateway, "place", "worker-a", lease_seconds=10, seconds=5) == 3

    gone_leases = 100
    asked.clear()
    with pytest.raises(StoreUnavailableError, match="ran out before they were used"):
        enlist(gateway, "place", "worker-a", lease_seconds=10, seconds=5)
    assert len(asked) == 2 * ENLIST_TRIES


async def test_watch_that_etcd_cancels_says_why_and_is_begun_again(
    stub: Stub, gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    """An administrator has taken away the right to it, say."""
    stub.body = b'{"result":{"canceled":true,"cancel_reason":"permission denied"}}'
    pauses = 0

    def close_at_the_second_pause() -> float:
        nonlocal pauses
        pauses += 1
        if pauses == 2:
            watch.close()
        return -0.5  # No pause at all.

    watch = EtcdWatch(gateway, lambda: None, random=close_at_the_second_pause)
    await asyncio.to_thread(watch.run)

    assert pauses == 2
    assert "permission denied" in caplog.text
    assert caplog.text.count("dead workers are noticed later") == 1


async def test_watch_that_is_refused_says_again_who_it_is(stub: Stub) -> None:
    """A refusal may mean that its token is not known any more, whatever etcd says."""
    stub.body = b'{"error":{"grpc_code":7,"message":"etcdserver: permission denied"}}'
    gateway = Gateway(parse_address(stub.url.replace("://", "://me:secret@")), monotonic=time.monotonic)

    def close_at_the_second_pause() -> float:
        if len(stub.tokens) == 2:
            watch.close()
        return -0.5  # No pause at all.

    watch = EtcdWatch(gateway, lambda: None, random=close_at_the_second_pause)
    await asyncio.to_thread(watch.run)

    assert (stub.logins, len(stub.tokens)) == (2, 2)


async def test_watch_that_fails_again_pauses_longer_until_it_is_heard(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Each pause is twice as long, up to a limit; a watch that etcd has begun makes the next one short again."""
    created = msgspec.json.decode(b'{"result":{"created":true}}', type=WatchAnswer)
    lines = iter([[], [], [], [], [], [], [], [created], []])

    class Unhurried(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            pauses.append(timeout)
            if len(pauses) == 9:
                self.set()
            return True

    def listen(*_args: object, **_options: object) -> Iterator[WatchAnswer]:
        yield from next(lines)
        raise AwayError("gone")

    pauses: list[float | None] = []
    rung: list[bool] = []
    watch = EtcdWatch(gateway, lambda: rung.append(True), random=lambda: 0.5)
    monkeypatch.setattr(watch, "_stop", Unhurried())
    monkeypatch.setattr(gateway, "listen", listen)

    await asyncio.to_thread(watch.run)
    await asyncio.sleep(0)

    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, PAUSE_SECONDS_MAX, PAUSE_SECONDS_MIN, 2 * PAUSE_SECONDS_MIN]
    assert rung == [True]
    assert caplog.text.count("is heard again") == 1
    assert caplog.text.count("dead workers are noticed later") == 2


async def test_watch_that_fails_for_an_unforeseen_reason_takes_its_time(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is tried again, and not at once: it may fail for ever."""

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            pauses.append(timeout)
            self.set()
            return True

    pauses: list[float | None] = []
    watch = EtcdWatch(gateway, lambda: None, random=lambda: 0.5)
    monkeypatch.setattr(watch, "_stop", Stop())
    monkeypatch.setattr(gateway, "listen", None)  # Not even a function.

    watch.run()

    assert pauses == [PAUSE_SECONDS_MAX]
    assert "it is tried again" in caplog.text


async def test_place_whose_id_changes_all_the_time_is_refused(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session that cannot be found would be taken for dead at once."""
    monkeypatch.setattr(keys, "identify", lambda *_args, **_options: "another")
    monkeypatch.setattr(keys, "enlist", lambda *_args, **_options: None)
    store = await MemoryFactory(clock=ManualClock()).open()
    leases = EtcdLeases(store, gateway.address, clock=SystemClock())
    await leases.open()
    worker = WorkerInfo(id="worker-a", name="a", definitions=(), started_at=0, expires_at=0)

    with pytest.raises(StoreUnavailableError, match="its id changes all the time"):
        await leases.register(worker, lease_seconds=10)

    assert await store.list_workers() == []
    await leases.close()
    await store.close()


class Slow:
    """The beat of a store that does not answer for a while."""

    def __init__(self) -> None:
        self.gate, self.closed = threading.Event(), threading.Event()
        self.is_ours, self.was_waited_for = True, False

    def renew(self, *, lease_seconds: float) -> bool:
        """Wait, then answer."""
        assert lease_seconds >= BACKSTOP_SECONDS_MIN
        self.gate.wait()
        return self.is_ours

    def close(self) -> None:
        """Note whether a thread still waits for an answer."""
        self.was_waited_for = not self.gate.is_set()
        self.closed.set()


def test_store_that_takes_its_time_does_not_end_a_session_that_etcd_keeps(stub: Stub, gateway: Gateway) -> None:
    """Its answer is heard by a later beat."""
    stub.body = b'{"result":{"TTL":"10"}}'
    slow, times = Slow(), iter([0.0, *[BACKSTOP_SECONDS_MIN * DUE_SHARE + 1] * 100])
    beat = EtcdBeat(gateway, slow, 1, monotonic=lambda: next(times))

    assert beat.renew(lease_seconds=0.1)
    slow.is_ours = False
    slow.gate.set()
    assert not beat.renew(lease_seconds=10)
    beat.close()


def test_beat_of_the_store_is_closed_when_it_is_not_used_any_more(stub: Stub, gateway: Gateway) -> None:
    """The thread that waits for its answer closes it, and the thread that ends the beat does not wait for that."""
    stub.body = b'{"result":{"TTL":"10"}}'
    slow, times = Slow(), iter([0.0, *[BACKSTOP_SECONDS_MIN * DUE_SHARE + 1] * 100])
    beat = EtcdBeat(gateway, slow, 1, monotonic=lambda: next(times))
    assert beat.renew(lease_seconds=0.1)

    beat.close()

    assert not slow.closed.wait(0.05)
    slow.gate.set()
    assert slow.closed.wait(10)
    assert not slow.was_waited_for


def test_stream_that_is_refused_says_why(stub: Stub, gateway: Gateway) -> None:
    """With what to do."""
    stub.body = b'{"error":{"grpc_code":7,"message":"etcdserver: permission denied"}}'

    with pytest.raises(RefusedError, match="permission denied; its user needs to read and write"):
        list(gateway.listen("watch", {}, WatchAnswer, seconds=5, silence=5))


@pytest.mark.parametrize("host", ["x" * 64 + ".invalid", "a..b"])
def test_impossible_name_of_a_host_is_an_endpoint_that_is_away(host: str) -> None:
    """An endpoint whose name no host can have counts as unavailable."""
    gateway = Gateway(parse_address(f"etcd://{host}"), monotonic=time.monotonic)

    with pytest.raises(StoreUnavailableError, match="is unavailable"):
        gateway.ask("kv/range", {}, RangeAnswer, seconds=5)
    gateway.close()


async def test_leases_are_closed_while_etcd_is_silent() -> None:
    """A worker that stops does not wait for the answer to what it has asked."""
    clock = SystemClock()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        leases = EtcdLeases(MemoryStore(clock=clock.now), parse_address(f"etcd://127.0.0.1:{port}"), clock=clock)
        opening = asyncio.ensure_future(leases.open())
        asked, _ = await asyncio.to_thread(silent.accept)
        began_at = time.monotonic()
        await leases.close()
        seconds = time.monotonic() - began_at
        asked.close()
    with pytest.raises(StoreUnavailableError):
        await opening

    assert seconds < ASK_SECONDS - 1
