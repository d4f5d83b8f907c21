"""The checker finds every kind of damage in a store, and none where there is none."""

import asyncio
import shutil
from pathlib import Path

import apsw
import pytest

import outlive
from outlive.testing.fsck import Problem, check_store
from proof.storm.op import Op, Program
from proof.storm.places import opened
from proof.storm.program import program
from proof.storm.trial import Trial


@pytest.fixture
def database(trial: Trial, tmp_path: Path) -> Path:
    """A copy of a store in which some jobs were done."""
    for file in trial.folder.glob("storm.db*"):
        shutil.copy(file, tmp_path)
    return tmp_path / "storm.db"


async def test_a_healthy_store_is_whole(database: Path) -> None:
    """Nothing is reported about a store that was not damaged."""
    assert [] == await problems_in(database)


@pytest.mark.parametrize(
    ("statement", "complaint"),
    [
        ("UPDATE outlive_events SET body = CAST(body || ' ' AS BLOB) WHERE key = :event", "checksum"),
        ("UPDATE outlive_events SET crc = crc + 1 WHERE key = :event", "checksum"),
        ("UPDATE outlive_events SET seq = 1000000 WHERE key = :event", "missing"),
        ("DELETE FROM outlive_events WHERE key = :event", "missing"),
        ("DELETE FROM outlive_events WHERE journal = :journal", "no journal"),
        ("UPDATE outlive_runs SET status = 'failed' WHERE journal = :journal AND number = 0", "status is"),
        ("UPDATE outlive_runs SET wake_at = 1 WHERE journal = :journal AND number = 0", "wake_at is 1"),
        ("UPDATE outlive_runs SET epoch = epoch + 1 WHERE journal = :journal AND number = 0", "epoch is"),
        ("UPDATE outlive_runs SET result = '{\"v\":-1}' WHERE journal = :journal AND number = 0", "result is"),
        ("DELETE FROM outlive_runs WHERE journal = :journal AND number = 1", "has no row"),
    ],
)
async def test_damage_is_found(database: Path, statement: str, complaint: str) -> None:
    """Whatever is changed behind the engine's back is reported with its run, and only that run is."""
    run_id = damage(database, statement)

    problems = await problems_in(database)

    assert any(complaint in str(problem) for problem in problems), problems
    assert {run_id} == {problem.run_id.split("~")[0] for problem in problems}


async def test_two_rows_that_changed_places_are_found(database: Path) -> None:
    """The checksum knows where a row belongs."""
    swap = (
        "UPDATE outlive_events SET body = CASE seq "
        "WHEN 1 THEN (SELECT body FROM outlive_events WHERE journal = :journal AND seq = 2) "
        "ELSE (SELECT body FROM outlive_events WHERE journal = :journal AND seq = 1) END "
        "WHERE journal = :journal AND seq IN (1, 2)"
    )
    run_id = damage(database, swap)

    assert {run_id} == {problem.run_id for problem in await problems_in(database)}


async def test_message_may_wake_a_run_early(tmp_path: Path) -> None:
    """A message in the inbox is the one thing that may move `wake_at` without an event."""
    database = tmp_path / "storm.db"
    async with outlive.Engine(f"sqlite:{database}") as engine:
        await engine.start(program, Program((Op("signal", 1),)), id="waits")
        while await engine.get("waits").status() != "waiting":  # noqa: ASYNC110 (a store has no event)
            await asyncio.sleep(0.01)
    async with outlive.Engine(f"sqlite:{database}", worker=False) as engine:
        await engine.signal("waits", "go", 7)
    assert [] == await problems_in(database)

    connection = apsw.Connection(str(database))
    connection.execute("DELETE FROM outlive_inbox")
    connection.close()

    (problem,) = await problems_in(database)
    assert "wake_at" in problem.what


def damage(database: Path, statement: str) -> str:
    """Change something behind the engine's back, in a tree that has a child; the id of its root."""
    connection = apsw.Connection(str(database))
    journal, run_id = next(
        connection.execute(
            "SELECT journal, id FROM outlive_runs AS root WHERE number = 0 AND status = 'succeeded' AND EXISTS "
            "(SELECT 1 FROM outlive_runs AS child WHERE child.journal = root.journal AND child.number = 1)"
        )
    )
    (event,) = next(
        connection.execute("SELECT key FROM outlive_events WHERE journal = ? ORDER BY seq LIMIT 1 OFFSET 2", (journal,))
    )
    named = {"journal": journal, "event": event}
    connection.execute(statement, {name: value for name, value in named.items() if f":{name}" in statement})
    assert connection.changes(), "nothing was damaged"
    connection.close()
    return str(run_id)


async def problems_in(database: Path) -> list[Problem]:
    """What the checker says."""
    async with opened(f"sqlite:{database}") as store:
        return await check_store(store)
