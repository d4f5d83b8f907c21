"""Steps in transactions that PostgreSQL ends so that others can go on: nothing was committed, so they begin again."""

from __future__ import annotations

import asyncio
import enum
from collections import Counter
from typing import Any

import asyncpg
import pytest
from sqlalchemy import text

import outlive
from outlive import Retry, flow
from outlive._kernel.runtime.steps import transactions
from outlive.errors import RunFailedError
from outlive.events import AttemptFailed, StepSucceeded
from tests.engine.support import events_of
from tests.postgres.support import in_time

MAKE = """
CREATE TABLE deadlocked (id text PRIMARY KEY, cents bigint NOT NULL);
INSERT INTO deadlocked VALUES ('ann', 0), ('bob', 0)
"""
TAKE = "UPDATE deadlocked SET cents = cents + 1 WHERE id = $1"
SERIALIZE = "DO $$ BEGIN RAISE EXCEPTION 'no order is left' USING ERRCODE = '40001'; END $$"

LATE = """
CREATE TABLE late (id int);
CREATE FUNCTION refuse_late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION %s; END $$;
CREATE CONSTRAINT TRIGGER late AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION refuse_late()
"""

calls: Counter[str] = Counter()
met: dict[str, asyncio.Event] = {}


@outlive.step(name="way.make", transaction=True)
async def make(tx: outlive.types.Tx) -> None:
    """Two accounts."""
    await tx.execute(MAKE)


@outlive.step(name="way.move", transaction=True, retry=Retry(attempts=1))
async def move(tx: outlive.types.Tx, first: str, then: str) -> str:
    """Locks one account, and the other one as soon as that is locked too."""
    calls[first] += 1
    await tx.execute("SET LOCAL deadlock_timeout = '20ms'")
    await tx.execute(TAKE, first)
    met[first].set()
    await met[then].wait()
    await tx.execute(TAKE, then)
    return first


@outlive.step(name="way.count", transaction=True)
async def count(tx: outlive.types.Tx) -> list[int]:
    """What is on the accounts."""
    return [row["cents"] for row in await tx.fetch("SELECT cents FROM deadlocked ORDER BY id")]


@outlive.workflow(name="way.crossing")
async def crossing() -> list[int]:
    """Two transactions, each of which waits for a row that the other one has."""
    await make()
    await asyncio.gather(move("ann", "bob"), move("bob", "ann"))
    return await count()


@outlive.step(name="way.yield_for_ever", transaction=True, retry=Retry(attempts=2, first=0.0))
async def yield_for_ever(tx: outlive.types.Tx) -> None:
    """Never finds its place among the others."""
    calls["for ever"] += 1
    await tx.execute(SERIALIZE)


@outlive.workflow(name="way.losing")
async def losing() -> None:
    """A step that always gives way."""
    await yield_for_ever()


@outlive.step(name="way.with_sqlalchemy", transaction=True, retry=Retry(attempts=1))
async def with_sqlalchemy(tx: outlive.types.Tx) -> int:
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


async def skewed(tx: outlive.types.Tx, mine: str, other: str) -> int:
    """Reads both accounts and writes one of them, while another transaction does so with the other."""
    calls[mine] += 1
    await tx.execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
    read = await tx.fetchval("SELECT sum(cents) FROM deadlocked")
    await tx.execute(TAKE, mine)
    met[mine].set()
    await met[other].wait()
    return int(read)


async def overtaken(tx: outlive.types.Tx, mine: str, other: str) -> int:
    """Reads an account, and writes it when another transaction has done so."""
    calls[mine] += 1
    await tx.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    read = await tx.fetchval("SELECT cents FROM deadlocked WHERE id = 'ann'")
    met[mine].set()
    await met[other].wait()
    await tx.execute(TAKE, "ann")
    return int(read)


skew = outlive.step(name="way.skew", transaction=True, retry=Retry(attempts=1))(skewed)
overtake = outlive.step(name="way.overtake", transaction=True, retry=Retry(attempts=1))(overtaken)


@outlive.workflow(name="way.prepare")
async def prepare() -> None:
    """The accounts."""
    await make()


@outlive.workflow(name="way.skewing")
async def skewing(mine: str, other: str) -> int:
    """A workflow with such a step."""
    return await skew(mine, other)


@outlive.workflow(name="way.overtaking")
async def overtaking(mine: str, other: str) -> int:
    """A workflow with the other one."""
    return await overtake(mine, other)


class S(enum.Enum):
    """Of the machine."""

    SKEW = "skew"
    DONE = "done"


machine = outlive.Machine("way.machine", S, data=dict[str, Any], start=S.SKEW, exits=[S.DONE])


@machine.state(S.SKEW, transaction=True, retry=Retry(attempts=1))
async def skew_state(tx: outlive.types.Tx, data: dict[str, Any]) -> S:
    """The same in a state."""
    data["read"] = await skewed(tx, data["mine"], data["other"])
    return S.DONE


skewing_flow = flow.parse("""
name: way.flow
input: { mine: string, other: string }
steps:
  skew: { use: way.skew, with: { mine: "${{ input.mine }}", other: "${{ input.other }}" } }
output: "${{ steps.skew }}"
""")


@outlive.step(name="way.put", transaction=True, retry=Retry(attempts=1))
async def put(tx: outlive.types.Tx, refusal: str) -> None:
    """Writes what the database refuses when it is committed."""
    calls["put"] += 1
    await tx.execute(LATE % refusal)
    await tx.execute("INSERT INTO late VALUES (1)")


@outlive.workflow(name="way.refused")
async def refused(refusal: str) -> None:
    """A step that cannot be committed."""
    await put(refusal)


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

        with pytest.raises(RunFailedError, match="no order is left") as failed:
            await in_time(run.result())
        assert asyncpg.SerializationError.__name__ in str(failed.value)
        assert calls["for ever"] == 2 * (1 + transactions.GIVE_WAYS_MAX)


async def test_an_error_that_was_caused_by_giving_way_counts_as_that(postgres_url: str) -> None:
    """SQLAlchemy raises its own error from that of the driver."""
    async with outlive.Engine(postgres_url) as engine:
        assert await in_time((await engine.start(wrapped)).result()) == 2


DOORS: dict[str, tuple[Any, Any]] = {
    "workflow": (skewing, lambda *names: names),
    "repeatable read": (overtaking, lambda *names: names),
    "machine": (machine, lambda mine, other: ({"mine": mine, "other": other},)),
    "flow": (skewing_flow, lambda mine, other: ({"mine": mine, "other": other},)),
}


@pytest.mark.parametrize("door", DOORS)
async def test_transaction_that_gives_way_is_done_again_and_uses_up_no_attempt(postgres_url: str, door: str) -> None:
    """A serializable or snapshot transaction that the server refuses in favour of another is done again and uses up no
    attempt, in workflows, machines and flows."""
    workflow, arguments = DOORS[door]
    async with outlive.Engine(postgres_url) as engine:
        await in_time((await engine.start(prepare)).result())
        runs = [await engine.start(workflow, *arguments(*names)) for names in (("ann", "bob"), ("bob", "ann"))]
        results = [await in_time(run.result()) for run in runs]

        read = sorted(result.data["read"] if door == "machine" else result for result in results)
        assert read == [0, 1], "as if one had come after the other"
        assert sorted(calls.values()) == [1, 2]
        for run in runs:
            assert await events_of(run, AttemptFailed) == []


async def test_a_step_that_always_gives_way_at_its_commit_fails_in_the_end(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run is rebuilt each time, and the attempt knows all the same how often that was."""
    monkeypatch.setattr(transactions, "BACKOFF_FIRST_SECONDS", 0.0)
    async with outlive.Engine(postgres_url) as engine:
        run = await engine.start(refused, "'too late' USING ERRCODE = '40001'")

        with pytest.raises(RunFailedError, match="too late"):
            await in_time(run.result())
        assert calls["put"] == 1 + transactions.GIVE_WAYS_MAX


@pytest.mark.parametrize("state", ["42P01", "42501"], ids=["no table", "no right"])
async def test_an_error_of_a_trigger_at_the_commit_fails_the_step(postgres_url: str, state: str) -> None:
    """An error of a trigger at the commit fails the step, which is not called again."""
    async with outlive.Engine(postgres_url) as engine:
        run = await engine.start(refused, f"'it lacks something' USING ERRCODE = '{state}'")

        with pytest.raises(RunFailedError, match="it lacks something"):
            await in_time(run.result())
        assert calls["put"] == 1
