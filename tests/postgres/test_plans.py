"""Plans: what a worker asks for all the time costs what it brings, not what lies in the tables."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from outlive._kernel.model import RunFilter
from outlive._kernel.store.postgres import PostgresStore
from outlive._kernel.store.postgres.query import search_statement, statements
from outlive._kernel.store.tables.searching import RunSearch, sources_of
from outlive_conformance.suite.builders import DEFINITION, hire
from tests.postgres.support import connected

FILL = """
INSERT INTO place.runs (
    id, journal, number, root_id, workflow, version, nonce, created_at, status, wake_at, owner, epoch, attempts,
    updated_at, reason
)
SELECT
    'run-' || n, n, 0, 'run-' || n, 'greet', 1, 0, n, CASE n % 2 WHEN 0 THEN 'waiting' ELSE 'succeeded' END,
    CASE WHEN n <= 200 AND n % 2 = 0 THEN 1 WHEN n % 2 = 0 THEN 4102444800000000 END, '', 1, 0, n, ''
FROM generate_series(1, 20000) AS n
"""


@pytest.fixture
async def connection(store: PostgresStore, postgres_url: str) -> AsyncIterator[Any]:
    """A connection as the store's own ones are, to ten thousand runs asleep, as many ended, and a hundred due."""
    await hire(store, "worker-a")
    async with connected(postgres_url) as connection:
        await connection.execute("SET enable_seqscan = off; SET jit = off")
        await connection.execute(FILL)
        await connection.execute("ANALYZE place.runs")
        yield connection


FILL_OWNERS = """
WITH owners AS (
    INSERT INTO place.workers (id, name, definitions, started_at, expires_at, is_retired)
    SELECT 'owner-' || n, '', '[]', 0, CASE n WHEN 50 THEN 0 ELSE $1::bigint END, false
    FROM generate_series(1, 100) AS n
    RETURNING id
)
INSERT INTO place.runs (
    id, journal, number, root_id, workflow, version, nonce, created_at, status, wake_at, owner, epoch, attempts,
    updated_at, reason
)
SELECT
    owners.id || '/' || n, 0, 0, owners.id || '/' || n, 'greet', 1, 0, n, 'running', n, owners.id, 1, 0, n, ''
FROM owners
CROSS JOIN generate_series(1, CASE owners.id WHEN 'owner-50' THEN 100 ELSE $2::integer END) AS n
"""


async def pages_of(connection: Any, store: PostgresStore, *, orphans_max: int) -> int:
    """How many pages looking for orphans touches; the runs found are those of the one lost owner."""
    values = (store.now(), "worker-a", [DEFINITION], 100, orphans_max, 0)
    text = statements("place")["find_due"]
    rows = await connection.fetch(text, *values)
    assert [row["is_orphan"] for row in rows] == [True] * orphans_max
    plan = await connection.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {text}", *values)
    top = json.loads(plan)[0]["Plan"]
    return int(top["Shared Hit Blocks"] + top["Shared Read Blocks"])


async def plan_of(connection: Any, name: str, *values: Any) -> str:
    """How the server would run one of our statements."""
    return "\n".join(row[0] for row in await connection.fetch(f"EXPLAIN {statements('place')[name]}", *values))


async def test_runs_that_are_claimed_are_found_by_their_keys_alone(store: PostgresStore, connection: Any) -> None:
    """A claim locks its runs by their primary keys and walks no index of owners or workflows."""
    keys = [row[0] for row in await connection.fetch("SELECT key FROM place.runs WHERE wake_at = 1")]

    plan = await plan_of(connection, "lock_due", store.now(), "worker-a", [DEFINITION], keys, 1, False, 0)

    assert "runs_pkey" in plan
    assert "runs_owner" not in plan
    assert "runs_workflow" not in plan


async def test_due_runs_are_found_by_the_index_of_their_owner(store: PostgresStore, connection: Any) -> None:
    """Neither sleeping runs nor ended runs are looked at."""
    plan = await plan_of(connection, "find_due", store.now(), "worker-a", [DEFINITION], 100, 100, 0)

    assert plan.count("runs_owner_definition_wake_at on runs root") == 2, "free ones and orphans"
    assert "Seq Scan" not in plan


async def test_taking_over_one_worker_costs_what_that_worker_has(store: PostgresStore, postgres_url: str) -> None:
    """100 owners with 100 runs each, one of them lost: its runs are found by its name, and no other's are looked
    at. With as many runs again at the others it costs the same."""
    async with connected(postgres_url) as connection:
        await hire(store, "worker-a")
        await connection.execute("SET enable_seqscan = off; SET jit = off")
        looked_at = []
        for runs in (100, 200):
            await connection.execute("TRUNCATE place.runs, place.workers")
            await hire(store, "worker-a")
            await connection.execute(FILL_OWNERS, store.now() + 3_600_000_000, runs)
            await connection.execute("VACUUM ANALYZE place.runs")
            looked_at.append(await pages_of(connection, store, orphans_max=100))

        assert looked_at[0] > 0
        assert looked_at[1] <= looked_at[0] * 1.2


TAGGED = 2000
PAGES_MAX = 20
"""Of indexes and tables, for each run that a search looks at."""
FILL_TAGS = f"""
WITH added AS (
    INSERT INTO place.runs (
        id, journal, number, root_id, workflow, version, nonce, created_at, status, owner, epoch, attempts, updated_at,
        reason
    )
    SELECT
        CASE n % 2 WHEN 0 THEN 'a-' ELSE 'b-' END || n, n, 0, '', 'greet', 1, 0, n, 'waiting', '', 1, 0, n, ''
    FROM generate_series(1, {TAGGED}) AS n
    RETURNING key, id, created_at
)
INSERT INTO place.tags (run_key, name, value, created_at)
SELECT key, 'tenant', CASE WHEN id LIKE 'a-%' THEN 'acme' ELSE 'other' END, created_at FROM added
"""


async def test_a_search_without_statistics_reads_each_run_once(store: PostgresStore, postgres_url: str) -> None:
    """A burst of runs has no statistics for a minute. A search by a prefix and a tag, each of half of the runs, went
    through all runs of a workflow for each run with the tag: 25 million for 10,000 runs, which took longer than a
    search may."""
    wanted = RunFilter(id_prefix="b-", tags={"tenant": "acme"}, workflow="greet", roots_only=True)
    search = RunSearch(filter=wanted, limit=50)
    async with connected(postgres_url) as connection:
        await connection.execute("ALTER TABLE place.runs SET (autovacuum_enabled = false)")
        await connection.execute("ALTER TABLE place.tags SET (autovacuum_enabled = false)")
        await connection.execute(FILL_TAGS)
        pages = {}
        for source in sources_of(wanted):
            for statement in (source.list_statement(search), source.count_statement):
                text, names = search_statement("place", statement)
                values = search.values(str) | source.values(str) | {"statuses": ["waiting"]}
                plan = await connection.fetchval(
                    f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {text}", *(values.get(name) for name in names)
                )
                top = json.loads(plan)[0]["Plan"]
                pages[statement] = top["Shared Hit Blocks"] + top["Shared Read Blocks"]

    assert {} == {statement: count for statement, count in pages.items() if count > TAGGED * PAGES_MAX}
