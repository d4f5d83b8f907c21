"""Schedules: when workflows start by themselves."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, Literal

from msgspec import Struct

import outlive.errors as e
from outlive._define.schedule import cron, every
from outlive._model.schedule import Schedule
from outlive._model.ticks import SECOND
from outlive.client.schedules.info import ScheduledRun, ScheduleInfo
from outlive.http.operation import Call, operation
from outlive.http.operations.runs import made_id
from outlive.http.problem import Problem
from outlive.http.wire.page import Done, Instant, Json, Limit, Name, RunId, Seconds, Text, when
from outlive.http.wire.runs import Started

MISSING = (e.ScheduleNotFoundError,)
Overlap = Literal["skip", "allow", "buffer_one", "buffer_all", "cancel_previous", "terminate_previous"]


class SchedulesQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which page."""

    limit: Limit = 100
    after: str = ""
    """The last name of the page before."""


class SetSchedule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a schedule starts, and when: by `cron`, or `every` so many seconds."""

    workflow: Name | None = None
    """May be left out if the schedule is there."""
    cron: list[str] = []
    """It ticks when any of these expressions matches."""
    every: Seconds | None = None
    """Seconds between two ticks."""
    tz: Name = "UTC"
    """The IANA name of the time zone of the expressions."""
    arguments: dict[str, Json] = {}
    """By name; `{"$tick": "instant"}` stands for the time of the tick."""
    overlap: Overlap = "skip"
    """What becomes of a tick while a run of an earlier one is open."""
    catch_up: Literal["none", "latest", "all"] | int = "latest"
    """Which ticks are started that were missed while no worker was there."""
    start: Instant | None = None
    end: Instant | None = None
    exclude: list[str] = []
    """When it does not tick: cron expressions, and days as `2026-12-24`."""
    jitter: Seconds = 0.0
    trip_after: int | None = None
    """After so many failed runs in a row it stops until a person resumes it."""
    tags: dict[str, str] | None = None
    key: str | None = None
    """Of its runs, in the queue of the workflow."""
    priority: int | None = None
    """The same."""


class PauseSchedule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why it is paused."""

    note: Text = ""


class TriggerSchedule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to start a run now."""

    id: RunId | None = None
    """Of the run. Without one, the header `Idempotency-Key` makes it; without that, the server does."""
    overlap: Literal["allow", "skip", "terminate_previous"] | None = None


class Backfill(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which ticks to start that have no run."""

    start: Instant
    end: Instant
    overlap: Literal["allow", "buffer_all"] | None = None


class BackfillView(Struct, frozen=True):
    """How many ticks there are."""

    ticks: int


class ScheduledRunView(Struct, frozen=True):
    """A run of a schedule."""

    id: str
    tick: datetime
    status: str


class DefinitionView(Struct, frozen=True, kw_only=True):
    """When a schedule ticks."""

    cron: list[str]
    every: float | None
    tz: str
    arguments: dict[str, Json]
    overlap: Overlap
    catch_up: int
    """How many ticks are started that were missed; 0 if none, not even the latest."""
    start: datetime | None
    end: datetime | None
    exclude: list[str]
    jitter: float
    trip_after: int
    tags: dict[str, str]
    key: str
    priority: int | None


class ScheduleView(Struct, frozen=True, kw_only=True):
    """A schedule, how far it has come, and what stands in its way."""

    name: str
    workflow: str
    version: int
    definition: DefinitionView | None
    """Null if its row is damaged."""
    is_paused: bool
    is_tripped: bool
    next_fires: list[datetime]
    last: list[ScheduledRunView]
    open: list[ScheduledRunView]
    waiting: int
    failures: int
    skipped: int
    missed: int
    why: str


class SchedulesList(Struct, frozen=True):
    """Schedules."""

    items: list[ScheduleView]
    next: str | None
    """Give it as `after` to get the next page."""


@operation("GET", "/schedules", scope="viewer")
async def list_schedules(call: Call, query: SchedulesQuery) -> SchedulesList:
    """Schedules by name."""
    found = await call.engine.schedules.list(after=query.after, limit=query.limit)
    return SchedulesList([_view(call, it) for it in found], found[-1].name if len(found) == query.limit else None)


@operation("GET", "/schedules/{name}", scope="viewer", raises=MISSING)
async def get_schedule(call: Call, name: Name) -> ScheduleView:
    """A schedule: when it fires next, its last outcomes, and what stands in its way."""
    return _view(call, await call.engine.schedules.get(name))


@operation("PUT", "/schedules/{name}", scope="admin", raises=(*MISSING, e.UnknownWorkflowError))
async def set_schedule(call: Call, name: Name, body: SetSchedule) -> ScheduleView:
    """Create a schedule, or give one another definition; one that is there keeps its state."""
    return _view(call, await call.engine.schedules.set(name, _schedule(body), body.workflow))


@operation("DELETE", "/schedules/{name}", scope="admin", raises=MISSING)
async def delete_schedule(call: Call, name: Name) -> Done:
    """Delete a schedule; its runs stay."""
    if not await call.was_done(name):
        await call.engine.schedules.delete(name)
    return Done(name)


@operation("POST", "/schedules/{name}/pause", scope="operator", raises=MISSING)
async def pause_schedule(call: Call, name: Name, body: PauseSchedule | None = None) -> Done:
    """Let a schedule start nothing more."""
    if not await call.was_done(name):
        await call.engine.schedules.pause(name, by=call.principal.name, note=(body or PauseSchedule()).note)
    return Done(name)


@operation("POST", "/schedules/{name}/resume", scope="operator", raises=MISSING)
async def resume_schedule(call: Call, name: Name) -> Done:
    """Let a schedule go on that was paused or has tripped."""
    if not await call.was_done(name):
        await call.engine.schedules.resume(name)
    return Done(name)


@operation(
    "POST",
    "/schedules/{name}/trigger",
    scope="operator",
    answers=201,
    raises=(*MISSING, e.ScheduleOverlapError, e.ScheduleTrippedError),
)
async def trigger_schedule(call: Call, name: Name, body: TriggerSchedule | None = None) -> Started:
    """Start a run of a schedule now, also while it is paused.

    Sent again with the same header `Idempotency-Key`, it is the same run.
    """
    wanted = body or TriggerSchedule()
    run_id = wanted.id or made_id(call, "run", name)
    if run_id is not None and await call.was_done(name):
        return Started(run_id)
    run = await call.engine.schedules.trigger(name, overlap=wanted.overlap, id=run_id)
    return Started(run.id)


@operation("POST", "/schedules/{name}/backfill", scope="operator", raises=MISSING)
async def backfill_schedule(call: Call, name: Name, body: Backfill) -> BackfillView:
    """Start the runs of the ticks of a past range that have none."""
    return BackfillView(await call.engine.schedules.backfill(name, body.start, body.end, overlap=body.overlap))


def _schedule(body: SetSchedule) -> Schedule:
    if bool(body.cron) == bool(body.every):
        raise Problem(422, "InvalidArgumentError", "a schedule has `cron` or `every`", "Give one of the two.")
    options: dict[str, Any] = {
        "tz": body.tz,
        "args": body.arguments,
        "overlap": body.overlap,
        "catch_up": body.catch_up,
        "start": body.start,
        "end": body.end,
        "exclude": [_day_or_cron(each) for each in body.exclude],
        "jitter": body.jitter,
        "trip_after": body.trip_after,
        "tags": body.tags,
        "key": body.key,
        "priority": body.priority,
    }
    return cron(*body.cron, **options) if body.cron else every(seconds=body.every or 0, **options)


def _day_or_cron(text: str) -> date | str:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return text


def _view(call: Call, it: ScheduleInfo) -> ScheduleView:
    return ScheduleView(
        name=it.name,
        workflow=it.workflow,
        version=it.version,
        definition=None if it.schedule is None else _definition(call, it.schedule),
        is_paused=it.is_paused,
        is_tripped=it.is_tripped,
        next_fires=it.next_fires,
        last=[_run(each) for each in it.last],
        open=[_run(each) for each in it.open],
        waiting=it.waiting,
        failures=it.failures,
        skipped=it.skipped,
        missed=it.missed,
        why=it.why,
    )


def _definition(call: Call, it: Schedule) -> DefinitionView:
    return DefinitionView(
        cron=list(it.crons),
        every=it.every / SECOND if it.every else None,
        tz=it.tz,
        arguments=call.view.shown(it.args),
        overlap=it.overlap,
        catch_up=it.catch_up,
        start=when(it.start_at),
        end=when(it.end_at),
        exclude=list(it.exclude),
        jitter=it.jitter / SECOND,
        trip_after=it.trip_after,
        tags=it.tags,
        key=it.key,
        priority=it.priority,
    )


def _run(it: ScheduledRun) -> ScheduledRunView:
    return ScheduledRunView(it.id, it.tick, it.status)
