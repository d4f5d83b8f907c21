"""A store that fails as the test says."""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from outlive._kernel.journal.codec import Row
from outlive._kernel.store.contract import Beat, Change, Store, Transaction
from outlive.errors import CommitUnknownError, StoreUnavailableError


class FaultyStore:
    """Any store, with faults before a verb, after it, or until it is repaired."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.is_down = False
        self.calls: Counter[str] = Counter()
        self.before: defaultdict[str, deque[Exception]] = defaultdict(deque)
        """Raised instead of doing the verb, one for each call."""
        self.after: defaultdict[str, deque[Exception]] = defaultdict(deque)
        """Raised although the verb was done, one for each call."""
        self.skip: Counter[str] = Counter()
        """How many calls of a verb go well before its faults begin."""
        self.gates: dict[str, asyncio.Event] = {}
        """A verb with a gate waits for it before it is done."""
        self.waiting: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        """Set when a caller waits at the gate of a verb."""

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self.inner, name)
        if name == "open_beat":
            return lambda worker_id: FaultyBeat(self, verb(worker_id))
        if not inspect.iscoroutinefunction(verb) or name in {"open", "close"}:
            return verb
        if name == "begin":
            return self._begin
        return partial(self._do, name)

    async def _begin(self, **options: Any) -> FaultyTransaction:
        return FaultyTransaction(self, await self._do("begin", **options))

    async def _do(self, name: str, *args: Any, **kwargs: Any) -> Any:
        self.calls[name] += 1
        if name in self.gates:
            self.waiting[name].set()
            await self.gates[name].wait()
        if self.is_down:
            raise unavailable()
        return await self.follow_plan(name, partial(getattr(self.inner, name), *args, **kwargs))

    async def follow_plan(self, name: str, verb: Callable[[], Awaitable[Any]]) -> Any:
        """Do a verb, with the fault that is planned for it."""
        if self.skip[name]:
            self.skip[name] -= 1
            return await verb()
        if self.before[name]:
            raise self.before[name].popleft()
        result = await verb()
        if self.after[name]:
            raise self.after[name].popleft()
        return result


def unavailable() -> StoreUnavailableError:
    """The store says no; nothing was done."""
    return StoreUnavailableError("the store", "it is down")


def unknown() -> CommitUnknownError:
    """The store says nothing."""
    return CommitUnknownError("the store", "the line went dead")


def faulty(stores: list[FaultyStore]) -> Callable[[Store], Any]:
    """A way to wrap the store of an engine that remembers the wrapper."""

    def wrap(inner: Store) -> Any:
        stores.append(FaultyStore(inner))
        return stores[-1]

    return wrap


class FaultyTransaction:
    """A transaction of a faulty store: its faults are planned under the name `end` and hit its commit."""

    def __init__(self, store: FaultyStore, inner: Transaction) -> None:
        self._store, self._inner = store, inner
        self.handle = inner.handle

    async def commit(self, changes: Sequence[Change], *, behind: Row | None = None) -> Any:
        """Commit, as the plan has it; what the store says no to is rolled back."""
        self._store.calls["end"] += 1
        if "end" in self._store.gates:
            self._store.waiting["end"].set()
            await self._store.gates["end"].wait()
        if self._store.is_down or (self._store.before["end"] and not self._store.skip["end"]):
            await self._inner.rollback()
            if self._store.is_down:
                raise unavailable()
        return await self._store.follow_plan("end", partial(self._inner.commit, changes, behind=behind))

    async def rollback(self) -> None:
        """Roll back, which always works."""
        self._store.calls["rollback"] += 1
        await self._inner.rollback()

    def gave_way(self, error: BaseException) -> bool:
        """As the store says."""
        return self._inner.gave_way(error)


class FaultyBeat:
    """The beat of a faulty store: down when that is down."""

    def __init__(self, store: FaultyStore, inner: Beat) -> None:
        self._store, self._inner = store, inner

    def renew(self, *, lease_seconds: float) -> bool:
        """Renew the lease if the store is up."""
        if self._store.is_down:
            raise unavailable()
        return self._inner.renew(lease_seconds=lease_seconds)

    def close(self) -> None:
        """Let go of the connection."""
        self._inner.close()
