"""Serving the API with uvicorn: where it listens, and what it refuses.

It listens on this machine alone unless it is given another address, and refuses another address unless callers need a
key: a server that anyone in the network may use is a mistake and never a default.

Only documented settings of uvicorn are used. It has none for connections that send nothing, or come from one sender: on
the event loop that `new_loop` makes they are counted (`connections`), elsewhere a reverse proxy limits them.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any, cast

from outlive._tasks import own_task
from outlive.errors import ConfigurationError
from outlive.errors.program import MissingExtraError
from outlive.http.connections import HEAD_SECONDS, Connections, WatchedApp, WatchingLoop
from outlive.http.principal import is_loopback

PORT = 7717
PORTS_TRIED = 20
KEEP_ALIVE_SECONDS = 30
BACKLOG = 1024
STOP_SECONDS = 10
CONNECTIONS_MAX = 4_000
HEAD_BYTES_MAX = 32 * 1024
"""The longest head of a request, where h11 parses it."""


def check_address(address: str, *, has_keys: bool) -> None:
    """See that a server may listen there.

    Raises:
        ConfigurationError: it is an address that others can reach, and no key is asked for.
    """
    if not has_keys and not (address == "localhost" or is_loopback(address)):
        raise ConfigurationError(
            f"{address} can be reached from other machines, and this server would ask for no key; "
            "listen on 127.0.0.1, or let every caller need a key with --auth keys (outlive keys create makes one)"
        )


def free_port(first: int) -> int:
    """The first port from there on that can be listened on; 0, which is any, if none of some can.

    For servers of one person: a second one beside the first is not a mistake.
    """
    for port in range(first, min(first + PORTS_TRIED, 65_536)):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial, suppress(OSError):
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(("127.0.0.1", port))
            return port
    return 0


def new_server(
    app: Any,
    *,
    address: str = "127.0.0.1",
    port: int = PORT,
    has_keys: bool = False,
    connections_max: int = CONNECTIONS_MAX,
    keep_alive_seconds: float = KEEP_ALIVE_SECONDS,
    stop_seconds: int = STOP_SECONDS,
    is_proxy: Callable[[str], bool] = lambda address: False,
    is_counted: bool = False,
) -> Any:
    """A uvicorn server of an app, with limits; `serve` serves it until `server.should_exit` is set.

    Args:
        stop_seconds: how long the requests that are under way have when it stops.
        is_proxy: whether the requests of many senders come from an address: it may have all connections.
        is_counted: whether it is served on a loop of `new_loop`, which counts its connections and sees first lines.

    Raises:
        ConfigurationError: see `check_address`. MissingExtraError: uvicorn is not installed.
    """
    check_address(address, has_keys=has_keys)
    try:
        uvicorn = import_module("uvicorn")
    except ImportError:
        raise MissingExtraError("the server", "uvicorn", "server") from None
    rest_seconds_max = keep_alive_seconds + HEAD_SECONDS
    connections = Connections(connections_max, rest_seconds_max=rest_seconds_max, is_proxy=is_proxy)
    config = uvicorn.Config(
        WatchedApp(app, connections),
        host=address,
        port=port,
        http=_parser_for(address, is_counted=is_counted),
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        ws="none",
        backlog=BACKLOG,
        # At this number uvicorn refuses the requests of all connections, so that the last one allowed is one below it.
        # A loop that counts closes connections beyond the limit, which uvicorn hears of a moment later.
        limit_concurrency=connections_max + 1 + (BACKLOG if is_counted else 0),
        timeout_keep_alive=keep_alive_seconds,
        timeout_graceful_shutdown=stop_seconds,
        h11_max_incomplete_event_size=HEAD_BYTES_MAX,
    )
    return uvicorn.Server(config)


def _parser_for(address: str, *, is_counted: bool) -> str:
    """httptools is twice as fast. h11 limits how large a head may be, so others than this machine get that one; and it
    keeps the server that a first line names, which httptools leaves out and only a loop of ours sees then."""
    is_own = address == "localhost" or is_loopback(address)
    return "httptools" if is_own and is_counted and find_spec("httptools") is not None else "h11"


def new_loop() -> asyncio.AbstractEventLoop:
    """An event loop for a process that does nothing but serve: uvloop's if that is installed, else Python's own. It
    counts the connections of the server."""
    try:
        kind: type[asyncio.AbstractEventLoop] = import_module("uvloop").Loop
    except ImportError:
        kind = getattr(asyncio, "ProactorEventLoop", asyncio.SelectorEventLoop)  # The former where there is one.
    return cast(asyncio.AbstractEventLoop, type("OutliveLoop", (WatchingLoop, kind), {})())


async def serve(server: Any, *, ready: Callable[[str], None]) -> None:
    """Serve until `server.should_exit` is set; `ready` is given the address when requests are answered.

    Raises:
        ConfigurationError: the address cannot be listened on.
    """
    host, port = server.config.host, server.config.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends small parts at once (TCP_NODELAY) only where the socket says that it is TCP. Without, an answer in
    # two parts takes 40 ms, for which the client's system keeps back its acknowledgement of the first.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
        except OSError as error:
            raise ConfigurationError(
                f"{host}:{port} cannot be listened on: {error.strerror}; give another --port, or 0 for any that is free"
            ) from None
        listening.listen(BACKLOG)  # From now on a client is served: what it sends waits for the server.
        host, port = listening.getsockname()[:2]
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        loop = asyncio.get_running_loop()
        if isinstance(loop, WatchingLoop):
            loop.watch(listening, server.config.app.connections)
        serving = own_task(server.serve(sockets=[listening]), name="outlive-http-server")
        loop.call_soon(_give_back, handlers)  # After the first turn of that task, in which it takes the signals.
        ready(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")
        await serving
    finally:
        listening.close()


def _give_back(handlers: dict[signal.Signals, Any]) -> None:
    """Let a signal do what it did before: uvicorn takes SIGINT and SIGTERM for itself when it begins to serve, and the
    program that serves decides what they mean."""
    if threading.current_thread() is threading.main_thread():
        for number, handler in handlers.items():
            if handler is not None:  # It was set by code that is not Python.
                signal.signal(number, handler)
