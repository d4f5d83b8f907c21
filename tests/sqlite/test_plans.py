"""No verb looks at every run: the cost of a claim or a list does not grow with the runs that have ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest

from outlive._store.sqlite import SqliteStore
from outlive._store.sqlite.query import SQL, bulk, sql

LARGE = ("runs", "events", "inbox", "inbox_keys", "items", "blobs", "tags", "workers")
ALIASES = ("run", "root", "next", "prior", "last", "mail", "seen", "tagged", "worker")
SCANS = [["SCAN", name] for name in (*(f"outlive_{name}" for name in LARGE), *ALIASES)]
SMALL = {
    # Sessions are few, and are looked at as a whole.
    "list_workers": ["SCAN outlive_workers", "SCAN worker"],
    "prune_workers": ["SCAN outlive_workers"],
}
PARTS = {"connect", "wanted", "read_identity", "read_version"}
NAMES = sorted(file.stem for file in SQL.glob("*.sql") if file.stem not in PARTS)


@pytest.mark.parametrize("name", NAMES)
async def test_statement_finds_its_rows_through_an_index(store: SqliteStore, path: Path, name: str) -> None:
    """Every table that can be large is searched, and sorted only within a page."""
    await store.find_run("run-1")
    connection = apsw.Connection(str(path))
    text = sql(name)
    values: Any = Anything() if ":" in text or "?1" in text else ()
    if "FROM (VALUES" in text:
        ((text, values),) = bulk(name, [None] * text.count("?"))

    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", values)]

    connection.close()
    scanned = [step for step in plan if step.split()[:2] in SCANS and "USING COVERING INDEX" not in step]
    assert scanned == SMALL.get(name, [])


class Anything(dict[str, None]):
    """Something to bind to every name and number."""

    def __missing__(self, key: str) -> None:
        return None
