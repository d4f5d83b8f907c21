"""A store that fails as it is told."""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter, defaultdict, deque
from functools import partial
from typing import Any

from outlive._store.contract import Store
from outlive.errors import CommitUnknownError, StoreUnavailableError


class FaultyStore:
    """Any store, with faults before a verb, after it, or until it is mended."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.is_down = False
        self.calls: Counter[str] = Counter()
        self.before: defaultdict[str, deque[Exception]] = defaultdict(deque)
        """Raised instead of doing the verb, one for each call."""
        self.after: defaultdict[str, deque[Exception]] = defaultdict(deque)
        """Raised although the verb was done, one for each call."""
        self.gates: dict[str, asyncio.Event] = {}
        """A verb with a gate waits for it before it is done."""
        self.waiting: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        """Set when somebody waits at the gate of a verb."""

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self.inner, name)
        if not inspect.iscoroutinefunction(verb) or name in {"open", "close"}:
            return verb
        return partial(self._do, name)

    async def _do(self, name: str, *args: Any, **kwargs: Any) -> Any:
        self.calls[name] += 1
        if name in self.gates:
            self.waiting[name].set()
            await self.gates[name].wait()
        if self.is_down:
            raise unavailable()
        if self.before[name]:
            raise self.before[name].popleft()
        result = await getattr(self.inner, name)(*args, **kwargs)
        if self.after[name]:
            raise self.after[name].popleft()
        return result


def unavailable() -> StoreUnavailableError:
    """The store says no; nothing was done."""
    return StoreUnavailableError("the store", "it is down")


def unknown() -> CommitUnknownError:
    """The store says nothing."""
    return CommitUnknownError("the store", "the line went dead")
