"""A server of the API in a process of its own, which dies where a proof wants it.

Processes are forked from one that has imported everything (`multiprocessing`'s forkserver): a server is up in a few
hundredths of a second, and a trial can have two of them.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any, Literal

from outlive.engine import Engine
from outlive.http.exchange import Receive, Scope, Send
from outlive.http.server import new_server, serve

Dies = Literal["never", "before the answer"]
READY_SECONDS = 60.0
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
    app = engine.asgi()
    server = new_server(app if dies == "never" else _Dying(app, ready), port=0)
    async with engine:
        await serve(server, ready=lambda place: ready.send(int(place.rpartition(":")[2])))


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
