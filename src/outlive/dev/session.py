"""One `outlive dev`: the store, the server on this machine, the worker process, and the end of all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outlive.dev.message import Loaded
from outlive.dev.place import Places
from outlive.dev.supervisor import Supervisor
from outlive.dev.watch import Watch
from outlive.engine import Engine
from outlive.engine.url import shown
from outlive.errors import ConfigurationError
from outlive.http import server as serving

STOP_SECONDS = 1
"""How long requests under way may take at the end."""


@dataclass(frozen=True)
class Wanted:
    """The request of a person."""

    places: Places
    options: dict[str, Any]
    """The options of the engine that serves; without a store if the program's own engine has one."""
    namespace: str | None
    level: str | None
    port: int
    is_port_fixed: bool


class Session:
    """Worker, API and dashboard in one command."""

    def __init__(self, wanted: Wanted, *, say: Callable[[str], None], on_serve: Callable[[str, str], None]) -> None:
        self._wanted, self._say, self._on_serve = wanted, say, on_serve
        self._loaded: asyncio.Future[Loaded] = asyncio.get_running_loop().create_future()

    async def run(self, stop: Callable[[], Any]) -> None:
        """Serve and work until `stop()` returns.

        Raises:
            ConfigurationError: the address cannot be listened on. OutliveError: the store cannot be opened.
        """
        tasks = [asyncio.ensure_future(stop()), asyncio.ensure_future(self._serve())]
        if self._has_worker:
            tasks.append(asyncio.ensure_future(self._supervisor().run()))
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    @property
    def _has_worker(self) -> bool:
        """Whether there is something to run; without it, this is the dashboard of a store."""
        return self._wanted.places.app is not None or bool(self._wanted.places.flows)

    def _supervisor(self) -> Supervisor:
        wanted, places = self._wanted, self._wanted.places
        names = [name for name in (places.app, *map(str, places.flows)) if name is not None]
        flags = {
            "--store": None if places.has_own_engine else wanted.options["url"],
            "--namespace": wanted.namespace,
            "--log-level": wanted.level,
        }
        arguments = [*names, *(it for flag, value in flags.items() if value is not None for it in (flag, value))]
        app = (places.app or "").partition(":")[0]
        watch = Watch([Path(app)] if app.endswith(".py") else [], places.flows)
        return Supervisor(arguments, watch, say=self._say, on_load=self._load)

    def _load(self, loaded: Loaded) -> None:
        if not self._loaded.done():
            self._loaded.set_result(loaded)

    async def _serve(self) -> None:
        options = dict(self._wanted.options)
        if self._wanted.places.has_own_engine:
            loaded = await self._loaded
            options |= {"url": loaded.store, "redact": loaded.redact}
            options.pop("namespace", None)
        engine = Engine(**(options | {"worker": False}))
        app = engine.asgi()
        port = self._wanted.port if self._wanted.is_port_fixed else serving.free_port(self._wanted.port)
        server = serving.new_server(app, port=port, stop_seconds=STOP_SECONDS)
        async with engine:
            serve = asyncio.ensure_future(
                serving.serve(server, ready=lambda place: self._on_serve(place, shown(engine.url)))
            )
            try:
                await asyncio.shield(serve)
            finally:
                app.close()
                server.should_exit = True
                with suppress(ConfigurationError):  # It was raised above.
                    await serve
