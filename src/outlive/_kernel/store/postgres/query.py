"""SQL lives in files named after what it does; this module loads them for one schema.

* `sql/`: statements. `functions/`: functions that lie in the database. `migrations/`: the tables, in literal SQL.
* The name of the schema is the only thing that is put into a statement, and always as a quoted name; everything else is
  a parameter. `{run_columns}` and its kin stand for the columns of a run (`outlive._kernel.store.tables.columns`).
* A function is called by its name in braces. In the database that name ends with the version of all functions, which is
  a hash of their text: the functions of two releases lie beside each other, and each release calls its own.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path

from outlive._kernel.store.deleting import BLOB_REFRESH
from outlive._kernel.store.streams import CHUNK_BYTES_MAX, MARK_BITS
from outlive._kernel.store.tables.columns import CHILD_COLUMNS, RUN, RUN_COLUMNS, STATE_COLUMNS, WORDS, listed
from outlive._kernel.store.tables.searching import AT, FILTER

SQL = Path(__file__).with_name("sql")
FUNCTIONS = Path(__file__).with_name("functions")
MIGRATIONS = Path(__file__).with_name("migrations")

CONFLICT = "OU001"
"""The SQLSTATE by which our functions say that a change conflicts."""

EVENT_COLUMNS = ("journal", "seq", "after", "prior", "format", "crc", "is_last", "body")
BLOB_COLUMNS = ("journal", "message", "id", "data")

_WORD = re.compile(r"\{(\w+)\}")
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")
"""A parameter with a name; two colons are a cast."""
_TABLE = re.compile(r"^CREATE TABLE (\w+)", re.MULTILINE)


def quoted(name: str) -> str:
    """A name as PostgreSQL reads it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def _numbers(count: int) -> str:
    """The parameters of a statement."""
    return listed(map(str, range(1, count + 1)), "${}")


def _words(schema: str) -> dict[str, str]:
    """The values for the words that stand in braces in a file."""
    version = functions_version()
    return _COMMON | {
        "schema": quoted(schema),
        # Text in a literal: quoted as a name, and once more as a literal.
        "sequence": f"{quoted(schema)}.runs_key_seq".replace("'", "''"),
        "audit_table": f"{quoted(schema)}.audit".replace("'", "''"),
        "functions_version": version,
        **{file.stem: f"{quoted(schema)}.{file.stem}_{version}" for file in _function_files()},
    }


_COMMON = WORDS | {
    "conflict": CONFLICT,
    "chunk_bytes_max": str(CHUNK_BYTES_MAX),
    "mark_bits": str(MARK_BITS),
    "blob_refresh": str(BLOB_REFRESH),
    "state_names": listed(STATE_COLUMNS),
    "run_arrays": listed(RUN_COLUMNS, "p_run_{}"),
    "run_parameters": ", ".join(f"p_run_{name} {kind}[]" for name, kind in RUN.items()),
    "root_arrays": listed(STATE_COLUMNS, "p_root_{}"),
    "root_parameters": ", ".join(f"p_root_{name} {RUN[name]}[]" for name in STATE_COLUMNS),
    "root_set": listed((name for name in STATE_COLUMNS if name != "wake_at"), "{0} = new.{0}"),
    "new_run": listed(RUN_COLUMNS, "new.{}"),
    "new_child": listed(CHILD_COLUMNS, "new.{}"),
    "run_numbers": _numbers(len(RUN_COLUMNS)),
    # The instant and the channel, events, roots with their keys, runs, blobs, and the rest.
    "change_numbers": _numbers(
        2 + len(EVENT_COLUMNS) + 1 + len(STATE_COLUMNS) + len(RUN_COLUMNS) + len(BLOB_COLUMNS) + 1
    ),
}
"""The words that are equal for every schema."""


def _filled(text: str, words: dict[str, str]) -> str:
    # In one pass, so that nothing in the name of a schema is taken for a word.
    return _WORD.sub(lambda match: words.get(match[1], match[0]), text)


@cache
def statements(schema: str) -> dict[str, str]:
    """Every statement by the name of its file, without comments, for this schema."""
    words = _words(schema)
    return {path.stem: _filled(_text(path), words) for path in sorted(SQL.glob("*.sql"))}


@cache
def search_statement(schema: str, name: str) -> tuple[str, tuple[str, ...]]:
    """A statement that lists or counts runs, and the names of its parameters in order. It has a name like
    `list_found_runs/runs_with_tag/DESC`: the file, what finds the runs, and their order."""
    file, *parts = name.split("/")
    words = {part: _text(SQL / f"{part}.sql") for part in ("wanted", "wanted_groups", "groups", "runs_of_group")}
    for part in parts:
        is_order = part in ("ASC", "DESC")
        source = {} if is_order else {"source": _text(SQL / f"{part}.sql"), "at": AT.get(part, "run.created_at")}
        words |= source or {"direction": part}
    words["filter"] = FILTER
    words["row"] = "" if file.startswith("measure") else _text(SQL / "row.sql")
    names: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        return names.setdefault(match[1], f"${len(names) + 1}")

    # The name of the schema comes last: it may look like a parameter.
    text = _filled(_filled(_text(SQL / f"{file}.sql"), words), words)
    text = _PARAMETER.sub(number, text)
    return _filled(text, _words(schema)), tuple(names)


def _text(path: Path) -> str:
    lines = (line.partition("--")[0].strip() for line in path.read_text("utf-8").splitlines())
    return " ".join(line for line in lines if line)


@cache
def migrations() -> tuple[Path, ...]:
    """All migrations of this release, the first one first."""
    files = tuple(sorted(MIGRATIONS.glob("*.sql")))
    assert [int(file.name[:4]) for file in files] == list(range(1, len(files) + 1)), "a gap in the migrations"
    return files


@cache
def tables() -> tuple[str, ...]:
    """The tables of this release, and tables of earlier releases that no longer exist."""
    return tuple(name for file in migrations() for name in _TABLE.findall(file.read_text("utf-8")))


@cache
def _function_files() -> tuple[Path, ...]:
    return tuple(sorted(FUNCTIONS.glob("*.sql")))


@cache
def functions_version() -> str:
    """The suffix of the names of the functions: a digest of their text."""
    text = "".join(_filled(file.read_text("utf-8"), _COMMON) for file in _function_files())
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def functions_for(schema: str) -> str:
    """The statements that create the functions of this release in a schema."""
    words = _words(schema)
    return "".join(_filled(file.read_text("utf-8"), words) for file in _function_files())
