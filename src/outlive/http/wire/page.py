"""Fields and forms that many resources share."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Struct

from outlive._kernel.model.instant import instant_of
from outlive._kernel.model.span import SPAN, seconds_in
from outlive.http.problem import malformed

SEQ_MAX = 2**31 - 1
"""The largest number of an event, or of an item, that every store can look for."""
Limit = Annotated[int, Meta(ge=1, le=1000)]
Seq = Annotated[int, Meta(ge=-1, le=SEQ_MAX)]
"""The number of an event or of an item; -1 for the place before the first."""
Span = Annotated[float, Meta(ge=0)] | Annotated[str, Meta(pattern=SPAN)]
"""A span of time: seconds, or text such as `90s`, `5m`, `1h30m` and `PT15M`."""
Instant = Annotated[datetime, Meta(tz=True)]
Name = Annotated[str, Meta(min_length=1, max_length=200)]
Key = Annotated[str, Meta(min_length=1, max_length=1000)]
RunId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$")]
"""An id that a caller may choose."""
Text = Annotated[str, Meta(max_length=10_000)]
Json = Any
"""Any JSON value."""


class Done(Struct, frozen=True):
    """It was done, and is durable."""

    id: str
    """The id of the thing that was changed."""


class WaitQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long to wait."""

    wait: Span = 0.0
    """How long to wait for it, up to a limit of the server; 0 for no wait."""


def seconds_of(span: Span) -> float:
    """A span in seconds; its form was checked when it was read."""
    return float((seconds_in(span) or 0) if isinstance(span, str) else span)


def when(at: int | None) -> datetime | None:
    """An instant of a journal, on the wire."""
    return None if at is None else instant_of(at)


def tags_of(pairs: list[str]) -> dict[str, str] | None:
    """The tags in parameters `tag=name=value`.

    Raises:
        Problem: one is not of this form.
    """
    found: dict[str, str] = {}
    for pair in pairs:
        name, mark, value = pair.partition("=")
        if not mark or not name:
            raise malformed("a tag to look for is given as tag=name=value (written tag=name%3Dvalue)")
        found[name] = value
    return found or None
