"""Schedules that the code declares, and how they come into the store.

A process declares once, when its worker starts. Equal code writes nothing. Of two codes the one with the higher version
of the workflow wins, and of one version the process that began later: a process that was started before a deployment
does not write its own schedule back. What was changed at run time stays until the code says something new.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from outlive._features.schedules.deciding import first_look
from outlive._features.schedules.in_code import declared_in, target_of
from outlive._features.schedules.rows import TRIES_MAX, NewSchedule, change_to
from outlive._features.schedules.schedule import (
    Declared,
    ScheduleSpec,
    ScheduleState,
    StoredSchedule,
    Target,
    print_of,
    schedule_in,
    schedule_names,
)
from outlive._kernel.define.registry import Registry
from outlive._kernel.model.pause import Pause
from outlive._kernel.store.contract import Outcome, Store
from outlive._kernel.store.schedules import ScheduleChange, ScheduleRow
from outlive.errors import OutliveError
from outlive.telemetry import log

RESTING = "its flow is disabled"


class Wanted(NamedTuple):
    """A schedule that code or a document declares."""

    schedule: ScheduleSpec
    target: Target
    by: Declared
    is_resting: bool = False
    """Whether it does not fire for now, because its flow is disabled."""


async def declare(registry: Registry, store: Store, *, began_at: int, nonce: Callable[[], int]) -> None:
    """Let the store know the schedules that the code declares."""
    wanted: dict[str, Wanted] = {}
    for spec, schedule in declared_in(registry):
        target = target_of(f"workflow {spec.name}", spec, schedule)
        # The versions of a flow have no order: the process that began later wins.
        version = target.version if registry.has_order(spec.name) else 0
        wanted[schedule.name] = Wanted(schedule, target, Declared(print_of(schedule, target), version, began_at))
    flows = {spec.name: Declared("", 0, began_at) for spec in registry.newest() if not registry.has_order(spec.name)}
    await declare_all(store, wanted, flows, nonce=nonce)


async def declare_all(
    store: Store, wanted: Mapping[str, Wanted], flows: Mapping[str, Declared], *, nonce: Callable[[], int]
) -> None:
    """Write these schedules, if no newer code has; and delete schedules that these flows do not have any more."""
    names = {name for flow in flows for name in schedule_names(flow)}
    for _ in range(TRIES_MAX):
        rows = await store.find_schedules(sorted({*wanted, *names}))
        new = {name: made for name, each in wanted.items() if (made := _renewed_by(rows.get(name), each, store.now()))}
        changes = [change_to(rows.get(name), name, made, nonce=nonce) for name, made in new.items()]
        changes += [
            ScheduleChange(name=name, revision=row.revision, next_revision=0, data=None)
            for name, row in rows.items()
            if name not in wanted and _is_gone(row, flows)
        ]
        if not changes or Outcome.CONFLICT not in await store.change_schedules(changes):
            return
    raise OutliveError("the schedules of this code could not be declared: they were changed again and again")


def _is_gone(row: ScheduleRow, flows: Mapping[str, Declared]) -> bool:
    """Whether a schedule was declared by a flow that does not declare it any more."""
    try:
        before = schedule_in(row.data)
    except ValueError:
        return False
    by, known = flows.get(before.target.workflow), before.declared
    return by is not None and known is not None and (known.version, known.at) <= (by.version, by.at)


def _renewed_by(row: ScheduleRow | None, wanted: Wanted, now: int) -> NewSchedule | None:
    """The new version of a schedule; None if it stays as it is."""
    made = declared_schedule(row, wanted.schedule, wanted.target, wanted.by, now=now)
    if made is None:
        try:
            stored = schedule_in(row.data) if row is not None else None
        except ValueError:
            stored = None
        if stored is None or stored.declared is None or stored.declared.version > wanted.by.version:
            return None
    else:
        stored = made.stored
    state = stored.state
    if wanted.is_resting and state.paused is None:
        state = replace(state, paused=Pause(now, "", RESTING))
    elif not wanted.is_resting and state.paused is not None and state.paused.reason == RESTING:
        # Ticks that passed while it was disabled are not caught up.
        state = replace(state, paused=None, cursor=now)
    if state is stored.state:
        return made
    stored = replace(stored, state=state)
    return NewSchedule(stored, first_look(wanted.schedule.name, stored), [])


def declared_schedule(
    row: ScheduleRow | None, schedule: ScheduleSpec, target: Target, declared: Declared, *, now: int
) -> NewSchedule | None:
    """The new version of a schedule by this code; None if it stays as it is."""
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
    before: StoredSchedule, schedule: ScheduleSpec, target: Target, declared: Declared | None, *, now: int
) -> NewSchedule:
    """A schedule with another definition. Its state stays; if its times are others, they count from now on."""
    state = before.state
    if _times(before.schedule) != _times(schedule):
        state = replace(state, cursor=now)
    stored = StoredSchedule(schedule=schedule, target=target, state=state, declared=declared)
    return NewSchedule(stored, first_look(schedule.name, stored), [])


def _times(schedule: ScheduleSpec) -> ScheduleSpec:
    """The times of a schedule, without everything else."""
    return replace(schedule, overlap="skip", catch_up=1, trip_after=0, arguments={}, tags={})
