"""Rows that something has damaged, in both databases: each is shown for what it is, and harms its own run alone."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

import outlive
from outlive._features.fsck.checker import Checker
from outlive._kernel.model import RunFilter, RunStatus
from outlive._kernel.model.queue import QueueLimits, QueueRecord, queue_cell, queue_data
from outlive._kernel.model.run import STORED
from outlive._kernel.store.contract import Store, WorkerInfo
from outlive.errors import RunCancelledError
from outlive.errors.run import AskTimeoutError, RunDamagedError
from outlive.events import ApprovalDecided, MessageSetAside
from outlive_conformance.suite.builders import begin, claim, follow, hire
from tests.approvals.asking import asking, has_asked
from tests.bringing_back.test_skip_step import quarantined, skipping
from tests.engine.inside import store_of
from tests.engine.support import Place, events_of, in_time, note, registry_of, stage, until, waits

pytestmark = pytest.mark.every_store


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Where rows can be damaged by hand."""
    if request.param == "sqlite":
        return Place(tmp_path / "engine.db", is_damaged=True)
    return Place(None, server_url=request.getfixturevalue("postgres_url"), is_damaged=True)


def change(place: Place, statement: str) -> None:
    """Do something to the tables behind everybody's back; `t_` stands before the name of each table."""
    if place.server_url:
        with psycopg.connect(place.server_url.partition("?")[0]) as server:
            server.execute(statement.replace("t_", "place.").encode())
        return
    connection = apsw.Connection(str(place.path))
    connection.set_busy_timeout(10_000)  # The engine may be writing.
    connection.execute(statement.replace("t_", "outlive_"))
    connection.close()


@outlive.workflow
async def damaged_row(name: str) -> str:
    before = await note(f"{name} before")
    return f"{before} {await outlive.wait_for_signal('go', str)}"


@outlive.workflow
async def answering(value: Any) -> Any:
    return value


@outlive.workflow
async def failing(reason: str) -> None:
    outlive.publish(stage="half")
    raise ValueError(reason)


# -- Runs --------------------------------------------------------------------------------------------------------------

COLUMNS = {
    "status": "'confused'",
    "waits": "'{'",
    "tags": "'['",
    "result": "'nonsense'",
    "failure": "'[1]'",
    "published": "'{\"v\"'",
}
"""What can be written into each column that a database does not check itself."""


async def test_a_damaged_row_does_not_block_its_queue(place: Place) -> None:
    """The runs behind it get its turn, also with the same key; a line that is lost is found and repaired."""
    store = place.store()
    await store.open()
    await hire(store, "worker-a")
    limits = QueueRecord(declared=QueueLimits(concurrency=1, per_key=1))
    await store.change_cell(queue_cell("line"), lambda *_: (queue_data(limits), None))
    for name in ("first", "second", "third"):
        await begin(store, name, queue="line", queue_key="a")
    change(place, "UPDATE t_runs SET waits = '{' WHERE id IN ('first', 'second')")

    assert await claim(store, "worker-a", limit=5) == ["third"]
    assert await claim(store, "worker-a", limit=5) == []
    problems = [problem.what async for problem in Checker(store, repair=True).problems()]
    assert len([text for text in problems if "cannot be read" in text]) == 2
    change(place, "DELETE FROM t_lines")
    problems = [problem.what async for problem in Checker(store, repair=True).problems()]
    assert len([text for text in problems if "no claim would find that line" in text]) == 1
    assert [problem async for problem in Checker(store).problems()] == []
    await (await follow(store, "third")).succeed()
    assert await claim(store, "worker-a", limit=5) == ["first"]
    await store.close()


async def test_a_damaged_row_is_listed_and_found_with_what_is_wrong_with_it(place: Place) -> None:
    """Whatever column it is, everybody who reads many rows gets all the others."""
    store = place.store()
    await store.open()
    await hire(store, "worker-a")
    for column, value in COLUMNS.items():
        await begin(store, f"{column}-good")
        await begin(store, f"{column}-bad")
        change(place, f"UPDATE t_runs SET {column} = {value} WHERE id = '{column}-bad'")

    runs = {run.id: run for run in await store.list_runs(RunFilter())}
    found = await store.find_runs([f"{column}-bad" for column in COLUMNS])
    for column in COLUMNS:
        assert RunStatus.PENDING is runs[f"{column}-good"].status
        assert RunStatus.DAMAGED is runs[f"{column}-bad"].status is found[f"{column}-bad"].status
        assert "its row in the store is damaged: " in runs[f"{column}-bad"].reason
        assert column in runs[f"{column}-bad"].reason
    assert "status-bad" in {run.id for run in await store.list_runs(RunFilter(statuses=(RunStatus.DAMAGED,)))}
    assert "status-bad" not in {run.id for run in await store.list_runs(RunFilter(statuses=STORED))}

    assert sorted(f"{column}-good" for column in COLUMNS) == sorted(await claim(store, "worker-a", limit=100))
    await store.close()


async def test_a_column_that_is_not_text_any_more_damages_its_row_only(tmp_path: Path) -> None:
    """A column of a SQLite row that is not text any more damages that run, and the others are listed and claimed."""
    place = Place(tmp_path / "engine.db", is_damaged=True)
    store = place.store()
    await store.open()
    await hire(store, "worker-a")
    for name in ("good", "bad-reason", "bad-id", "bad-owner", "bad-workflow"):
        await begin(store, name)
    change(place, "UPDATE t_runs SET reason = CAST(x'61ff' AS TEXT) WHERE id = 'bad-reason'")
    change(place, "UPDATE t_runs SET id = CAST(x'61ff' AS TEXT) WHERE id = 'bad-id'")
    change(place, "UPDATE t_runs SET owner = CAST(x'61ff' AS TEXT) WHERE id = 'bad-owner'")
    change(place, "UPDATE t_runs SET workflow = CAST(x'61ff' AS TEXT) WHERE id = 'bad-workflow'")

    runs = {run.id: run.status for run in await store.list_runs(RunFilter())}
    damaged = dict.fromkeys(("bad-reason", "a\ufffd", "bad-owner", "bad-workflow"), RunStatus.DAMAGED)
    assert damaged | {"good": RunStatus.PENDING} == runs
    assert ["good"] == await claim(store, "worker-a", limit=100)
    await store.close()


async def test_one_damaged_run_is_reported_by_every_verb_and_repaired(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """`list`, `recovery`, `why`, `info` and `result` say what is wrong with it, and serve the others; it is logged and
    counted once; what `fsck` writes again goes on."""
    bad = f"bad-{place.url[:6]}"
    async with place.engine() as engine:
        for name in ("good", bad):
            await waits(await engine.start(damaged_row, name, id=name, tags={"shop": "north", "row": name}))
        change(place, f"UPDATE t_runs SET waits = 'nonsense', tags = '[' WHERE id = '{bad}'")
        counted = engine.counters.rows_damaged
        with caplog.at_level(logging.ERROR, "outlive"):
            assert {"good": "waiting", bad: "damaged"} == {run.id: run.status for run in await engine.list()}
            assert [bad] == [run.id for run in await engine.list(status="damaged")]
            # By both tags, which the database must not look for in the damaged JSON.
            assert [bad] == [run.id for run in await engine.list(tags={"shop": "north", "row": bad})]
            (incomplete,) = await engine.list_stuck()
            assert (bad, "damaged") == (incomplete.run.id, incomplete.kind)
            assert "its row in the store is damaged: " in await engine.get(bad).why()
            with pytest.raises(RunDamagedError, match="outlive fsck --repair"):
                await in_time(engine.get(bad).result())
        assert 1 == len([record for record in caplog.records if f"run {bad}" in record.message])
        assert counted + 1 == engine.counters.rows_damaged

        await engine.signal("good", "go", "on")
        assert "good before on" == await in_time(engine.get("good").result())
        assert [problem async for problem in Checker(store_of(engine), repair=True).problems()]
        await engine.signal(bad, "go", "on")
        assert f"{bad} before on" == await in_time(engine.get(bad).result())


async def test_a_changed_result_is_not_given_to_callers(place: Place) -> None:
    """It is JSON of the same type, and what the run returned was another; `fsck` writes it again from the journal."""
    async with place.engine() as engine:
        run = await engine.start(answering, 42, id="run-1")
        assert 42 == await in_time(run.result())
        change(place, "UPDATE t_runs SET result = replace(result, '42', '43') WHERE id = 'run-1'")

        with pytest.raises(RunDamagedError, match="another checksum"):
            await in_time(run.result())
        assert "damaged" == (await run.info()).status
        assert ["damaged"] == [each.status for each in await engine.list()]
        assert [problem async for problem in Checker(store_of(engine), repair=True).problems()]
        assert 42 == await in_time(run.result())


async def test_a_changed_failure_or_progress_is_not_shown(place: Place) -> None:
    """The texts of errors, and what runs publish, are verified like results."""
    async with place.engine() as engine:
        run = await engine.start(failing, "declined", id="run-1")
        with pytest.raises(outlive.errors.RunFailedError, match="declined"):
            await in_time(run.result())
        for column, text in (("failure", "declined"), ("published", "half")):
            damaged = f"replace({column}, '{text}', '{text[:-1]}x')"
            change(place, f"UPDATE t_runs SET {column} = {damaged} WHERE id = 'run-1'")
            assert "damaged" == (await run.info()).status, column
            assert [problem async for problem in Checker(store_of(engine), repair=True).problems()]
            assert "failed" == (await run.info()).status, column


async def test_a_changed_outcome_of_an_item_is_not_given_to_callers(place: Place) -> None:
    """Neither a result nor an error; `fsck` says which items they are."""
    async with place.engine() as engine:
        batch = await engine.start_batch(damaged_double, [21, 0])
        await in_time(batch.result())
        change(place, "UPDATE t_items SET result = replace(result, '42', '43')")

        changed, other = sorted([item async for item in batch.items()], key=lambda item: item.index)
        assert "the stored outcome of item 0 is damaged: what it says has another checksum" in str(changed.error)
        assert (None, 0) == (other.error, other.result)
        problems = [problem.what async for problem in Checker(store_of(engine)).problems()]
        assert ["item 0" in problem for problem in problems] == [True]


async def test_a_changed_answer_is_not_given_to_callers(place: Place) -> None:
    """A process that did not hear it reads it: an ask that is sent again has the answer that was given, or an error."""
    async with place.engine() as engine:
        await engine.start(damaged_ask, id="run-1")
        assert "ANN" == await in_time(engine.ask("run-1", "name", "ann", key="k"))
    change(place, "UPDATE t_inbox_keys SET answer = replace(answer, 'ANN', 'BOB')")
    async with place.engine(worker=False) as client:
        with pytest.raises(outlive.errors.AskFailedError, match="another checksum"):
            await in_time(client.ask("run-1", "name", "ann", key="k"))


async def test_a_changed_message_does_not_reach_its_run(place: Place) -> None:
    """A message whose bytes no longer match their checksum is set aside, and the run takes the next one."""
    async with place.engine() as engine:
        await waits(await engine.start(damaged_row, "a", id="run-1"))
    async with place.engine(worker=False) as client:
        await client.signal("run-1", "go", "north")
        change(place, "UPDATE t_inbox SET payload = replace(payload, 'north', 'south')")
        await client.signal("run-1", "go", "east")
    async with place.engine() as engine:
        run = engine.get("run-1")
        assert "a before east" == await in_time(run.result())
        (fact,) = await events_of(run, MessageSetAside)
        assert "another checksum" in fact.reason


async def test_a_row_of_an_earlier_release_is_read_without_a_checksum(place: Place) -> None:
    """It had none; also if the value itself has a field of the name."""
    async with place.engine() as engine:
        run = await engine.start(answering, {"crc": 5}, id="run-1")
        assert {"crc": 5} == await in_time(run.result())
        batch = await engine.start_batch(damaged_double, [21])
        await in_time(batch.result())
        change(place, """UPDATE t_runs SET result = '{"v":{"crc":5}}' WHERE id = 'run-1'""")
        change(place, """UPDATE t_items SET result = '{"v":42}'""")

        assert {"crc": 5} == await in_time(run.result())
        assert [42] == await in_time(batch.results())


async def test_a_run_with_another_nonce_than_its_journal_is_not_claimed_and_can_be_repaired(place: Place) -> None:
    """Checksums hang on the nonce: a claim by what the row says would damage the journal, which nothing repairs."""
    async with place.engine() as engine:
        for name in ("good", "bad"):
            await waits(await engine.start(damaged_row, name, id=name))
    change(place, "UPDATE t_runs SET nonce = nonce - 1 WHERE id = 'bad'")
    async with place.engine() as engine:
        counted = engine.counters.rows_damaged
        for name in ("bad", "good"):
            await engine.signal(name, "go", "on")
        assert "good before on" == await in_time(engine.get("good").result())
        assert counted + 1 == engine.counters.rows_damaged

        problems = [problem async for problem in Checker(store_of(engine), repair=True).problems()]
        assert problems
        assert all(problem.is_repaired for problem in problems)
        assert "bad before on" == await in_time(engine.get("bad").result())


# -- What hangs on runs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        ("payload = '{'", "Input data was truncated"),
        ("payload = '{', run = 77", "Input data was truncated"),
        ("kind = 'letter'", "no message is of the kind 'letter'"),
    ],
)
async def test_a_damaged_message_is_set_aside(place: Place, damage: str, expected: str) -> None:
    """The run takes it out of its inbox, says so, and goes on with the next one."""
    async with place.engine() as engine:
        await waits(await engine.start(damaged_row, "a", id="run-1"))
    async with place.engine(worker=False) as client:
        await client.signal("run-1", "go", "lost")
        change(place, f"UPDATE t_inbox SET {damage}")
        await client.signal("run-1", "go", "on")
    async with place.engine() as engine:
        run = engine.get("run-1")
        assert "a before on" == await in_time(run.result())
        (fact,) = await events_of(run, MessageSetAside)
        assert fact.reason.startswith(f"its row in the inbox is damaged: {expected}")
        (found,) = await run.dead_letters()
        assert ("go", None) == (found.name, found.value)


async def test_a_damaged_decision_is_asked_for_again(place: Place) -> None:
    """The store accepts one decision for each request, so the run makes another request."""
    async with place.engine() as engine:
        await has_asked(await engine.start(asking, id="run-1"))
    async with place.engine(worker=False) as client:
        await client.approvals.approve("run-1", "refund", by="ann", form={"cents": 1})
        change(place, "UPDATE t_inbox SET payload = '{'")
    async with place.engine() as engine:
        run = engine.get("run-1")

        async def is_asked_again() -> bool:
            return 2 == len(await run.approvals())

        await until(is_asked_again)
        await run.approve("refund", by="bob", form={"cents": 2})
        assert "yes bob Refund(cents=2, note='')" == await in_time(run.result())
        assert 2 == len(await events_of(run, ApprovalDecided))


@pytest.mark.parametrize("damage", ["payload = '{'", "kind = 'letter'"])
async def test_a_damaged_message_to_skip_a_step_parks_the_run(place: Place, damage: str) -> None:
    """Without it the step would be called, and with half of it the workflow would get another outcome than the person
    has given. The run is parked again, and goes on with the next message."""
    engine = await quarantined(place, skipping, "bad")
    await engine.__aexit__(None, None, None)
    async with place.engine(worker=False) as client:
        await client.skip_step("run-1", result="lost")
        change(place, f"UPDATE t_inbox SET {damage} WHERE kind = 'skip'")
    async with place.engine() as engine:
        run = engine.get("run-1")

        async def is_refused() -> bool:
            return "nothing was skipped: message" in (await run.info()).reason

        await until(is_refused)
        assert [] == stage.calls
        await run.skip_step(result="given")
        assert ["before", "given", "after"] == await in_time(run.result())


@outlive.workflow
async def damaged_ask() -> str:
    ask = await anext(outlive.asks("name", str))
    ask.reply(ask.body.upper())
    return ask.body


@pytest.mark.parametrize("damage", ["payload = '{'", "kind = 'letter'"])
async def test_a_damaged_ask_is_answered_with_an_error(place: Place, damage: str) -> None:
    """Its key is left, and its sender waits for an answer. The next one is answered."""
    async with place.engine() as engine:
        await waits(await engine.start(damaged_ask, id="run-1"))
    async with place.engine(worker=False) as client:
        with pytest.raises(AskTimeoutError):
            await client.ask("run-1", "name", "ann", key="k", timeout=0)
        change(place, f"UPDATE t_inbox SET {damage}")
    async with place.engine() as engine:
        with pytest.raises(outlive.errors.AskFailedError, match="UnreadableError"):
            await in_time(engine.asks.answer("run-1", "name", "k"))
        assert "BOB" == await in_time(engine.ask("run-1", "name", "bob", key="k2"))
        change(place, "UPDATE t_inbox_keys SET answer = '{'")
        with pytest.raises(outlive.errors.AskFailedError, match="the stored answer is damaged"):
            await in_time(engine.asks.answer("run-1", "name", "k2"))


@pytest.mark.parametrize("damage", ["payload = '{'", "kind = 'letter'"])
async def test_a_damaged_message_to_cancel_cancels(place: Place, damage: str) -> None:
    """All that it says is said by its kind, or by its key."""
    async with place.engine() as engine:
        await waits(await engine.start(damaged_row, "a", id="run-1"))
    async with place.engine(worker=False) as client:
        await client.cancel("run-1", reason="enough")
        change(place, f"UPDATE t_inbox SET {damage}")
    async with place.engine() as engine:
        with pytest.raises(RunCancelledError, match="enough"):
            await in_time(engine.get("run-1").result())


@outlive.workflow
async def hears_of_the_end() -> str:
    other = await outlive.start(damaged_row, "a", detached=True, id="other")
    return await other.result()


@pytest.mark.parametrize("damage", ["ended = '{'", "kind = 'letter'"])
async def test_the_end_of_a_run_is_heard_of_although_the_message_is_damaged(place: Place, damage: str) -> None:
    """The row of that run says the same; without it the run that started it would wait for ever."""
    async with place.engine() as engine:
        await waits(await engine.start(hears_of_the_end, id="run-1"))
        await waits(engine.get("other"))
    async with place.engine(registry=registry_of(damaged_row)) as engine:
        await engine.signal("other", "go", "on")
        await in_time(engine.get("other").result())
    change(place, f"UPDATE t_inbox SET {damage}")
    async with place.engine() as engine:
        assert "a before on" == await in_time(engine.get("run-1").result())


async def test_a_damaged_worker_is_listed(place: Place) -> None:
    """Others are too, and claiming goes on."""
    store = place.store()
    await store.open()
    for name in ("worker-a", "worker-b"):
        await store.register_worker(worker(store, name), lease_seconds=30)
    change(place, "UPDATE t_workers SET definitions = '[' WHERE id = 'worker-a'")
    await begin(store, "run-1")

    damaged, sound = sorted(await store.list_workers(), key=lambda it: it.id)
    assert ((), ("greet@1",), "") == (damaged.definitions, sound.definitions, sound.fault)
    assert damaged.fault.startswith("its definitions cannot be read")
    assert ["run-1"] == await claim(store, "worker-b", limit=1)
    await store.close()


def worker(store: Store, name: str) -> WorkerInfo:
    """A worker with one workflow."""
    return WorkerInfo(id=name, name=name, definitions=("greet@1",), started_at=store.now(), expires_at=0)


@outlive.step
async def damaged_double(number: int) -> int:
    return number * 2


async def test_a_damaged_item_fails_alone(place: Place) -> None:
    """The others of its batch are given."""
    async with place.engine() as engine:
        batch = await engine.start_batch(damaged_double, range(3))
        await in_time(batch.result())
        change(place, "UPDATE t_items SET result = '{' WHERE \"index\" = 1")
        items = [item async for item in batch.items()]

        assert [(0, 0), (2, 4)] == sorted((item.index, item.result) for item in items if item.error is None)
        (broken,) = [item for item in items if item.error is not None]
        assert "the stored outcome of item 1 is damaged" in str(broken.error)


async def test_tags_without_a_run_find_no_run(place: Place) -> None:
    """A list by that tag gives the runs that are there."""
    async with place.engine() as engine:
        await waits(await engine.start(damaged_row, "a", id="run-1", tags={"shop": "north"}))
        change(place, "UPDATE t_tags SET run_key = 77")
        await waits(await engine.start(damaged_row, "b", id="run-2", tags={"shop": "north"}))

        assert ["run-2"] == [run.id for run in await engine.list(tags={"shop": "north"})]
