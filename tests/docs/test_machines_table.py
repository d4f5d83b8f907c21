"""`docs/internals/machines.md` says the truth: which test shows which scenario of Cano, and that none was forgotten."""

from __future__ import annotations

import pytest

from tests.docs.scenarios import ROOT, Table, list_tests_in_files
from tests.docs.test_recovery_table import CONFORMANCE, numbered
from tests.docs.test_recovery_table import SCENARIOS as RECOVERY

SCENARIOS = [*numbered("CA-X", 20), *numbered("CA-U", 19), *numbered("CA-C", 19)]
TABLE = Table(ROOT / "docs" / "internals" / "machines.md", SCENARIOS, list_tests_in_files)
ELSEWHERE = {*CONFORMANCE, *(scenario.rstrip("0123456789") for scenario in RECOVERY)}


def test_every_scenario_stands_in_the_table_once() -> None:
    """In its order, and nothing else does."""
    assert [scenario for scenario, _ in TABLE.rows()] == SCENARIOS


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario_is_shown_as_the_table_says(scenario: str) -> None:
    """By exactly the tests that name it, or by none and with a reason."""
    TABLE.check(scenario)


def test_tests_name_only_scenarios_that_exist() -> None:
    """A slip in a docstring is found."""
    assert set() == TABLE.slips(elsewhere=ELSEWHERE)
