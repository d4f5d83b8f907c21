"""The three programs of a user's tests do the same on every store: time that skips, crashes everywhere, a replay."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import asyncpg
import pytest

import outlive
from outlive import Retry
from outlive._kernel.store.contract import Store
from outlive._kernel.store.memory import MemoryState, MemoryStore
from outlive._kernel.store.postgres import PostgresStore
from outlive._kernel.store.sqlite import SqliteStore
from outlive.testing import TestEngine, crash_everywhere, replay
from proof.postgres_place import PostgresPlace

pytestmark = pytest.mark.every_store

STORES = ["memory", "sqlite", "postgres"]


@outlive.step(name="stores.charge", retry=Retry(attempts=3, first=3600))
async def charge(order: str) -> str:
    if outlive.current_step().attempt == 1:
        raise ConnectionError("busy")
    return f"receipt for {order}"


@outlive.step(name="stores.write", transaction=True)
async def write(tx: Any, order: str) -> str:
    await tx.execute("CREATE TABLE IF NOT EXISTS orders (name text)")
    await tx.execute("INSERT INTO orders VALUES ($1)", order)
    return f"{await tx.fetchval('SELECT count(*) FROM orders')} of {order}"


@outlive.workflow(name="stores.pack")
async def pack(order: str) -> str:
    return await write(order)


@outlive.workflow(name="stores.checkout")
async def checkout(order: str) -> list[str]:
    """Steps side by side, a retry, a child with a transaction, a timer."""
    receipt, written = await asyncio.gather(charge(order), pack(order))
    await asyncio.sleep(3600)
    return [receipt, written]


@outlive.workflow(name="stores.refund")
async def refund(order: str) -> str:
    """Wait for a signal that comes, then two days for one that does not."""
    cents = await outlive.wait_for_signal("paid", int)
    try:
        async with asyncio.timeout(2 * 24 * 3600):
            return await outlive.wait_for_signal("approved", str)
    except TimeoutError:
        return f"{order}: {cents} expired"


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty place of each kind."""
    if request.param == "postgres":
        server_url: str = request.getfixturevalue("postgres_url")
        return server_url
    return "memory:" if request.param == "memory" else f"sqlite:{tmp_path / 'runs.db'}"


async def test_days_are_skipped(url: str) -> None:
    """A signal, then two days without an approval, in milliseconds."""
    async with TestEngine(url) as engine:
        began = engine.now()
        run = await engine.start(refund, "o-1")
        await engine.signal(run.id, "paid", 7)

        async with asyncio.timeout(10):
            assert await run.result() == "o-1: 7 expired"

        assert (engine.now() - began).days == 2


async def test_a_run_goes_on_in_the_next_engine(url: str) -> None:
    """A run that one TestEngine left on a store is ended by the next one; in memory none is left."""
    async with TestEngine(url) as engine:
        run = await engine.start(refund, "o-1")
        await engine.signal(run.id, "paid", 7)
        await engine.skip(hours=1)
        assert await run.status() == "waiting"
    async with TestEngine(url) as engine:
        if url == "memory:":
            assert await engine.list() == []
        else:
            assert await engine.get(run.id).result() == "o-1: 7 expired"


async def test_histories_replay(url: str, tmp_path: Path) -> None:
    """A history that any store has exported is replayed."""
    async with TestEngine(url) as engine:
        run = await engine.start(checkout, "o-1")
        assert await run.result() == ["receipt for o-1", "1 of o-1"]
        await run.export(tmp_path / "run.jsonl")

    replay(str(tmp_path / "*.jsonl"), workflows=[checkout, pack])


async def test_a_workflow_survives_crashes_at_an_address(url: str) -> None:
    """Each run has a place of its own at the address, also if several are under way at once, and no place is left
    behind."""
    report = await crash_everywhere(refund, "o-1", signals=[("paid", 7)], url=url, max_seconds=0, parallel=2)

    assert (report.points, report.result) == (2, "o-1: 7 expired")
    if url.startswith("postgresql"):
        connection = await asyncpg.connect(url.partition("?")[0])
        left = await connection.fetch("SELECT nspname FROM pg_namespace WHERE nspname LIKE '%crash%'")
        await connection.close()
        assert left == []


@pytest.mark.parametrize(("kind", "points"), [("memory", 6), ("sqlite", 2), ("postgres", 2)])
async def test_a_workflow_survives_crashes(
    kind: str, points: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Every trial begins in an empty place, and every order is written once."""
    states: dict[int, MemoryState] = {}
    place: PostgresPlace | None = request.getfixturevalue("shared_place") if kind == "postgres" else None

    def empty() -> None:
        if place is not None:
            place.empty()

    def store(trial: int, clock: Callable[[], int]) -> Store:
        if place is not None:
            return PostgresStore(place.url, clock=clock)
        if kind == "sqlite":
            return SqliteStore(tmp_path / f"{trial}.db", clock=clock)
        return MemoryStore(clock=clock, state=states.setdefault(trial, MemoryState()))

    report = await crash_everywhere(checkout, "o-1", store=store, reset=empty, max_points=points)

    assert report.points == points
    assert report.result == ["receipt for o-1", "1 of o-1"]
