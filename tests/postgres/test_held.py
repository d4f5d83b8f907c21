"""Ids that a user's open transaction holds: whoever wants one waits alone, and for as long as it takes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import outlive
from tests.postgres.support import connected, in_time

PACE_SECONDS = 2.0
"""Within which a run of a few steps ends, also on a busy machine. A lock of the server is waited for much longer."""


@outlive.step
async def add(number: int) -> int:
    """One commit."""
    return number + 1


@outlive.workflow
async def count(number: int) -> int:
    """A few commits."""
    for _ in range(3):
        number = await add(number)
    return number


@asynccontextmanager
async def holding(engine: outlive.Engine, url: str, *ids: str) -> AsyncIterator[Any]:
    """A transaction of a user that has started these runs and is not over."""
    async with connected(url) as connection:
        transaction = connection.transaction()
        await transaction.start()
        for id_ in ids:
            await engine.start(count, 100, id=id_, connection=connection)
        yield transaction


async def keep_pace(engine: outlive.Engine, rounds: int = 5) -> None:
    """Runs of this engine start and end as if nobody held anything."""
    for _ in range(rounds):
        async with asyncio.timeout(PACE_SECONDS):
            runs = [await engine.start(count, number) for number in range(10)]
            assert [await run.result() for run in runs] == [number + 3 for number in range(10)]


@pytest.mark.parametrize(("way_out", "result"), [("commit", 103), ("rollback", 3)])
async def test_start_of_a_held_id_waits_alone(postgres_url: str, way_out: str, result: int) -> None:
    """The engine's other runs keep their pace. A commit gives the user's run, a roll-back one's own."""
    async with outlive.Engine(postgres_url) as engine, holding(engine, postgres_url, "held") as transaction:
        starts = [asyncio.ensure_future(engine.start(count, 0, id="held")) for _ in range(20)]
        await keep_pace(engine)
        assert not any(start.done() for start in starts)

        await getattr(transaction, way_out)()

        runs = await in_time(asyncio.gather(*starts))
        assert [await in_time(run.result()) for run in runs] == [result] * 20
