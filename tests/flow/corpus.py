"""What `tests/flow/broken` is checked with: the built-ins as they are, and two steps."""

from outlive._features.flows.document.checking import check
from outlive._features.flows.document.known_names import Known, known_here
from outlive._features.flows.document.reading import read
from outlive._features.flows.document.validating import document_of
from outlive.flow import FlowError, Problem

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
