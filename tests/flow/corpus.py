"""What `tests/flow/broken` is checked with: the built-ins as they are, and two steps."""

from outlive._define.flow.checking import check
from outlive._define.flow.known import Known, known_here
from outlive._define.flow.problems import FlowError, Problem
from outlive._define.flow.reading import read
from outlive._define.flow.validating import document_of

KNOWN = Known(known_here().built_ins, frozenset({"shop.reserve", "shop.charge"}))


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
