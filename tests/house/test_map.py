"""The map of the rooms in `docs/internals/architecture.md` names every file, and only files that are there."""

import re
from pathlib import Path

import pytest

from tests.docs.page import expect_same

ROOT = Path(__file__).parents[2]
MAP = ROOT / "docs" / "internals" / "architecture.md"
PACKAGE = ROOT / "src" / "outlive"


def on_the_map(text: str, room: str) -> set[str]:
    """The files that the rows of the room's table begin with."""
    _, _, table = text.partition(f"| In `{room}` |")
    rows = [line.split("|")[1] for line in table.partition("\n\n")[0].splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`([\w/]+\.py)`", row)}


KERNEL = [f"_kernel/{room}" for room in ("client", "journal", "lease", "replay", "runtime", "store")]
FEATURES = sorted(f"_features/{it.parent.name}" for it in (PACKAGE / "_features").glob("*/__init__.py"))


@pytest.mark.parametrize("room", [*KERNEL, *FEATURES, "http"])
def test_every_file_of_the_room_is_on_the_map(room: str) -> None:
    """The map of each room names its files, and no other ones."""
    found = {str(path.relative_to(PACKAGE / room)) for path in (PACKAGE / room).rglob("*.py")}
    files = {file for file in found if not file.endswith("__init__.py")}

    where = f"docs/internals/architecture.md, the table 'In `{room}`'"
    expect_same(on_the_map(MAP.read_text("utf-8"), room), files, where=where)


def test_only_the_first_column_of_the_right_table_counts() -> None:
    """A file is on the map of a room if it stands in the first column of its table, and not elsewhere in the text."""
    text = "| In `_a` | Does |\n| `a.py`, `b/c.py` | calls `d.py` |\n\n| In `_b` | Does |\n| `x.py` | y |\n`e.py`"

    assert on_the_map(text, "_a") == {"a.py", "b/c.py"}
    assert on_the_map(text, "_b") == {"x.py"}
