"""Connections: what is asked of the server when one is made."""

from __future__ import annotations

from typing import Any

import pytest

from outlive._store.postgres import PostgresStore, connection, pool
from outlive.testing.clock import ManualClock


async def test_a_process_asks_once_what_the_types_of_the_server_are(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the costliest question of a new connection, and every server gives the same answer."""
    asked: list[tuple[int, ...]] = []

    def note(record: Any) -> None:
        if "pg_type" in record.query:
            asked.append(tuple(*record.args))

    async def connect(*args: Any, **kwargs: Any) -> connection.Connection:
        made = await connection.connect(*args, **kwargs)
        made.add_query_logger(note)
        return made

    monkeypatch.setattr(pool, "connect", connect)
    monkeypatch.setattr(connection, "_known_types", {})
    for _ in range(2):
        store = PostgresStore(postgres_url, clock=ManualClock())
        await store.open()
        assert [] == (await store.read_journals([1])).get(1, [])
        await store.close()

    assert len(asked) == len(set(asked)) > 0
