"""The figures of a store about all its runs, workers, queues and schedules, for the gauges that are the same on every
worker.

Each figure costs a few statements that an index answers, whatever the number of runs: counting stops at `COUNT_MAX`.
What was read is used again for a while, so that several readers of one engine ask the store once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from weakref import WeakKeyDictionary

import msgspec

from outlive._kernel.client.finding import COUNT_MAX
from outlive._kernel.model import RunFilter, RunStatus
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.run import OPEN
from outlive._kernel.store.contract import Store
from outlive._kernel.values.queue import QueueState
from outlive._tasks import within
from outlive.engine import Engine
from outlive.errors import OutliveError
from outlive.errors.run import QueueNotFoundError

PENDING_LOOKED_AT = 1_000
"""So many of the pending runs without a queue that were created first are asked how long they have been due."""
QUEUES_MAX = 200
READ_SECONDS_MAX = 5.0
"""How long the store may take for all of it."""


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """A store as it is now."""

    runs: dict[str, int]
    """How many runs there are by status."""
    pending_seconds: float
    """How long the oldest pending run of a user without a queue has been due."""
    approvals: int
    """Runs that ask people for a decision."""
    workers: int
    schedule_seconds: float
    """How long the oldest due schedule has waited for a worker."""
    queues: list[QueueState]


class FigureReader:
    """Reads the figures of the store of one engine, once for all who ask at about the same time."""

    def __init__(self) -> None:
        self._last: Figures | None = None
        self._read_at = 0.0
        self._lock = asyncio.Lock()

    async def read(self, engine: Engine, *, age_seconds_max: float) -> Figures | None:
        """The figures, not older than that; None if the store does not answer, or the engine does not run."""
        loop = asyncio.get_running_loop()
        async with self._lock:
            if self._last is None or loop.time() - self._read_at > age_seconds_max:
                try:
                    self._last = await within(READ_SECONDS_MAX, _read(engine))
                except (OutliveError, TimeoutError):
                    self._last = None
                self._read_at = loop.time()
            return self._last


_READERS: WeakKeyDictionary[Engine, FigureReader] = WeakKeyDictionary()


async def figures_of(engine: Engine, *, age_seconds_max: float) -> Figures | None:
    """See `FigureReader`."""
    return await _READERS.setdefault(engine, FigureReader()).read(engine, age_seconds_max=age_seconds_max)


async def _read(engine: Engine) -> Figures:
    store = engine._verbs.access.store
    wanted = RunFilter(statuses=OPEN, hides_internal=True)
    groups = await store.count_groups(wanted, "status", limit=COUNT_MAX, groups_max=len(OPEN))
    runs = {status.value: groups.get(status.value, 0) for status in OPEN}
    due = await store.find_due_schedules(limit=1)
    queues = sorted(await store.list_queues())[:QUEUES_MAX]
    return Figures(
        runs=runs,
        pending_seconds=await _longest_due(store, runs[RunStatus.PENDING.value]),
        approvals=await store.count_runs(RunFilter(asks=""), limit=COUNT_MAX),
        workers=len(await store.list_workers(with_runs=False)),
        schedule_seconds=max((_seconds(due.now_at, row.next_at) for row in due.rows), default=0.0),
        queues=[depth async for depth in _depths(engine, queues)],
    )


async def _depths(engine: Engine, names: list[str]) -> AsyncIterator[QueueState]:
    for name in names:
        with suppress(QueueNotFoundError):  # It went since it was listed.
            yield await engine.queues.stats(name)


async def _longest_due(store: Store, pending: int) -> float:
    """How long a run of a user without a queue has been due. One in line for a slot does not wait for a worker, and its
    queue has figures of its own; the store can pass over such runs only where they are not too many."""
    queue = "" if pending < COUNT_MAX else None
    wanted = RunFilter(statuses=(RunStatus.PENDING,), roots_only=True, hides_internal=True, queue=queue)
    oldest = await store.list_runs(wanted, limit=PENDING_LOOKED_AT, oldest_first=True) if pending else []
    now_at = store.now()
    return max((_seconds(now_at, run.wake_at) for run in oldest if not run.queue), default=0.0)


def _seconds(now_at: int, since_at: int | None) -> float:
    return 0.0 if since_at is None else max(0, now_at - since_at) / MICROSECONDS
