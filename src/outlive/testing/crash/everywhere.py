"""The plan of a crash test: where to die, and how often."""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from threading import Lock
from typing import Any, TypeVarTuple

from outlive._kernel.define.workflow import Startable, bound
from outlive._kernel.model import given
from outlive._kernel.runtime.clock import SystemClock
from outlive.errors import ConfigurationError
from outlive.telemetry import log
from outlive.testing.crash.life import Drive, Ended, Plan
from outlive.testing.crash.mortal import Death, Moment, Write
from outlive.testing.crash.place import GivenPlace, Place, StoreMaker, place_for
from outlive.testing.crash.report import CrashReport, Survivor
from outlive.testing.crash.trial import Trial

POINTS_MAX = 500
SECONDS_MAX = 45.0
"""A test of pytest is usually given a minute."""
RUN_SECONDS_MAX = 30.0
ALWAYS_TRIED = 2
"""The first point and the last one."""
PAIRS_POINTS_MAX = 60
"""Up to this many points, the process dies a second time while it recovers."""
SECOND_DEATHS = (Death(1, Moment.AFTER), Death(2, Moment.BEFORE), Death(2, Moment.AFTER))
"""Where it dies then. The first write of a recovery is the claim."""
RUN_ID = "crash-everywhere"

Ts = TypeVarTuple("Ts")


async def crash_everywhere(
    workflow: Startable[*Ts, Any],
    *args: *Ts,
    signals: Sequence[tuple[str, Any]] = (),
    drive: Drive | None = None,
    reset: Callable[[], Any] | None = None,
    check: Callable[[Survivor], Any] | None = None,
    same_end: bool = True,
    url: str = "memory:",
    store: StoreMaker | None = None,
    max_points: int = POINTS_MAX,
    max_seconds: float = SECONDS_MAX,
    max_run_seconds: float = RUN_SECONDS_MAX,
    parallel: int = 1,
    **options: Any,
) -> CrashReport:
    """Run a workflow, then let it die and recover at every commit: same result, and no completed step twice.

        await crash_everywhere(checkout, order)

    Args:
        args: the arguments of the workflow.
        signals: `(name, payload)`, sent in this order as soon as the run has started.
        drive: `(engine, run_id)`: what else the world does, after the signals. It is called again by each process that
            recovers, so it must be repeatable: give signals a key.
        reset: called before each run of the workflow: put the world that the steps touch back to its beginning.
        check: given a `Survivor` at the end of each run: assert there what must hold of the world.
        same_end: whether every run must end as the undisturbed one. Without, `check` decides: for a workflow with a
            `once` step, which ends otherwise when that step was interrupted.
        url: `memory:`, `sqlite:<file>` (each run has a new file, named with a number behind), or `postgresql://...`
            (each run has an empty schema, named with a number behind).
        store: instead of `url`, `(number, clock)`: a connection to the store of the run with this number.
        max_points: at more points than this it dies at that many of them only: the first, the last, and evenly spread
            ones between.
        max_seconds: begin no more runs after so many seconds. The points come in an order in which any beginning is
            spread evenly, the first and the last before all others; these two are always tried.
        max_run_seconds: fail if one run with its deaths takes longer, even if it holds the event loop.
        parallel: how many runs are under way at once, each on a thread and an event loop of its own. What the test
            gives (steps, `drive`, `check`) must bear that.
        options: as `TestEngine` takes them.

    Raises:
        SurvivalError: something did not survive; says where the process died, what was in the store, what differed.
        ConfigurationError: no `url` of this kind works here; or `reset` is given, and it would reset the world of other
            runs that are under way.
    """
    given.whole("crash_everywhere", "parallel", parallel)
    if parallel > 1 and reset is not None:
        raise ConfigurationError(
            "crash_everywhere: reset= would change the world under other runs with parallel= above 1; leave one out"
        )
    place = GivenPlace(store) if store is not None else place_for(url)
    plan = Plan(bound(workflow, args), RUN_ID, signals, drive, check, options, max_run_seconds)
    course = Course(plan, place, reset, max_seconds)
    first = course.new_trial()
    wanted = await course.run(first, [], None)
    found = list(_points(first.writes))
    points = _spread(found, max_points)
    await course.run_all(_deaths(points), wanted if same_end else None, parallel=parallel)
    await place.close()
    tried = min(len(points), course.done - 1)
    if tried < len(found):
        log.warning("crash_everywhere: %s died at %d of %d points", plan.workflow.workflow.spec.name, tried, len(found))
    writes = tuple(write.what for write in first.writes)
    return CrashReport(tried, len(found), course.done, wanted.result, wanted.error, writes)


class Course:
    """The runs of one test, one after the other or side by side, for a limited time."""

    def __init__(self, plan: Plan, place: Place, reset: Callable[[], Any] | None, seconds_max: float) -> None:
        self._plan, self._place, self._reset = plan, place, reset
        self._clock = SystemClock()
        self._ends_at = self._clock.monotonic() + seconds_max
        self._numbers = count(1)
        self._lock = Lock()
        self._has_failed = False
        self.done = 0
        """How many runs have ended well."""

    def new_trial(self) -> Trial:
        """A trial with a number of its own."""
        return Trial(next(self._numbers), self._plan, self._place)

    async def run(self, trial: Trial, deaths: Sequence[Death], wanted: Ended | None) -> Ended:
        """One run; how it ended."""
        if self._reset is not None and inspect.isawaitable(answer := self._reset()):
            await answer
        try:
            ended = await trial.run(deaths, wanted)
        except BaseException:
            self._has_failed = True
            raise
        with self._lock:
            self.done += 1
        return ended

    async def run_all(self, deaths: Iterator[list[Death]], wanted: Ended | None, *, parallel: int) -> None:
        """A run for each of these, until the time is up or one fails."""
        taken = self._taken_from(deaths)

        async def run_some() -> None:
            while (mine := taken()) is not None:
                await self.run(self.new_trial(), mine, wanted)

        if parallel == 1:
            await run_some()
            return
        threads = [asyncio.to_thread(asyncio.run, run_some()) for _ in range(parallel)]
        for outcome in await asyncio.gather(*threads, return_exceptions=True):
            if outcome is not None:
                raise outcome

    def _taken_from(self, deaths: Iterator[list[Death]]) -> Callable[[], list[Death] | None]:
        taken = 0

        def take() -> list[Death] | None:
            nonlocal taken
            with self._lock:
                taken += 1
                is_late = taken > ALWAYS_TRIED and self._clock.monotonic() >= self._ends_at
                return None if self._has_failed or is_late else next(deaths, None)

        return take


def _points(writes: list[Write]) -> Iterator[Death]:
    for number, write in enumerate(writes, 1):
        if not write.is_claim:
            yield Death(number, Moment.BEFORE)
        yield Death(number, Moment.AFTER)


def _spread(points: list[Death], limit: int) -> list[Death]:
    """At most `limit` of the points, evenly spread, in an order in which every prefix is evenly spread too."""
    last = max(1, limit - 1)
    chosen = points
    if len(points) > limit:
        chosen = [points[index * (len(points) - 1) // last] for index in range(limit)]
    return [chosen[index] for index in _halving(len(chosen))]


def _halving(length: int) -> Iterator[int]:
    """The numbers below this: the first, the last, the middle, the middles of both halves, and so on."""
    yield from range(min(length, 1))
    yield from range(max(1, length - 1), length)
    gaps = deque([(0, length - 1)])
    while gaps:
        left, right = gaps.popleft()
        if right - left > 1:
            middle = (left + right) // 2
            yield middle
            gaps += [(left, middle), (middle, right)]


def _deaths(points: list[Death]) -> Iterator[list[Death]]:
    for point in points:
        yield [point]
    if len(points) <= PAIRS_POINTS_MAX:
        for point in points:
            for second in SECOND_DEATHS:
                yield [point, second]
