"""The map of the rooms in `docs/internals/architecture.md` names every file, and only files that are there."""

import re
from pathlib import Path

import pytest

from tests.docs.page import expect_same, first_cells, section_of

ROOT = Path(__file__).parents[2]
MAP = ROOT / "docs" / "internals" / "architecture.md"
KERNEL_PAGE = ROOT / "docs" / "internals" / "kernel.md"
PACKAGE = ROOT / "src" / "outlive"


def on_the_map(text: str, room: str) -> set[str]:
    """The files that the rows of the room's table begin with."""
    _, _, table = text.partition(f"| In `{room}` |")
    rows = [line.split("|")[1] for line in table.partition("\n\n")[0].splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`([\w/]+\.py)`", row)}


TOP = "_kernel|_features|engine|http|cli|remote|metrics|dashboard|tests|proof|conformance|docs|examples"
NAMED = rf"`((?:{TOP})/[\w/-]+\.\w+)`"
"""A file in a text, by its whole path."""
KERNEL = sorted(f"_kernel/{it.parent.name}" for it in (PACKAGE / "_kernel").glob("*/__init__.py"))
FEATURES = sorted(f"_features/{it.parent.name}" for it in (PACKAGE / "_features").glob("*/__init__.py"))


@pytest.mark.parametrize("room", [*KERNEL, *FEATURES, "http"])
def test_every_file_of_the_room_is_on_the_map(room: str) -> None:
    """The map of each room names its files, and no other ones."""
    found = {str(path.relative_to(PACKAGE / room)) for path in (PACKAGE / room).rglob("*.py")}
    files = {file for file in found if not file.endswith("__init__.py")}

    where = f"docs/internals/architecture.md, the table 'In `{room}`'"
    expect_same(on_the_map(MAP.read_text("utf-8"), room), files, where=where)


def test_every_room_is_in_the_drawing() -> None:
    """The drawing of the rooms names each folder, module and feature of the package, and each room of the kernel."""
    drawing = section_of(MAP, "## Rooms").split("```")[1].removeprefix("text\n")
    first = set(re.findall(r"\w+", " ".join(line[:25] for line in drawing.splitlines())))
    listed = re.findall(r"^ {26}([a-z ,]+)$", drawing, flags=re.MULTILINE)
    public = {it.stem for it in PACKAGE.glob("*.py")} - {"__init__", "__main__"}
    folders = {it.parent.name for it in PACKAGE.glob("*/__init__.py")}

    where = "docs/internals/architecture.md, the drawing of the rooms"
    expect_same((f"_features/{name}" for name in re.findall(r"\w+", " ".join(listed))), FEATURES, where=where)
    assert folders | {Path(room).name for room in KERNEL} <= first
    assert public <= set(re.findall(r"\w+", drawing))


def test_page_about_the_kernel_is_right() -> None:
    """Its table has every room, and its ten types are defined where it says."""
    rooms = re.findall(r"`(_kernel/\w+)`", section_of(KERNEL_PAGE, "## Rooms"))
    types = re.findall(r"^\| `(\w+)` \| `([\w/]+\.py)`", section_of(KERNEL_PAGE, "## Ten types"), flags=re.MULTILINE)

    assert sorted(rooms) == KERNEL
    assert len(types) == len(first_cells(section_of(KERNEL_PAGE, "## Ten types"))) == 10
    for name, file in types:
        defined = rf"^(class {name}\b|{name} = )"
        assert re.search(defined, (PACKAGE / file).read_text("utf-8"), flags=re.MULTILINE), f"{name} in {file}"


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "internals").glob("*.md")), ids=lambda it: it.name)
def test_files_of_a_page_are_there(page: Path) -> None:
    """The pages about the inside, and AGENTS.md, name only files that are there."""
    named = re.findall(NAMED, page.read_text("utf-8") + (ROOT / "AGENTS.md").read_text("utf-8"))

    assert named
    assert not [path for path in named if not (PACKAGE / path).is_file() and not (ROOT / path).is_file()]


def test_only_the_first_column_of_the_right_table_counts() -> None:
    """A file is on the map of a room if it stands in the first column of its table, and not elsewhere in the text."""
    text = "| In `_a` | Does |\n| `a.py`, `b/c.py` | calls `d.py` |\n\n| In `_b` | Does |\n| `x.py` | y |\n`e.py`"

    assert on_the_map(text, "_a") == {"a.py", "b/c.py"}
    assert on_the_map(text, "_b") == {"x.py"}
