"""Compares the ticks of the engine with those of the oracle, around every change of every clock."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import takewhile
from typing import NamedTuple
from zoneinfo import ZoneInfo

from outlive._features.schedules.ticks import checked_cron, matches
from outlive._kernel.model.instant import instant_of, microseconds_of
from proof.cron.oracle import MINUTE, Expression, Wall, ticks, wall_minutes

HOUR = timedelta(hours=1)
BEFORE, AFTER = timedelta(hours=6), timedelta(hours=27)
"""How far around a change of the clocks every minute is compared: a whole day after it."""


class Difference(NamedTuple):
    """A range in which the two do not agree."""

    zone: str
    expression: str
    start: datetime
    missing: list[datetime]
    """Ticks that only the oracle has."""
    extra: list[datetime]
    """Ticks that only the engine has."""

    def __str__(self) -> str:
        missing = ", ".join(tick.astimezone(ZoneInfo(self.zone)).isoformat() for tick in self.missing[:3])
        extra = ", ".join(tick.astimezone(ZoneInfo(self.zone)).isoformat() for tick in self.extra[:3])
        return f"{self.zone} {self.expression!r} around {self.start:%Y-%m-%d}: missing [{missing}], extra [{extra}]"


def changes(zone: ZoneInfo, first: datetime, last: datetime) -> list[datetime]:
    """When the clocks of a zone change, to the hour."""
    found, at = [], first
    offset = at.astimezone(zone).utcoffset()
    while at < last:
        later = at + timedelta(days=7)
        if later.astimezone(zone).utcoffset() != offset or _wavers(zone, at, later):
            while at < later:
                step = at + HOUR
                if step.astimezone(zone).utcoffset() != offset:
                    found.append(at)
                    offset = step.astimezone(zone).utcoffset()
                at = step
        at = later
    return found


def _wavers(zone: ZoneInfo, at: datetime, later: datetime) -> bool:
    """Whether the clocks change and change back within a week."""
    middle = [at + (later - at) * part / 7 for part in range(1, 7)]
    return len({each.astimezone(zone).utcoffset() for each in middle}) > 1


def groups(zones: Sequence[str], first: datetime, last: datetime) -> dict[str, list[str]]:
    """Zones whose clocks show the same throughout, by the first of them: many names are other names for one clock."""
    found: dict[tuple[object, ...], list[str]] = {}
    for name in zones:
        zone = ZoneInfo(name)
        moves = changes(zone, first, last)
        key = (first.astimezone(zone).utcoffset(), *((at, (at + HOUR).astimezone(zone).utcoffset()) for at in moves))
        found.setdefault(key, []).append(name)
    return {names[0]: names for names in found.values()}


def windows(zone: ZoneInfo, first: datetime, last: datetime, rng: random.Random) -> list[tuple[datetime, datetime]]:
    """Ranges to compare: around each change of the clocks, and one without a change."""
    moves = changes(zone, first, last)
    quiet = first + (last - first) * rng.random()
    return [(at.replace(minute=0) - BEFORE, at + AFTER) for at in [*moves, quiet.replace(second=0, microsecond=0)]]


@cache
def parsed(text: str) -> Expression:
    """Each expression is read once."""
    return Expression(text)


def compare(name: str, expressions: Sequence[str], wall: list[Wall]) -> Iterator[Difference]:
    """What the two do not agree on in a range."""
    zone, start, end = ZoneInfo(name), wall[0].at, wall[-1].at
    begin, until = microseconds_of(start) - 1, microseconds_of(end + MINUTE) - 1
    for text in expressions:
        own = [
            instant_of(tick) for tick in takewhile(lambda tick: tick <= until, matches(checked_cron(text), zone, begin))
        ]
        wanted = ticks(parsed(text), zone, wall)
        if own != wanted:
            missing, extra = sorted({*wanted} - {*own}), sorted({*own} - {*wanted})
            yield Difference(name, text, start, missing, extra)


def compare_zone(
    name: str, expressions: Sequence[str], first: datetime, last: datetime, seed: int
) -> tuple[int, list[Difference]]:
    """How many ranges of a zone were compared, and what the two do not agree on."""
    zone = ZoneInfo(name)
    found: list[Difference] = []
    ranges = windows(zone, first, last, random.Random(f"{seed} {name}"))
    for start, end in ranges:
        found += compare(name, expressions, wall_minutes(zone, start, end))
    return len(ranges), found


def compare_whole(name: str, expression: str, first: datetime, last: datetime) -> list[Difference]:
    """All ticks of some years, a month at a time."""
    zone, at = ZoneInfo(name), first
    found: list[Difference] = []
    while at < last:
        later = min(last, at + timedelta(days=30))
        found += compare(name, [expression], wall_minutes(zone, at, later))
        at = later
    return found


def year(number: int) -> datetime:
    """The beginning of a year."""
    return datetime(number, 1, 1, tzinfo=UTC)
