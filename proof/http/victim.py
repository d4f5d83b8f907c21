"""A server of the API in a process of its own, which dies where a proof wants it.

Processes are forked from one that has imported everything (`multiprocessing`'s forkserver): a server is up in a few
hundredths of a second, and a trial can have two of them.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from multiprocessing.connection import Connection
from typing import Any, Literal

from outlive.engine import Engine
from outlive.http.exchange import Receive, Scope, Send
from outlive.http.server import new_server, serve

Dies = Literal["never", "before the answer"]
READY_SECONDS = 60.0
TURNS = "/proof/longest-turn"
"""The path at which a server says how long its loop has rested at most since that was asked before."""
TURN_LOOK_SECONDS = 0.005
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["proof.http.victim", "proof.http.program", "uvicorn", "asyncpg", "apsw"])


class Victim:
    """A server that runs."""

    def __init__(self, process: Any, port: int, said: Connection) -> None:
        self._process, self.port, self._said = process, port, said

    @property
    def last_words(self) -> tuple[int, bytes] | None:
        """The status and the body of the answer that it died with; None if it died before."""
        return self._said.recv() if self._said.poll() else None

    @property
    def pid(self) -> int:
        """Of its process."""
        return int(self._process.pid)

    def kill(self) -> None:
        """As the system does it when memory runs out; twice is fine."""
        self._process.kill()

    def wait_for_death(self) -> None:
        """Return when its process has ended."""
        self._process.join(READY_SECONDS)
        if self._process.exitcode is None:
            raise RuntimeError(f"process {self.pid} lives")


@contextmanager
def server_of(url: str, *, dies: Dies = "never") -> Iterator[Victim]:
    """A server of a store; it is killed at the end."""
    here, there = _context.Pipe(duplex=False)
    process = _context.Process(target=_serve, args=(url, dies, there), daemon=True)
    process.start()
    try:
        if not here.poll(READY_SECONDS):
            raise RuntimeError(f"no server of {url} was ready within {READY_SECONDS:.0f} s")
        yield Victim(process, here.recv(), here)
    finally:
        process.kill()
        process.join()
        process.close()
        here.close()


def _serve(url: str, dies: Dies, ready: Connection) -> None:
    asyncio.run(_main(url, dies, ready))


async def _main(url: str, dies: Dies, ready: Connection) -> None:
    engine = Engine(url, worker=False)
    turns = Turns(engine.asgi())
    server = new_server(turns if dies == "never" else _Dying(turns, ready), port=0)
    async with engine, turns.watched():
        await serve(server, ready=lambda place: ready.send(int(place.rpartition(":")[2])))


class Turns:
    """An app, and how long the loop rests at most while it answers: by the processor time of the thread of the loop,
    which does not depend on what else the machine does."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._longest = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("path") != TURNS:
            await self._app(scope, receive, send)
            return
        body, self._longest = json.dumps(self._longest).encode(), 0.0
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": body})

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Look at the loop meanwhile."""
        watch = asyncio.ensure_future(self._watch())
        try:
            yield
        finally:
            watch.cancel()

    async def _watch(self) -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(TURN_LOOK_SECONDS)
            self._longest = max(self._longest, time.thread_time() - before)


class _Dying:
    """An app whose process ends with the first answer to a request that changes something: its sender never gets it.
    The process that started it learns what it would have been."""

    def __init__(self, app: Any, said: Connection) -> None:
        self._app, self._said = app, said
        self._status = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def die(message: Any) -> None:
            if message["type"] == "http.response.start":
                self._status = message["status"]
                return
            self._said.send((self._status, message["body"]))
            os.kill(os.getpid(), signal.SIGKILL)

        await self._app(scope, receive, send if scope.get("method") in ("GET", "HEAD") else die)
