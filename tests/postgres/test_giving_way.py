"""Steps in transactions that PostgreSQL ends so that others can go on: nothing was committed, so they begin again."""

from __future__ import annotations

import asyncio
from collections import Counter

import asyncpg
import pytest
from sqlalchemy import text

import outlive
from outlive import Retry
from outlive._journal.event import AttemptFailed, StepSucceeded
from outlive._runtime.steps import transactions
from outlive.errors import RunFailed
from tests.engine.support import events_of
from tests.postgres.support import in_time

MAKE = """
CREATE TABLE deadlocked (id text PRIMARY KEY, cents bigint NOT NULL);
INSERT INTO deadlocked VALUES ('ann', 0), ('bob', 0)
"""
TAKE = "UPDATE deadlocked SET cents = cents + 1 WHERE id = $1"
SERIALIZE = "DO $$ BEGIN RAISE EXCEPTION 'no order is left' USING ERRCODE = '40001'; END $$"

calls: Counter[str] = Counter()
met: dict[str, asyncio.Event] = {}


@outlive.step(name="way.make", transaction=True)
async def make(tx: outlive.Tx) -> None:
    """Two accounts."""
    await tx.execute(MAKE)


@outlive.step(name="way.move", transaction=True, retry=Retry(attempts=1))
async def move(tx: outlive.Tx, first: str, then: str) -> str:
    """Locks one account, and the other one as soon as that is locked too."""
    calls[first] += 1
    await tx.execute("SET LOCAL deadlock_timeout = '20ms'")
    await tx.execute(TAKE, first)
    met[first].set()
    await met[then].wait()
    await tx.execute(TAKE, then)
    return first


@outlive.step(name="way.count", transaction=True)
async def count(tx: outlive.Tx) -> list[int]:
    """What is on the accounts."""
    return [row["cents"] for row in await tx.fetch("SELECT cents FROM deadlocked ORDER BY id")]


@outlive.workflow(name="way.crossing")
async def crossing() -> list[int]:
    """Two transactions, each of which waits for a row that the other one has."""
    await make()
    await asyncio.gather(move("ann", "bob"), move("bob", "ann"))
    return await count()


@outlive.step(name="way.yield_for_ever", transaction=True, retry=Retry(attempts=2, first=0.0))
async def yield_for_ever(tx: outlive.Tx) -> None:
    """Never finds its place among the others."""
    calls["for ever"] += 1
    await tx.execute(SERIALIZE)


@outlive.workflow(name="way.losing")
async def losing() -> None:
    """A step that always gives way."""
    await yield_for_ever()


@outlive.step(name="way.with_sqlalchemy", transaction=True, retry=Retry(attempts=1))
async def with_sqlalchemy(tx: outlive.Tx) -> int:
    """Gives way once, and hears of it from SQLAlchemy."""
    calls["sqlalchemy"] += 1
    if calls["sqlalchemy"] == 1:
        async with tx.sqlalchemy() as session:
            await session.execute(text(SERIALIZE))
    return calls["sqlalchemy"]


@outlive.workflow(name="way.wrapped")
async def wrapped() -> int:
    """A step whose error is not the driver's own."""
    return await with_sqlalchemy()


@pytest.fixture(autouse=True)
def fresh() -> None:
    """Nothing was called, and no transaction has met another one."""
    calls.clear()
    met.clear()
    met.update(ann=asyncio.Event(), bob=asyncio.Event())


async def test_the_loser_of_a_deadlock_is_done_again_and_uses_up_no_attempt(postgres_url: str) -> None:
    """PostgreSQL ends one of the two; both have a single attempt, and both succeed with it."""
    async with outlive.Engine(postgres_url) as engine:
        run = await engine.start(crossing)

        assert await in_time(run.result()) == [2, 2], "each of them wrote both rows once"
        assert sorted(calls.values()) == [1, 2], "one of them was ended"
        assert await events_of(run, AttemptFailed) == []
        assert {event.attempt for event in await events_of(run, StepSucceeded)} == {1}


async def test_a_step_that_always_gives_way_fails_in_the_end(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attempt begins again so many times and not for ever; then it has failed, and its retry policy counts it."""
    monkeypatch.setattr(transactions, "BACKOFF_FIRST_SECONDS", 0.0)
    async with outlive.Engine(postgres_url) as engine:
        run = await engine.start(losing)

        with pytest.raises(RunFailed, match="no order is left") as failed:
            await in_time(run.result())
        assert asyncpg.SerializationError.__name__ in str(failed.value)
        assert calls["for ever"] == 2 * (1 + transactions.GIVE_WAYS_MAX)


async def test_an_error_that_was_caused_by_giving_way_counts_as_that(postgres_url: str) -> None:
    """SQLAlchemy raises its own error from that of the driver."""
    async with outlive.Engine(postgres_url) as engine:
        assert await in_time((await engine.start(wrapped)).result()) == 2
