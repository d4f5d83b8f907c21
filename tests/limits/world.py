"""A world for tests of limits: one store, one clock that skips, and as many engines as a test wants."""

from __future__ import annotations

from typing import Any

import outlive
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.store.memory import MemoryState, MemoryStore
from outlive.testing import TestEngine
from outlive.testing.skip_clock import SkipClock
from outlive.testing.watched_store import WatchedStore
from tests.engine.inside import give_store, go_silent, store_of, worker_of
from tests.engine.support import stage

HOUR = 3600
START_AT = 1_699_999_200 * MICROSECONDS
"""The beginning of an hour."""


class World:
    """Engines that come and go; the store and the time stay."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.clock = SkipClock(start_at=START_AT)
        self._state = MemoryState()

    def engine(self, **options: Any) -> TestEngine:
        """An engine of this world; one in memory finds what the others have left."""
        engine = TestEngine(self.url, clock=self.clock, **options)
        if self.url == "memory:":
            give_store(engine, WatchedStore(MemoryStore(clock=self.clock.now, state=self._state)))
        return engine

    @property
    def seconds(self) -> float:
        """How much time has passed."""
        return (self.clock.now() - START_AT) / MICROSECONDS


async def die(engine: TestEngine) -> None:
    """End an engine as a kill would; others see at once that it is dead."""
    worker_id, store = worker_of(engine).id, store_of(engine)
    engine.abandon()
    await go_silent(store, worker_id)
    await store.close()


def noted() -> list[Any]:
    """What the steps of a test have noted, and when."""
    return stage.calls


def call(what: Any) -> None:
    """Note that something was called, and after how many seconds."""
    stage.call((what, stage.values["world"].seconds))


async def give_up(run: outlive.types.RunHandle[Any], engine: TestEngine) -> str:
    """Cancel a run; what it is when everything that can happen without time passing has happened."""
    await run.cancel()
    await engine.settle()
    return await run.status()
