"""`docs/internals/conformance.md` says the truth: which test covers which scenario, and that none was forgotten."""

import pytest

from outlive.testing.conformance import FACETS, LocalStoreConformance, StoreConformance
from outlive.testing.conformance.facet import Facet
from tests.docs.scenarios import ROOT, Table, list_tests_of_stores

SCENARIOS = {
    **{f"SF-B{number}": "blobs" for number in range(1, 11)},
    **{f"SF-C{number}": "checkpoints" for number in range(1, 7)},
    **{f"SF-J{number}": "journal" for number in range(1, 13)},
    **{f"SF-M{number}": "metadata" for number in range(1, 21)},
    **{f"FB-S{number}": "stores" for number in range(1, 13)},
    **{f"FB-G{number}": "gateways" for number in range(1, 7)},
    **{f"FB-C{number}": "adapters" for number in range(1, 12)},
    **{f"TS-S{number}": "stores" for number in (*range(1, 10), 13, 14, 15)},
    **{f"CA-K{number}": "checkpoint stores" for number in range(1, 17)},
    **{f"AK-L{number}": "leases" for number in range(1, 11)},
    "OL-B1": "blobs",
    **{f"OL-F{number}": "forgetting" for number in range(1, 17)},
    **{f"OL-H{number}": "heirs" for number in range(1, 12)},
    **{f"OL-J{number}": "requests" for number in range(1, 7)},
    **{f"OL-K{number}": "checkpoints" for number in range(1, 3)},
    "OL-P1": "published",
    **{f"OL-T{number}": "transactions" for number in range(1, 11)},
}
TABLE = Table(ROOT / "docs" / "internals" / "conformance.md", SCENARIOS, list_tests_of_stores)
RECOVERY = ("SF-U", "TS-R")
"""Families of `docs/internals/recovery.md` that tests of stores show too."""


def test_every_scenario_stands_in_the_table_once() -> None:
    """In its order, and nothing else does."""
    assert [id for id, _ in TABLE.rows()] == list(SCENARIOS)


@pytest.mark.parametrize("id", SCENARIOS)
def test_scenario_is_covered_as_the_table_says(id: str) -> None:
    """By exactly the tests that name it, or by none and with a reason."""
    TABLE.check(id)


def test_tests_name_only_scenarios_that_exist() -> None:
    """A slip in a docstring is found."""
    assert set() == TABLE.slips(elsewhere=RECOVERY)


def test_every_test_states_its_behaviour() -> None:
    """In at least one sentence."""
    assert [test for test, doc in list_tests_of_stores() if not doc.rstrip("] ").strip()] == []


def test_no_facet_hides_a_test_of_another() -> None:
    """The suite is one class, so two facets with a test of the same name would run only one of them."""
    facets = [
        base
        for base in StoreConformance.__mro__
        if issubclass(base, Facet) and base not in (StoreConformance, LocalStoreConformance)
    ]
    names = [name for facet in facets for name in vars(facet) if name.startswith("test_")]

    assert sorted(names) == sorted(set(names))
    assert {facet.__module__.rpartition(".")[2] for facet in facets} == {*FACETS, "facet"}
