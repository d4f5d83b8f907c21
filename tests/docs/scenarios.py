"""The tables of `docs/internals/scenarios.md` and of `docs/internals/security.md`, held against what the tests say
themselves.

    python -m tests.docs.scenarios     # write the names of the tests into the pages

A test names the scenarios and features that it shows in brackets at the end of its docstring, as `[SF-X1 TS-R8 FE-W3]`,
and the rules of the security checklist: `[S11 S38]`. A table has a row for each of them, with the tests in its last
cell and perhaps a remark behind them, or with the reason why it does not apply.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from outlive_conformance.suite import StoreConformance
from outlive_conformance.suite.leases import StoreLeasesConformance

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "internals" / "scenarios.md"
SECURITY_PAGE = ROOT / "docs" / "internals" / "security.md"
REASON = "does not apply: "
ID = r"[A-Z]{2}-[A-Z]\d+|S\d+"
ROW = re.compile(rf"^(\| ({ID}) \| (?:[^|]+ \| )+)([^|]+)( \|)$", re.MULTILINE)
BRACKETS = re.compile(rf"\[((?:(?:{ID}),? ?)+)\]$")
IS_RULE = re.compile(r"S\d+")
"""A rule of the security checklist, and no scenario."""
SHOWN_BY = re.compile(r"^(?:`[\w/.]+(?:\.|::)test_\w+`(?:<br>)?(?:, )?)*")


def scenarios_in(doc: str) -> list[str]:
    """The scenarios in the brackets at the end of a docstring."""
    brackets = BRACKETS.search(doc.rstrip())
    return brackets[1].replace(",", " ").split() if brackets else []


@cache
def list_tests() -> list[tuple[str, str]]:
    """Every test with its docstring: of the conformance suites as `facet.name`, in our files as pytest names it."""
    return list(_find_tests())


def _find_tests() -> Iterator[tuple[str, str]]:
    for suite in (StoreConformance, StoreLeasesConformance):
        for name, method in inspect.getmembers(suite, inspect.isfunction):
            if name.startswith("test_"):
                yield f"{method.__module__.rpartition('.')[2]}.{name}", method.__doc__ or ""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                yield f"{path.relative_to(ROOT).as_posix()}::{node.name}", ast.get_docstring(node) or ""


def shown(tests: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """The tests that show each scenario."""
    found: dict[str, set[str]] = {}
    for test, doc in tests:
        for scenario in scenarios_in(doc):
            found.setdefault(scenario, set()).add(test)
    return {scenario: sorted(names) for scenario, names in found.items()}


def rules(shown_by: dict[str, list[str]], *, of_security: bool) -> dict[str, list[str]]:
    """Only the rules of the security checklist, or only the scenarios."""
    return {name: tests for name, tests in shown_by.items() if bool(IS_RULE.fullmatch(name)) is of_security}


def written(page: str, shown_by: dict[str, list[str]]) -> str:
    """The page with the names of the tests that show each scenario; remarks and reasons are kept."""

    def row(match: re.Match[str]) -> str:
        tests = "<br>".join(f"`{test}`" for test in shown_by.get(match[2], ()))
        return f"{match[1]}{tests}{SHOWN_BY.sub('', match[3])}{match[4]}"

    return ROW.sub(row, page)


def faults(page: str, shown_by: dict[str, list[str]]) -> Iterator[str]:
    """What a page says wrong: tests that are others, no reason where there is no test, and scenarios without a row."""
    rows = {match[2]: match[3] for match in ROW.finditer(page)}
    expected = {match[2]: match[3] for match in ROW.finditer(written(page, shown_by))}
    for scenario, cell in rows.items():
        reason = cell.removeprefix(REASON) if cell.startswith(REASON) else None
        if reason is None and not shown_by.get(scenario):
            yield f"{scenario}: no test shows it, and no reason is given"
        elif cell != expected[scenario]:
            yield f"{scenario}: it is shown by {shown_by.get(scenario)}; run python -m tests.docs.scenarios"
        elif reason is not None and len(reason) <= 20:
            yield f"{scenario}: the reason is missing"
    for scenario in shown_by.keys() - rows.keys():
        yield f"{scenario}: {shown_by[scenario]} name it, and no table has it"


if __name__ == "__main__":
    for page in (PAGE, SECURITY_PAGE):
        page.write_text(written(page.read_text("utf-8"), shown(list_tests())), "utf-8")
