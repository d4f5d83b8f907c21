"""The form in which people see a schedule."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from msgspec.structs import replace

from outlive._features.schedules.deciding import observe
from outlive._features.schedules.schedule import ScheduleState, StoredSchedule
from outlive._features.schedules.ticks import Ticks, jitter_of
from outlive._features.schedules.values import Schedule, ScheduledRun
from outlive._kernel.client.why import instant
from outlive._kernel.model import Run, RunStatus, definition_key
from outlive._kernel.model.instant import MICROSECONDS, instant_of
from outlive._kernel.model.run import definition_shown
from outlive.errors.advice import Advice

NEXT_FIRES = 5
LATE_SHOWN = 60 * MICROSECONDS
"""How late a schedule may be before its sentence says so."""


def damaged_info(name: str, fault: str) -> Schedule:
    """The form of a schedule whose row cannot be read."""
    why = f"its row in the store is damaged ({fault}): it does not fire; set it again, or delete it"
    return Schedule(name=name, workflow="", version=0, schedule=None, why=why)


def info_of(
    name: str,
    stored: StoredSchedule,
    now: int,
    runs: Mapping[str, Run],
    definitions: Collection[str],
    hide: Callable[[Any], Any],
) -> Schedule:
    """The form in which people see a schedule; `definitions` are the definitions of live workers, `hide` takes out
    redacted fields."""
    schedule, target = stored.schedule, stored.target
    state = observe(stored.state, runs)
    resume = Advice("schedules.resume", {"name": name}, "lets it go on")
    fires: list[int] = []
    if not state.is_stopped:
        jitter, ticks = jitter_of(schedule, name), Ticks(schedule)
        begin = max(state.cursor + 1, now - jitter - LATE_SHOWN)
        fires = [tick + jitter for tick in ticks.between(begin, 2**62, NEXT_FIRES)]
    open_ = [
        ScheduledRun(each.run_id, instant_of(each.tick), runs[each.run_id].status.value)
        for each in reversed(state.open)
    ]
    return Schedule(
        name=name,
        workflow=target.workflow,
        version=target.version,
        schedule=replace(schedule, arguments=hide(schedule.arguments)),
        is_paused=state.paused is not None,
        is_tripped=bool(state.tripped_at),
        next_fires=[instant_of(at) for at in fires],
        last=[ScheduledRun(each.run_id, instant_of(each.tick), each.status) for each in reversed(state.last)],
        open=open_,
        waiting=len(state.buffer),
        failures=state.failures,
        skipped=state.skipped,
        missed=state.missed,
        why=_why(stored, state, fires, runs, has_worker=definition_key(target.workflow, target.version) in definitions),
        advice=(resume,) if state.is_stopped else (),
    )


def _why(
    stored: StoredSchedule,
    state: ScheduleState,
    fires: list[int],
    runs: Mapping[str, Run],
    *,
    has_worker: bool,
) -> str:
    if state.paused is not None:
        return f"it is {state.paused} (since {instant(state.paused.at)})"
    if state.tripped_at:
        return f"it has tripped: {_failures(state)} (at {instant(state.tripped_at)})"
    if not fires and not state.buffer:
        return "it is over: it does not tick any more"
    parts = [f"it fires next at {instant(fires[0])}"] if fires else []
    schedule = stored.schedule
    if schedule.trip_after and state.failures >= schedule.trip_after:
        parts = [f"it trips at its next tick: {_failures(state)}"]
    if state.open:
        last = runs[state.open[-1].run_id]
        what = f"run {last.id} is {last.status.value}"
        if last.status is RunStatus.PARKED:
            what += f" ({last.reason})"
        if state.buffer:
            parts.insert(0, f"{len(state.buffer)} tick(s) wait until {what} no longer")
        elif schedule.overlap == "skip":
            parts.append(f"{what}, and a tick is skipped while that lasts")
    if not has_worker:
        target = definition_shown(stored.target.workflow, stored.target.version)
        parts.append(f"no live worker has {target}; start one that defines it")
    return "; ".join(parts)


def _failures(state: ScheduleState) -> str:
    last = f", the last one {state.last[-1].run_id}" if state.last else ""
    return f"its last {state.failures} runs have failed{last}"
