"""Starts the runs of schedules.

Every worker looks for schedules that are due, works out what becomes of their ticks, and writes that together with the
runs that start. Another worker that was first makes the change conflict; then this one looks again. A worker that is
killed in the middle has written all of it or nothing.
"""

from __future__ import annotations

from msgspec.structs import replace

from outlive._features.schedules.deciding import Decision, decide
from outlive._features.schedules.rows import SCHEDULER, NewSchedule, change_to, open_runs
from outlive._features.schedules.schedule import StoredSchedule, run_id_of, schedule_in
from outlive._features.schedules.starting import start_of, terminate
from outlive._features.schedules.ticks import jitter_of
from outlive._kernel.client.client import Client
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.pause import moved_away
from outlive._kernel.runtime.clock import Clock
from outlive._kernel.store.contract import Outcome
from outlive._kernel.store.schedules import ScheduleChange, ScheduleRow
from outlive.errors import OutliveError, StoreError
from outlive.telemetry import Counters, damaged_rows, log

SCHEDULES_AT_ONCE = 500
"""Schedules that are changed in one transaction: so many are worked out in less than a tenth of a second, and the runs
that have started already, which take their turns on the same event loop, do not hold up the others for long."""
BATCHES_MAX = 100
LOOK_SECONDS = 5.0
"""How often a worker looks for schedules that other processes have made."""
FIRST_LOOK_SECONDS = 1.0
"""When it looks first, if its own code has no schedules: not before it has begun with its work."""
CONFLICT_SECONDS = 0.1
"""About how long it leaves the schedules to the worker that was first."""


class Scheduler:
    """The service of one worker that starts runs of schedules."""

    name = SCHEDULER

    def __init__(self, client: Client, *, clock: Clock, counters: Counters, looks_at_once: bool) -> None:
        self._client = client
        self._access = client.access
        self._clock = clock
        self._counters = counters
        self._has_begun = looks_at_once

    async def run_once(self) -> float:
        """Start what is due; see `Service`."""
        if not self._has_begun:
            self._has_begun = True
            return FIRST_LOOK_SECONDS
        store = self._access.store
        for _ in range(BATCHES_MAX):
            due = await store.find_due_schedules(limit=SCHEDULES_AT_ONCE)
            if not due.rows:
                # A little spread, so that the workers of a fleet do not ask in step.
                pause = LOOK_SECONDS * (0.75 + self._clock.random() / 2)
                if due.next_at is None:
                    return pause
                return min(pause, max(0.0, (due.next_at - store.now()) / MICROSECONDS))
            worker = self._access.worker
            if worker is not None and moved_away(worker.pauses) is not None:
                return LOOK_SECONDS  # They tick in the store to which they were moved.
            if not await self._start(due.rows, due.now_at):
                return CONFLICT_SECONDS * (0.5 + self._clock.random())
        return 0.0

    async def _start(self, rows: list[ScheduleRow], now: int) -> bool:
        """Decide on the due schedules and write that; False if another worker has changed most of them first."""
        store, changes = self._access.store, []
        found = {row.name: stored for row in rows if (stored := _stored(row)) is not None}
        runs = await open_runs(store, found.values())
        decisions = {name: decide(name, stored, now, runs) for name, stored in found.items()}
        for row in rows:
            if row.name in found:
                changes.append(self._change(row, found[row.name], decisions[row.name], now))
            else:
                # It stays as it is, and out of the way of the others.
                changes.append(
                    ScheduleChange(name=row.name, revision=row.revision, next_revision=row.revision + 1, data=row.data)
                )
        outcomes = await store.change_schedules(changes)
        won = [row.name for row, outcome in zip(rows, outcomes, strict=True) if outcome is Outcome.COMMITTED]
        for name in won:
            if name in decisions:
                self._count(name, found[name], decisions[name], now)
        if any(decisions[name].starts for name in won if name in decisions):
            self._access.ring()
        for name in won:
            if name in decisions and decisions[name].stops:
                await self._stop(name, found[name], decisions[name])
        return len(won) * 2 > len(rows)

    def _change(self, row: ScheduleRow, stored: StoredSchedule, decision: Decision, now: int) -> ScheduleChange:
        name, packer, nonce = row.name, self._access.packer, self._clock.nonce
        starts = [
            start_of(name, stored, tick, run_id=run_id_of(name, tick), packer=packer, nonce=nonce(), at=now)
            for tick in decision.starts
        ]
        new = NewSchedule(replace(stored, state=decision.state), decision.next_at, starts)
        return change_to(row, name, new, nonce=nonce)

    def _count(self, name: str, stored: StoredSchedule, decision: Decision, now: int) -> None:
        self._counters.ticks_started += len(decision.starts)
        for tick in decision.starts:
            late = now - tick - jitter_of(stored.schedule, name)
            self._counters.measures.schedule_lag_seconds.add(max(0, late))
        skipped = decision.state.skipped - stored.state.skipped
        self._counters.ticks_skipped += skipped
        if skipped:
            log.info("schedule %s: %d tick(s) skipped, because a run of it is open", name, skipped)
        if missed := decision.state.missed - stored.state.missed:
            log.warning("schedule %s: at least %d tick(s) passed while no worker was there", name, missed)
        if decision.has_tripped:
            self._counters.schedules_tripped += 1
            what = "schedule %s has tripped: its last %d runs have failed; resume it when that is repaired"
            log.error(what, name, decision.state.failures)

    async def _stop(self, name: str, stored: StoredSchedule, decision: Decision) -> None:
        """End the runs that stand in the way of a tick. If this worker is killed before, the next look does it."""
        for run_id in decision.stops:
            reason = f"the next tick of schedule {name} is due"
            try:
                if stored.schedule.overlap == "terminate_previous":
                    await terminate(self._access, run_id, reason=reason)
                else:
                    await self._client.cancel(run_id, reason=reason)
            except StoreError:
                raise
            except OutliveError as error:  # It has ended meanwhile, or its inbox is full: the next look tries again.
                log.info("schedule %s: run %s was not stopped: %s", name, run_id, error)


def _stored(row: ScheduleRow) -> StoredSchedule | None:
    try:
        return schedule_in(row.data)
    except ValueError as error:
        damaged_rows.add("schedule", row.name, str(error))
        return None
