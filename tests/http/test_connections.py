"""The connections of a server: what one sender may have, which one makes room, and what probes find when it is full."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import pytest

from outlive.http.connections import Connection, Connections, WatchedApp, WatchingLoop, probes
from outlive.http.principal import sender_of
from outlive.http.proxies import Proxies
from outlive.http.server import new_loop, new_server, serve

EVE, ANN, PROXY, LOCAL = "192.0.2.7", "192.0.2.8", "10.0.0.5", "127.0.0.1"


class Time:
    """A clock that a test moves on, and what is to be called when."""

    def __init__(self) -> None:
        self.at = 0.0
        self.calls: list[tuple[float, Callable[[], None]]] = []

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        """Call it then."""
        self.calls.append((self.at + seconds, call))

    def move(self, seconds: float) -> None:
        """Let time pass."""
        self.at += seconds
        due = [call for at, call in self.calls if at <= self.at]
        self.calls = [each for each in self.calls if each[0] > self.at]
        for call in due:
            call()


class Transport(asyncio.Transport):
    """A connection that says where it comes from, and whether it was closed."""

    def __init__(self, address: str, port: int) -> None:
        super().__init__({"peername": (address, port)})
        self.is_closed = False

    def abort(self) -> None:
        """Close it."""
        self.is_closed = True


class Server:
    """The connections of a server, as its event loop makes them."""

    def __init__(self, most: int, **options: Any) -> None:
        self.time = Time()
        self.connections = Connections(
            most, rest_seconds_max=40, now=lambda: self.time.at, later=self.time.later, **options
        )
        self._port = 1_000

    def connect(self, address: str, count: int = 1, *, ask: bool = False) -> list[Transport]:
        """New connections, each a second after the other one; `ask` begins a request on each that is open."""
        made = []
        for _ in range(count):
            self.time.at += 1
            self._port += 1
            made.append(Transport(address, self._port))
            Connection(asyncio.Protocol(), self.connections).connection_made(made[-1])
            if ask:
                self.connections.begin((address, self._port))
        return made


def are_open(made: list[Transport]) -> int:
    """How many have not been closed."""
    return sum(not each.is_closed for each in made)


def test_a_sender_has_as_many_connections_as_are_free() -> None:
    """So there is always one for another sender, whatever the first one does on its own. [S35]"""
    server = Server(100)
    eve = server.connect(EVE, 200, ask=True)
    ann = server.connect(ANN, 200, ask=True)
    others = [server.connect(f"192.0.2.{number}")[0] for number in range(10, 20)]

    assert [are_open(eve), are_open(ann), are_open(others)] == [50, 25, 10]


def test_a_network_of_ipv6_is_one_sender() -> None:
    """A sender there has more addresses than it could use. [S35]"""
    server = Server(20)
    many = [server.connect(f"2001:db8::{number:x}", ask=True)[0] for number in range(1, 40)]

    assert are_open(many) == 10
    assert sender_of("2001:db8::1") == sender_of("2001:db8::ffff") != sender_of("2001:db8:0:1::1")
    assert sender_of("::ffff:192.0.2.7") != sender_of("::ffff:192.0.2.8")
    assert sender_of("a socket") == "a socket"


@pytest.mark.parametrize("address", [PROXY, LOCAL])
def test_a_proxy_may_have_all_connections(address: str) -> None:
    """Requests of many senders come from it. [S35]"""
    server = Server(100, is_proxy=Proxies([f"{PROXY}/32"]))

    assert are_open(server.connect(address, 150, ask=True)) == 100


def test_the_connection_that_has_rested_longest_makes_room() -> None:
    """It is one of the sender that has most of them: silent connections push out no one else's. [S35]"""
    server = Server(10)
    ann = server.connect(ANN, 2)
    server.connect(LOCAL, 7, ask=True)
    eve = server.connect(LOCAL, 4)

    assert [are_open(ann), [each.is_closed for each in eve]] == [2, [True, True, True, False]]


def test_a_connection_with_a_request_under_way_is_not_closed() -> None:
    """A new one is, if none rests; and one that rests again makes room again. [S35]"""
    server = Server(2)
    busy = server.connect(LOCAL, 2, ask=True)
    refused = server.connect(LOCAL)
    assert [are_open(busy), are_open(refused)] == [2, 0]

    again = server.connections.begin(busy[0].get_extra_info("peername"))
    assert again is not None
    server.connections.end(again)
    assert are_open(server.connect(LOCAL)) == 0
    server.connections.end(again)
    assert are_open(server.connect(LOCAL)) == 1
    assert [each.is_closed for each in busy] == [True, False]


def test_connections_are_closed_in_the_moment_in_which_they_have_rested_for_too_long() -> None:
    """Not earlier; and the next look is when the next of them is due, a second later at the earliest."""
    server = Server(10)
    first, second, third = server.connect(ANN, 3)  # At 1, 2 and 3.
    server.time.calls.clear()
    looks = []

    for at in (40.75, 41.0, 42.0):
        server.time.at = at
        server.connections.close_resting()
        looks.append(server.time.calls[-1][0])

    assert [first.is_closed, second.is_closed, third.is_closed] == [True, True, False]
    assert looks == [41.75, 42.0, 43.0]


def test_a_connection_that_rests_for_too_long_is_closed() -> None:
    """One that says nothing, and one that sends the head of a request too slowly, the first or a later one. [S35]"""
    server = Server(10)
    silent, busy = server.connect(LOCAL)[0], server.connect(LOCAL, ask=True)[0]
    server.time.move(30)
    late = server.connect(LOCAL)[0]
    assert len(server.time.calls) == 1, "one timer for all of them"
    server.time.move(10)
    assert [each.is_closed for each in (silent, busy, late)] == [True, False, False]
    ended = server.connections.begin(busy.get_extra_info("peername"))
    assert ended is not None
    for _ in range(2):
        server.connections.end(ended)
    server.time.move(31)
    assert [late.is_closed, busy.is_closed] == [True, False]
    server.time.move(10)
    assert busy.is_closed
    assert server.time.calls == []


def test_an_end_that_comes_after_its_connection_was_closed_changes_no_other_one() -> None:
    """The system gives the same port to the next one."""
    connections = Connections(10, rest_seconds_max=40, now=lambda: 0.0, later=lambda seconds, call: None)
    first, second = (Connection(asyncio.Protocol(), connections) for _ in range(2))
    first.connection_made(Transport(LOCAL, 1))
    asked = connections.begin((LOCAL, 1))
    assert asked is first
    first.connection_lost(None)
    second.connection_made(Transport(LOCAL, 1))
    connections.begin((LOCAL, 1))
    connections.end(first)

    assert second.requests == 1
    second.connection_lost(None)
    assert connections.begin((LOCAL, 1)) is None


def test_a_port_that_is_used_again_before_its_end_is_heard_of_is_counted_once() -> None:
    """A sender can reset its connection and make the next one from the same port in one turn of the loop. [S35]"""
    server = Server(10)
    first, second = (Transport(EVE, 1) for _ in range(2))
    lost = Connection(asyncio.Protocol(), server.connections)
    lost.connection_made(first)
    Connection(asyncio.Protocol(), server.connections).connection_made(second)
    lost.connection_lost(None)
    assert [first.is_closed, second.is_closed] == [True, False]
    assert are_open(server.connect(EVE, 10, ask=True)) == 5
    server.time.move(60)
    assert server.time.calls == []


async def test_probes_are_answered_when_all_other_places_are_busy() -> None:
    """A server that is only busy is not restarted. [S35]"""
    server = Server(100)
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive() -> Any:
        raise AssertionError

    async def send(message: Any) -> None:
        sent.append(message)

    async def ask(path: str) -> int:
        sent.clear()
        (transport,) = server.connect(LOCAL)
        scope = {"type": "http", "path": path, "client": list(transport.get_extra_info("peername"))}
        await WatchedApp(app, server.connections)(scope, receive, send)
        return int(sent[0]["status"])

    server.connect(LOCAL, 89, ask=True)
    assert await ask("/api/v1/runs") == 200
    server.connect(LOCAL, 1, ask=True)

    assert await ask("/api/v1/runs") == 503
    assert b'"code":"too_many_connections"' in sent[1]["body"]
    assert (b"connection", b"close") in sent[0]["headers"]
    assert [await ask(path) for path in sorted(probes())] == [200] * 3


@pytest.mark.parametrize("has_uvloop", [True, False])
def test_silent_connections_keep_no_request_away(monkeypatch: pytest.MonkeyPatch, *, has_uvloop: bool) -> None:
    """The loop of our own server counts what uvicorn has no setting for, whatever kind of loop it is. [S35]"""
    if not has_uvloop:
        monkeypatch.setitem(sys.modules, "uvloop", None)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def ask() -> tuple[list[bytes], bytes]:
        assert isinstance(asyncio.get_running_loop(), WatchingLoop)
        server = new_server(app, port=0, connections_max=4, is_counted=True)
        ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        serving = asyncio.ensure_future(serve(server, ready=ready.set_result))
        port = int((await ready).rpartition(":")[2])
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(8)]
        answers = []
        for _ in range(2):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
            answers.append(await reader.readline())
            writer.close()
        closed = await silent[0][0].read()
        for _, writer in silent:
            writer.close()
        server.should_exit = True
        await serving
        return answers, closed

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(ask()) == ([b"HTTP/1.1 204 No Content\r\n"] * 2, b"")
