"""One transaction for everything that waits, and no caller suffers for another."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw
import pytest

from outlive._kernel.store.contract import Change, Delivery, Outcome
from outlive._kernel.store.sqlite import SqliteStore, thread
from outlive._kernel.store.sqlite import writer as lanes
from outlive._kernel.store.sqlite.connection import Session
from outlive._kernel.store.sqlite.writer import WriteVerb
from outlive.errors import CommitUnknownError, InternalError
from outlive.events import RunSucceeded
from outlive_conformance.suite.builders import (
    Writer,
    begin,
    claim,
    get_run,
    hire,
    message,
    new_tree,
    send,
    stepped,
    value,
)
from tests.sqlite.disk import WatchedDisk, failing, nothing_fails
from tests.sqlite.threads import in_writer


@contextmanager
def writer_held(store: SqliteStore, *, trace: apsw.ExecTracer | None = None) -> Iterator[list[int]]:
    """Keep the writer busy while jobs are queued; then a list with one entry for each transaction since. `trace` is
    called for each of their statements."""
    began, gate, commits = threading.Event(), threading.Event(), list[int]()

    def count() -> bool:
        commits.append(1)
        return False

    def wait(session: Session, arguments: list[None], *, careful: bool) -> list[None]:
        del careful
        began.set()
        gate.wait()
        session.connection.set_commit_hook(count)
        session.connection.set_exec_trace(trace)
        return arguments

    store.write(WriteVerb(wait), None)
    began.wait()
    yield commits
    gate.set()


async def test_everything_that_waits_is_one_transaction(store: SqliteStore) -> None:
    """A hundred callers of different verbs wait for the disk together."""
    await hire(store, "worker-a")
    trees = [await begin(store, f"run-{number}") for number in range(40)]
    with writer_held(store) as commits:
        jobs = asyncio.gather(
            *(tree.step() for tree in trees),
            *(begin(store, f"new-{number}") for number in range(40)),
            *(send(store, message(store, tree.run_id)) for tree in trees[:18]),
            claim(store, "worker-a", limit=10),
            hire(store, "worker-b"),
        )
        await asyncio.sleep(0)

    await jobs

    assert len(commits) == 2  # That of the verb that held the writer, and one for all the others.
    assert len(await store.find_runs([f"new-{number}" for number in range(40)])) == 40


async def test_rows_alone_need_no_transaction_around_them(store: SqliteStore) -> None:
    """Steps that end are one statement, for one worker and for another."""
    trees = [await begin(store, f"run-{number}") for number in range(20)]
    statements: list[str] = []

    def trace(_cursor: object, text: str, _values: object) -> bool:
        statements.append(text)
        return True

    with writer_held(store, trace=trace):
        jobs = asyncio.gather(*(tree.step("a", "b") for tree in trees))
        await asyncio.sleep(0)

    await jobs

    assert [text.split("(")[0] for text in statements if "outlive" in text] == ["INSERT INTO outlive_events "]
    assert len(statements) == 2  # The other one ends the transaction of the verb that held the writer.


async def test_one_job_that_raises_hurts_no_other(store: SqliteStore) -> None:
    """It gets its exception; the others are done again without it."""
    trees = [await begin(store, f"run-{number}") for number in range(5)]
    prior = (await store.read_journal(trees[0].journal))[0][2]
    broken = Change(journal=trees[0].journal, after=0, prior=prior, rows=[(1, 1, 1, object())])  # type: ignore[list-item]
    with writer_held(store):
        jobs = asyncio.gather(
            trees[1].step(),
            store.commit([broken]),
            *(tree.step(starts=[new_tree(store, f"{tree.run_id}-second")]) for tree in trees[2:]),
            send(store, message(store, "run-0")),
            return_exceptions=True,
        )
        await asyncio.sleep(0)

    first, error, *others, delivery = await jobs

    assert isinstance(error, TypeError)
    assert (first, others, delivery) == (None, [None] * 3, [Delivery.ACCEPTED])
    assert [len(await store.read_journal(tree.journal)) for tree in trees] == [1, 2, 2, 2, 2]
    assert len(await store.find_runs([f"run-{number}-second" for number in (2, 3, 4)])) == 3


async def test_conflict_of_one_caller_is_not_that_of_another(store: SqliteStore) -> None:
    """Each commit gets its own answer, in the order of its own changes."""
    trees = [await begin(store, f"run-{number}") for number in range(4)]
    late = trees[1].twin()
    await trees[1].step()
    with writer_held(store):
        jobs = asyncio.gather(
            store.commit([trees[0].change(stepped(store)), late.change(stepped(store))]),
            store.commit([trees[2].change(stepped(store)), trees[3].change(stepped(store))]),
        )
        await asyncio.sleep(0)

    first, second = await jobs

    assert [outcome for outcome, _ in first] == [Outcome.COMMITTED, Outcome.CONFLICT]
    assert [outcome for outcome, _ in second] == [Outcome.COMMITTED] * 2


async def test_disk_that_fails_when_a_group_is_taken_apart_fails_only_who_writes(
    on_disk: SqliteStore, disk: WatchedDisk
) -> None:
    """After a conflict each caller writes alone: one gets an unknown outcome, the other hears that it came too late."""
    trees = [await begin(on_disk, f"run-{number}") for number in range(2)]
    late = trees[1].twin()
    await trees[1].step()
    disk.fail = failing("write wal", apsw.IOError("disk I/O error"))
    with writer_held(on_disk):
        jobs = asyncio.gather(
            on_disk.commit([trees[0].change(stepped(on_disk))]),
            on_disk.commit([late.change(stepped(on_disk))]),
            return_exceptions=True,
        )
        await asyncio.sleep(0)

    unknown, conflict = await jobs
    disk.fail = nothing_fails

    assert isinstance(unknown, CommitUnknownError)
    assert conflict == [(Outcome.CONFLICT, late.journal)]
    assert len(await on_disk.read_journal(trees[0].journal)) == 1
    await trees[0].step()


async def test_more_jobs_than_a_thread_takes_at_once_are_all_done(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest is taken next."""
    monkeypatch.setattr(thread, "JOBS_MAX", 2)
    with writer_held(store):
        jobs = asyncio.gather(*(begin(store, f"run-{number}") for number in range(5)))
        await asyncio.sleep(0)

    async with asyncio.timeout(10):
        await jobs
        await begin(store, "run-5")

    assert len(await store.find_runs([f"run-{number}" for number in range(6)])) == 6


async def test_unforeseen_failure_raises_for_every_caller_that_waits(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An unforeseen failure of the writer raises InternalError for its caller, and the thread lives on for the next
    one."""

    def fail(self: lanes.Writer, jobs: list[thread.Job]) -> None:
        raise RuntimeError("planned")

    with monkeypatch.context() as patch:
        patch.setattr(lanes.Writer, "work", fail)
        async with asyncio.timeout(10):
            with pytest.raises(InternalError, match="planned"):
                await begin(store, "run-1")

    assert "outlive-sqlite-writer failed" in caplog.text
    await begin(store, "run-1")


async def test_tree_whose_row_is_gone_takes_no_change_of_it(store: SqliteStore, path: Path) -> None:
    """Events that no row shows would never be seen; what is written beside it in one commit is."""
    tree, other = await begin(store, "run-1"), await begin(store, "run-2")
    neighbour = apsw.Connection(str(path))
    neighbour.execute("DELETE FROM outlive_runs WHERE id = 'run-1'")
    neighbour.close()
    ended = RunSucceeded(at=store.now(), result=value("done"))

    outcomes = await store.commit([tree.change(ended), other.change(ended)])

    assert [outcome for outcome, _ in outcomes] == [Outcome.CONFLICT, Outcome.COMMITTED]
    assert len(await store.read_journal(tree.journal)) == 1


async def test_job_that_was_not_begun_never_happens_after_its_caller_gave_up(store: SqliteStore) -> None:
    """It was in the queue of the writer. What has begun is never half done."""
    with writer_held(store):
        job = asyncio.ensure_future(begin(store, "run-1"))
        await asyncio.sleep(0)
        job.cancel()

    with pytest.raises(asyncio.CancelledError):
        await job
    await begin(store, "run-2")

    assert await store.find_run("run-1") is None


async def test_call_that_waits_for_another_process_never_happens_after_its_caller_gave_up(
    store: SqliteStore, path: Path
) -> None:
    """The thread has taken its job and waits until it may write; the jobs beside it are done all the same."""
    with closing(apsw.Connection(str(path))) as other:
        other.execute("BEGIN IMMEDIATE")
        waits = threading.Event()

        def note(*_: object) -> bool:
            waits.set()
            return True

        await in_writer(store, lambda session: session.connection.set_exec_trace(note))
        given_up = asyncio.create_task(store.change_cell("given up", lambda *_: (b"1", None)))
        beside = asyncio.create_task(store.change_cell("beside", lambda *_: (b"1", None)))
        await asyncio.to_thread(waits.wait)
        given_up.cancel()
        await asyncio.wait([given_up])
        other.execute("ROLLBACK")
        await beside

    assert given_up.cancelled()
    assert [await store.read_cell("given up"), await store.read_cell("beside")] == [None, b"1"]


async def test_reading_does_not_wait_for_the_writer(store: SqliteStore) -> None:
    """A read that is asked for during a long transaction sees what was committed before."""
    await begin(store, "run-1")
    with writer_held(store):
        job = asyncio.ensure_future(begin(store, "run-2"))
        await asyncio.sleep(0)

        found = await store.find_runs(["run-1", "run-2"])

    assert found.keys() == {"run-1"}
    await job


async def test_batch_of_any_size_is_written(store: SqliteStore) -> None:
    """More rows than one statement takes, of new trees and of old ones."""
    outcomes = await store.commit([new_tree(store, f"run-{number}") for number in range(1_500)])
    journals = [journal for _, journal in outcomes]
    row = stepped(store)
    trees = [await twin(store, f"run-{number}", journal) for number, journal in enumerate(journals)]

    outcomes = await store.commit([tree.change(row) for tree in trees])

    assert {outcome for outcome, _ in outcomes} == {Outcome.COMMITTED}
    rows = await store.read_journals(journals)
    assert {len(rows[journal]) for journal in journals} == {2}
    assert (await get_run(store, "run-1499")).journal == journals[1499]


async def test_wal_is_moved_into_the_file_and_does_not_grow_for_ever(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer makes checkpoints, and no other connection does."""
    monkeypatch.setattr("outlive._kernel.store.sqlite.writer.CHECKPOINT_PAGES", 10)
    wal = path.with_name("outlive.db-wal")
    tree = await begin(store)
    schema, sizes = wal.stat().st_size, []
    for _ in range(100):
        await tree.step()
        await store.find_run("run-1")
        sizes.append(wal.stat().st_size)

    assert max(sizes) < schema + 40 * 4_200
    assert path.stat().st_size > 4 * 4_096


async def test_sole_user_leaves_one_file_behind(store: SqliteStore, path: Path) -> None:
    """A store that is closed by its only user leaves one file without a WAL, which can be copied as it is."""
    await begin(store)

    await store.close()

    assert not path.with_name("outlive.db-wal").exists()
    connection = apsw.Connection(f"file:{path}?immutable=1", apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    assert connection.execute("SELECT id FROM outlive_runs").fetchall() == [("run-1",)]
    connection.close()


async def twin(store: SqliteStore, run_id: str, journal: int) -> Writer:
    """The writer of a tree that was created by hand."""
    writer = Writer(store, run_id)
    writer.journal = journal
    await writer.catch_up()
    writer.fold.runs[0] = await get_run(store, run_id)
    return writer
