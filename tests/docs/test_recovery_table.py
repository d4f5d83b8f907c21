"""`docs/internals/recovery.md` says the truth: which test shows which scenario, and that none was forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from tests.docs.scenarios import ROOT, Table, Tests, list_tests_in_files, list_tests_of_stores, scenarios_in


def every_test() -> Tests:
    """In files of ours, and in the suite for stores."""
    return chain(list_tests_in_files(), list_tests_of_stores())


def numbered(family: str, last: int) -> Iterator[str]:
    """The scenarios of a family."""
    return (f"{family}{number}" for number in range(1, last + 1))


SCENARIOS = [
    *numbered("SF-X", 12),
    *numbered("SF-U", 32),
    *numbered("SF-E", 6),
    *numbered("FB-R", 18),
    *numbered("TS-R", 32),
    *numbered("AK-X", 5),
]
CONFORMANCE = (
    *("SF-B", "SF-C", "SF-J", "SF-L", "SF-M", "FB-S", "FB-G", "FB-C", "TS-S", "CA-K", "AK-L"),
    *("OL-B", "OL-F", "OL-H", "OL-J", "OL-K", "OL-P", "OL-T"),
)
"""Families that `docs/internals/conformance.md` and `docs/internals/leases.md` speak of."""
MACHINES = ("CA-C", "CA-X", "CA-U")
"""Families that `docs/internals/machines.md` speaks of."""
TABLE = Table(ROOT / "docs" / "internals" / "recovery.md", SCENARIOS, every_test)


def test_every_scenario_stands_in_the_table_once() -> None:
    """In its order, and nothing else does."""
    assert [scenario for scenario, _ in TABLE.rows()] == SCENARIOS


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario_is_shown_as_the_table_says(scenario: str) -> None:
    """By exactly the tests that name it, or by none and with a reason."""
    TABLE.check(scenario)


def test_tests_name_only_scenarios_that_exist() -> None:
    """A slip in a docstring is found."""
    assert set() == TABLE.slips(elsewhere=(*CONFORMANCE, *MACHINES))


def test_a_table_that_says_something_else_is_found(tmp_path: Path) -> None:
    """A test too many, a test too few, an excuse for what is shown, and an excuse without a reason."""
    told = {"test_shop.test_a": "It is sold once. [SF-X1 SF-X2]", "test_shop.test_b": "It is sold. [SF-X1]"}

    def check(cell: str, scenario: str = "SF-X1") -> None:
        page = tmp_path / "page.md"
        page.write_text(f"| {scenario} | something | {cell} |\n")
        Table(page, [scenario], told.items).check(scenario)

    check("`test_shop.test_a`, `test_shop.test_b`")
    check("does not apply: nobody sells anything here", "SF-X3")
    check("planned: selling comes with the shop", "SF-X3")
    wrong = [
        ("`test_shop.test_a`", "SF-X1"),
        ("`test_shop.test_a`, `test_shop.test_b`", "SF-X2"),
        ("does not apply: nobody sells anything here", "SF-X1"),
        ("planned: selling comes with the shop", "SF-X1"),
        ("does not apply: no", "SF-X3"),
        ("planned: soon", "SF-X3"),
        ("somewhere, surely", "SF-X3"),
    ]
    for cell, scenario in wrong:
        with pytest.raises(AssertionError):
            check(cell, scenario)
    slips = Table(tmp_path / "page.md", ["SF-X1"], told.items).slips(elsewhere=())
    assert {("test_shop.test_a", "SF-X2")} == slips


def test_brackets_count_only_at_the_end() -> None:
    """And only if they hold nothing but scenarios."""
    assert ["SF-X1", "TS-R12"] == scenarios_in("It lives.\n\n    [SF-X1 TS-R12]\n    ")
    assert [] == scenarios_in("It [SF-X1] lives.") == scenarios_in("It lives [or SF-X1]")
