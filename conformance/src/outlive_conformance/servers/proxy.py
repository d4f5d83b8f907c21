"""A TCP proxy that does to a connection what networks do: cut it, at the worst moment, or swallow everything.

It stands between a store and a PostgreSQL server and understands just enough of the protocol to know where one request
ends: a client closes every request with a Sync or sends it as a simple Query, and the server closes every answer with
ReadyForQuery. `cut_request(n)` counts requests over all connections and cuts at the n-th of them, either before it
reaches the server (nothing happened) or after the server has done it and before the client hears of it (the outcome is
unknown). `cut_commit(n)` counts only statements that commit something, by the text of their statement.
`go_down` refuses every connection; `go_deaf` accepts everything and holds it back; `lead_to` is what an address does
that was moved to another server.

It runs in a thread with an event loop of its own, so that whatever the tested engine does to its loop cannot stop it.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

_REQUEST_ENDS = frozenset(b"SQ")
_READY = ord("Z")
_COMMITS = re.compile(rb"\bcommit|\binto \S+\.events\b", re.IGNORECASE)
"""In the text of a statement that makes something durable: `COMMIT`, or one of ours that does it all at once."""
_OFFERS = frozenset({80877103, 80877104})
"""The requests that a connection may make before it begins: TLS, GSS."""


class Proxy:
    """Forwards connections to one server."""

    def __init__(self, host: str, port: int) -> None:
        self._target = host, port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._server: asyncio.Server | None = None
        self._links: set[_Link] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self._cut_at: int | None = None
        self._cut_before = False
        self._cut_commits = False
        self.requests = 0
        """Requests seen since the last `cut_request`, on all connections."""
        self.cuts = 0
        """Connections cut in the middle of a request."""
        self.is_down = False
        self.hearing = asyncio.Event()
        """Not set while everything is held back."""
        self.port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self._call(self._open())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut_request(self, number: int | None, *, before: bool = False) -> None:
        """Cut at the `number`-th request from now (1 is the next one); None cuts no more."""
        self._plan(number, before=before, commits=False)

    def cut_commit(self, number: int) -> None:
        """Cut after the `number`-th request from now that commits: it happens, and is not answered."""
        self._plan(number, before=False, commits=True)

    def _plan(self, number: int | None, *, before: bool, commits: bool) -> None:
        self.requests = 0
        self._cut_before, self._cut_commits = before, commits
        self._cut_at = number

    def lead_to(self, host: str, port: int) -> None:
        """Forward new connections to another server; open connections stay where they are."""
        self._target = host, port

    def cut_all(self) -> None:
        """Cut every connection that is open now."""
        self._call(self._cut_links())

    def go_down(self) -> None:
        """Cut all connections and refuse new ones until `come_back`."""
        self.is_down = True
        self.cut_all()

    def go_deaf(self) -> None:
        """Accept everything and let nothing through until `come_back`."""
        self._call(self._set_hearing(False))

    def come_back(self) -> None:
        """Let everything through again, also what was held back."""
        self.is_down = False
        self._call(self._set_hearing(True))

    @property
    def serving(self) -> int:
        """How many connections it has, or is about to have."""
        return len(self._serving)

    # -- What the connections ask ----------------------------------------------------------------------------

    def wants_cut(self, *, is_commit: bool) -> bool:
        """Count a request; whether this is the one to be cut."""
        if self._cut_commits and not is_commit:
            return False
        self.requests += 1
        return self.requests == self._cut_at

    @property
    def cuts_before(self) -> bool:
        """Whether the server must not see the request that is cut."""
        return self._cut_before

    # -- The thread's own ------------------------------------------------------------------------------------

    def _call(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _set_hearing(self, is_hearing: bool) -> None:  # noqa: FBT001
        self.hearing.set() if is_hearing else self.hearing.clear()

    async def _open(self) -> None:
        self.hearing.set()
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        assert self._server is not None
        self._server.close()
        self.is_down = True
        for task in self._serving:
            task.cancel()
        # The remaining tasks would be destroyed with the loop, and complain whenever that is noticed.
        while left := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(left)
        await asyncio.sleep(0)  # A transport that was aborted is closed in the next round of the loop.

    async def _cut_links(self) -> None:
        for link in list(self._links):
            link.cut()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_down:
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            await self._serve(reader, writer)
        finally:
            writer.transport.abort()
            self._serving.discard(task)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            server_reader, server_writer = await asyncio.open_connection(*self._target)
        except OSError:
            return
        link = _Link(self, reader, writer, server_reader, server_writer)
        self._links.add(link)
        try:
            await link.run()
        finally:
            link.cut()
            self._links.discard(link)


class _Link:
    """One connection of a client and its twin to the server."""

    def __init__(
        self,
        proxy: Proxy,
        client: asyncio.StreamReader,
        to_client: asyncio.StreamWriter,
        server: asyncio.StreamReader,
        to_server: asyncio.StreamWriter,
    ) -> None:
        self._proxy = proxy
        self._client, self._to_client = client, to_client
        self._server, self._to_server = server, to_server
        self._offers = 0
        self._commits: set[bytes] = set()
        """The names of prepared statements that commit."""
        self._is_dying = False
        """The request to be cut is with the server: its answer is the last thing that happens here."""

    def cut(self) -> None:
        """End both sides at once, without a farewell."""
        self._to_client.transport.abort()
        self._to_server.transport.abort()

    async def run(self) -> None:
        """Forward until one side ends."""
        with suppress(OSError, asyncio.IncompleteReadError):
            ways = [asyncio.ensure_future(self._forward_requests()), asyncio.ensure_future(self._forward_answers())]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        self.cut()

    async def _forward_requests(self) -> None:
        await self._forward_start_up()
        is_commit = False
        while True:
            head = await self._client.readexactly(5)
            body = await self._client.readexactly(int.from_bytes(head[1:], "big") - 4)
            is_commit = self._commits_with(head[0], body) or is_commit
            if head[0] not in _REQUEST_ENDS:
                await self._send(self._to_server, head + body)
                continue
            if self._proxy.wants_cut(is_commit=is_commit):
                self._proxy.cuts += 1
                if self._proxy.cuts_before:
                    return
                self._is_dying = True
            is_commit = False
            await self._send(self._to_server, head + body)

    def _commits_with(self, kind: int, body: bytes) -> bool:
        """Whether a message commits: a query with that text, or the use of a statement that was prepared with it."""
        match chr(kind):
            case "Q":
                return bool(_COMMITS.search(body))
            case "P":
                name, _, rest = body.partition(b"\0")
                (self._commits.add if _COMMITS.search(rest) else self._commits.discard)(name)
            case "B":
                return body.split(b"\0", 2)[1] in self._commits
            case _:
                """Nothing that could commit."""
        return False

    async def _forward_start_up(self) -> None:
        while True:
            size = await self._client.readexactly(4)
            body = await self._client.readexactly(int.from_bytes(size, "big") - 4)
            is_offer = int.from_bytes(body[:4], "big") in _OFFERS
            self._offers += is_offer
            await self._send(self._to_server, size + body)
            if not is_offer:
                return

    async def _forward_answers(self) -> None:
        while True:
            head = await self._server.readexactly(1)
            if self._offers:
                # A request for TLS is answered with a single byte.
                self._offers -= 1
                await self._send(self._to_client, head)
                continue
            size = await self._server.readexactly(4)
            body = await self._server.readexactly(int.from_bytes(size, "big") - 4)
            if self._is_dying:
                if head[0] == _READY:
                    return
                continue
            await self._send(self._to_client, head + size + body)

    async def _send(self, to: asyncio.StreamWriter, data: bytes) -> None:
        await self._proxy.hearing.wait()
        to.write(data)
        await to.drain()
