"""Schedules: when workflows start by themselves."""

from __future__ import annotations

from datetime import date
from typing import Any, Literal

from msgspec import Struct

from outlive._features.schedules.in_code import cron, every
from outlive._features.schedules.schedule import Overlap, ScheduleSpec
from outlive._features.schedules.values import Schedule
from outlive.errors import InvalidArgumentError
from outlive.errors.program import UnknownWorkflowError
from outlive.errors.run import ScheduleNotFoundError, ScheduleOverlapError, ScheduleTrippedError
from outlive.http.asked import made_id
from outlive.http.operation import Call, operation
from outlive.http.wire.page import Done, Instant, Json, Limit, Name, RunId, Span, seconds_of
from outlive.http.wire.runs import Attributed, Started

MISSING = (ScheduleNotFoundError,)


class SchedulesQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which page."""

    limit: Limit = 100
    after: str = ""
    """The last name of the page before."""


class SetSchedule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The target of a schedule, and its times: by `cron`, or `every` so often. The field `schedule` of an answer
    fits."""

    workflow: Name | None = None
    """May be left out if the schedule is there."""
    name: str = ""
    """The name in the path, if it is given."""
    cron: list[str] = []
    """It ticks when any of these expressions matches."""
    every: Span | None = None
    """The time between two ticks: seconds, or as `PT15M`."""
    tz: Name = "UTC"
    """The IANA name of the time zone of the expressions."""
    arguments: dict[str, Json] = {}
    """By name; `{"$tick": "instant"}` stands for the time of the tick."""
    overlap: Overlap = "skip"
    """The policy for a tick while a run of an earlier tick is open."""
    catch_up: Literal["none", "latest", "all"] | int = "latest"
    """Which ticks are started that were missed while no worker was there."""
    start: Instant | None = None
    end: Instant | None = None
    exclude: list[str] = []
    """When it does not tick: cron expressions, and days as `2026-12-24`."""
    jitter: Span = 0.0
    """How much later than its tick a run starts at most."""
    trip_after: int = 0
    """After so many failed runs in a row it stops until a person resumes it; 0 for never."""
    tags: dict[str, str] = {}
    key: str = ""
    """The key of its runs, in the queue of the workflow."""
    priority: int | None = None
    """The priority of its runs, in the queue of the workflow."""


class TriggerSchedule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to start a run now."""

    id: RunId | None = None
    """The id of the run. Without one, the header `Idempotency-Key` makes it; without that, the server does."""
    overlap: Literal["allow", "skip", "terminate_previous"] | None = None


class Backfill(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which ticks to start that have no run."""

    start: Instant
    end: Instant
    overlap: Literal["allow", "buffer_all"] | None = None


class BackfillView(Struct, frozen=True):
    """How many ticks of the range had no run."""

    ticks: int


class SchedulesList(Struct, frozen=True):
    """Schedules."""

    items: list[Schedule]
    next: str | None
    """Give it as `after` to get the next page."""


@operation("schedules.list", "GET", "/schedules", scope="viewer")
async def list_schedules(call: Call, query: SchedulesQuery) -> SchedulesList:
    """Schedules by name."""
    found = await call.engine.schedules.list(after=query.after, limit=query.limit)
    return SchedulesList(found, found[-1].name if len(found) == query.limit else None)


@operation("schedules.get", "GET", "/schedules/{name}", scope="viewer", raises=MISSING)
async def get_schedule(call: Call, name: Name) -> Schedule:
    """A schedule: when it fires next, its last outcomes, and what stands in its way."""
    return await call.engine.schedules.get(name)


@operation("schedules.set", "PUT", "/schedules/{name}", scope="admin", raises=(*MISSING, UnknownWorkflowError))
async def set_schedule(call: Call, name: Name, body: SetSchedule) -> Schedule:
    """Create a schedule, or give one another definition; one that is there keeps its state."""
    return await call.engine.schedules.set(name, _schedule(body), body.workflow)


@operation("schedules.delete", "DELETE", "/schedules/{name}", scope="admin", raises=MISSING)
async def delete_schedule(call: Call, name: Name) -> Done:
    """Delete a schedule; its runs stay."""
    if not await call.was_done(name):
        await call.engine.schedules.delete(name)
    return Done(name)


@operation("schedules.pause", "POST", "/schedules/{name}/pause", scope="operator", raises=MISSING)
async def pause_schedule(call: Call, name: Name, body: Attributed | None = None) -> Done:
    """Let a schedule start nothing more."""
    said = body or Attributed()
    by = call.person(said.by)
    if not await call.was_done(name):
        await call.engine.schedules.pause(name, by=by, reason=said.reason)
    return Done(name)


@operation("schedules.resume", "POST", "/schedules/{name}/resume", scope="operator", raises=MISSING)
async def resume_schedule(call: Call, name: Name) -> Done:
    """Let a schedule go on that was paused or has tripped."""
    if not await call.was_done(name):
        await call.engine.schedules.resume(name)
    return Done(name)


@operation(
    "schedules.trigger",
    "POST",
    "/schedules/{name}/trigger",
    scope="operator",
    answers=201,
    raises=(*MISSING, ScheduleOverlapError, ScheduleTrippedError),
)
async def trigger_schedule(call: Call, name: Name, body: TriggerSchedule | None = None) -> Started:
    """Start a run of a schedule now, also while it is paused.

    Sent again with the same header `Idempotency-Key`, it is the same run.
    """
    wanted = body or TriggerSchedule()
    run_id = wanted.id or made_id(call, "run")
    if run_id is not None and await call.was_done(name):
        return Started(run_id)
    run = await call.engine.schedules.trigger(name, overlap=wanted.overlap, id=run_id)
    return Started(run.id)


@operation("schedules.backfill", "POST", "/schedules/{name}/backfill", scope="operator", raises=MISSING)
async def backfill_schedule(call: Call, name: Name, body: Backfill) -> BackfillView:
    """Start the runs of the ticks of a past range that have none.

    Sent again it starts nothing twice, and says how many have none by then.
    """
    return BackfillView(await call.engine.schedules.backfill(name, body.start, body.end, overlap=body.overlap))


def _schedule(body: SetSchedule) -> ScheduleSpec:
    if bool(body.cron) == bool(body.every):
        raise InvalidArgumentError("schedules.set", "cron", body.cron or None, "a schedule has `cron` or `every`")
    options: dict[str, Any] = {
        "name": body.name or None,
        "tz": body.tz,
        "args": body.arguments,
        "overlap": body.overlap,
        "catch_up": body.catch_up,
        "start": body.start,
        "end": body.end,
        "exclude": [_day_or_cron(each) for each in body.exclude],
        "jitter": body.jitter,
        "trip_after": body.trip_after or None,
        "tags": body.tags,
        "key": body.key or None,
        "priority": body.priority,
    }
    return cron(*body.cron, **options) if body.cron else every(seconds=seconds_of(body.every or 0), **options)


def _day_or_cron(text: str) -> date | str:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return text
