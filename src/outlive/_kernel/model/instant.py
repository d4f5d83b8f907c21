"""Instants of a journal, microseconds since 1970 UTC, as users see them and give them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

MICROSECONDS = 1_000_000
"""How many of them a second has."""
HOUR = 3_600 * MICROSECONDS
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instant_of(at: int) -> datetime:
    """The datetime of an instant; of one that has none, the first or the last that there is.

    Such an instant is a mistake or means never, as 9999-12-31 west of Greenwich and a timeout behind it. What shows
    runs must show that one too.
    """
    return _EPOCH + timedelta(microseconds=min(max(at, _FIRST_AT), _LAST_AT))


def instant_text(at: int) -> str:
    """An instant in ids, headers and arguments, for example `2026-12-24T06:00:00Z`."""
    instant = instant_of(at)
    return instant.strftime("%Y-%m-%dT%H:%M:%S") + (f".{instant.microsecond:06d}" if instant.microsecond else "") + "Z"


def microseconds_of(instant: datetime) -> int:
    """The instant of an aware datetime."""
    return (instant - _EPOCH) // timedelta(microseconds=1)


_FIRST_AT = microseconds_of(datetime.min.replace(tzinfo=UTC))
_LAST_AT = microseconds_of(datetime.max.replace(tzinfo=UTC))
