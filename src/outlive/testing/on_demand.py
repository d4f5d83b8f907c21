"""A test engine that starts by itself: for a fixture, which does not know on which event loop its test will run."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from outlive.testing.engine import TestEngine


class OnDemandEngine(TestEngine):
    """A `TestEngine` that is entered by its first verb, and left by `leave()`."""

    _home: asyncio.AbstractEventLoop | None = None
    _entering: asyncio.Task[Any] | None = None

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name.startswith("_") or not inspect.iscoroutinefunction(found):
            return found
        return partial(self._enter_and_do, found)

    async def _enter_and_do(self, verb: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self._parts.client is None:
            # Two verbs at once are two calls and one start.
            if self._entering is None:
                self._home = asyncio.get_running_loop()
                self._entering = self._home.create_task(self.__aenter__())
            await self._entering
        return await verb(*args, **kwargs)

    def leave(self) -> None:
        """Stop, outside of the event loop: in it if it is still there, and without it if not."""
        if self._parts.client is None or self._home is None:
            return
        if self._home.is_closed():
            with suppress(RuntimeError):  # Callers on that loop wait no longer.
                self.abandon()
        else:
            self._home.run_until_complete(self.__aexit__(None, None, None))
