"""Where the runs of a crash test lie: each trial has a store of its own, which outlives the engines on it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from outlive._kernel.store.contract import Store
from outlive._kernel.store.memory import MemoryState, MemoryStore
from outlive.engine.url import is_server, store_for
from outlive.errors import ConfigurationError

StoreMaker = Callable[[int, Callable[[], int]], Store]
"""Given the number of a trial and a clock: a connection to the store of that trial."""
_EMPTY = Path(__file__).with_name("empty_schema.sql").read_text("utf-8")


class Place(Protocol):
    """Has a store for each trial, also for several at once."""

    def __call__(self, trial: int, clock: Callable[[], int]) -> Store:
        """A connection to the store of this trial."""

    async def prepare(self, trial: int) -> None:
        """The store of this trial is new and empty afterwards."""

    async def forget(self, trial: int) -> None:
        """The trial has ended well, and its store is not needed any more."""

    async def close(self) -> None:
        """All trials have ended well."""


class MemoryPlace:
    """Stores in memory."""

    def __init__(self) -> None:
        self._states: dict[int, MemoryState] = {}

    def __call__(self, trial: int, clock: Callable[[], int]) -> Store:
        return MemoryStore(clock=clock, state=self._states[trial])

    async def prepare(self, trial: int) -> None:
        """See `Place`."""
        self._states[trial] = MemoryState()

    async def forget(self, trial: int) -> None:
        """See `Place`."""
        del self._states[trial]

    async def close(self) -> None:
        """See `Place`."""


class FilePlace:
    """SQLite files; the one of a trial that failed is left to be looked at."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __call__(self, trial: int, clock: Callable[[], int]) -> Store:
        return store_for(f"sqlite:{self._path}.{trial}", clock=clock)

    async def prepare(self, trial: int) -> None:
        """See `Place`."""
        await self.forget(trial)

    async def forget(self, trial: int) -> None:
        """See `Place`."""
        path = Path(f"{self._path}.{trial}")
        for file in path.parent.glob(path.name + "*"):
            if file.name == path.name or file.name.startswith(path.name + "-"):
                file.unlink()

    async def close(self) -> None:
        """See `Place`."""


class ServerPlace:
    """Schemas of a database of PostgreSQL; the one of a trial that failed is left to be looked at.

    A trial takes over the schema of one that has ended well, if there is one, and deletes its rows: that is much faster
    than to make another one.
    """

    def __init__(self, url: str) -> None:
        # Imported here, so that a process without PostgreSQL loads nothing of it.
        from outlive._kernel.store.postgres.address import parse_address

        self._url = url
        self._address = parse_address(url)
        self._schemas: dict[int, str] = {}
        self._free: list[str] = []
        self._numbers = count(1)

    def __call__(self, trial: int, clock: Callable[[], int]) -> Store:
        url = f"{self._url}{'&' if '?' in self._url else '?'}schema={quote(self._schemas[trial])}"
        return store_for(url, clock=clock, is_test_clock=True)

    async def prepare(self, trial: int) -> None:
        """See `Place`."""
        if self._free:
            self._schemas[trial] = schema = self._free.pop()
            await self._do(_EMPTY.replace("{schema}", schema.replace("'", "''")))
        else:
            self._schemas[trial] = schema = f"{self._address.schema}_crash_{next(self._numbers)}"
            await self._drop(schema)

    async def forget(self, trial: int) -> None:
        """See `Place`."""
        self._free.append(self._schemas.pop(trial))

    async def close(self) -> None:
        """See `Place`."""
        for schema in self._free:
            await self._drop(schema)

    async def _drop(self, schema: str) -> None:
        name = schema.replace('"', '""')
        await self._do(f'DROP SCHEMA IF EXISTS "{name}" CASCADE')

    async def _do(self, statement: str) -> None:
        import asyncpg

        connection = await asyncpg.connect(self._address.dsn, statement_cache_size=0)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()


class GivenPlace:
    """Stores that the test makes itself."""

    def __init__(self, make: StoreMaker) -> None:
        self._make = make

    def __call__(self, trial: int, clock: Callable[[], int]) -> Store:
        return self._make(trial, clock)

    async def prepare(self, trial: int) -> None:
        """See `Place`: the number of a trial is a new one."""

    async def forget(self, trial: int) -> None:
        """See `Place`."""

    async def close(self) -> None:
        """See `Place`."""


def place_for(url: str) -> Place:
    """The place that a URL names.

    Raises:
        ConfigurationError: there is no way to have a new store of this kind for every trial.
    """
    scheme, _, path = url.partition(":")
    if scheme == "memory":
        return MemoryPlace()
    if scheme == "sqlite" and path:
        return FilePlace(path)
    if is_server(url):
        return ServerPlace(url)
    kinds = '"memory:", "sqlite:<file>" and "postgresql://..."'
    raise ConfigurationError(f"crash_everywhere knows {kinds}, not {url!r}; or give it store=")
