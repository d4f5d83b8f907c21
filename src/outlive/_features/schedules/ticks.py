"""When a schedule ticks: cron expressions in a time zone, or equal spans, with exclusions, a start and an end.

Cron expressions mean what they mean to the cron of Debian (cronsim follows it). If the field of the minute or of the
hour begins with `*`, the expression is about what the clock on the wall shows: it ticks whenever that matches, twice in
an hour that is repeated in autumn, and not in one that is left out in spring. Any other expression names times of the
day, and each of them comes once a day: a time that is repeated ticks the first time, and one that is left out ticks at
the first instant after the gap.

An expression of six fields begins with seconds. Its other fields name minutes, as above, and it ticks at its seconds in
each of them.

Equal spans are counted from the start of the schedule, or from 1970: not from when a process was started, so that all
workers agree.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from heapq import merge
from itertools import count, groupby
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
from msgspec.structs import replace

from outlive._features.schedules.schedule import ScheduleSpec
from outlive._kernel.model.instant import HOUR, MICROSECONDS, instant_of, microseconds_of

MICROSECOND = timedelta(microseconds=1)
MINUTE = 60 * MICROSECONDS
DAY = 86_400 * MICROSECONDS
EXCLUDED_MAX = 5_000
"""Excluded spans, of a minute, an hour or a day, in a row before a schedule counts as one that never ticks again."""
AHEAD_MAX = 50 * 366 * 86_400 * MICROSECONDS
"""How far one looks for the next tick."""
SOON_MAX = 50
"""Ticks that are looked at from the beginning of a gap before one looks from its end."""
WINDOWS = 8
"""How much further back one looks for the last ticks, each time that too few were found."""
FIRST_WINDOW = 3_600 * MICROSECONDS
MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
CRON_FIELDS = 5
"""The fields of a crontab; one more, the seconds, may stand before them."""
_SPAN_OF_ONE = re.compile(r"\b(\w+)-\1/\d+")


class Ticks:
    """The instants at which one schedule ticks."""

    def __init__(self, schedule: ScheduleSpec) -> None:
        self._schedule = schedule
        self._start = None if schedule.start is None else microseconds_of(schedule.start)
        self._end = None if schedule.end is None else microseconds_of(schedule.end)
        self._zone = zone_of(schedule.tz)
        self._dates = {text for text in schedule.exclude if is_date(text)}
        self._excluded = [text for text in schedule.exclude if not is_date(text)]

    def after(self, at: int) -> int | None:
        """The first tick later than this instant; None if there is none."""
        return next(self._from(at), None)

    def last(self, after: int, until: int, most: int) -> tuple[list[int], int | None]:
        """The last `most` ticks later than `after` and not later than `until`, the oldest first; and one more, if
        there is one, so that the caller sees that there were more. And the first tick later than `until`."""
        found, later = self._up_to(after, until, most + SOON_MAX)
        is_complete, window = len(found) <= most + SOON_MAX, FIRST_WINDOW
        while not is_complete:
            # A long gap, so from its end: further and further back, until there are enough.
            begin = max(after, until - window)
            found, later = self._up_to(begin, until, None)
            is_complete, window = len(found) > most or begin == after, window * WINDOWS
        return found[-most - 1 :], later

    def _up_to(self, after: int, until: int, most: int | None) -> tuple[list[int], int | None]:
        """The ticks up to an instant, and the first one behind it; one more than `most`, if there are so many."""
        found: list[int] = []
        for tick in self._from(after):
            if tick > until:
                return found, tick
            found.append(tick)
            if most is not None and len(found) > most:
                break
        return found, None

    def between(self, start: int, end: int, count_max: int) -> list[int]:
        """The first ticks from `start` on and before `end`, at most so many."""
        found: list[int] = []
        for tick in self._from(start - 1):
            if tick >= end or len(found) >= count_max:
                break
            found.append(tick)
        return found

    def _from(self, at: int) -> Iterator[int]:
        """All ticks later than this instant, one after the other, up to the last day that a calendar has."""
        with suppress(OverflowError):
            yield from self._allowed_from(at)

    def _allowed_from(self, at: int) -> Iterator[int]:
        """All allowed ticks later than this instant; raises OverflowError behind the last day of the calendar."""
        if self._start is not None:
            at = max(at, self._start - 1)
        exclusion = Exclusion(self._dates, self._excluded, self._zone, at)
        ticks, last, excluded, end = self._all_from(at), at, 0, None
        while (tick := next(ticks, None)) is not None:
            if (self._end is not None and tick >= self._end) or tick > last + AHEAD_MAX:
                return
            if end is not None and tick < end:
                # Not one by one: a schedule of every second has 172,800 ticks in a weekend.
                ticks, end = self._all_from(end - 1), None
                continue
            end = exclusion.end(tick)
            if end is None:
                excluded, last = 0, tick
                yield tick
            elif (excluded := excluded + 1) > EXCLUDED_MAX:
                return

    def _all_from(self, at: int) -> Iterator[int]:
        """All ticks later than this instant, also excluded ones."""
        if self._schedule.every is not None:
            anchor, span = self._start or 0, self._schedule.every // MICROSECOND
            return count(anchor + ((at - anchor) // span + 1) * span, span)
        found = [matches(expression, self._zone, at) for expression in self._schedule.cron]
        return found[0] if len(found) == 1 else (tick for tick, _ in groupby(merge(*found)))


class Exclusion:
    """Says which ticks are excluded, for ticks that are asked for one after the other."""

    def __init__(self, dates: Collection[str], expressions: Sequence[str], zone: ZoneInfo, at: int) -> None:
        self._dates, self._zone = dates, zone
        begin = at - at % MINUTE - 1
        wholes = [Whole(each) for each in expressions if is_wall_time(each)]
        self._wholes = [each for each in wholes if each.is_hour]
        others = set(expressions) - {each.expression for each in self._wholes}
        self._matches = [Matches(each, zone, begin) for each in sorted(others)]

    def end(self, tick: int) -> int | None:
        """The end of the excluded span, a day, an hour or a minute, that this tick is in; None if it is in none."""
        if self._dates or self._wholes:
            local = instant_of(tick).astimezone(self._zone)
            if local.date().isoformat() in self._dates:
                return self._end_of_day(tick, local)
            for whole in self._wholes:
                if whole.holds(local):
                    return self._end_of_day(tick, local) if whole.is_day else self._end_of_hour(tick, local)
        minute = tick - tick % MINUTE
        return _end_of_minute(tick) if any(each.reaches(minute) for each in self._matches) else None

    def _end_of_day(self, tick: int, local: datetime) -> int:
        midnight = datetime(local.year, local.month, local.day, tzinfo=self._zone) + timedelta(days=1)
        # Where the clocks are turned back over midnight it may have been before the tick.
        return max(microseconds_of(midnight), _end_of_minute(tick))

    def _end_of_hour(self, tick: int, local: datetime) -> int:
        end = tick + HOUR - (local.minute * 60 + local.second) * MICROSECONDS - local.microsecond
        is_even = _offset(self._zone, tick) == _offset(self._zone, end - 1)
        return end if is_even else _end_of_minute(tick)


class Whole:
    """A cron expression that follows the clock on the wall; it may match every minute of its hours, or of its days."""

    def __init__(self, expression: str) -> None:
        from cronsim import CronSim

        self.expression = expression
        self._fields = CronSim(expression, datetime(2000, 1, 1))  # noqa: DTZ001 (only its fields are asked)
        self.is_hour = len(self._fields.minutes) == 60
        self.is_day = len(self._fields.hours) == 24

    def holds(self, local: datetime) -> bool:
        """Whether it matches the minute of this time."""
        fields = self._fields
        return local.hour in fields.hours and local.month in fields.months and fields.match_day(local.date())


class Matches:
    """The matches of a cron expression, one after the other."""

    def __init__(self, expression: str, zone: ZoneInfo, at: int) -> None:
        self._expression, self._zone = expression, zone
        self._seek(at)

    def _seek(self, at: int) -> None:
        self._found = matches(self._expression, self._zone, at)
        self._next = next(self._found, None)

    def reaches(self, at: int) -> bool:
        """Whether this is one of them; asked for instants that rise."""
        if self._next is not None and at - self._next > DAY:
            self._seek(at - 1)
        while self._next is not None and self._next < at:
            self._next = next(self._found, None)
        return self._next == at


def _end_of_minute(at: int) -> int:
    return at - at % MINUTE + MINUTE


def last_ticks(schedule: ScheduleSpec, after: int, until: int, most: int) -> tuple[list[int], int | None]:
    """The last ticks, like `Ticks.last`. Thousands of schedules may have equal times, which are worked out once."""
    # Only what says when it ticks.
    times = replace(
        schedule, name="", overlap="skip", catch_up=1, trip_after=0, jitter=timedelta(0), arguments={}, tags={}
    )
    found, later = _last_ticks(msgspec.json.encode(times), after, until, most)
    return list(found), later


@lru_cache(maxsize=256)
def _last_ticks(times: bytes, after: int, until: int, most: int) -> tuple[tuple[int, ...], int | None]:
    found, later = Ticks(msgspec.json.decode(times, type=ScheduleSpec)).last(after, until, most)
    return tuple(found), later


def jitter_of(schedule: ScheduleSpec, name: str) -> int:
    """How much later than its ticks the runs of a schedule start: always the same, and another one for another name, so
    that schedules with equal times do not start together."""
    if not schedule.jitter:
        return 0
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % (schedule.jitter // MICROSECOND + 1)


def matches(expression: str, zone: ZoneInfo, at: int) -> Iterator[int]:
    """The instants later than this one at which a cron expression ticks; it ends when there is none in fifty years."""
    seconds = _seconds_of(expression)
    if not seconds:
        yield from _minutes(expression, zone, at)
        return
    for minute in _minutes(_without_seconds(expression), zone, at - MINUTE):
        yield from (tick for second in seconds if (tick := minute + second * MICROSECONDS) > at)


@lru_cache(maxsize=1_024)
def _seconds_of(expression: str) -> tuple[int, ...]:
    """The seconds of an expression of six fields; none of one with five."""
    from cronsim import CronSim

    if len(expression.split()) == CRON_FIELDS:
        return ()
    fields = CronSim(expression, datetime(2000, 1, 1))  # noqa: DTZ001 (only its fields are asked)
    return tuple(sorted(fields.seconds))


def _without_seconds(expression: str) -> str:
    return " ".join(expression.split()[-CRON_FIELDS:])


def _minutes(expression: str, zone: ZoneInfo, at: int) -> Iterator[int]:
    """The instants later than this one at which an expression of five fields ticks."""
    from cronsim import CronSim

    if is_wall_time(expression):
        yield from _wall_matches(expression, zone, at)
        return
    for local in CronSim(expression, instant_of(at).astimezone(zone)):
        tick = microseconds_of(local)
        # Where the clocks were turned back, cronsim begins once more with the first of the two equal hours.
        if tick > at:
            at = tick
            yield tick


def _wall_matches(expression: str, zone: ZoneInfo, at: int) -> Iterator[int]:
    """The instants at which a cron expression ticks that follows the clock on the wall.

    From one change of the clocks to the next, which cronsim knows nothing of: it walks over them in whole hours, and
    misses ticks where they change by half an hour.
    """
    from cronsim import CronSim

    offset = _offset(zone, at)
    while True:
        change = None
        for wall in CronSim(expression, instant_of(at + offset).replace(tzinfo=None)):
            tick = microseconds_of(wall.replace(tzinfo=UTC)) - offset
            change = _next_change(zone, at, tick)
            if change is not None:
                break
            at = tick
            yield tick
        if change is None:
            return
        at, offset = change - 1, _offset(zone, change)


def _offset(zone: ZoneInfo, at: int) -> int:
    """How far the clock on the wall is ahead of UTC, in microseconds."""
    ahead = instant_of(at).astimezone(zone).utcoffset()
    assert ahead is not None
    return ahead // timedelta(microseconds=1)


def _next_change(zone: ZoneInfo, after: int, until: int) -> int | None:
    """When the clocks change first, later than an instant and not later than another one; None if they do not."""
    offset, low = _offset(zone, after + 1), after
    while low < until:
        high = min(low + DAY, until)
        if _offset(zone, high) != offset:
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if _offset(zone, middle) == offset else (low, middle)
            return high
        low = high
    return None


def is_wall_time(expression: str) -> bool:
    """Whether an expression ticks whenever the clock on the wall matches, and not at times of the day."""
    minute, hour, *_ = expression.split()
    return minute.startswith("*") or hour.startswith("*")


def checked_cron(expression: str) -> str:
    """The expression in five fields, or in six, of which the first is the second.

    Raises:
        ValueError: it is none, or never matches.
    """
    from cronsim import CronSim, CronSimError

    plain = MACROS.get(expression.strip().lower(), " ".join(expression.split()))
    # A span of one, with a step: cronsim takes it for the first of many.
    plain = _SPAN_OF_ONE.sub(r"\1", plain)
    if len(plain.split()) not in (CRON_FIELDS, CRON_FIELDS + 1):
        fields = "minute, hour, day of the month, month, day of the week"
        raise ValueError(f"it has not five fields: {fields}; a sixth may stand before them: second")
    try:
        matches: Any = CronSim(plain, datetime(2000, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        raise ValueError(f"cron cannot read it: {error}") from None
    if next(matches, None) is None:
        raise ValueError("it never matches")
    return plain


def checked_exclusion(expression: str) -> str:
    """The expression of what is excluded: minutes, so in five fields.

    Raises:
        ValueError: it is none, or never matches.
    """
    plain = checked_cron(expression)
    if len(plain.split()) != CRON_FIELDS:
        raise ValueError("it names seconds, but minutes are the shortest span that can be excluded: give five fields")
    return plain


def is_date(text: str) -> bool:
    """Whether an exclusion is a day."""
    return " " not in text


@lru_cache(maxsize=1_024)
def zone_of(name: str) -> ZoneInfo:
    """The time zone of this name.

    Raises:
        ZoneInfoNotFoundError, ValueError: this machine does not know it.
    """
    return ZoneInfo(name)


def span_of(**parts: float) -> int:
    """The microseconds of weeks, days, hours, minutes and seconds together."""
    return timedelta(**parts) // timedelta(microseconds=1)
