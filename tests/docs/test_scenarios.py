"""The pages of scenarios and of the security checklist say the truth: which test shows which of them, and that none was
forgotten."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.docs.scenarios import PAGE, ROOT, ROW, SECURITY_PAGE, faults, list_tests, rules, scenarios_in, shown, written

LAST = (
    "FE-A8 FE-S12 FE-W7 FE-R15 FE-P17 FE-T7 FE-O15 "
    "SF-B10 SF-C6 SF-R6 SF-J12 SF-M20 FB-S12 FB-G6 FB-C11 TS-S16 CA-K16 AK-L10 OL-B1 OL-F16 OL-H11 OL-J9 OL-K2 "
    "OL-P1 OL-T10 SF-L12 SF-X12 SF-U32 SF-E6 SF-T6 FB-R18 TS-R32 AK-X5 CA-X20 CA-U19 CA-C19 CA-S18 "
    "DB-Q44 DB-P14 DB-D13"
)
"""The last scenario of each family."""


def test_every_scenario_stands_in_the_tables_once() -> None:
    """In its order, and nothing else does."""
    wanted = [f"{last[:4]}{number}" for last in LAST.split() for number in range(1, int(last[4:]) + 1)]

    assert wanted == [match[2] for match in ROW.finditer(PAGE.read_text("utf-8"))]


def test_pages_say_how_many_features_and_scenarios_of_the_five_systems_there_are() -> None:
    """The page for visitors counts the rows of the tables, without those of Outlive and of DBOS."""
    page = (ROOT / "docs" / "five-systems.md").read_text("utf-8")
    families = Counter(match[2][:2] for match in ROW.finditer(PAGE.read_text("utf-8")))
    features = families.pop("FE")
    scenarios = sum(families[system] for system in ("SF", "FB", "TS", "CA", "AK"))

    assert f"[{features} features]" in page
    assert f"[{scenarios} scenarios]" in page


def test_scenarios_are_shown_as_the_tables_say() -> None:
    """By exactly the tests that name them, or by none and with a reason; and a slip in a docstring is found."""
    assert [] == list(faults(PAGE.read_text("utf-8"), rules(shown(list_tests()), of_security=False)))


def test_every_rule_of_the_security_checklist_is_in_its_table() -> None:
    """In its order, and shown by exactly the tests that name it, or by none and with a reason."""
    page = SECURITY_PAGE.read_text("utf-8")

    assert [f"S{number}" for number in range(1, 52)] == [match[2] for match in ROW.finditer(page)]
    assert [] == list(faults(page, rules(shown(list_tests()), of_security=True)))


SHOP = shown({"test_shop.test_a": "It is sold once. [SF-X1 SF-X2]", "test_shop.test_b": "It is sold. [SF-X1]"}.items())


@pytest.mark.parametrize(
    ("scenario", "cell"),
    [
        ("SF-X1", "`test_shop.test_a`"),
        ("SF-X2", "`test_shop.test_a`<br>`test_shop.test_b`"),
        ("SF-X1", "does not apply: nothing is sold here"),
        ("SF-X3", "does not apply: no"),
        ("SF-X3", "planned: selling comes with the shop"),
        ("SF-X3", "somewhere, surely"),
    ],
)
def test_a_table_that_says_something_else_is_found(scenario: str, cell: str) -> None:
    """A test too many, a test too few, an excuse for what is shown, and an excuse without a reason."""
    found = list(faults(f"| {scenario} | something | {cell} |", SHOP))

    assert [fault for fault in found if fault.startswith(f"{scenario}: ") and "no table has it" not in fault]


def test_a_right_table_is_left_alone() -> None:
    """Remarks and reasons too."""
    page = (
        "| SF-X1 | a | `test_shop.test_a`<br>`test_shop.test_b`; twice |\n"
        "| SF-X2 | b | `test_shop.test_a` |\n"
        "| SF-X3 | c | does not apply: nothing is bought here |\n"
    )

    assert [] == list(faults(page, SHOP))
    assert page == written(page.replace("test_b`; twice", "test_c`; twice"), SHOP)


def test_brackets_count_only_at_the_end() -> None:
    """Brackets in a docstring count only at its end, and only if they hold nothing but scenarios."""
    assert ["S3", "SF-X1"] == scenarios_in("It lives. [S3 SF-X1]")
    assert ["SF-X1", "TS-R12"] == scenarios_in("It lives.\n\n    [SF-X1 TS-R12]\n    ")
    assert [] == scenarios_in("It [SF-X1] lives.") == scenarios_in("It lives [or SF-X1]")
