"""`docs/internals/conformance.md` says the truth: which test covers which scenario, and that none was forgotten."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from outlive.testing.conformance import FACETS, LocalStoreConformance, StoreConformance
from outlive.testing.conformance.facet import Facet

TABLE = Path(__file__).parents[2] / "docs" / "internals" / "conformance.md"
SCENARIOS = {
    **{f"SF-B{number}": "blobs" for number in range(1, 11)},
    **{f"SF-C{number}": "checkpoints" for number in range(1, 7)},
    **{f"SF-J{number}": "journal" for number in range(1, 13)},
    **{f"SF-M{number}": "metadata" for number in range(1, 21)},
    **{f"TS-S{number}": "stores" for number in (*range(1, 10), 13, 14, 15)},
    **{f"CA-K{number}": "checkpoint stores" for number in range(1, 17)},
    **{f"AK-L{number}": "leases" for number in range(1, 11)},
    "OL-B1": "blobs",
    **{f"OL-H{number}": "heirs" for number in range(1, 12)},
    **{f"OL-J{number}": "joins" for number in range(1, 6)},
    "OL-P1": "published",
    **{f"OL-T{number}": "transactions" for number in range(1, 11)},
}
EXCUSE = "does not apply: "


def test_every_scenario_stands_in_the_table_once() -> None:
    """In its order, and nothing else does."""
    assert [id for id, _ in read_table()] == list(SCENARIOS)


@pytest.mark.parametrize("id", SCENARIOS)
def test_scenario_is_covered_as_the_table_says(id: str) -> None:
    """By exactly the tests that name it, or by none and with a reason."""
    cell = dict(read_table())[id]
    named = {test for test, ids in read_docstrings() if id in ids}

    if cell.startswith(EXCUSE):
        assert not named
        assert len(cell) > len(EXCUSE) + 20, "the reason is missing"
    else:
        assert named == set(re.findall(r"`(\w+\.test_\w+)`", cell)) != set()


def test_tests_name_only_scenarios_that_exist() -> None:
    """A slip in a docstring is found."""
    unknown = {(test, id) for test, ids in read_docstrings() for id in ids if id not in SCENARIOS}

    assert not unknown


def test_every_test_states_its_behaviour() -> None:
    """In at least one sentence."""
    assert [test for test, method in list_tests() if not (method.__doc__ or "").rstrip("] ").strip()] == []


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


def read_table() -> list[tuple[str, str]]:
    """Id and last cell of every row."""
    return re.findall(r"^\| ([A-Z]{2}-[A-Z]\d+) \| [^|]+ \| ([^|]+) \|$", TABLE.read_text("utf-8"), re.MULTILINE)


def read_docstrings() -> Iterator[tuple[str, list[str]]]:
    """Every test of the suite with the ids in the brackets at the end of its docstring."""
    for test, method in list_tests():
        brackets = re.search(r"\[([^\]]+)\]$", method.__doc__ or "")
        yield test, brackets[1].split() if brackets else []


def list_tests() -> Iterator[tuple[str, object]]:
    """Every test of the suite, as `facet.name`."""
    for name, method in inspect.getmembers(StoreConformance, inspect.isfunction):
        if name.startswith("test_"):
            yield f"{method.__module__.rpartition('.')[2]}.{name}", method
