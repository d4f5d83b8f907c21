"""The parameters that a step may give to a statement: common types of Python, in the one form in which SQLite keeps
each.

SQLite has numbers, text and bytes. Everything here becomes text that sorts as the values do where that can be, and that
Python's own constructors read back: `Decimal(text)`, `UUID(text)`, `datetime.fromisoformat(text)`.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

_NATIVE = (str, int, float, bytes, bool, type(None))


def as_parameter(value: Any) -> Any:
    """The value as SQLite can bind it; a type that is not known here stays as it is, and SQLite refuses it.

    | Type | Form |
    |---|---|
    | `Enum` | its value, in the form of that |
    | `Decimal`, `UUID` | their `str` |
    | `datetime` with a time zone | in UTC, `2026-11-18T21:22:43.000000Z`: always as long, so text sorts as time does |
    | `datetime` without one, `date`, `time` | ISO 8601, with microseconds |
    | `timedelta` | seconds |
    """
    if type(value) in _NATIVE:
        return value
    match value:
        case Enum():
            return as_parameter(value.value)
        case Decimal() | UUID():
            return str(value)
        case datetime(tzinfo=None) | time():
            return value.isoformat(timespec="microseconds")
        case datetime():
            return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
        case date():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case _:
            return value
