"""Schedules that the code declares, and how they come into the store.

A process declares once, when its worker starts. Equal code writes nothing. Of two codes the one with the higher version
of the workflow wins, and of one version the process that began later: a process that was started before a deployment
does not write its own schedule back. What was changed at run time stays until the code says something new.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from outlive._define.registry import Registry
from outlive._define.schedule import target_of
from outlive._model.schedule import Declared, Schedule, ScheduleState, StoredSchedule, Target, print_of, schedule_in
from outlive._store.contract import Outcome, Store
from outlive._store.schedules import ScheduleRow
from outlive.client.schedules.deciding import first_look
from outlive.client.schedules.rows import TRIES_MAX, NewSchedule, change_to
from outlive.errors import OutliveError
from outlive.telemetry import log


async def declare(registry: Registry, store: Store, *, began_at: int, nonce: Callable[[], int]) -> None:
    """Let the store know the schedules that the code declares."""
    wanted = {
        schedule.name: (schedule, target_of(f"workflow {spec.name}", spec, schedule))
        for spec, schedule in registry.schedules()
    }
    for _ in range(TRIES_MAX):
        rows = await store.find_schedules(list(wanted))
        new = {
            name: made
            for name, (schedule, target) in wanted.items()
            if (made := _declared(rows.get(name), schedule, target, began_at=began_at, now=store.now())) is not None
        }
        changes = [change_to(rows.get(name), name, made, nonce=nonce) for name, made in new.items()]
        if Outcome.CONFLICT not in await store.change_schedules(changes):
            return
    raise OutliveError("the schedules of this code could not be declared: they were changed again and again")


def _declared(
    row: ScheduleRow | None, schedule: Schedule, target: Target, *, began_at: int, now: int
) -> NewSchedule | None:
    """What a schedule is to be by this code; None if it is to stay."""
    declared = Declared(print_of(schedule, target), target.version, began_at)
    if row is None:
        stored = StoredSchedule(schedule=schedule, target=target, state=ScheduleState(cursor=now), declared=declared)
        return NewSchedule(stored, first_look(schedule.name, stored), [])
    try:
        before = schedule_in(row.data)
    except ValueError as error:
        log.error("the row of schedule %s is damaged (%s); set it again, or delete it", schedule.name, error)
        return None
    if before.declared is not None:
        known = before.declared
        if known.print == declared.print or (known.version, known.at) > (declared.version, declared.at):
            return None
    return renewed(before, schedule, target, declared, now=now)


def renewed(
    before: StoredSchedule, schedule: Schedule, target: Target, declared: Declared | None, *, now: int
) -> NewSchedule:
    """A schedule with another definition. Its state stays; if its times are others, they count from now on."""
    state = before.state
    if _times(before.schedule) != _times(schedule):
        state = replace(state, cursor=now)
    stored = StoredSchedule(schedule=schedule, target=target, state=state, declared=declared)
    return NewSchedule(stored, first_look(schedule.name, stored), [])


def _times(schedule: Schedule) -> Schedule:
    """What a schedule says about its times alone."""
    return replace(schedule, overlap="skip", catch_up=1, trip_after=0, args={}, tags={})
