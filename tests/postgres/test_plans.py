"""Plans: what a worker asks for all the time costs what it brings, not what lies in the tables."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from outlive._store.postgres import PostgresStore
from outlive._store.postgres.query import statements
from outlive.testing.conformance.builders import DEFINITION, hire
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


async def plan_of(connection: Any, name: str, *values: Any) -> str:
    """How the server would run one of our statements."""
    return "\n".join(row[0] for row in await connection.fetch(f"EXPLAIN {statements('place')[name]}", *values))


async def test_runs_that_are_claimed_are_found_by_their_keys_alone(store: PostgresStore, connection: Any) -> None:
    """Also looking up who else is due, to be on the safe side, would be a walk over everybody who is asleep."""
    keys = [row[0] for row in await connection.fetch("SELECT key FROM place.runs WHERE wake_at = 1")]

    plan = await plan_of(connection, "lock_due", store.now(), "worker-a", [DEFINITION], keys, 1)

    assert "runs_pkey" in plan
    assert "runs_owner" not in plan
    assert "runs_workflow" not in plan


async def test_due_runs_are_found_by_the_index_of_their_owner(store: PostgresStore, connection: Any) -> None:
    """Neither those asleep nor those that have ended are looked at."""
    plan = await plan_of(connection, "find_due", store.now(), "worker-a", [DEFINITION], 100)

    assert "runs_owner_definition_wake_at on runs root" in plan
    assert "Seq Scan" not in plan
