"""The plan of a crash test: where to die, and how often."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVarTuple

from outlive._define.workflow import Startable, bound
from outlive.testing.crash.life import Drive, Plan
from outlive.testing.crash.mortal import Death, Moment, Write
from outlive.testing.crash.place import FilePlace, StoreMaker, place_for
from outlive.testing.crash.report import CrashReport, Survivor
from outlive.testing.crash.trial import Trial

POINTS_MAX = 500
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
        url: `memory:`, or `sqlite:<file>`: each run has a new file, named with a number behind.
        store: instead of `url`, `(number, clock)`: a connection to the store of the run with this number.
        max_points: at more points than this it dies at that many of them only, evenly spread.
        options: as `TestEngine` takes them.

    Raises:
        SurvivalError: something did not survive; says where the process died, what was in the store, what differed.
    """
    place = store or place_for(url)
    plan = Plan(bound(workflow, args), RUN_ID, signals, drive, check, options)
    runs = 0

    async def new_trial() -> Trial:
        nonlocal runs
        if reset is not None and inspect.isawaitable(answer := reset()):
            await answer
        runs += 1
        return Trial(runs, plan, place)

    first = await new_trial()
    wanted = await first.run([], None)
    writes = first.writes
    points = _spread(list(_points(writes)), max_points)
    for deaths in _deaths(points):
        trial = await new_trial()
        await trial.run(deaths, wanted if same_end else None)
    if isinstance(place, FilePlace):
        place.clear()
    return CrashReport(len(points), runs, wanted.result, wanted.error, tuple(write.what for write in writes))


def _points(writes: list[Write]) -> Iterator[Death]:
    for number, write in enumerate(writes, 1):
        if not write.is_claim:
            yield Death(number, Moment.BEFORE)
        yield Death(number, Moment.AFTER)


def _spread(points: list[Death], limit: int) -> list[Death]:
    if len(points) <= limit:
        return points
    last = max(1, limit - 1)
    return [points[index * (len(points) - 1) // last] for index in range(limit)]


def _deaths(points: list[Death]) -> Iterator[list[Death]]:
    for point in points:
        yield [point]
    if len(points) <= PAIRS_POINTS_MAX:
        for point in points:
            for second in SECOND_DEATHS:
                yield [point, second]
