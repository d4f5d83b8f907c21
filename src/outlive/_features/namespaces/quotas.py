"""Quotas: how much the callers of a namespace may start.

A quota lies in a cell of the namespace's own store, so it counts for all engines on it, together and exactly: a second
cell lists the starts that are under way. A start first reserves its place there, in one transaction, then creates its
run, then gives the place back. Whether there is room is judged by the runs that are in the store and the starts that
are not in it yet. The cell has a version, and a place that was given back keeps the version of that moment: a start
that looked at the store before may not have seen that run, and counts the place too.

An engine that finds no quota looks again after a second; without one, starts cost nothing more.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from outlive._kernel.client.acting import doing
from outlive._kernel.client.client import Client
from outlive._kernel.define.middleware import Middleware, Next, StartCall
from outlive._kernel.model import RunFilter, given
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.pause import EVERYTHING
from outlive._kernel.model.run import MOVING
from outlive._kernel.store.contract import Store
from outlive.errors import StoreError
from outlive.errors.run import QuotaExceededError

QUOTA_CELL = "outlive.quota"
QUOTA_UNDER_WAY_CELL = "outlive.quota.starts"
LOOK_MICROSECONDS = MICROSECONDS
FORGET_MICROSECONDS = 10_000_000
"""After how long a start that is under way is taken for lost: its process died before it could say how it ended."""
TRIES_MAX = 50
"""How often a start looks again while others that are under way might still leave it room."""
MINUTE_MICROSECONDS = 60_000_000


class Quota(msgspec.Struct, frozen=True, omit_defaults=True):
    """The quota of a namespace; None for no limit."""

    open_runs: int | None = None
    """Runs that have not ended, children not counted."""
    starts_per_minute: int | None = None

    def __repr__(self) -> str:
        return f"<Quota: {_most(self.open_runs, 'open runs')}, {_most(self.starts_per_minute, 'starts a minute')}>"


@dataclass(frozen=True, slots=True)
class Usage:
    """The part of its quota that a namespace uses. Counting stops at the quota."""

    quota: Quota
    open_runs: int | None
    """None where there is no limit."""
    starts_in_a_minute: int | None

    def __repr__(self) -> str:
        return f"<Usage: {self.open_runs} open runs, {self.starts_in_a_minute} starts in a minute; {self.quota!r}>"


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
        said = f"{_most(open_runs, 'open runs')}, {_most(starts_per_minute, 'starts a minute')}"
        with doing("quota.set", EVERYTHING, said):
            await self._client.access.store.change_cell(QUOTA_CELL, lambda _data, _now_at: (data, None))

    async def get(self) -> Quota:
        """The quota for callers."""
        return quota_in(await self._client.access.store.read_cell(QUOTA_CELL))

    async def usage(self) -> Usage:
        """How much of it is used."""
        return await usage_in(self._client.access.store)


class Place(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """Starts that are under way, or were a moment ago."""

    number: int
    count: int
    at: int
    left: int = 0
    """The version of the cell when they were in the store, or had failed; 0 until then."""


class Under(msgspec.Struct, frozen=True, omit_defaults=True):
    """The content of the cell: the starts that are under way in all engines."""

    version: int = 0
    places: tuple[Place, ...] = ()


class Verdict(msgspec.Struct, frozen=True):
    """The result of a reservation: a number, or the quota that is used up; `is_sure` if nothing that is under way could
    change that."""

    number: int = 0
    used_up: str = ""
    is_sure: bool = True


class QuotaGuard(Middleware):
    """Refuses starts beyond the quota."""

    def __init__(self, store: Callable[[], Store], *, namespace: str) -> None:
        self._store = store
        self._namespace = namespace
        self._free_until = 0
        """Until then no quota is looked for, because there was none."""

    async def on_start(self, start: StartCall, call_next: Next) -> Any:
        """Around every start of a workflow whose code is here."""
        async with self.start(start.id):
            return await call_next()

    @asynccontextmanager
    async def start(self, *run_ids: str | None) -> AsyncIterator[None]:
        """See `Admission`."""
        place = await self._reserve(run_ids) if run_ids else 0
        try:
            yield
        finally:
            if place:
                # If the store is away, the place is forgotten after a while.
                with suppress(StoreError):
                    await self._store().change_cell(QUOTA_UNDER_WAY_CELL, partial(_leave, place))

    async def _reserve(self, run_ids: Sequence[str | None]) -> int:
        store = self._store()
        if store.now() < self._free_until:
            return 0
        verdict = Verdict()
        for _ in range(TRIES_MAX):
            seen = under_in(await store.read_cell(QUOTA_UNDER_WAY_CELL)).version
            usage = await usage_in(store)
            left = left_of(usage)
            if not left:
                self._free_until = store.now() + LOOK_MICROSECONDS
                return 0
            verdict = await store.change_cell(QUOTA_UNDER_WAY_CELL, partial(_reserve, seen, left, len(run_ids)))
            if verdict.is_sure:
                break
        if verdict.number:
            return verdict.number
        if await self._are_there(run_ids):
            return 0
        raise QuotaExceededError(self._namespace, verdict.used_up.replace("_", " "))

    async def _are_there(self, run_ids: Sequence[str | None]) -> bool:
        known = [run_id for run_id in run_ids if run_id is not None]
        return len(known) == len(run_ids) == len(await self._store().find_runs(known))


def _most(number: int | None, of: str) -> str:
    return f"no limit of {of}" if number is None else f"{number:,} {of}"


def _reserve(seen: int, left: dict[str, int], count: int, held: bytes | None, now_at: int) -> tuple[bytes, Verdict]:
    """Reserve a place for starts, if there is room; `seen` is the version before the store was counted."""
    under = under_in(held)
    places = [place for place in under.places if now_at - place.at < FORGET_MICROSECONDS]
    uncounted = sum(place.count for place in places if not 0 < place.left <= seen)
    used_up = next((name for name, most in left.items() if most < count + uncounted), "")
    if used_up:
        return held or b"", Verdict(used_up=used_up, is_sure=not uncounted or left[used_up] < count)
    version = under.version + 1
    return _packed(version, [*places, Place(version, count, now_at)]), Verdict(number=version)


def _leave(number: int, held: bytes | None, now_at: int) -> tuple[bytes, None]:
    """Say that starts are in the store, or have failed."""
    under = under_in(held)
    version = under.version + 1
    return _packed(version, [replace(it, left=version) if it.number == number else it for it in under.places]), None


def _packed(version: int, places: Sequence[Place]) -> bytes:
    return msgspec.json.encode(Under(version, tuple(places)))


def under_in(data: bytes | None) -> Under:
    """The starts that are under way."""
    return msgspec.json.decode(data, type=Under) if data else Under()


def left_of(usage: Usage) -> dict[str, int]:
    """How much is left of each quota; nothing for what has no limit."""
    have = {"open_runs": usage.open_runs, "starts_per_minute": usage.starts_in_a_minute}
    return {name: getattr(usage.quota, name) - used for name, used in have.items() if used is not None}


async def usage_in(store: Store) -> Usage:
    """How much of its quota a namespace uses."""
    quota = quota_in(await store.read_cell(QUOTA_CELL))
    open_runs = starts = None
    if quota.open_runs is not None:
        open_runs = await store.count_runs(RunFilter(statuses=MOVING, roots_only=True), limit=max(1, quota.open_runs))
    if quota.starts_per_minute is not None:
        lately = RunFilter(since_at=store.now() - MINUTE_MICROSECONDS, roots_only=True)
        starts = await store.count_runs(lately, limit=max(1, quota.starts_per_minute))
    return Usage(quota, open_runs, starts)


def quota_in(data: bytes | None) -> Quota:
    """The quota in its cell; none if there is nothing in it."""
    return msgspec.json.decode(data, type=Quota) if data else Quota()
