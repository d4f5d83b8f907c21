"""A new filter and a new verb touch few files: those of the tables in CONTRIBUTING, and no others.

The files are found by the name of a filter and of a verb that exist. One that is there for another reason stands in a
table with that reason. `pytest -rP tests/house/test_touched.py` prints the files that were found.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "outlive"
FILTER_FILES_MAX = 6
VERB_FILES_MAX = 7

FILTER = "id_prefix"
BESIDE_A_FILTER = {
    "_kernel/store/tables/searching.py": "it has an index",
    "_kernel/store/sqlite/sql/runs_with_prefix.sql": "it has an index",
    "_kernel/store/postgres/sql/runs_with_prefix.sql": "it has an index",
    "_kernel/store/sqlite/sql/wanted.sql": "the databases spell prefixes differently",
    "_kernel/store/postgres/sql/wanted.sql": "the databases spell prefixes differently",
    "cli/completing.py": "ids are completed by it",
    "dashboard/static/palette.js": "the palette finds runs by it",
    "dashboard/static/views/runs.js": "what is typed without a name is the beginning of an id",
    "dashboard/static/filters.js": "it is generated",
}
VERB = "skip_step"
BESIDE_A_VERB = {
    "cli/advice.py": "errors advise it",
    "http/advice.py": "errors advise it",
    "errors/": "errors advise it",
    "_kernel/client/recovery.py": "the answer of another verb names it",
    "dashboard/": "it has a button",
}


def files_with(name: str) -> list[str]:
    """The files of the package that have a name as a word."""
    word = re.compile(rf"\b{name}\b")
    kinds = {".py", ".sql", ".js"}
    found = (path for path in PACKAGE.rglob("*") if path.suffix in kinds and "vendor" not in path.parts)
    return sorted(path.relative_to(PACKAGE).as_posix() for path in found if word.search(path.read_text("utf-8")))


def touched_by(name: str, beside: dict[str, str]) -> list[str]:
    """The files that a name like this one touches, without those that have it for another reason."""
    return [file for file in files_with(name) if not file.startswith(tuple(beside))]


def table_of(title: str) -> str:
    """The text of CONTRIBUTING about one addition."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    return text[text.index(f"**{title}.**") :].split("\n\n**", 1)[0]


@pytest.mark.parametrize(
    ("title", "name", "beside", "most"),
    [
        ("A filter of runs", FILTER, BESIDE_A_FILTER, FILTER_FILES_MAX),
        ("A verb", VERB, BESIDE_A_VERB, VERB_FILES_MAX),
    ],
    ids=["filter", "verb"],
)
def test_few_files_are_touched(title: str, name: str, beside: dict[str, str], most: int) -> None:
    """An addition that has to be made in more places is forgotten in one of them."""
    files = touched_by(name, beside)
    print(f"{title}, as {name} is one: {len(files)} files", *files, sep="\n  ")  # noqa: T201  # It is asked for.

    assert len(files) <= most, f"{name} is in {len(files)} files of at most {most}: {files}"


def test_table_of_a_filter_has_every_file() -> None:
    """A contributor who follows the table misses no place."""
    table = table_of("A filter of runs").partition("A filter that is to")[0]
    named = {path for path in re.findall(r"`([a-z_]+/[\w/]+\.\w+)`", table) if (PACKAGE / path).is_file()}

    assert set(touched_by(FILTER, BESIDE_A_FILTER)) < named
    assert len(named) == FILTER_FILES_MAX
