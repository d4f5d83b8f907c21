"""The problems of the document of a flow: each with its place, and all of them in one error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from outlive.errors.base import OutliveError
from outlive.errors.program import DefinitionError

Path: TypeAlias = tuple[str | int, ...]
"""The way from the root of a document to a value: names of fields and places in lists."""


PROBLEMS_MAX = 100
"""A document with more problems is reported with these and their number."""


PART_CHARACTERS_MAX = 128
"""The limit for each name in a path: a longer name is shown with its beginning, however often it is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong with a document."""

    code: str
    """Which rule it breaks: short, stable, for programs. `docs/guides/flows.md` lists them."""
    message: str
    """The mistake, and what is expected."""
    path: Path = ()
    """Where it is in the data."""
    line: int = 0
    """Where it is in the text, counted from 1; 0 if there is no text."""
    column: int = 0
    suggestion: str = ""
    """The advice, as a sentence without its period."""
    is_warning: bool = False
    """The flow can run all the same. `outlive flows check --strict` takes it for an error."""

    def shown(self, file: str = "") -> str:
        """One line for people: `orders.flow.yaml:7:5: unknown field ...; did you mean ...?`."""
        place = f"{file or 'flow'}:{self.line}:{self.column}" if self.line else file
        where = f"{place}: " if place else ""
        at = "" if self.line or not self.path else f"{dotted(self.path)}: "
        warning = "warning: " if self.is_warning else ""
        return f"{where}{at}{warning}{self.message}{self.suggestion and f'; {self.suggestion}'}"


def placed(problem: Problem, line: int, column: int) -> Problem:
    """A problem with its place in the text."""
    return replace(problem, line=line, column=column)


class FlowError(DefinitionError):
    """A flow cannot run as it is written. `problems` has everything that is wrong with it, and where."""

    def __init__(self, problems: Iterable[Problem], file: str = "") -> None:
        found = sorted(problems, key=lambda each: (each.line, each.column))
        self.problems: Sequence[Problem] = tuple(found)
        self.file = file
        lines = [problem.shown(file) for problem in found[:PROBLEMS_MAX]]
        if len(found) > PROBLEMS_MAX:
            lines.append(f"... and {len(found) - PROBLEMS_MAX} more problems")
        super().__init__("\n".join(lines))


class FlowInputError(OutliveError, ValueError):
    """A run of a flow was given input or variables that the flow does not take; no run was started."""

    def __init__(self, flow: str, problems: Iterable[Problem]) -> None:
        self.flow = flow
        self.problems: Sequence[Problem] = tuple(problems)
        reasons = "; ".join(f"{each.message}{each.suggestion and f' ({each.suggestion})'}" for each in self.problems)
        super().__init__(f"flow {flow} does not take this: {reasons}")


def dotted(path: Path) -> str:
    """A path as people write it: `steps.charge.with.items[0]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
            continue
        shown = part if len(part) <= PART_CHARACTERS_MAX else f"{part[:PART_CHARACTERS_MAX]}..."
        text += f".{shown}" if text else shown
    return text
