"""Tests stand in folders by subject: a stranger finds them by the name of the guide, the feature or the room."""

from pathlib import Path

from tests.mutation.__main__ import TESTS

TESTS_FOLDER = Path(__file__).parents[1]
HARNESS = TESTS_FOLDER / "engine"
FILES_MAX = 35


def test_harness_holds_no_tests() -> None:
    """A test of the engine has a subject, and stands in its folder; `tests/engine` is what the tests share."""
    assert [path.name for path in HARNESS.rglob("test_*.py")] == []


def test_no_folder_is_a_heap() -> None:
    """A folder with more files of tests than a reader can survey has several subjects."""
    sizes = {folder.name: len(list(folder.glob("test_*.py"))) for folder in TESTS_FOLDER.iterdir() if folder.is_dir()}

    assert {name: size for name, size in sizes.items() if size > FILES_MAX} == {}


def test_defects_are_tried_on_every_folder_of_the_engine() -> None:
    """A folder that uses the harness, and that no room names in `tests/mutation`, would notice no planted defect."""
    watched = {name for folders in TESTS.values() for name in folders.split()}
    users = {
        path.parent.name for path in TESTS_FOLDER.glob("*/conftest.py") if "tests.engine" in path.read_text("utf-8")
    }

    assert users - watched - {"fleet"} == set(), "fleet: real processes take too long"
