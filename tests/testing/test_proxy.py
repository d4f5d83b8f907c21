"""The proxy ends with everything that it began."""

from __future__ import annotations

import asyncio
import gc
import socket

import pytest

from outlive.testing.proxy import Proxy


async def test_nothing_is_left_of_connections_that_are_open_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    """Neither of one that is idle nor of one that has sent half a request."""
    accepted: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: accepted.append(writer), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with Proxy("127.0.0.1", port) as proxy:
        clients = [socket.create_connection(("127.0.0.1", proxy.port)) for _ in range(5)]
        clients[0].sendall(b"\x00\x00")
        while len(accepted) < len(clients):  # noqa: ASYNC110 (nothing announces it)
            await asyncio.sleep(0)

    assert not asyncio.all_tasks(proxy._loop)
    gc.collect()
    for client in clients:
        client.close()
    for writer in accepted:
        writer.close()
    server.close()
    await server.wait_closed()
    assert "destroyed" not in caplog.text
