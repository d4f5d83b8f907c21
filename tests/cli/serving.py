"""A server of an engine, for commands that are given over HTTP."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from queue import Queue

from outlive.engine import Engine
from outlive.http.server import new_server, serve


@asynccontextmanager
async def served(engine: Engine) -> AsyncIterator[str]:
    """The address of a server of this engine."""
    server = new_server(engine.asgi(), port=0)
    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve(server, ready=address.set_result))
    try:
        yield await address
    finally:
        server.should_exit = True
        await serving


@contextmanager
def served_store(url: str) -> Iterator[str]:
    """The same for a store, beside a test that has no event loop."""
    found: Queue[str] = Queue()
    loop = asyncio.new_event_loop()
    is_over = asyncio.Event()

    async def work() -> None:
        async with Engine(url, worker=False) as engine, served(engine) as address:
            found.put(address)
            await is_over.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(work(),))
    thread.start()
    try:
        yield found.get(timeout=20)
    finally:
        loop.call_soon_threadsafe(is_over.set)
        thread.join()
        loop.close()
