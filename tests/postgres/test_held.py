"""Ids that a user's open transaction holds: whoever wants one waits alone, and for as long as it takes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import outlive
from outlive.errors import EngineClosedError, RunFailed
from tests.postgres.support import connected, in_time, until

PACE_SECONDS = 2.0
"""Within which a run of a few steps ends, also on a busy machine. A lock of the server is waited for much longer."""


@outlive.step
async def held_add(number: int) -> int:
    """One commit."""
    return number + 1


@outlive.workflow
async def held_count(number: int) -> int:
    """A few commits."""
    for _ in range(3):
        number = await held_add(number)
    return number


@outlive.workflow
async def held_launch(name: str) -> int:
    """Starts another one that is on its own."""
    other = await outlive.start(held_count, 0, detached=True, id=name)
    return await other.result()


@outlive.step(transaction=True)
async def held_note(tx: Any, text: str) -> None:
    """A row of the user's."""
    await tx.execute("INSERT INTO notes VALUES ($1)", text)


@outlive.workflow
async def held_note_and_launch(name: str) -> int:
    """The start is in the same commit as the step's row."""
    await held_note(name)
    other = await outlive.start(held_count, 0, detached=True, id=name)
    return await other.result()


@outlive.workflow
async def held_listen() -> str:
    """Waits for a signal."""
    return await outlive.wait_for_signal("go", str)


@asynccontextmanager
async def holding(engine: outlive.Engine, url: str, *ids: str, is_endless: bool = False) -> AsyncIterator[Any]:
    """A transaction of a user that has started these runs and is not over."""
    async with connected(url) as connection:
        transaction = connection.transaction()
        await transaction.start()
        for id_ in ids:
            wanted = (held_listen,) if is_endless else (held_count, 100)
            await engine.start(*wanted, id=id_, connection=connection)
        yield transaction


async def keep_pace(engine: outlive.Engine, rounds: int = 5) -> None:
    """Runs of this engine start and end as if nobody held anything."""
    for _ in range(rounds):
        async with asyncio.timeout(PACE_SECONDS):
            runs = [await engine.start(held_count, number) for number in range(10)]
            assert [await run.result() for run in runs] == [number + 3 for number in range(10)]


@pytest.mark.parametrize(("way_out", "result"), [("commit", 103), ("rollback", 3)])
async def test_start_of_a_held_id_waits_alone(postgres_url: str, way_out: str, result: int) -> None:
    """The engine's other runs keep their pace. A commit gives the user's run, a roll-back one's own."""
    async with outlive.Engine(postgres_url) as engine, holding(engine, postgres_url, "held") as transaction:
        starts = [asyncio.ensure_future(engine.start(held_count, 0, id="held")) for _ in range(20)]
        await keep_pace(engine)
        assert not any(start.done() for start in starts)

        await getattr(transaction, way_out)()

        runs = await in_time(asyncio.gather(*starts))
        assert [await in_time(run.result()) for run in runs] == [result] * 20


async def test_many_held_ids_hurt_nobody(postgres_url: str) -> None:
    """Nor do starts of another engine, which does not know yet that they are held."""
    ids = [f"held-{number}" for number in range(30)]
    async with (
        outlive.Engine(postgres_url) as engine,
        outlive.Engine(postgres_url) as other,
        holding(engine, postgres_url, *ids) as transaction,
    ):
        starts = [asyncio.ensure_future(each.start(held_count, 0, id=id_)) for id_ in ids for each in (engine, other)]
        await asyncio.gather(keep_pace(engine), keep_pace(other))
        assert not any(start.done() for start in starts)

        await transaction.rollback()

        runs = await in_time(asyncio.gather(*starts))
        assert [await in_time(run.result()) for run in runs] == [3] * 60
        assert engine.counters.held > 0


@pytest.mark.parametrize("way_out", ["commit", "rollback"])
async def test_detached_start_of_a_held_id_waits_with_its_run_only(postgres_url: str, way_out: str) -> None:
    """The run that asks for it goes on when it is known whose run that is."""
    async with (
        outlive.Engine(postgres_url) as engine,
        holding(engine, postgres_url, "held", is_endless=True) as transaction,
    ):
        launching = asyncio.ensure_future(engine.start(held_launch, "held", id="launching"))
        await keep_pace(engine)

        await getattr(transaction, way_out)()

        await check_launched(await in_time(launching), way_out)


async def check_launched(run: outlive.RunHandle[int], way_out: str) -> None:
    """A run has started another one, or was told that it is somebody else's."""
    if way_out == "rollback":
        assert await in_time(run.result()) == 3
    else:
        with pytest.raises(RunFailed, match="'held' exists already"):
            await in_time(run.result())


@pytest.mark.parametrize("way_out", ["commit", "rollback"])
async def test_start_of_a_held_id_in_the_transaction_of_a_step(postgres_url: str, way_out: str) -> None:
    """What the step wrote is there once."""
    async with outlive.Engine(postgres_url) as engine, connected(postgres_url) as looker:
        await looker.execute("CREATE TABLE notes (text text)")
        async with holding(engine, postgres_url, "held", is_endless=True) as transaction:
            run = await engine.start(held_note_and_launch, "held", id="noting")
            await keep_pace(engine)

            await getattr(transaction, way_out)()

        await check_launched(run, way_out)
        assert await looker.fetch("SELECT text FROM notes") == [("held",)]
        await looker.execute("DROP TABLE notes")


async def test_signals_that_start_a_held_id_leave_room_for_others(postgres_url: str) -> None:
    """More of them than the store has sessions. The first that finds the id free creates the run."""
    async with outlive.Engine(postgres_url) as engine, holding(engine, postgres_url, "held") as transaction:
        signals = [
            asyncio.ensure_future(engine.signal("held", "go", f"{number}", start=(held_listen,)))
            for number in range(12)
        ]
        await keep_pace(engine)
        assert not any(signal.done() for signal in signals)

        await transaction.rollback()

        await in_time(asyncio.wait(signals, return_when=asyncio.FIRST_COMPLETED))
        assert await in_time(engine.get("held").result()) in {f"{number}" for number in range(12)}
        await asyncio.gather(*signals, return_exceptions=True)


async def test_stopping_does_not_wait_for_a_held_id(postgres_url: str) -> None:
    """Whoever waits for the start is told, and nothing was created."""
    async with outlive.Engine(postgres_url) as engine:
        async with holding(engine, postgres_url, "held"):
            async with outlive.Engine(postgres_url, grace_seconds=30) as other:
                start = asyncio.ensure_future(other.start(held_count, 0, id="held"))
                await until_held(other)
                async with asyncio.timeout(PACE_SECONDS):
                    await other.__aexit__(None, None, None)
            with pytest.raises(EngineClosedError):
                await start
        assert await engine.list() == []


async def until_held(engine: outlive.Engine) -> None:
    """Return when a change of this engine waits for an id."""

    async def has_held() -> bool:
        return engine.counters.held > 0

    await until(has_held)


async def test_engines_that_start_the_same_ids_do_not_stall(postgres_url: str) -> None:
    """Each id is one run, and nobody waits for a lock of the server until it gives up."""
    ids = [f"run-{number}" for number in range(100)]
    async with outlive.Engine(postgres_url) as engine, outlive.Engine(postgres_url) as other:
        async with asyncio.timeout(5 * PACE_SECONDS):
            runs = await asyncio.gather(
                *(engine.start(held_count, 0, id=id_) for id_ in ids),
                *(other.start(held_count, 10, id=id_) for id_ in reversed(ids)),
            )
            results = [await run.result() for run in runs]

    assert results[:100] == results[100:][::-1]
    assert set(results) <= {3, 13}
