"""No verb looks at every run: the cost of a claim or a list does not grow with the runs that have ended."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from outlive._kernel.store.sqlite import SqliteStore
from outlive._kernel.store.sqlite.query import SQL, bulk, sql
from outlive._kernel.store.tables.searching import SOURCES
from outlive.testing.clock import ManualClock
from outlive_conformance.suite.builders import DEFINITION

LARGE = (
    "runs",
    "events",
    "inbox",
    "inbox_keys",
    "items",
    "blobs",
    "tags",
    "waits",
    "workers",
    "checkpoints",
    "streams",
    "stream_chunks",
)
ALIASES = (
    "run",
    "root",
    "next",
    "prior",
    "last",
    "mail",
    "seen",
    "entry",
    "wait",
    "waiting",
    "worker",
    "stream",
    "chunk",
    "earlier",
    "member",
    "asked",
    "starter",
    "started",
    "top",
    "watch",
)
SCANS = [["SCAN", name] for name in (*(f"outlive_{name}" for name in LARGE), *ALIASES)]
SMALL = {
    # Sessions are few, and are looked at as a whole.
    "list_workers": ["SCAN outlive_workers", "SCAN worker"],
    "prune_workers": ["SCAN outlive_workers"],
    # `outlive fsck --repair` only, which has looked at everything before.
    "delete_tags": ["SCAN outlive_tags"],
    # `outlive fsck` only, which looks at everything.
    "find_lost_waits": ["SCAN outlive_waits", "SCAN run", "SCAN run", "SCAN run", "SCAN outlive_waits"],
}
SEARCHES = {"list_runs", "list_found_runs", "count_found_runs", "measure_found_runs"}
PARTS = {
    "as_bytes",
    "connect",
    "groups",
    "group_runs",
    "read_identity",
    "read_version",
    "row",
    "wanted",
    "wanted_groups",
}
NAMES = sorted(file.stem for file in SQL.glob("*.sql") if file.stem not in {*PARTS, *SEARCHES, *SOURCES})
FOUND = [f"list_runs/{order}" for order in ("ASC", "DESC")]
FOUND += [f"list_found_runs/{source}/{order}" for source in SOURCES for order in ("ASC", "DESC")]
FOUND += [f"{verb}_found_runs/{source}" for source in SOURCES for verb in ("count", "measure")]


@pytest.fixture(scope="module")
def planner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[apsw.Connection]:
    """Of a file that a store has made: it says what it would do, and does nothing."""
    path = tmp_path_factory.mktemp("plans") / "outlive.db"
    asyncio.run(_make(path))
    connection = apsw.Connection(str(path))
    yield connection
    connection.close()


async def _make(path: Path) -> None:
    store = SqliteStore(path, clock=ManualClock())
    await store.open()
    await store.close()


@pytest.mark.parametrize("name", NAMES)
def test_statement_finds_its_rows_through_an_index(planner: apsw.Connection, name: str) -> None:
    """Every table that can be large is searched, and sorted only within a page."""
    text = sql(name)
    values: Any = Anything() if ":" in text or "?1" in text else (None,) * text.count("?")
    if "FROM (VALUES" in text:
        ((text, values),) = bulk(name, [None] * text.count("?"))

    assert scans_of(planner, text, values) == SMALL.get(name, [])


def test_every_list_finds_its_rows_through_an_index(planner: apsw.Connection) -> None:
    """Whatever finds the runs, and in whatever order; so do counts, and looks at how long an index is."""
    assert {name: scans for name in FOUND if (scans := scans_of(planner, sql(name), Anything()))} == {}


def scans_of(connection: apsw.Connection, text: str, values: Any) -> list[str]:
    """The tables that a statement goes through from one end to the other."""
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", values)]
    return [step for step in plan if step.split()[:2] in SCANS and "USING COVERING INDEX" not in step]


class Anything(dict[str, None]):
    """Something to bind to every name and number."""

    def __missing__(self, key: str) -> None:
        return None


async def test_taking_over_one_worker_costs_what_that_worker_has(store: SqliteStore, path: Path) -> None:
    """100 owners with 100 runs each, one of them lost: with as many runs again at the others it costs the same."""
    await store.find_run("run-1")
    connection = apsw.Connection(str(path))
    connection.execute(
        "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 100) "
        "INSERT INTO outlive_workers (id, name, definitions, started_at, expires_at, is_retired) "
        "SELECT 'owner-' || n, '', '[]', 0, iif(n = 50, 0, 9000000000000000), 0 FROM n"
    )
    steps = []
    for runs in (100, 200):
        connection.execute("DELETE FROM outlive_runs")
        connection.execute(
            "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?1) "
            "INSERT INTO outlive_runs (id, journal, number, root_id, workflow, version, nonce, status, wake_at, owner, "
            "epoch, attempts, created_at, updated_at, reason) "
            "SELECT worker.id || '/' || n, 0, 0, worker.id || '/' || n, 'greet', 1, 0, 'running', n, worker.id, 1, 0, "
            "n, n, '' FROM outlive_workers AS worker CROSS JOIN n WHERE worker.id <> 'owner-50' OR n <= 100",
            (runs,),
        )
        steps.append(
            steps_of(connection, "find_owners", ("worker-a",))
            + steps_of(connection, "find_due", ('["owner-50"]', f'["{DEFINITION}"]', 1_000, 100))
        )
    connection.close()

    assert steps[0] > 0
    assert steps[1] <= steps[0] * 1.2


def steps_of(connection: apsw.Connection, name: str, values: tuple[Any, ...]) -> int:
    """How many steps the machine of SQLite takes for one of our statements."""
    steps = 0

    def count(trace: dict[str, Any]) -> None:
        nonlocal steps
        steps += trace["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]

    connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, count)
    connection.execute(sql(name), values).fetchall()
    connection.trace_v2(0, None)
    return steps
