"""Tests stand in folders by subject: a stranger finds them by the name of the guide, the feature or the room."""

from pathlib import Path

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
