"""Workers that die at every commit: before it is written, and after it is written and before anybody hears of it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from outlive._store.contract import Store
from tests.engine.support import Place, crash, in_time


class DyingStore:
    """A store whose `number`-th commit is the last thing that its engine hears or does not hear of."""

    def __init__(self, inner: Store, *, number: int, is_written: bool) -> None:
        self.inner = inner
        self.died = asyncio.Event()
        self._left = number
        self._is_written = is_written

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self.inner, name)
        if not inspect.iscoroutinefunction(verb) or name in {"open", "close", "retire_worker"}:
            return verb
        return partial(self._do, name)

    async def _do(self, name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "commit":
            self._left -= 1
        if self._left < 0:
            await asyncio.Event().wait()
        if name == "commit" and self._left == 0:
            self._left = -1
            if self._is_written:
                await self.inner.commit(*args, **kwargs)
            self.died.set()
            await asyncio.Event().wait()
        return await getattr(self.inner, name)(*args, **kwargs)


async def die_at_each_commit(place: Place, run_id: str, **options: Any) -> AsyncIterator[None]:
    """Let worker after worker die at one of its commits, in both ways, until the run has ended; yields after each."""
    for turn in range(10_000):
        stores: list[DyingStore] = []

        def wrap(inner: Store, turn: int = turn, stores: list[DyingStore] = stores) -> Any:
            # Two commits now and then, or nobody would ever see what a worker does after its first one.
            number = 2 if turn % 5 == 4 else 1
            stores.append(DyingStore(inner, number=number, is_written=bool(turn % 2)))
            return stores[-1]

        engine = await place.engine(wrap=wrap, **options).__aenter__()
        died = asyncio.ensure_future(stores[0].died.wait())
        ended = asyncio.ensure_future(engine._client._ended(run_id, None))  # type: ignore[union-attr]
        await in_time(asyncio.wait([died, ended], return_when=asyncio.FIRST_COMPLETED))
        is_over = ended.done() and not died.done()
        for waiting in (died, ended):
            waiting.cancel()
        await asyncio.gather(died, ended, return_exceptions=True)
        await crash(engine)
        yield
        if is_over:
            return
    raise AssertionError("the run does not come to an end")
