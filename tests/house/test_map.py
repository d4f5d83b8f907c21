"""The map of the rooms in `docs/internals/architecture.md` names every file, and only files that are there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
MAP = ROOT / "docs" / "internals" / "architecture.md"
ROOM = ROOT / "src" / "outlive" / "_runtime"


def on_the_map(text: str) -> set[str]:
    """The files that the rows of the table begin with."""
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`([\w/]+\.py)`", row)}


def test_every_file_of_the_runtime_is_on_the_map() -> None:
    """And nothing else is."""
    files = {str(path.relative_to(ROOM)) for path in ROOM.rglob("*.py") if path.name != "__init__.py"}

    assert on_the_map(MAP.read_text("utf-8")) == files


def test_only_the_first_column_counts() -> None:
    """What the text says of other files is no entry."""
    assert on_the_map("| `a.py`, `b/c.py` | calls `d.py` |\n| In `x.py` | y |\n`e.py`") == {"a.py", "b/c.py"}
