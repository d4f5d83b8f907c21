"""`engine.work`: a worker whose host ends, for a function, a job of cron, or a container with a known end.

It enters the engine with a `Lifetime`, waits until that is over or nothing is left to do, and leaves the engine, which
releases everything. Then it says what happened and what is left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Literal, Protocol, Self

import msgspec

from outlive._features.schedules.rows import SCHEDULER
from outlive._kernel.define.registry import Registry
from outlive._kernel.model import RunFilter
from outlive._kernel.model.instant import instant_of
from outlive._kernel.model.run import UNENDED
from outlive._kernel.model.worker import WorkerOptions, queues_of
from outlive._kernel.runtime.lifetime import Lifetime
from outlive._kernel.runtime.wakeup import Wakeup
from outlive._kernel.store.contract import PAGE_SIZE_MAX, Store
from outlive._kernel.values.count import Count
from outlive.engine.parts import Parts
from outlive.errors import StoreUnavailableError
from outlive.telemetry import Counters

LOOK_SECONDS = 0.02
LEFT_SECONDS = 0.5
"""How long the store may take to say what is left."""

WorkEnd = Literal["deadline", "idle", "runs_max", "stopped"]
"""Why a stretch of work ended: its lifetime was over, nothing was due, it had claimed as many runs as it may, or it was
asked to stop."""


class WorkDone(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one stretch of `engine.work`, and the work that is left."""

    ended_by: WorkEnd
    took: timedelta
    """From the call until everything was released."""
    runs_taken: int
    """How often a run began or was claimed here. A run that sleeps and goes on counts twice."""
    runs_succeeded: int
    """Runs that succeeded here, children too."""
    runs_failed: int
    """Runs that failed or timed out here, children too."""
    runs_cancelled: int
    """Runs that were cancelled here, children too."""
    runs_parked: int
    """Runs that were parked here: a person must look at them."""
    timers_fired: int
    """Timers of runs that became due here."""
    ticks_started: int
    """Runs of schedules that were started here."""
    steps_begun: int
    """Attempts of steps that began here."""
    steps_unfit: int
    """Steps that were not begun because they might have lasted longer than this worker. Their runs were released."""
    runs_released: int
    """Runs that were released in the middle of their work when the time was over."""
    runs_due: Count | None
    """Runs among the 1,000 oldest open ones that are due now and that this worker has the code and the queue for; None
    if the store did not say in time."""
    next_due_at: datetime | None
    """When the next run or schedule is due, in the past if one is due already; None if nothing will be, or if the store
    did not say in time."""

    @property
    def has_more(self) -> bool:
        """Whether another stretch at once may find something to do."""
        return self.ended_by != "idle" and (self.runs_due is None or self.runs_due.at_least or bool(self.runs_due))

    def __str__(self) -> str:
        """One line for people."""
        said = [
            (self.runs_succeeded, "succeeded"),
            (self.runs_failed, "failed"),
            (self.runs_cancelled, "cancelled"),
            (self.runs_parked, "parked"),
            (self.runs_released, "released at the end"),
            (self.steps_unfit, "left for lack of time"),
        ]
        runs = ", ".join([f"{_counted(self.runs_taken, 'run')} taken", *(f"{n:,} {what}" for n, what in said if n)])
        work = f"{_counted(self.steps_begun, 'step')} begun, {_counted(self.timers_fired, 'timer')} fired"
        due = "it is not known what is due" if self.runs_due is None else f"{self.runs_due} due"
        following = (
            "" if self.next_due_at is None else f", the next at {self.next_due_at.isoformat(timespec='seconds')}"
        )
        return f"{self.ended_by} after {self.took.total_seconds():.1f} s: {runs}; {work}; {due}{following}"

    def __repr__(self) -> str:
        return f"<WorkDone {self}>"


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


class Worked(Protocol):
    """The part of an engine that this needs."""

    counters: Counters
    _parts: Parts
    _registry: Registry
    _store: Store
    _work: Work | None
    _worker: WorkerOptions

    async def __aenter__(self) -> Any: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Work:
    """A stretch of work, to be awaited or entered; see `Engine.work`."""

    def __init__(self, engine: Worked, lifetime: Lifetime, *, until_idle: bool) -> None:
        self._engine, self.lifetime, self._until_idle = engine, lifetime, until_idle
        self._before = _Figures.of(engine.counters)
        self._ended_by: WorkEnd = "stopped"
        self._left: tuple[Count | None, datetime | None] = None, None
        self.done: WorkDone | None = None
        """The result, once everything is released; None before."""

    @property
    def seconds_left(self) -> float:
        """How long steps of this worker may still run; infinite if it has no end."""
        return self.lifetime.seconds_left

    def __await__(self) -> Generator[Any, None, WorkDone]:
        return self._whole().__await__()

    async def _whole(self) -> WorkDone:
        async with self:
            pass
        assert self.done is not None
        return self.done

    async def __aenter__(self) -> Self:
        """Begin to work; the verbs of the engine may be used meanwhile."""
        await self.enter(self._engine.__aenter__)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Work until it is over, and release everything; at once after an exception."""
        try:
            if kind is None:
                await self.wait()
        finally:
            await self.leave()

    async def enter(self, enter_engine: Callable[[], Awaitable[object]]) -> object:
        """Enter the engine by the given function, with the bounds of this work; what that function returns."""
        engine = self._engine
        engine._work = self
        try:
            entered = await enter_engine()
        finally:
            if engine._parts.loop is None:
                engine._work = None
        if (services := engine._parts.services) is not None:
            services.ring(SCHEDULER)  # Without schedules in its code, a worker leaves them to others for a moment.
        return entered

    async def wait(self, asked: asyncio.Future[Any] | None = None) -> None:
        """Return when it is over, or when the worker is asked to stop."""
        quiet = 0
        while (asked is None or not asked.done()) and not self._is_over():
            quiet = quiet + 1 if self._until_idle and self._is_idle() else 0
            if quiet > 1:
                self._ended_by = "idle"
                return
            await Wakeup().sleep(min(LOOK_SECONDS, self.lifetime.seconds_left))

    async def leave(self) -> None:
        """Release everything and leave the engine."""
        try:
            await self._engine.__aexit__(None, None, None)
        finally:
            self._engine._work = None
            self.done = self._sum()

    def _is_over(self) -> bool:
        life, sessions = self.lifetime, self._engine._parts.sessions
        if not life.seconds_left:
            self._ended_by = "deadline"
        elif sessions is not None and not sessions.runs_active and life.runs_left == 0:
            self._ended_by = "deadline" if life.is_closed else "runs_max"
        else:
            return False
        return True

    def _is_idle(self) -> bool:
        parts = self._engine._parts
        return (
            parts.sessions is not None
            and parts.sessions.is_idle
            and (parts.services is None or parts.services.is_resting)
            and (parts.committer is None or parts.committer.is_idle)
        )

    # -- What is left ----------------------------------------------------------------------------------------

    async def look_left(self) -> None:
        """Ask the store what is left. Everything is released, and the store is still open."""
        try:
            async with asyncio.timeout(LEFT_SECONDS):
                self._left = await self._find_left()
        except (TimeoutError, StoreUnavailableError):
            """It is not known."""

    async def _find_left(self) -> tuple[Count, datetime | None]:
        engine = self._engine
        store, queues = engine._store, queues_of(engine._worker)
        definitions = frozenset(engine._registry.definitions())
        page = await store.list_runs(
            RunFilter(statuses=UNENDED, roots_only=True), limit=PAGE_SIZE_MAX, oldest_first=True
        )
        instants = [
            run.wake_at
            for run in page
            if run.wake_at is not None
            and not run.owner
            and run.definition in definitions
            and (queues is None or run.queue in queues)
        ]
        now_at = store.now()
        runs_due = Count(sum(at <= now_at for at in instants), at_least=len(page) >= PAGE_SIZE_MAX)
        if engine._parts.sessions is not None and engine._parts.sessions.next_wake_at is not None:
            instants.append(engine._parts.sessions.next_wake_at)
        if engine._worker.schedules:
            ticks = await store.find_due_schedules(limit=1)
            instants += [at for at in (ticks.next_at, *(row.next_at for row in ticks.rows)) if at is not None]
        return runs_due, instant_of(min(instants)) if instants else None

    def _sum(self) -> WorkDone:
        runs_due, next_due_at = self._left
        since = _Figures.of(self._engine.counters).since(self._before)
        return WorkDone(
            ended_by=self._ended_by,
            took=timedelta(seconds=self.lifetime.seconds_since),
            runs_due=runs_due,
            next_due_at=next_due_at,
            **since,
        )


class _Figures(dict[str, int]):
    """The figures of an engine at one moment, by the fields of `WorkDone`."""

    @classmethod
    def of(cls, counters: Counters) -> Self:
        """The figures as they are now."""
        ended = dict.fromkeys(("succeeded", "failed", "timed_out", "cancelled"), 0)
        for (_, status), times in counters.measures.run_seconds.items():
            ended[status] = ended.get(status, 0) + times.count
        return cls(
            runs_taken=counters.runs_started + counters.runs_claimed,
            runs_succeeded=ended["succeeded"],
            runs_failed=ended["failed"] + ended["timed_out"],
            runs_cancelled=ended["cancelled"],
            runs_parked=counters.runs_parked,
            runs_released=counters.runs_released,
            timers_fired=counters.timers_fired,
            ticks_started=counters.ticks_started,
            steps_begun=counters.steps_started,
            steps_unfit=counters.steps_unfit,
        )

    def since(self, before: Self) -> dict[str, int]:
        """How much each has risen."""
        return {name: count - before[name] for name, count in self.items()}
