"""A statement of a step that never ends: behind PgBouncer only the server itself can end it."""

from __future__ import annotations

import pytest

from outlive._kernel.store.postgres import PostgresStore
from outlive._kernel.store.postgres import transaction as transactions
from outlive.errors import OutliveError
from outlive.testing.clock import ManualClock
from outlive_conformance.servers.postgres import PostgresServer
from tests.postgres.support import until

ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT 1 FROM n) SELECT count(*) AS endless FROM n"
STILL_THERE = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'WITH RECURSIVE%endless%'"


async def test_endless_statement_behind_pgbouncer_does_not_outlive_its_transaction(
    pgbouncer_url: str, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line to it is cut when its time is up; a server that computes does not look at the line."""
    monkeypatch.setattr(transactions, "SLACK_SECONDS", 0.2)
    store = PostgresStore(pgbouncer_url, clock=ManualClock())
    await store.open()
    transaction = await store.begin(seconds_max=0.2)
    with pytest.raises((OutliveError, OSError)):
        await transaction.handle.fetch(ENDLESS)
    await store.close()

    async def is_gone() -> bool:
        return postgres_server.execute(STILL_THERE) == [(0,)]

    await until(is_gone)
