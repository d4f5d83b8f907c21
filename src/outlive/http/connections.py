"""The connections of a server of ours: how many one sender may have, and which one makes room when there are too many.

A connection rests while no request of it is under way: before its first request has arrived, and between two of them.
One that rests for too long is closed, so that the head of a request has a limit of time too. When there are too many,
the sender with the most connections loses its connection that has rested longest.

uvicorn has no setting for this. The event loop makes each connection, and ASGI says when a request begins and ends, so
this uses the protocols of asyncio and the messages of ASGI, and nothing of uvicorn.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter, OrderedDict
from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast

import msgspec

from outlive.http.exchange import SECURITY, Receive, Scope, Send
from outlive.http.operation import OPERATIONS
from outlive.http.principal import NO_SCOPE, is_loopback, sender_of
from outlive.http.problem import MEDIA, RETRY_SECONDS, Problem

PROBES_PLACES = 10
"""Connections that requests other than probes leave free; a tenth of all if that is less."""
HEAD_SECONDS = 10.0
"""How long the head of a request may take, beyond the time for which a connection may be idle."""
_LINE_BYTES = 32
"""How much of the first line of a request says whether it names a server."""
_NAMES_SERVER = re.compile(rb"[A-Za-z]+ +[A-Za-z][A-Za-z0-9+.-]*:")


class Connections:
    """The open connections of one server, by their senders.

    A sender may have as many connections as are free, so that there is always a place for another one. That is not for
    senders of this machine and for proxies, from where the requests of many come.

    Args:
        most: how many there may be at once.
        rest_seconds_max: how long one may rest.
        is_proxy: whether the requests of many senders come from an address.
    """

    def __init__(
        self,
        most: int,
        *,
        rest_seconds_max: float,
        is_proxy: Callable[[str], bool] = lambda address: False,
        now: Callable[[], float] | None = None,
        later: Callable[[float, Callable[[], None]], object] | None = None,
    ) -> None:
        self._most = most
        self._rest_seconds_max, self._is_proxy = rest_seconds_max, is_proxy
        self._now = now or (lambda: asyncio.get_running_loop().time())
        self._later = later or (lambda seconds, call: asyncio.get_running_loop().call_later(seconds, call))
        self._open: dict[Any, Connection] = {}
        """By the peer: the address and the port, as ASGI says them too."""
        self._of: Counter[str] = Counter()
        """How many each sender has."""
        self._resting: OrderedDict[Connection, float] = OrderedDict()
        """Since when; the connection that has rested longest is the first."""
        self._resting_of: dict[str, OrderedDict[Connection, None]] = {}
        self._is_looking = False

    @property
    def has_room(self) -> bool:
        """Whether requests other than probes leave connections free for probes."""
        return len(self._open) - len(self._resting) <= self._most - min(PROBES_PLACES, self._most // 10)

    def admit(self, connection: Connection) -> bool:
        """Take a new connection, if there is room for it; a connection that rests may be closed for it."""
        before = self._open.get(connection.peer)
        if before is not None:  # It was reset, and the loop has not said so yet.
            self._close(before)
        sender = connection.sender = sender_of(connection.peer[0])
        is_shared = is_loopback(connection.peer[0]) or self._is_proxy(connection.peer[0])
        if not is_shared and self._of[sender] and self._of[sender] >= self._most - len(self._open):
            own = self._resting_of.get(sender)
            if not own:
                return False
            self._close(next(iter(own)))
        elif len(self._open) >= self._most:
            if not self._resting:
                return False
            self._close(next(iter(self._resting_of[max(self._resting_of, key=self._of.__getitem__)])))
        self._open[connection.peer] = connection
        self._of[sender] += 1
        self._rest(connection)
        return True

    def forget(self, connection: Connection) -> None:
        """It is closed."""
        if self._open.get(connection.peer) is connection:
            del self._open[connection.peer]
            self._of[connection.sender] -= 1
            if not self._of[connection.sender]:
                del self._of[connection.sender]
            self._wake(connection)

    def begin(self, peer: Any) -> Connection | None:
        """A request of this peer begins; its connection, if that is counted here."""
        connection = self._open.get(peer)
        if connection is not None:
            connection.requests += 1
            self._wake(connection)
        return connection

    def end(self, connection: Connection) -> None:
        """A request has ended."""
        connection.requests -= 1
        connection.line = b""
        if not connection.requests and self._open.get(connection.peer) is connection:
            self._rest(connection)

    def close_resting(self) -> None:
        """Close the connections that have rested for too long."""
        until = self._now() - self._rest_seconds_max
        while self._resting and next(iter(self._resting.values())) <= until:
            self._close(next(iter(self._resting)))
        self._is_looking = bool(self._resting)
        if self._is_looking:
            self._later(max(next(iter(self._resting.values())) - until, 1.0), self.close_resting)

    def _rest(self, connection: Connection) -> None:
        self._resting[connection] = self._now()
        self._resting_of.setdefault(connection.sender, OrderedDict())[connection] = None
        if not self._is_looking:
            self._is_looking = True
            self._later(self._rest_seconds_max, self.close_resting)

    def _wake(self, connection: Connection) -> None:
        if self._resting.pop(connection, None) is not None:
            own = self._resting_of[connection.sender]
            del own[connection]
            if not own:
                del self._resting_of[connection.sender]

    def _close(self, connection: Connection) -> None:
        self.forget(connection)
        connection.abort()


class Connection(asyncio.Protocol):
    """A connection of a server that is counted; everything goes on to the protocol of the server."""

    def __init__(self, inner: asyncio.Protocol, connections: Connections) -> None:
        self._inner, self._connections = inner, connections
        self._transport: asyncio.Transport | None = None
        self._is_admitted = False
        self.peer: Any = ("", 0)
        self.sender = ""
        self.requests = 0
        self.line = b""
        """How the request begins that is under way, or comes; unless it came before the end of another one."""

    @property
    def names_server(self) -> bool:
        """Whether the first line of its request has a whole address, as proxies are sent: `GET http://localhost/`. A
        parser may leave the server out, and what the header Host says would count."""
        return _NAMES_SERVER.match(self.line) is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self._transport = cast(asyncio.Transport, transport)
        self.peer = peer_of(transport.get_extra_info("peername"))
        self._is_admitted = self._connections.admit(self)
        if self._is_admitted:
            self._inner.connection_made(transport)
        else:
            self.abort()

    def abort(self) -> None:
        """Close it without sending what is left."""
        assert self._transport is not None
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        if not self.requests and len(self.line) < _LINE_BYTES:
            self.line = (self.line + data[:_LINE_BYTES]).lstrip(b"\r\n")[:_LINE_BYTES]
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        """See `asyncio.Protocol`."""
        return self._inner.eof_received() if self._is_admitted else None

    def pause_writing(self) -> None:
        """See `asyncio.Protocol`."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """See `asyncio.Protocol`."""
        self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._connections.forget(self)
        if self._is_admitted:
            self._inner.connection_lost(exc)


def peer_of(said: Any) -> Any:
    """The address and the port, as the system and ASGI say them; something of its own for another kind of socket."""
    return (str(said[0]), int(said[1])) if isinstance(said, (tuple, list)) and len(said) > 1 else object()


class WatchedApp:
    """An app whose requests say which connections are busy. Probes are answered while all others are refused."""

    def __init__(self, app: Any, connections: Connections) -> None:
        self._app, self.connections = app, connections

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the specification of ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        peer = peer_of(scope.get("client"))
        connection = self.connections.begin(peer)
        try:
            if connection is not None and connection.names_server:
                await _refuse(send, _for_a_proxy())
            elif self.connections.has_room or scope["path"] in probes():
                await self._app(scope, receive, send)
            else:
                await _refuse(send, _too_many())
        finally:
            if connection is not None:
                self.connections.end(connection)


@lru_cache(1)
def probes() -> frozenset[str]:
    """The paths of probes."""
    return frozenset(it.path for it in OPERATIONS.values() if it.scope == NO_SCOPE and it.namespace == "health")


def _too_many() -> Problem:
    again = {"retry-after": str(RETRY_SECONDS)}
    return Problem(503, "too_many_connections", "this server has too many connections", "Try again later.", again)


def _for_a_proxy() -> Problem:
    detail = "the first line of the request has a whole address: this server is not a proxy"
    return Problem(400, "malformed", detail, "Send the path alone, and the name of the server as the header Host.")


async def _refuse(send: Send, problem: Problem) -> None:
    body = msgspec.json.encode(problem.body)
    headers = [
        *SECURITY,
        (b"content-type", MEDIA.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        *((name.encode(), value.encode()) for name, value in problem.headers.items()),
    ]
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class WatchingLoop(asyncio.AbstractEventLoop):
    """The part of an event loop, besides its own class, that counts the connections of one socket."""

    _watched: tuple[Any, Connections] | None = None

    def watch(self, listening: Any, connections: Connections) -> None:
        """Count the connections of the server that will listen on this socket."""
        self._watched = listening, connections

    async def create_server(self, protocol_factory: Any, *args: Any, **options: Any) -> Any:
        """See `asyncio.loop`."""
        make = protocol_factory
        if self._watched is not None and options.get("sock") is self._watched[0]:
            connections = self._watched[1]

            def make() -> asyncio.Protocol:
                return Connection(protocol_factory(), connections)

        return await super().create_server(make, *args, **options)
