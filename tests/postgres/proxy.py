"""A wire between a store and its server that a test can cut, at a moment of its choice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit


class Proxy:
    """Forwards bytes both ways until it is told otherwise."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.cuts_answers = False
        """From now on what the server answers is thrown away and the wire is cut: the question has arrived."""
        self.cuts_questions = False
        """From now on what the store asks is thrown away and the wire is cut: the question never arrives."""
        self.is_stalled = False
        """From now on nothing is forwarded, and nothing is cut."""
        self.refuses = False
        """From now on nobody gets through."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        if self.refuses:
            writer.close()
            return
        server_reader, server_writer = await asyncio.open_connection(self._host, self._port)
        self._writers += [writer, server_writer]
        for coroutine in (self._ask(reader, server_writer), self._answer(server_reader, writer)):
            task = asyncio.ensure_future(coroutine)
            self._tasks.add(task)

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                if self.cuts_questions:
                    self.cut()
                    return
                if not self.is_stalled:
                    writer.write(data)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                if self.cuts_answers:
                    self.cut()
                    return
                if not self.is_stalled:
                    writer.write(data)
            writer.close()

    def cut(self) -> None:
        """Cut all wires."""
        writers, self._writers = self._writers, []
        for writer in writers:
            writer.transport.abort()

    def mend(self) -> None:
        """Forward again."""
        self.cuts_answers = self.cuts_questions = self.is_stalled = self.refuses = False

    async def close(self) -> None:
        """Forward nothing more."""
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def wired(url: str) -> AsyncIterator[tuple[Proxy, str]]:
    """A proxy to the server of an address, and the address that goes through it."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    proxy = Proxy(parts.hostname, parts.port)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield proxy, url.replace(f":{parts.port}/", f":{port}/")
    finally:
        server.close()
        await proxy.close()
        await server.wait_closed()
