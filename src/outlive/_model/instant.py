"""Instants of a journal, microseconds since 1970 UTC, as users see them and give them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instant_of(at: int) -> datetime:
    """The datetime of an instant."""
    return _EPOCH + timedelta(microseconds=at)


def microseconds_of(instant: datetime) -> int:
    """The instant of an aware datetime."""
    return (instant - _EPOCH) // timedelta(microseconds=1)
