"""Plays the examples of one page through servers: `python -m tests.docs.connected docs/guides/steps.md`.

`outlive.Engine(...)` of the page is an engine with a server in front of it, and the page gets a connection to that. A
program that is written for an engine then shows whether a connection does the same. Examples that have one of the
further arguments in their text get the engine itself.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import outlive
from outlive.engine.any_engine import SyncEngine
from tests.cli.serving import served
from tests.docs.page import Block
from tests.docs.play import play

Engine = outlive.Engine


class Connected:
    """An engine whose verbs are asked of its server."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._engine = Engine(*args, **options)
        self._open = AsyncExitStack()
        self._remote: Any = None
        self.sync = SyncEngine(self)

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop that entered it."""
        return None if self._remote is None else self._remote.loop

    async def __aenter__(self) -> Any:
        await self._open.enter_async_context(self._engine)
        url = await self._open.enter_async_context(served(self._engine))
        self._remote = await self._open.enter_async_context(outlive.connect(url))
        return self._remote

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._remote = None
        await self._open.aclose()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._remote, name)


if __name__ == "__main__":
    page, *of_the_store = sys.argv[1:]

    def give(block: Block) -> None:
        """Give an example a connection, or the engine if it needs the store."""
        needs_it = any(text in block.text for text in of_the_store)
        outlive.Engine = Engine if needs_it else Connected  # type: ignore[assignment, misc]

    play(Path(page), give)
