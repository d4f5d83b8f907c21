"""`docs/internals/leases.md` says the truth: which test shows which scenario, and that none was forgotten."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from itertools import chain

import pytest

from outlive.testing.conformance.leases import StoreLeasesConformance
from tests.docs.scenarios import ROOT, Table, Tests, list_tests_in_files

SCENARIOS = [f"SF-L{number}" for number in range(1, 13)]
ELSEWHERE = ("AK-L", "TS-S")


def list_tests_of_leases() -> Iterator[tuple[str, str]]:
    """Every test of the suite for leases."""
    for name, method in inspect.getmembers(StoreLeasesConformance, inspect.isfunction):
        if name.startswith("test_"):
            yield f"leases.{name}", method.__doc__ or ""


def every_test() -> Tests:
    """Of the suite, and in files."""
    return chain(list_tests_of_leases(), list_tests_in_files())


TABLE = Table(ROOT / "docs" / "internals" / "leases.md", SCENARIOS, every_test)


def test_every_scenario_stands_in_the_table_once() -> None:
    """In its order, and nothing else does."""
    assert [scenario for scenario, _ in TABLE.rows()] == SCENARIOS


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario_is_shown_as_the_table_says(scenario: str) -> None:
    """By exactly the tests that name it."""
    TABLE.check(scenario)


def test_suite_names_only_scenarios_that_exist() -> None:
    """A slip in a docstring is found."""
    assert set() == Table(TABLE.path, SCENARIOS, list_tests_of_leases).slips(elsewhere=ELSEWHERE)
