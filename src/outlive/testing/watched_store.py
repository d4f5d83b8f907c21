"""A store that knows what it is doing: which verbs are under way, and when something is due next.

Everything that an engine does passes through its store. So a test engine need not know who of its parts wants what: as
long as a verb is under way, something moves.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from outlive._kernel.store.contract import Claims, Store
from outlive._kernel.store.schedules import DueSchedules

SYNC_VERBS = frozenset({"now", "open_beat", "watch", "watch_incarnation", "follow"})
LIFE = frozenset({"open", "close"})


class WatchedStore:
    """Any store, and how busy it is. It has every verb of `Store`, and of whatever else the inner one is."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.under_way = 0
        """Verbs begun and not ended."""
        self.writes = 0
        """Verbs that may have changed something."""
        self.wake_at: int | None = None
        """The next wake-up in the last claim."""
        self.schedule_at: int | None = None
        """When a schedule is due next, as far as the last look for them said."""

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self.inner, name)
        if name.startswith("_") or name in SYNC_VERBS or name in LIFE or not callable(verb):
            return verb
        return partial(self._do, name, verb)

    async def _do(self, name: str, verb: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any) -> Any:
        self.under_way += 1
        try:
            answer = await verb(*args, **kwargs)
        finally:
            self.under_way -= 1
        if name in {"commit", "deliver", "refuse_messages", "append_streams", "change_schedules"}:
            self.writes += 1
        elif isinstance(answer, Claims):
            self.wake_at = answer.next_wake_at
            self.writes += len(answer.claims)
        elif isinstance(answer, DueSchedules):
            self.schedule_at = answer.next_at
        return answer
