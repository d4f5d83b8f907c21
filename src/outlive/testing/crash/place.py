"""Where the runs of a crash test lie: each trial has a store of its own, which outlives the engines on it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from outlive._store.contract import Store
from outlive._store.memory import MemoryState, MemoryStore
from outlive.engine.url import store_for
from outlive.errors import ConfigurationError

StoreMaker = Callable[[int, Callable[[], int]], Store]
"""Given the number of a trial and a clock: a connection to the store of that trial."""


class MemoryPlace:
    """Stores in memory."""

    def __init__(self) -> None:
        self._trial = -1
        self._state = MemoryState()

    def __call__(self, trial: int, clock: Callable[[], int]) -> Store:
        if trial != self._trial:
            self._trial, self._state = trial, MemoryState()
        return MemoryStore(clock=clock, state=self._state)


class FilePlace:
    """SQLite files; the one of a trial that failed is left to be looked at."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._trial = -1

    def __call__(self, trial: int, clock: Callable[[], int]) -> Store:
        if trial != self._trial:
            self.clear()
            self._trial = trial
            self.clear()
        return store_for(f"sqlite:{self._path}.{trial}", clock=clock)

    def clear(self) -> None:
        """Remove the files of the last trial."""
        path = Path(f"{self._path}.{self._trial}")
        for file in path.parent.glob(path.name + "*"):
            if file.name == path.name or file.name.startswith(path.name + "-"):
                file.unlink()


def place_for(url: str) -> MemoryPlace | FilePlace:
    """The place that a URL names.

    Raises:
        ConfigurationError: there is no way to have a new store of this kind for every trial.
    """
    scheme, _, path = url.partition(":")
    if scheme == "memory":
        return MemoryPlace()
    if scheme == "sqlite" and path:
        return FilePlace(path)
    raise ConfigurationError(f'crash_everywhere knows "memory:" and "sqlite:<file>", not {url!r}; or give it store=')
