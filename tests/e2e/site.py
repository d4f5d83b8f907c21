"""A real engine on a real file, served on a real port, for a browser."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from outlive.engine import Engine
from outlive.http.server import new_server, serve

T = TypeVar("T")
START_SECONDS = 20


class Site:
    """An engine with a worker and its API, on an event loop of their own: `site.do(site.engine.start(...))`.

    Args:
        url: the store.
        mount: the part of the path below which another app has it, as "/outlive".
        options: for `engine.asgi`, as `auth`.
    """

    def __init__(self, url: str, *, mount: str = "", worker: bool = True, **options: Any) -> None:
        self.engine = Engine(url, worker=worker)
        self._mount, self._options = mount, options
        self._loop = asyncio.new_event_loop()
        self._address: Future[str] = Future()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=[self._live()], name="site")

    def __enter__(self) -> Site:
        self._thread.start()
        self.url = f"{self._address.result(START_SECONDS)}{self._mount}/"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._loop.close()

    def do(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """What a coroutine gives, on the loop of the engine."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(START_SECONDS)

    async def _live(self) -> None:
        try:
            async with self.engine:
                await self._serve()
        except BaseException as error:
            if not self._address.done():
                self._address.set_exception(error)
            raise

    async def _serve(self) -> None:
        api = self.engine.asgi(**self._options)
        server = new_server(_mounted(api, self._mount) if self._mount else api, port=0)
        stopping = asyncio.ensure_future(self._stop_when_asked(api, server))
        await serve(server, ready=self._address.set_result)
        await stopping

    async def _stop_when_asked(self, api: Any, server: Any) -> None:
        await self._stop.wait()
        api.close()
        server.should_exit = True


def _mounted(api: Any, mount: str) -> Any:
    """Another app that has the API at a part of its path."""
    from starlette.applications import Starlette
    from starlette.routing import Mount

    return Starlette(routes=[Mount(mount, app=api)])
