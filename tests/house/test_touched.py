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
RUN_VERB_FILES_MAX = 7
VERB_FILES_MAX = 5

PATH = re.compile(r"`([\w<>.-]+/[\w<>./-]*|\w+\.(?:py|toml|md))`")
"""A path in a table."""

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
RUN_VERB = "skip_step"
BESIDE_A_RUN_VERB = {
    "cli/advice.py": "errors advise it",
    "http/advice.py": "errors advise it",
    "errors/": "errors advise it",
    "_kernel/client/recovery.py": "the answer of another verb names it",
    "dashboard/": "it has a button",
}
VERB = "backfill"
BESIDE_A_VERB = {
    "engine/engine.py": "the docstring of the namespace lists its verbs",
    "dashboard/": "it has a button",
}


def files_with(name: str) -> list[str]:
    """The files of the package that have a name as a word."""
    word = re.compile(rf"\b{name}\b")
    kinds = {".py", ".sql", ".js"}
    found = (path for path in PACKAGE.rglob("*") if path.suffix in kinds and "vendor" not in path.parts)
    return sorted(path.relative_to(PACKAGE).as_posix() for path in found if word.search(path.read_text("utf-8")))


def touched_by(name: str, beside: dict[str, str]) -> list[str]:
    """The files that a name like this one touches, without files that have the name for another reason."""
    return [file for file in files_with(name) if not file.startswith(tuple(beside))]


def table_of(title: str) -> str:
    """The text of CONTRIBUTING about one addition."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    return text[text.index(f"**{title}.**") :].split("\n\n**", 1)[0]


@pytest.mark.parametrize(
    ("title", "name", "beside", "most"),
    [
        ("A filter of runs", FILTER, BESIDE_A_FILTER, FILTER_FILES_MAX),
        ("A verb of runs", RUN_VERB, BESIDE_A_RUN_VERB, RUN_VERB_FILES_MAX),
        ("A verb of a namespace", VERB, BESIDE_A_VERB, VERB_FILES_MAX),
    ],
    ids=["filter", "verb of runs", "verb"],
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


@pytest.mark.parametrize(
    ("rows", "name", "beside"),
    [("of runs: ", RUN_VERB, BESIDE_A_RUN_VERB), ("in a namespace: ", VERB, BESIDE_A_VERB)],
    ids=["of runs", "of a namespace"],
)
def test_table_of_a_verb_has_every_file(rows: str, name: str, beside: dict[str, str]) -> None:
    """The rows of the table name the files of a verb that exists, and no others."""
    first = [line.split("|")[1].strip() for line in table_of("A verb").splitlines() if line.startswith("| ")]
    named = [path for cell in first if cell.startswith((rows, "`engine/any_engine")) for path in PATH.findall(cell)]

    assert {path.replace("<feature>", "schedules") for path in named} == set(touched_by(name, beside))


def test_every_path_of_the_tables_exists() -> None:
    """A contributor is sent to no file that is gone."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("| ")]
    named = {path for cell in cells for path in PATH.findall(cell)}

    assert len(named) > 50
    assert not [path for path in sorted(named) if not is_there(path)]


def is_there(path: str) -> bool:
    """Whether a path of a table is a file or a folder; what stands in `<>` may be any name."""
    pattern = re.sub(r"<\w+>", "*", path).rstrip("/")
    return any(any(root.glob(pattern)) for root in (ROOT, PACKAGE, ROOT / "tests" / "engine"))


def test_path_that_is_gone_is_reported() -> None:
    """A path is there if a file has it, with any name in the place of `<>`."""
    assert is_there("_features/<feature>/verbs.py")
    assert is_there("tests/<subject>/test_<name>.py")
    assert not is_there("client/<namespace>.py")
