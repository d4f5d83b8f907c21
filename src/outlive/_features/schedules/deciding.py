"""Decides about the ticks of a schedule, from its stored state, the time, and the runs that it has started. Pure.

Why the overlap policy holds: a run of a schedule begins only together with a change of the schedule's row, and the row
lists the runs that may be open. So of two workers that decide at the same time one conflicts, whatever each of them has
seen; and a run that was seen to have ended does not begin again by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec.structs import replace

from outlive._features.schedules.schedule import (
    BUFFER_MAX,
    LAST_MAX,
    OPEN_MAX,
    Overlap,
    ScheduleRun,
    ScheduleState,
    StoredSchedule,
    run_id_of,
)
from outlive._features.schedules.ticks import Ticks, jitter_of, last_ticks
from outlive._kernel.model import Run, RunStatus
from outlive._kernel.model.instant import MICROSECONDS

LATE = 60 * MICROSECONDS
"""How late a tick may be started if missed ones are not caught up."""
LOOK_FIRST = MICROSECONDS // 2
LOOK_MOST = 30 * MICROSECONDS
LOOK_GROWTH = 1.5
"""How soon a worker looks again whether the run has ended that a tick waits for: less and less often."""
TERMINATE_LOOK = MICROSECONDS // 10
GONE = "gone"
FAILED = frozenset({RunStatus.FAILED.value, RunStatus.TIMED_OUT.value})


class Decision(NamedTuple):
    """A decision about a schedule: its new state, and what follows from it."""

    state: ScheduleState
    next_at: int | None
    starts: list[int]
    """The ticks whose runs are started."""
    stops: list[str]
    """Open runs that are to end, for the next tick to start."""
    has_tripped: bool = False


def decide(name: str, stored: StoredSchedule, now: int, runs: Mapping[str, Run]) -> Decision:
    """Decide about a schedule now; `runs` are those of its open runs that exist."""
    schedule, state = stored.schedule, observe(stored.state, runs)
    if state.is_stopped:
        return Decision(state, None, [], [])
    if schedule.trip_after and state.failures >= schedule.trip_after:
        return Decision(replace(state, tripped_at=now), None, [], [], has_tripped=True)
    jitter = jitter_of(schedule, name)
    until = now - jitter
    due, later = last_ticks(schedule, state.cursor, until, max(1, schedule.catch_up))
    wanted = due[-max(1, schedule.catch_up) :]
    if wanted and not schedule.catch_up and until - wanted[-1] > LATE:
        wanted = []
    state = replace(state, cursor=max([state.cursor, *due[-1:]]), missed=state.missed + len(due) - len(wanted))
    starts: list[int] = []
    for tick in wanted:
        state = _admit(name, state, tick, schedule.overlap, starts)
    state = take_buffered(name, state, starts)
    next_at = None if later is None else later + jitter
    stops: list[str] = []
    if state.buffer:
        look_at, state = _next_look(state, schedule.overlap, now)
        next_at = look_at if next_at is None else min(next_at, look_at)
        if schedule.overlap in ("cancel_previous", "terminate_previous"):
            stops = [run.run_id for run in state.open]
    return Decision(state, next_at, starts, stops)


def _admit(name: str, state: ScheduleState, tick: int, overlap: Overlap, starts: list[int]) -> ScheduleState:
    """Start a tick, let it wait, or skip it."""
    if overlap == "allow" or not (state.open or state.buffer):
        return opened(name, state, tick, starts)
    match overlap:
        case "skip":
            return replace(state, skipped=state.skipped + 1)
        case "buffer_one":
            return replace(state, skipped=state.skipped + 1) if state.buffer else replace(state, buffer=(tick,))
        case "buffer_all":
            if len(state.buffer) >= BUFFER_MAX:
                return replace(state, skipped=state.skipped + 1)
            return replace(state, buffer=(*state.buffer, tick))
        case "cancel_previous" | "terminate_previous":
            # The latest tick takes the place of one that has not begun.
            return replace(state, buffer=(tick,), skipped=state.skipped + len(state.buffer))


def opened(name: str, state: ScheduleState, tick: int, starts: list[int]) -> ScheduleState:
    """The state when the run of a tick is started."""
    starts.append(tick)
    run = ScheduleRun(run_id_of(name, tick), tick)
    return replace(state, open=(*state.open, run)[-OPEN_MAX:], looks=0)


def take_buffered(name: str, state: ScheduleState, starts: list[int]) -> ScheduleState:
    """Start the first tick that waits, if no run is open."""
    if state.buffer and not state.open:
        tick, *rest = state.buffer
        return opened(name, replace(state, buffer=tuple(rest)), tick, starts)
    return state


def _next_look(state: ScheduleState, overlap: Overlap, now: int) -> tuple[int, ScheduleState]:
    if overlap == "terminate_previous" and not state.looks:
        return now + TERMINATE_LOOK, replace(state, looks=1)
    pause = min(LOOK_MOST, round(LOOK_FIRST * LOOK_GROWTH**state.looks))
    return now + pause, replace(state, looks=min(state.looks + 1, 100))


def observe(state: ScheduleState, runs: Mapping[str, Run]) -> ScheduleState:
    """The state with the ends of runs that were open."""
    open_: list[ScheduleRun] = []
    last, failures = list(state.last), state.failures
    for each in state.open:
        run = runs.get(each.run_id)
        if run is not None and not run.status.is_terminal:
            open_.append(each)
            continue
        status = GONE if run is None else run.status.value
        last.append(replace(each, status=status))
        if status in FAILED:
            failures += 1
        elif status == RunStatus.SUCCEEDED.value:
            failures = 0
    if len(open_) == len(state.open):
        return state
    return replace(state, open=tuple(open_), last=tuple(last[-LAST_MAX:]), failures=failures)


def first_look(name: str, stored: StoredSchedule) -> int | None:
    """When a worker should look at a schedule that was changed just now; None: never."""
    if stored.state.is_stopped:
        return None
    tick = Ticks(stored.schedule).after(stored.state.cursor)
    at = None if tick is None else tick + jitter_of(stored.schedule, name)
    return 0 if stored.state.buffer else at
