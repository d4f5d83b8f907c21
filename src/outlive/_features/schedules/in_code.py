"""`outlive.cron`, `outlive.every` and `outlive.tick`: when a workflow starts by itself, and with which arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from difflib import get_close_matches
from typing import Any, Literal, TypedDict, Unpack, get_args
from zoneinfo import ZoneInfoNotFoundError, available_timezones

import msgspec
from msgspec.structs import replace

from outlive._features.schedules.schedule import CATCH_UP_MAX, TAG, Overlap, ScheduleSpec, Target
from outlive._features.schedules.ticks import Ticks, checked_cron, checked_exclusion, span_of, zone_of
from outlive._kernel.define.declaration import declare_option
from outlive._kernel.define.registry import Registry
from outlive._kernel.define.workflow import SCHEDULES
from outlive._kernel.journal.described import describe, input_of
from outlive._kernel.journal.plain import decode_sent
from outlive._kernel.model import given
from outlive._kernel.model.instant import MICROSECONDS, instant_of, instant_text, microseconds_of
from outlive._kernel.model.queue import PRIORITY_MAX, Queue, QueueLimits, lead_of, queue_key
from outlive._kernel.replay.command import WorkflowSpec
from outlive.errors import ArgumentTypeError, InvalidArgumentError, OutliveError, UnreadableError

OPTION = "schedule"
"""The option of the decorator that takes schedules."""
MARK = "$tick"
"""The one key of an object in stored arguments that stands for the time of the tick."""
_SAMPLE_TICK = 1_800_000_000 * MICROSECONDS

CatchUp = Literal["none", "latest", "all"] | int


class Tick:
    """Stands for the time of a tick in the arguments of a schedule."""

    def __init__(self, form: str = "instant") -> None:
        self.form = form

    @property
    def local(self) -> Tick:
        """This instant with the offset of the schedule's time zone."""
        return Tick("local")

    @property
    def date(self) -> Tick:
        """Its day in the schedule's time zone, for a parameter that is a `date`."""
        return Tick("date")

    def __repr__(self) -> str:
        return "outlive.tick" if self.form == "instant" else f"outlive.tick.{self.form}"


tick = Tick()
"""The time of the tick, in the arguments of a schedule: `args={"day": outlive.tick.date}`."""


class ScheduleOptions(TypedDict, total=False):
    """The options that all kinds of schedules have in common."""

    name: str | None
    tz: str
    args: Mapping[str, Any] | None
    overlap: Overlap
    catch_up: CatchUp
    start: datetime | None
    end: datetime | None
    exclude: Sequence[str | date]
    jitter: given.Span
    trip_after: int | None
    tags: Mapping[str, str] | None
    key: str | None
    priority: int | None


def cron(expression: str, *more: str, **options: Unpack[ScheduleOptions]) -> ScheduleSpec:
    """A schedule by cron expressions: `outlive.cron("0 6 * * 1-5", tz="Europe/Stockholm")`.

    Args:
        expression: five fields (minute, hour, day of the month, month, day of the week), six with the second before
            them, or a name such as `@daily`.
        more: it ticks when any of the expressions matches.
        tz: the IANA name of the time zone of the expressions; "UTC" unless given.
        name: what `engine.schedules` calls it; the name of the workflow unless given.
        args: the arguments of the workflow by name, plain JSON values; `outlive.tick` stands for the time of the tick.
        overlap: what becomes of a tick while a run of an earlier one is open: "skip" it (so unless given), "allow",
            "buffer_one", "buffer_all", "cancel_previous" or "terminate_previous".
        catch_up: which ticks are started that were missed while no worker was there: "none", the "latest" (so unless
            given), "all" (the last 1,000), or the last so many.
        start: when it begins. end: when it is over; both with a time zone.
        exclude: when it does not tick: cron expressions, and dates.
        jitter: up to how many seconds later than its tick a run starts; always equally late, by a hash of the name.
        trip_after: after so many failed runs in a row it stops until a person resumes it; never unless given.
        tags: of its runs.
        key: of its runs in the queue of the workflow.
        priority: the same.
    """
    where = "outlive.cron"
    _refuse_unknown(where, options)
    crons = tuple(_cron(where, "expression", each, checked_cron) for each in (expression, *more))
    return _schedule(where, crons=crons, **options)


def every(
    *,
    weeks: float = 0,
    days: float = 0,
    hours: float = 0,
    minutes: float = 0,
    seconds: float = 0,
    **options: Unpack[ScheduleOptions],
) -> ScheduleSpec:
    """A schedule by equal spans, of a second or more: `outlive.every(minutes=15)`.

    They are counted from `start`, or from 1970 in UTC: so every 15 minutes is at :00, :15, :30 and :45, whenever the
    worker was started. A day of 24 hours is not a day of the calendar; for "each day at six" use `outlive.cron`.

    Args:
        options: as of `outlive.cron`.
    """
    where = "outlive.every"
    _refuse_unknown(where, options)
    parts = {"weeks": weeks, "days": days, "hours": hours, "minutes": minutes, "seconds": seconds}
    checked = {name: given.seconds(where, name, value, or_zero=True) for name, value in parts.items()}
    span = span_of(**checked)
    if span < MICROSECONDS or span > given.SECONDS_MAX * MICROSECONDS:
        said = {name: part for name, part in parts.items() if part}
        wanted = "give a second or more, and no more than 100 years; for example outlive.every(minutes=15)"
        raise InvalidArgumentError(where, "span", said, wanted)
    return _schedule(where, every=span, **options)


def _refuse_unknown(where: str, options: Mapping[str, object]) -> None:
    """Say it as Python does, and what may be meant."""
    known = ScheduleOptions.__annotations__
    for name in options.keys() - known.keys():
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(known)}"
        raise TypeError(f"{where}() has no argument {name!r}; {hint}")


def _schedule(
    where: str,
    *,
    crons: tuple[str, ...] = (),
    every: int = 0,
    name: str | None = None,
    tz: str = "UTC",
    args: Mapping[str, Any] | None = None,
    overlap: Overlap = "skip",
    catch_up: CatchUp = "latest",
    start: datetime | None = None,
    end: datetime | None = None,
    exclude: Sequence[str | date] = (),
    jitter: given.Span = 0,
    trip_after: int | None = None,
    tags: Mapping[str, str] | None = None,
    key: str | None = None,
    priority: int | None = None,
) -> ScheduleSpec:
    given.one_of(where, "overlap", overlap, get_args(Overlap))
    own_tags = given.tags(where, tags)
    if TAG in own_tags:
        raise InvalidArgumentError(where, "tags", tags, f"the tag {TAG!r} is the name of the schedule; use another one")
    starts_at = None if start is None else instant_of(microseconds_of(given.instant(where, "start", start)))
    ends_at = None if end is None else instant_of(microseconds_of(given.instant(where, "end", end)))
    if starts_at is not None and ends_at is not None and ends_at <= starts_at:
        raise InvalidArgumentError(where, "end", end, "it is not later than the start")
    made = ScheduleSpec(
        name="" if name is None else given.label(where, name, like="digest"),
        cron=crons,
        every=None if crons else timedelta(microseconds=every),
        tz=_zone(where, tz),
        exclude=_exclusions(where, exclude),
        start=starts_at,
        end=ends_at,
        jitter=timedelta(seconds=given.seconds(where, "jitter", jitter, or_zero=True)),
        overlap=overlap,
        catch_up=_catch_up(where, catch_up),
        trip_after=0 if trip_after is None else given.whole(where, "trip_after", trip_after),
        arguments=_template(where, args),
        tags=own_tags,
        key="" if key is None else queue_key(where, key),
        priority=None if priority is None else given.whole(where, "priority", priority, least=-PRIORITY_MAX),
    )
    if made.exclude and Ticks(replace(made, end=None)).after(0) is None:
        raise InvalidArgumentError(where, "exclude", exclude, "it leaves no tick of the schedule; exclude less")
    return made


def _cron(where: str, name: str, expression: object, checked: Callable[[str], str]) -> str:
    plain = given.text(where, name, expression, like="0 6 * * 1-5")
    try:
        return checked(plain)
    except ValueError as error:
        raise InvalidArgumentError(where, name, expression, str(error), example="0 6 * * 1-5") from None


def _zone(where: str, tz: object) -> str:
    plain = given.text(where, "tz", tz, like="Europe/Stockholm")
    try:
        return zone_of(plain).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        near = get_close_matches(plain, available_timezones(), n=1)
        hint = f"did you mean {near[0]!r}?" if near else "give an IANA name"
        wanted = f"this machine knows no such time zone; {hint}"
        raise InvalidArgumentError(where, "tz", tz, wanted, example=None if near else "Europe/Stockholm") from None


def _exclusions(where: str, exclude: object) -> tuple[str, ...]:
    wanted = "give a list of cron expressions and dates, for example exclude=['* * 24-26 12 *', date(2026, 12, 31)]"
    if isinstance(exclude, str | date) or not isinstance(exclude, Sequence):
        raise ArgumentTypeError(where, "exclude", exclude, wanted)
    found = []
    for each in exclude:
        if isinstance(each, datetime):
            raise ArgumentTypeError(where, "exclude", each, wanted)
        found.append(each.isoformat() if isinstance(each, date) else _cron(where, "exclude", each, checked_exclusion))
    return tuple(found)


def _catch_up(where: str, catch_up: object) -> int:
    words = {"none": 0, "latest": 1, "all": CATCH_UP_MAX}
    if isinstance(catch_up, str):
        if catch_up not in words:
            wanted = "give one of 'none', 'latest', 'all', or how many at most"
            raise InvalidArgumentError(where, "catch_up", catch_up, wanted, example=5)
        return words[catch_up]
    return given.whole(where, "catch_up", catch_up, least=0, most=CATCH_UP_MAX)


# -- Arguments ---------------------------------------------------------------------------------------------------------


def _template(where: str, args: object) -> dict[str, Any]:
    """Arguments by name as plain JSON, with marks where the time of the tick belongs."""
    wanted = 'give plain JSON values by name, for example args={"day": outlive.tick.date}'
    if args is None:
        return {}
    if not isinstance(args, Mapping) or not all(isinstance(name, str) for name in args):
        raise ArgumentTypeError(where, "args", args, wanted)
    ticks = 0

    def write(part: Any) -> Any:
        nonlocal ticks
        if isinstance(part, Tick):
            ticks += 1
            return {MARK: part.form}
        if isinstance(part, Mapping):
            return dict(part)
        raise TypeError(f"{type(part).__qualname__} is not JSON")

    try:
        data = msgspec.json.encode(args, enc_hook=write)
        if len(_MARKS.findall(data)) > ticks:
            raise ValueError(f"the key {MARK!r} is not yours to use")
        plain: dict[str, Any] = decode_sent(data)
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise ArgumentTypeError(where, "args", args, f"{wanted}: {error}") from None
    return plain


_MARKS = re.compile(rb'[{,]"\%s":' % MARK.encode())
"""Marks in JSON without white space. A text has a backslash before each of its quotes, so this is in none."""


def filled(template: dict[str, Any], at: int, tz: str) -> dict[str, Any]:
    """The arguments of the run of a tick; they are not to be changed. A stranger's have no marks and may have very many
    parts, so no part is looked at by itself unless there is a mark."""
    if _MARKS.search(msgspec.json.encode(template)) is None:
        return template
    return {name: _filled(each, at, tz) for name, each in template.items()}


def _filled(template: Any, at: int, tz: str) -> Any:
    match template:
        case {"$tick": form}:
            return _tick_value(form, at, tz)
        case dict():
            return {name: _filled(each, at, tz) for name, each in template.items()}
        case list():
            return [_filled(each, at, tz) for each in template]
        case _:
            return template


def _tick_value(form: str, at: int, tz: str) -> str:
    if form == "instant":
        return instant_text(at)
    local = instant_of(at).astimezone(zone_of(tz))
    return local.date().isoformat() if form == "date" else local.isoformat()


def arguments_of(schedule: ScheduleSpec, target: Target, at: int) -> bytes:
    """The arguments of the run of a tick, as a journal has them."""
    by_name = {**filled(schedule.arguments, at, schedule.tz)}
    by_place = [by_name.pop(name) for name in target.positional if name in by_name]
    return msgspec.json.encode({"a": by_place, "k": by_name} if by_name else by_place)


def target_of(where: str, spec: WorkflowSpec, schedule: ScheduleSpec) -> Target:
    """The target of a schedule.

    Raises:
        InvalidArgumentError: the workflow does not take the arguments of the schedule.
    """
    described = describe(spec.signature, spec.fn, timeout_seconds=spec.timeout_seconds)
    sample = filled(schedule.arguments, _SAMPLE_TICK, schedule.tz)
    try:
        spec.signature.decode(input_of(described, sample))
    except (UnreadableError, OutliveError) as error:
        wanted = f"{spec.name} does not take it: {error}"
        raise InvalidArgumentError(where, "args", sample, wanted) from None
    queue = spec.queue
    name = queue.name if isinstance(queue, Queue) else queue or ""
    frees_slot = isinstance(queue, Queue) and queue.hold == "running"
    if isinstance(queue, str) and queue and schedule.priority is not None:
        wanted = f"queue {queue} is known by its name only here: give the workflow the outlive.Queue itself"
        raise InvalidArgumentError(where, "priority", schedule.priority, wanted)
    lead = lead_in(where, schedule, name, queue._limits if isinstance(queue, Queue) else QueueLimits())
    return Target(spec.name, spec.version, described.positional, spec.timeout_seconds, name, frees_slot, lead)


def lead_in(where: str, schedule: ScheduleSpec, queue: str, limits: QueueLimits) -> int:
    """By how many microseconds the runs of a schedule are brought forward in the queue of their workflow.

    Raises:
        InvalidArgumentError: it says a key or a priority, and the workflow has no queue; or that has no priorities.
    """
    if queue:
        return lead_of(where, queue, limits, schedule.priority)
    for name, value in (("key", schedule.key or None), ("priority", schedule.priority)):
        if value is not None:
            raise InvalidArgumentError(where, name, value, "it is for runs with a queue: give the workflow one")
    return 0


def schedules_of(where: str, spec: WorkflowSpec, given_: Any) -> list[ScheduleSpec]:
    """The schedules of a workflow, each with its name, checked against what the workflow takes."""
    found = [given_] if isinstance(given_, ScheduleSpec) else given_
    if not isinstance(found, Sequence) or not all(isinstance(each, ScheduleSpec) for each in found):
        raise ArgumentTypeError(where, OPTION, given_, SCHEDULES)
    named = [replace(each, name=each.name or spec.name) for each in found]
    if len({each.name for each in named}) < len(named):
        raise InvalidArgumentError(where, OPTION, given_, "give each of them a name of its own, with name=")
    for each in named:
        target_of(where, spec, each)
    return named


def declared_in(registry: Registry) -> list[tuple[WorkflowSpec, ScheduleSpec]]:
    """The schedules that the code of a process declares, each with the workflow that it starts."""
    found = registry.declared(OPTION)
    return [(spec, schedule) for spec, schedule in found if isinstance(schedule, ScheduleSpec)]


declare_option(OPTION, schedules_of)
