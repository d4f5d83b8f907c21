"""The process of a server: which event loop and which port it has."""

from __future__ import annotations

import asyncio
import socket
import sys

import pytest
import uvloop

from outlive.errors import ConfigurationError
from outlive.http.server import PORTS_TRIED, free_port, new_loop, new_server, serve
from outlive.testing import TestEngine


def test_a_server_has_the_loop_of_uvloop_where_that_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server has the loop of uvloop where that is installed, and the loop of asyncio elsewhere."""
    fast = new_loop()
    monkeypatch.setitem(sys.modules, "uvloop", None)
    plain = new_loop()
    for loop in (fast, plain):
        loop.close()

    assert isinstance(fast, uvloop.Loop)
    assert isinstance(plain, asyncio.SelectorEventLoop)


def test_port_of_a_second_server_is_the_next_one_that_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any other one if many are taken."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        found = free_port(port)
        monkeypatch.setattr("outlive.http.server.PORTS_TRIED", 1)
        none = free_port(port)
    assert port < found < port + PORTS_TRIED
    assert none == 0
    assert free_port(port) == port


async def test_port_that_another_program_listens_on_is_named() -> None:
    """Before anything is served."""
    async with TestEngine(worker=False) as engine:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            with pytest.raises(ConfigurationError, match=rf"127\.0\.0\.1:{port} cannot be listened on"):
                await serve(new_server(engine.asgi(), port=port), ready=print)
