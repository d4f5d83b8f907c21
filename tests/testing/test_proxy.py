"""The proxy ends with everything that it began."""

from __future__ import annotations

import asyncio
import socket

from outlive_conformance.servers.proxy import Proxy

CALLS = 8
"""More than a server takes that has a queue of none and never answers."""


async def test_a_connection_that_is_still_being_made_ends_with_the_proxy() -> None:
    """Else its task is destroyed with the loop, and complains in the middle of whatever test comes next."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(0)
        with Proxy("127.0.0.1", silent.getsockname()[1]) as proxy:
            clients = [socket.create_connection(("127.0.0.1", proxy.port)) for _ in range(CALLS)]
            while proxy.serving < CALLS:  # noqa: ASYNC110 (nothing announces it)
                await asyncio.sleep(0.001)

        for client in clients:
            client.close()
        assert proxy.serving == 0
