"""Schedules: those that users make while a fleet works, and whether each tick starts one run, as its overlap says.

While faults last, after each write: of a schedule whose ticks may not overlap, one run is open at most. In the end: the
schedule is over, its runs have ended well, or were cancelled by the next tick where the schedule says so; and where
ticks may overlap and all are caught up, there is a run for each tick since the schedule was made.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from outlive._features.schedules.in_code import every
from outlive._kernel.model import Run, RunStatus
from outlive._kernel.model.instant import MICROSECONDS
from outlive.testing.clock import EPOCH
from proof.simulation.plan import Scheduled
from proof.simulation.play import play
from proof.simulation.process import SimulatedEngine
from proof.simulation.request import Ask, UserRequest
from proof.simulation.world import World


class Schedulers:
    """All who make schedules, and what comes of these."""

    def __init__(self, world: World, ask: Ask, roots: Callable[[], Iterable[Run]]) -> None:
        self._world = world
        self._ask = ask
        self._roots = roots
        self._made: dict[str, Scheduled] = {}
        self._known_at: dict[str, int] = {}
        """When each was acknowledged, by the latest clock that the store can have had since it was asked for."""

    def open(self, it: Scheduled) -> None:
        """Make a schedule."""
        self._made[it.name] = it
        fastest_seconds = self._world.skew_seconds

        async def verb(engine: SimulatedEngine) -> None:
            # The clock may be set back after the schedule was made and before its maker is answered.
            nonlocal fastest_seconds
            fastest_seconds = max(fastest_seconds, self._world.skew_seconds)
            program = json.dumps([["work", f"{it.name}.1", it.millis, 0, 1, 0]])
            end = datetime.fromtimestamp(EPOCH / MICROSECONDS + it.until_seconds, UTC)
            schedule = every(seconds=it.seconds, overlap=it.overlap, catch_up="all", end=end, args={"program": program})
            await engine.schedules.set(it.name, schedule, play)
            fastest_seconds = max(fastest_seconds, self._world.skew_seconds)
            self._known_at.setdefault(it.name, EPOCH + round((self._world.seconds + fastest_seconds) * MICROSECONDS))

        self._ask(it.at, UserRequest(f"make schedule {it.name}", verb))

    def check(self) -> None:
        """The runs of schedules that are open, after a write."""
        if not self._made:
            return
        open_runs = Counter(run.tags.get("schedule", "") for run in self._roots())
        for name, it in self._made.items():
            if it.overlap != "allow" and open_runs[name] > 1:
                self._world.complain(
                    f"schedule {name} has {open_runs[name]} open runs, and its overlap is {it.overlap}"
                )
            elif open_runs[name] > 1:
                self._world.sometimes["runs of a schedule overlap"] += 1

    def judge(self, runs: Iterable[Run]) -> None:
        """What came of it."""
        by_schedule: dict[str, list[Run]] = {name: [] for name in self._made}
        for run in runs:
            if run.number == 0 and run.tags.get("schedule") in by_schedule:
                by_schedule[run.tags["schedule"]].append(run)
        for name, it in self._made.items():
            found = by_schedule[name]
            for run in found:
                is_cut = it.overlap in {"cancel_previous", "terminate_previous"}
                if run.status is not RunStatus.SUCCEEDED and not (is_cut and run.status is RunStatus.CANCELLED):
                    self._world.complain(f"run {run.id} of a schedule ended as {run.status.value}")
            self._world.sometimes["tick of a schedule"] += len(found)
            if it.overlap in {"allow", "buffer_all"}:
                self._judge_ticks(it, {run.id for run in found})

    def _judge_ticks(self, it: Scheduled, found: set[str]) -> None:
        """Every tick behind the instant at which its maker was answered has a run."""
        span, end = round(it.seconds * MICROSECONDS), EPOCH + round(it.until_seconds * MICROSECONDS)
        known_at = self._known_at.get(it.name, end)
        for tick in range(-(-known_at // span) * span, end, span):
            at = datetime.fromtimestamp(tick / MICROSECONDS, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            if tick > known_at and f"{it.name}@{at}" not in found:
                self._world.complain(f"tick {at} of schedule {it.name} has no run; there are {sorted(found)}")
