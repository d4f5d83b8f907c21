"""The activity of the last hour, minute by minute, and how long runs take: for the overview of a dashboard.

A run counts in the minute in which it was created, with the status that it has now. Each group of statuses costs one
statement if it has few runs, and one for each minute if it has many; none looks at more than `COUNT_MAX` runs. What was
read is used again for a while, so that many readers of one engine ask the store once.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from weakref import WeakKeyDictionary

import msgspec

from outlive._kernel.client.finding import COUNT_MAX
from outlive._kernel.journal.codec import open_rows
from outlive._kernel.model import Run, RunFilter, RunStatus
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.run import FAILED, OPEN
from outlive._kernel.replay.lookahead import begun_at
from outlive._kernel.store.contract import PAGE_SIZE_MAX, Store
from outlive.engine import Engine
from outlive.errors import OutliveError

MINUTES = 60
MINUTE = 60_000_000
DAY = 24 * 60 * MINUTE
AGE_SECONDS_MAX = 5.0
TIMED_MAX = 200
"""So many of the runs that were created last and have ended say how long runs take."""
BEGINNING_ROWS_MAX = 4
"""Rows of a journal in which the claim that begins the run is looked for; a person may have paused it before."""
GROUPS: dict[str, tuple[RunStatus, ...]] = {
    "succeeded": (RunStatus.SUCCEEDED, RunStatus.CONTINUED),
    "failed": FAILED,
    "cancelled": (RunStatus.CANCELLED,),
    "open": OPEN,
}


class Minute(msgspec.Struct, frozen=True):
    """How many runs were created in a minute, by how they are now."""

    starts_at: int
    succeeded: int
    failed: int
    cancelled: int
    open: int


class Activity(msgspec.Struct, frozen=True, kw_only=True):
    """The activity of the last hour."""

    minutes: list[Minute]
    """The oldest first."""
    timed: int
    """How many runs say how long runs take."""
    p50_seconds: float
    p95_seconds: float
    failed_today: int
    """Runs of the last 24 hours that have failed or timed out, counted up to `COUNT_MAX`."""


class ActivityReader:
    """Reads the activity of one engine's store, once for all who ask at about the same time."""

    def __init__(self) -> None:
        self._last: Activity | None = None
        self._read_at = 0.0
        self._lock = asyncio.Lock()

    async def read(self, store: Store, *, age_seconds_max: float) -> Activity:
        """The activity, not older than that."""
        loop = asyncio.get_running_loop()
        async with self._lock:
            if self._last is None or loop.time() - self._read_at > age_seconds_max:
                self._last = await _read(store)
                self._read_at = loop.time()
            return self._last


_READERS: WeakKeyDictionary[Engine, ActivityReader] = WeakKeyDictionary()


async def activity_of(engine: Engine, *, age_seconds_max: float = AGE_SECONDS_MAX) -> Activity:
    """See `ActivityReader`.

    Raises:
        StoreUnavailableError: the store does not answer.
    """
    reader = _READERS.setdefault(engine, ActivityReader())
    return await reader.read(engine._verbs.access.store, age_seconds_max=age_seconds_max)


async def _read(store: Store) -> Activity:
    now_at = store.now()
    first_at = (now_at // MINUTE - MINUTES + 1) * MINUTE
    groups = [await _by_minute(store, statuses, first_at) for statuses in GROUPS.values()]
    lengths = await _lengths(store, first_at)
    return Activity(
        minutes=[Minute(first_at + index * MINUTE, *counts) for index, counts in enumerate(zip(*groups, strict=True))],
        timed=len(lengths),
        p50_seconds=_percentile(lengths, 50),
        p95_seconds=_percentile(lengths, 95),
        failed_today=await store.count_runs(
            RunFilter(statuses=FAILED, since_at=now_at - DAY, roots_only=True, hides_internal=True), limit=COUNT_MAX
        ),
    )


async def _by_minute(store: Store, statuses: tuple[RunStatus, ...], first_at: int) -> list[int]:
    """How many runs with these statuses were created in each minute."""
    wanted = RunFilter(statuses=statuses, since_at=first_at, roots_only=True, hides_internal=True)
    found = await store.list_runs(wanted, limit=PAGE_SIZE_MAX)
    if len(found) < PAGE_SIZE_MAX:
        counts = [0] * MINUTES
        for run in found:
            # A run may have come in since the clock was read.
            counts[min((run.created_at - first_at) // MINUTE, MINUTES - 1)] += 1
        return counts
    starts = [first_at + index * MINUTE for index in range(MINUTES)]
    return [await store.count_runs(_between(wanted, start_at), limit=COUNT_MAX) for start_at in starts]


def _between(wanted: RunFilter, start_at: int) -> RunFilter:
    return msgspec.structs.replace(wanted, since_at=start_at, until_at=start_at + MINUTE)


async def _lengths(store: Store, first_at: int) -> list[float]:
    """How many seconds the runs took that were created last and have ended, in order."""
    ended = RunFilter(statuses=(RunStatus.SUCCEEDED, *FAILED), since_at=first_at, roots_only=True, hides_internal=True)
    found = await store.list_runs(ended, limit=TIMED_MAX)
    return sorted(await asyncio.gather(*(_seconds(store, run) for run in found)))


async def _seconds(store: Store, run: Run) -> float:
    """How long a run took since a worker began it, which is later than its creation if it stood in line."""
    began_at = run.created_at
    if run.epoch:
        rows = await store.read_journal(run.journal, limit=BEGINNING_ROWS_MAX)
        with suppress(OutliveError):  # It is damaged: a reader of this run hears of it.
            began_at = max(began_at, begun_at(list(open_rows(rows, nonce=run.nonce, run_id=run.id))))
    return ((run.finished_at or run.updated_at) - began_at) / MICROSECONDS


def _percentile(ordered: list[float], percent: int) -> float:
    return ordered[min(len(ordered) * percent // 100, len(ordered) - 1)] if ordered else 0.0
