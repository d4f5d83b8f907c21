"""Quotas: how much the callers of a namespace may start.

A quota lies in a cell of the namespace's own store, so it counts for all engines on it. An engine looks at it, and
counts in the store, about once a second; in between it counts its own starts. So several engines together may go past a
quota by what they start in a second, and starts do not wait for a count each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from outlive._define.middleware import Middleware, Next, StartCall
from outlive._model import RunFilter, given
from outlive._store.contract import Store
from outlive.client.bulk import OPEN
from outlive.client.client import Client
from outlive.errors import QuotaExceededError

CELL = "outlive.quota"
LOOK_MICROSECONDS = 1_000_000
MINUTE_MICROSECONDS = 60_000_000


class Quota(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a namespace may have at most; None is no limit."""

    open_runs: int | None = None
    """Runs that have not ended, children not counted."""
    starts_per_minute: int | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """What a namespace has of its quota. Counting stops at the quota."""

    quota: Quota
    open_runs: int | None
    """None where there is no limit."""
    starts_in_a_minute: int | None


class Quotas:
    """`engine.quotas`: the quota of the namespace that the engine is in."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def set(self, *, open_runs: int | None = None, starts_per_minute: int | None = None) -> None:
        """Say what callers may start from now on; what is not given has no limit. Runs that are there stay."""
        where = "engine.quotas.set"
        if open_runs is not None:
            given.whole(where, "open_runs", open_runs, least=0)
        if starts_per_minute is not None:
            given.whole(where, "starts_per_minute", starts_per_minute, least=0)
        data = msgspec.json.encode(Quota(open_runs, starts_per_minute))
        await self._client.access.store.change_cell(CELL, lambda _data, _now_at: (data, None))

    async def get(self) -> Quota:
        """What callers may start."""
        return quota_in(await self._client.access.store.read_cell(CELL))

    async def usage(self) -> Usage:
        """How much of it is used."""
        return await usage_in(self._client.access.store)


class QuotaGuard(Middleware):
    """Refuses starts beyond the quota."""

    def __init__(self, store: Callable[[], Store], *, namespace: str) -> None:
        self._store = store
        self._namespace = namespace
        self._looking = asyncio.Lock()
        self._looked_at = 0
        self._left: dict[str, int] = {}

    async def on_start(self, start: StartCall, call_next: Next) -> Any:
        """Around every start.

        Raises:
            QuotaExceededError: there are as many as there may be. A run that is there already is found all the same.
        """
        store = self._store()
        if store.now() - self._looked_at > LOOK_MICROSECONDS:
            await self._look(store)
        used_up = next((name for name, left in self._left.items() if left <= 0), None)
        if used_up is not None and await store.find_run(start.id) is None:
            raise QuotaExceededError(self._namespace, used_up.replace("_", " "))
        for name in self._left:
            self._left[name] -= 1
        return await call_next()

    async def _look(self, store: Store) -> None:
        async with self._looking:
            if store.now() - self._looked_at <= LOOK_MICROSECONDS:
                return  # Another start has looked meanwhile.
            usage = await usage_in(store)
            have = {"open_runs": usage.open_runs, "starts_per_minute": usage.starts_in_a_minute}
            most = {name: getattr(usage.quota, name) for name in have}
            self._left = {name: most[name] - used for name, used in have.items() if used is not None}
            self._looked_at = store.now()


async def usage_in(store: Store) -> Usage:
    """How much of its quota a namespace uses."""
    quota = quota_in(await store.read_cell(CELL))
    open_runs = starts = None
    if quota.open_runs is not None:
        open_runs = await store.count_runs(RunFilter(statuses=OPEN, roots_only=True), limit=max(1, quota.open_runs))
    if quota.starts_per_minute is not None:
        lately = RunFilter(since_at=store.now() - MINUTE_MICROSECONDS, roots_only=True)
        starts = await store.count_runs(lately, limit=max(1, quota.starts_per_minute))
    return Usage(quota, open_runs, starts)


def quota_in(data: bytes | None) -> Quota:
    """The quota in its cell; none if there is nothing in it."""
    return msgspec.json.decode(data, type=Quota) if data else Quota()
