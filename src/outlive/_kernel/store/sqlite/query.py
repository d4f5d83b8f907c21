"""SQL lives in files named after what it does; this module loads them.

A file that says `VALUES (?, ?)` in its FROM clause takes any number of rows: `bulk` repeats the row, and fills up with
rows of NULLs to one of a few sizes, so that a handful of prepared statements serve every number of rows.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from outlive._kernel.store.tables.columns import CHILD_COLUMNS, RUN_COLUMNS, STATE_COLUMNS, WORDS, listed
from outlive._kernel.store.tables.searching import AT, FILTER

SQL = Path(__file__).with_name("sql")
ROW_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
"""How many rows one statement may have."""
PARAMETERS_MAX = 4096
"""The limit for one statement; a few thousand make the cost of a statement small beside that of its rows."""

BEGIN_WRITE = "BEGIN IMMEDIATE"
BEGIN_READ = "BEGIN"
COMMIT = "COMMIT"
ROLLBACK = "ROLLBACK"
SAVEPOINT = "SAVEPOINT change"
ROLLBACK_TO_SAVEPOINT = "ROLLBACK TO change"
RELEASE_SAVEPOINT = "RELEASE change"

Value = int | str | bytes | None
"""The types of values that SQLite stores."""

_WORDS = WORDS | {
    "filter": re.sub(r"::\w+", "", FILTER),
    "run_row": "({})".format(listed(RUN_COLUMNS, "?")),
    "run_places": listed((str(number) for number, _ in enumerate(RUN_COLUMNS, 1)), "new.column{}"),
    "child_places": listed((str(number) for number, _ in enumerate(CHILD_COLUMNS, 2)), "new.column{}"),
    "state_row": "(?, {})".format(listed(STATE_COLUMNS, "?")),
    "state_places": ", ".join(f"{name} = new.column{number}" for number, name in enumerate(STATE_COLUMNS, 2)),
}
_WORD = re.compile(r"\{(\w+)\}")
_ROW = re.compile(r"VALUES (\([?, ]+\))")


@cache
def sql(name: str) -> str:
    """The statement in the file of this name, without its comments. What stands in braces is filled in: columns,
    statuses, or another file. A list of runs has a name like `list_found_runs/runs_with_tag/DESC`: what finds them, and
    their order, are filled in too."""
    file, *parts = name.split("/")
    text, words = _source(file), dict(_WORDS)
    for part in parts:
        is_order = part in ("ASC", "DESC")
        words |= {"direction": part} if is_order else {"source": _source(part), "at": AT.get(part, "run.created_at")}
        if file.startswith("measure"):
            words["row"] = ""  # Entries are counted, and no run is looked at.
    return _filled(_filled(text, words), words)


def _source(name: str) -> str:
    """A part of a statement, with its words as they are."""
    lines = (line.partition("--")[0].strip() for line in (SQL / f"{name}.sql").read_text("utf-8").splitlines())
    return " ".join(line for line in lines if line)


def _filled(text: str, words: dict[str, str]) -> str:
    return _WORD.sub(lambda match: words[match[1]] if match[1] in words else sql(match[1]), text)


def as_bytes(name: str) -> str:
    """The statement in the file of this name, which gives one text, with that text as bytes: a text in one of the rows
    is not UTF-8 any more."""
    return (SQL / "as_bytes.sql").read_text("utf-8").replace("{statement}", sql(name))


@cache
def _repeated(name: str, rows: int) -> str:
    return _ROW.sub(lambda match: "VALUES " + ", ".join([match[1]] * rows), sql(name))


@cache
def _sizes(name: str) -> tuple[int, list[int]]:
    """How many columns a row of this file has, and how many rows it may be repeated to."""
    match = _ROW.search(sql(name))
    assert match is not None, f"{name}.sql has no row to repeat"
    columns = match[1].count("?")
    return columns, [rows for rows in ROW_COUNTS if rows * columns <= PARAMETERS_MAX]


def bulk(name: str, values: list[Value]) -> Iterator[tuple[str, list[Value]]]:
    """The statements that take these values, all columns of all rows in one list, to the database."""
    columns, sizes = _sizes(name)
    chunk = sizes[-1] * columns
    for start in range(0, len(values), chunk):
        part = values if len(values) <= chunk else values[start : start + chunk]
        rows = sizes[bisect_left(sizes, len(part) // columns)]
        yield _repeated(name, rows), part + [None] * (rows * columns - len(part))
