"""Connections: what is asked of the server when one is made."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from outlive._kernel.store.postgres import PostgresStore, connection, pool
from outlive._kernel.store.postgres import store as stores
from outlive.errors import StoreUnavailableError
from outlive.testing.clock import ManualClock
from tests.postgres.support import in_time

VERBS: dict[str, Callable[[PostgresStore], Coroutine[Any, Any, object]]] = {
    "read": lambda store: store.find_runs(["run-1"]),
    "write": lambda store: store.end_session("worker-1"),
    "cell": lambda store: store.change_cell("cell", lambda *_: (b"new", None)),
}


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
async def test_caller_of_a_store_that_is_closed_meanwhile_gets_an_error(
    verb: Callable[[PostgresStore], Coroutine[Any, Any, object]], store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A caller whose store is closed meanwhile gets StoreUnavailableError; it is neither cancelled nor left waiting."""
    monkeypatch.setattr(stores, "CLOSE_SECONDS", 0)
    monkeypatch.setattr(pool.Pool, "do", _never)
    asking = asyncio.create_task(verb(store))
    await asyncio.sleep(0)
    await store.close()

    with pytest.raises(StoreUnavailableError, match="it was closed meanwhile"):
        await in_time(asking)


async def _never(*args: object, **options: object) -> None:
    await asyncio.Event().wait()


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
