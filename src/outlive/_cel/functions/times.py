"""Times as text (ISO 8601, UTC) and as numbers of seconds, so that arithmetic with them is arithmetic.

`timestamp(epoch(input.at) + duration("36h"))`. Zones of places are left out: their rules change with the machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from math import isfinite
from typing import Any

from outlive._cel.errors import ExpressionError
from outlive._cel.functions.table import Table
from outlive._cel.types import ANY, NUMBER, STRING
from outlive._cel.values import Frame, shown

_TIME = re.compile(
    r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[Tt ](?P<clock>[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.(?P<fraction>[0-9]{1,9}))?"
    r"(?P<zone>[Zz]|[+-][0-9]{2}:[0-9]{2}))?"
)
_SPAN = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)(ms|d|h|m|s)")
_SECONDS = {"d": 86_400, "h": 3600, "m": 60, "s": 1}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_functions = Table()
FUNCTIONS = _functions.named


def _instant(value: Any) -> datetime:
    try:
        if type(value) is int or (type(value) is float and isfinite(value)):
            return _EPOCH + timedelta(seconds=value)
        if type(value) is str and len(value) <= 40 and (match := _TIME.fullmatch(value)):
            zone = match["zone"] or "Z"
            away = timedelta() if zone in "Zz" else timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6]))
            if away >= timedelta(days=1):
                raise ValueError(zone)
            year, month, day = map(int, match["day"].split("-"))
            hour, minute, second = map(int, (match["clock"] or "00:00:00").split(":"))
            microsecond = int((match["fraction"] or "0").ljust(6, "0")[:6])
            east = timezone(-away if zone[0] == "-" else away)
            at = datetime(year, month, day, hour, minute, second, microsecond, east)
            return at.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise ExpressionError(f"{shown(value)} is not a time", suggestion='write it like "2026-05-31T12:00:00Z"')


@_functions.add("timestamp(x)", "a time (text, or seconds since 1970) as text in UTC", ANY, gives=STRING)
def _timestamp(frame: Frame, value: Any) -> str:
    at = _instant(value)
    fraction = f".{at.microsecond:06}".rstrip("0") if at.microsecond else ""
    return f"{at.year:04}-{at.month:02}-{at.day:02}T{at.hour:02}:{at.minute:02}:{at.second:02}{fraction}Z"


@_functions.add("epoch(time)", "seconds since 1970", ANY, gives=NUMBER)
def _epoch(frame: Frame, value: Any) -> int | float:
    since = _instant(value) - _EPOCH
    return since // timedelta(seconds=1) if not since.microseconds else since.total_seconds()


@_functions.add("duration(text)", '`"1h30m"` as seconds; d, h, m, s and ms', STRING, gives=NUMBER)
def _duration(frame: Frame, value: Any) -> int | float:
    text = value if type(value) is str and len(value) <= 100 else ""
    sign, text = (-1, text[1:]) if text.startswith("-") else (1, text)
    parts = list(_SPAN.finditer(text))
    if not parts or "".join(part[0] for part in parts) != text:
        raise ExpressionError(f"{shown(value)} is not a span of time", suggestion='write it like "1h30m" or "250ms"')
    total = sum(float(part[1]) * 0.001 if part[2] == "ms" else float(part[1]) * _SECONDS[part[2]] for part in parts)
    return sign * (int(total) if total == int(total) else total)


def _part(read: Callable[[datetime], int]) -> Callable[[Frame, Any], int]:
    return lambda frame, value: read(_instant(value))


_functions.add("time.getFullYear()", "the year, in UTC", ANY, gives=NUMBER)(_part(lambda at: at.year))
_functions.add("time.getMonth()", "0 for January, as in CEL", ANY, gives=NUMBER)(_part(lambda at: at.month - 1))
_functions.add("time.getDate()", "the day of the month, from 1", ANY, gives=NUMBER)(_part(lambda at: at.day))
_functions.add("time.getDayOfWeek()", "0 for Sunday", ANY, gives=NUMBER)(_part(lambda at: at.isoweekday() % 7))
_functions.add("time.getHours()", "0 to 23", ANY, gives=NUMBER)(_part(lambda at: at.hour))
_functions.add("time.getMinutes()", "0 to 59", ANY, gives=NUMBER)(_part(lambda at: at.minute))
_functions.add("time.getSeconds()", "0 to 59", ANY, gives=NUMBER)(_part(lambda at: at.second))
