"""Tables in the docs that say which test shows which scenario, held against what the tests say themselves.

A test names the scenarios that it shows in brackets at the end of its docstring: `[SF-X1 TS-R8]`. A table has a row for
each scenario, with the tests in its last cell, or with the reason why it does not apply, or with what is still to be
built for it (`planned: ...`). Both must say the same.
Commas between scenarios are fine: `[SF-X1, TS-R8]`.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from outlive.testing.conformance import StoreConformance

ROOT = Path(__file__).parents[2]
REASONS = ("does not apply: ", "planned: ")
ROW = re.compile(r"^\| ([A-Z]{2}-[A-Z]\d+) \| [^|]+ \| ([^|]+) \|$", re.MULTILINE)
BRACKETS = re.compile(r"\[((?:[A-Z]{2}-[A-Z]\d+,? ?)+)\]$")
TEST = re.compile(r"`([\w/.]+(?:\.|::)test_\w+)`")

Tests = Iterable[tuple[str, str]]
"""The name that a table gives a test, and its docstring."""


@dataclass(frozen=True)
class Table:
    """A page with tables of scenarios, and the tests that it speaks of."""

    path: Path
    scenarios: Collection[str]
    """All of them, in the order of the page."""
    tests: Callable[[], Tests]

    def rows(self) -> list[tuple[str, str]]:
        """Scenario and last cell of every row."""
        return ROW.findall(self.path.read_text("utf-8"))

    def check(self, scenario: str) -> None:
        """See that it is covered by exactly the tests that name it, or by none and with a reason."""
        cell = dict(self.rows())[scenario]
        named = {test for test, doc in self.tests() if scenario in scenarios_in(doc)}
        reason = next((cell.removeprefix(start) for start in REASONS if cell.startswith(start)), None)
        if reason is not None:
            assert not named
            assert len(reason) > 20, "the reason is missing"
        else:
            assert named == set(TEST.findall(cell)) != set()

    def slips(self, *, elsewhere: Collection[str]) -> set[tuple[str, str]]:
        """What tests name and no table has; `elsewhere` are the families of other tables, as in `SF-X`."""
        return {
            (test, scenario)
            for test, doc in self.tests()
            for scenario in scenarios_in(doc)
            if scenario not in self.scenarios and scenario.rstrip("0123456789") not in elsewhere
        }


def scenarios_in(doc: str) -> list[str]:
    """The scenarios in the brackets at the end of a docstring."""
    brackets = BRACKETS.search(doc.rstrip())
    return brackets[1].replace(",", " ").split() if brackets else []


def list_tests_of_stores() -> Iterator[tuple[str, str]]:
    """Every test of the store conformance suite, as `facet.name`."""
    for name, method in inspect.getmembers(StoreConformance, inspect.isfunction):
        if name.startswith("test_"):
            yield f"{method.__module__.rpartition('.')[2]}.{name}", method.__doc__ or ""


@cache
def list_tests_in_files() -> Tests:
    """Every test function of ours, as pytest names it."""
    return tuple(_find_tests())


def _find_tests() -> Iterator[tuple[str, str]]:
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                yield f"{path.relative_to(ROOT).as_posix()}::{node.name}", ast.get_docstring(node) or ""
