"""How the suite gets at the store under test."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from outlive._kernel.store.contract import Store
from outlive._kernel.store.memory import MemoryState, MemoryStore
from outlive.testing.clock import ManualClock

SharedTransaction = Callable[[], AbstractAsyncContextManager[Any]]
"""Gives a user's connection to the place with a transaction open on it, which commits at the end of the block and is
rolled back when the block raises."""


class StoreFactory(Protocol):
    """One place where data lies, and a way to open stores on it. Every test gets a factory with an empty place."""

    @property
    def clock(self) -> ManualClock:
        """The clock of every store that this factory opens."""

    @property
    def persistent(self) -> bool:
        """Whether another process that opens a store here sees the same data.

        The suite then sends the factory to child processes: it, and what it holds, must be picklable.
        """

    @property
    def shared_transaction(self) -> SharedTransaction | None:
        """How a user begins a transaction that `Store.join` can join; None if the store has none to share."""

    async def open(self) -> Store:
        """Give a new store object on the same data, opened: a reopened store, or the store of a second worker."""


class StoreMaker(Protocol):
    """A store class, or a `functools.partial` of one, that lacks nothing but its clock."""

    def __call__(self, *, clock: ManualClock) -> Store:
        """Make a store that is not open yet."""


@dataclass(frozen=True)
class PersistentFactory:
    """The factory for a store that keeps its data outside the process: `PersistentFactory(partial(MyStore, url))`."""

    make: StoreMaker
    clock: ManualClock = field(default_factory=ManualClock)
    persistent: bool = True
    shared_transaction: SharedTransaction | None = None

    async def open(self) -> Store:
        """Give a new store object on the same data, opened."""
        store = self.make(clock=self.clock)
        await store.open()
        return store


@dataclass(frozen=True)
class MemoryFactory:
    """The factory for `MemoryStore`, or a class that derives from it: its place is a state that its stores share."""

    kind: type[MemoryStore] = MemoryStore
    clock: ManualClock = field(default_factory=ManualClock)
    state: MemoryState = field(default_factory=MemoryState)
    persistent: bool = False
    shared_transaction: SharedTransaction | None = None

    async def open(self) -> Store:
        """Give a new store object on the same state, opened."""
        store = self.kind(clock=self.clock, state=self.state)
        await store.open()
        return store
