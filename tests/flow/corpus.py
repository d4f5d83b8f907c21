"""What `tests/flow/broken` is checked with: a few built-ins and steps."""

from typing import Any

import msgspec

from outlive._define.flow.checking import check
from outlive._define.flow.document import Span
from outlive._define.flow.expression import ANY, LIST, MAP, NUMBER
from outlive._define.flow.known import Known, Shape
from outlive._define.flow.problems import FlowError, Problem
from outlive._define.flow.reading import read
from outlive._define.flow.validating import document_of


class HttpArguments(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A part of what `http` takes."""

    url: str
    method: str = "GET"
    headers: dict[str, str] = {}
    body: Any = None


class MapArguments(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A part of what `map` takes."""

    items: list[Any]
    concurrency: int = 10


class SleepArguments(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A part of what `sleep` takes."""

    seconds: Span


BODY = frozenset({"use", "with", "do", "retry", "timeout", "on_error"})
KNOWN = Known(
    {
        "http": Shape(HttpArguments, MAP({"status": NUMBER, "body": ANY})),
        "map": Shape(MapArguments, MAP({"results": LIST(ANY), "failed": NUMBER}), BODY),
        "sleep": Shape(SleepArguments),
    },
    frozenset({"shop.reserve", "shop.charge"}),
)


def found_in(text: str | bytes, known: Known = KNOWN) -> list[Problem]:
    """Everything that is wrong with a document."""
    try:
        reading = read(text)
        return check(document_of(reading), known, reading.positions)
    except FlowError as error:
        return list(error.problems)


def problems_in(text: str | bytes, known: Known = KNOWN) -> list[str]:
    """The same as lines: `7:5: message`."""
    return [problem.shown().removeprefix("flow:") for problem in found_in(text, known)]
