"""When a cron expression ticks, straight from the definition: slow, and without the code that it judges.

The definition is that of the cron of Debian. An expression whose minute or hour begins with `*` ticks at every minute
at which the clock on the wall matches. Any other one names times of the day: each of them ticks once on each day that
matches, the first time if the clock shows it twice, and at the first minute behind the gap if it never shows it. A day
matches by its day of the month and its day of the week: by both if one of the two fields begins with `*`, else by
one of them.

An expression of six fields begins with seconds, which are counted from the minutes that the other five name.
"""

from __future__ import annotations

import calendar
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
DAYS_OF_WEEK = 7


class Wall(NamedTuple):
    """A minute, and what the clock on the wall shows then."""

    at: datetime
    day: date
    hour: int
    minute: int


class Expression:
    """A cron expression."""

    def __init__(self, text: str) -> None:
        *second, minute, hour, self._day, month, self._weekday = text.split()
        self.seconds = sorted(numbers(second[0] if second else "0", 0, 59))
        self.follows_the_wall = minute.startswith("*") or hour.startswith("*")
        self.minutes = numbers(minute, 0, 59)
        self.hours = numbers(hour, 0, 23)
        self._months = numbers(named(month, MONTHS, 1), 1, 12)
        self._needs_both = self._day.startswith("*") or self._weekday.startswith("*")
        self._days: dict[date, bool] = {}

    def has_day(self, day: date) -> bool:
        """Whether it ticks on a day."""
        if day not in self._days:
            self._days[day] = day.month in self._months and self._fits(day)
        return self._days[day]

    def _fits(self, day: date) -> bool:
        by_month = any(_is_day(part, day) for part in self._day.split(","))
        by_week = any(_is_weekday(part, day) for part in named(self._weekday, WEEKDAYS, 0).split(","))
        return (by_month and by_week) if self._needs_both else (by_month or by_week)


def _is_day(part: str, day: date) -> bool:
    last = calendar.monthrange(day.year, day.month)[1]
    if part == "L":
        return day.day == last
    if part == "LW":
        end = day.replace(day=last)
        while end.isoweekday() > 5:
            end -= DAY
        return day == end
    return day.day in numbers(part, 1, 31)


def _is_weekday(part: str, day: date) -> bool:
    own = day.isoweekday() % DAYS_OF_WEEK
    if part.endswith("L"):
        return own == int(part[:-1]) % DAYS_OF_WEEK and (day + 7 * DAY).month != day.month
    if "#" in part:
        weekday, which = map(int, part.split("#"))
        return own == weekday % DAYS_OF_WEEK and (day.day - 1) // DAYS_OF_WEEK + 1 == which
    found = numbers(part, 0, 7)
    return own in found or (own == 0 and DAYS_OF_WEEK in found)


def named(field: str, names: list[str], first: int) -> str:
    """A field with numbers in the place of names."""
    for number, name in enumerate(names, first):
        field = field.replace(name, str(number))
    return field


def numbers(field: str, least: int, most: int) -> set[int]:
    """The numbers that a field stands for."""
    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        if span == "*":
            first, last = least, most
        elif "-" in span:
            first, last = map(int, span.split("-"))
        else:
            first = int(span)
            last = most if step else first
        found |= set(range(first, last + 1, int(step or 1)))
    return found


def wall_minutes(zone: ZoneInfo, start: datetime, end: datetime) -> list[Wall]:
    """Every minute of a range in UTC, and what the clock on the wall shows."""
    found = []
    while start < end:
        local = start.astimezone(zone)
        found.append(Wall(start, local.date(), local.hour, local.minute))
        start += MINUTE
    return found


def ticks(expression: Expression, zone: ZoneInfo, wall: list[Wall]) -> list[datetime]:
    """The ticks in a range, whose minutes are given."""
    minutes = _minutes(expression, zone, wall)
    return [at + timedelta(seconds=second) for at in minutes for second in expression.seconds]


def _minutes(expression: Expression, zone: ZoneInfo, wall: list[Wall]) -> list[datetime]:
    """The minutes of a range in which it ticks."""
    if expression.follows_the_wall:
        return [
            each.at
            for each in wall
            if each.minute in expression.minutes and each.hour in expression.hours and expression.has_day(each.day)
        ]
    start, end = wall[0].at, wall[-1].at
    found = {_tick_of(zone, local) for local in _times(expression, wall[0].day - DAY, wall[-1].day + DAY)}
    return sorted(tick for tick in found if start <= tick <= end)


def _times(expression: Expression, first: date, last: date) -> Iterator[datetime]:
    """The times of the days of a range that an expression names, without a zone."""
    day = first
    while day <= last:
        if expression.has_day(day):
            for hour in expression.hours:
                for minute in expression.minutes:
                    yield datetime(day.year, day.month, day.day, hour, minute)  # noqa: DTZ001 (what the clock shows)
        day += DAY


def _tick_of(zone: ZoneInfo, local: datetime) -> datetime:
    """When the clock on the wall shows this first; if it never does, the first minute behind the gap."""
    while True:
        at = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
        if at.astimezone(zone).replace(tzinfo=None) == local:
            return at
        local += MINUTE
