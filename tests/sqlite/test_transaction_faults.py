"""When the disk lets a step's transaction down: nothing of it stays, the others hear the truth, the store goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import apsw
import pytest

from outlive._kernel.store.contract import Outcome
from outlive._kernel.store.sqlite import SqliteStore, transaction
from outlive._kernel.store.sqlite.query import BEGIN_WRITE, COMMIT, Value
from outlive._kernel.store.sqlite.writer import Refused, Writer
from outlive.errors import CommitUnknownError, StoreUnavailableError
from outlive.errors.store import TransactionOverError
from outlive_conformance.suite.builders import begin, blob, stepped
from outlive_conformance.suite.transactions import ADD_NOTE, begin_noting, read_notes, write_note
from tests.sqlite.disk import WatchedDisk, failing, nothing_fails
from tests.sqlite.threads import on_writer

PATIENCE_SECONDS = 20
T = TypeVar("T")


async def in_time(wanted: Awaitable[T]) -> T:
    """The outcome of something that must happen."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await wanted


async def leave_pages(store: SqliteStore, count: int) -> None:
    """Let the file grow by so much and no more."""

    def limit(connection: apsw.Connection) -> None:
        connection.pragma("max_page_count", connection.pragma("page_count") + count)

    await on_writer(store, limit)


def refuse_once(monkeypatch: pytest.MonkeyPatch, statement: str, error: apsw.Error) -> None:
    """Let the next statement of this kind fail, as a broken disk would."""
    sound: Callable[..., None] = Writer.bound
    faults = [error]

    def bound(writer: Writer, text: str, values: Sequence[Value] = ()) -> None:
        if text == statement and faults:
            raise Refused(faults.pop(), is_committing=text != BEGIN_WRITE)
        sound(writer, text, values)

    monkeypatch.setattr(Writer, "bound", bound)


async def test_full_disk_ends_the_transaction(store: SqliteStore) -> None:
    """The step gets the error of its own statement; what it wrote before is gone, too."""
    tree = await begin(store)
    await write_note(tree, "first")
    await leave_pages(store, 5)
    step = await begin_noting(store, "second", id=2)

    with pytest.raises(apsw.FullError):
        await step.handle.execute(ADD_NOTE, 3, "x" * 1_000_000)
    with pytest.raises(TransactionOverError, match="full"):
        await step.commit([tree.change(stepped(store))])

    await leave_pages(store, 1_000)
    assert await read_notes(store) == ["first"]
    await tree.step()


async def test_disk_that_breaks_under_a_statement_ends_the_transaction(on_disk: SqliteStore, disk: WatchedDisk) -> None:
    """A disk that breaks under a statement of a step ends its transaction, and the next write has another
    connection."""
    tree = await begin(on_disk)
    await write_note(tree, "first")
    # So a long row is written before the commit.
    await on_writer(on_disk, lambda connection: connection.pragma("cache_size", 10))
    step = await begin_noting(on_disk, "second", id=2)
    opened = disk.opened
    disk.fail = failing("write wal", apsw.IOError("disk I/O error"))

    with pytest.raises(apsw.IOError):
        await step.handle.execute(ADD_NOTE, 3, "x" * 1_000_000)
    disk.fail = nothing_fails

    await tree.step()
    assert disk.opened == opened + 1
    assert await read_notes(on_disk) == ["first"]


async def test_commit_whose_outcome_is_unknown_raises_for_every_caller(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step and the callers that were committed with it have to look."""
    tree, other = await begin(store), await begin(store, "other")
    step = await begin_noting(store, "mine")
    refuse_once(monkeypatch, COMMIT, apsw.IOError("disk I/O error"))

    companion = asyncio.ensure_future(other.step())
    await asyncio.sleep(0)
    with pytest.raises(CommitUnknownError):
        await step.commit([tree.change(stepped(store))])
    with pytest.raises(CommitUnknownError):
        await companion

    await other.step()
    await tree.step()


async def test_full_disk_at_the_commit_leaves_nothing(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """That is known for sure, and the next one goes well."""
    tree = await begin(store)
    await write_note(tree, None)
    step = await begin_noting(store, "never")
    refuse_once(monkeypatch, COMMIT, apsw.FullError("database or disk is full"))

    with pytest.raises(StoreUnavailableError, match="make room"):
        await step.commit([tree.change(stepped(store))])

    assert await read_notes(store) == []
    assert await write_note(tree, "then") is Outcome.COMMITTED


async def test_full_disk_while_the_journal_is_appended_leaves_nothing_of_the_step(store: SqliteStore) -> None:
    """The step gets the error, and what was to be committed with it is written without it."""
    tree, other = await begin(store), await begin(store, "other")
    await write_note(tree, None)
    await leave_pages(store, 5)
    step = await begin_noting(store, "never")

    companion = asyncio.ensure_future(other.step())
    await asyncio.sleep(0)
    with pytest.raises(StoreUnavailableError, match="make room"):
        await in_time(step.commit([tree.change(stepped(store), blobs=[blob(b"x" * 100_000)])]))
    await in_time(companion)

    assert await read_notes(store) == []
    assert len(await store.read_journal(other.journal)) == 2
    assert await write_note(tree, "then") is Outcome.COMMITTED


async def test_full_disk_while_companions_are_written_raises_for_every_caller(store: SqliteStore) -> None:
    """Nothing of the step stays, and the companion that finds no room hears of it."""
    tree, other = await begin(store), await begin(store, "other")
    await write_note(tree, None)
    await leave_pages(store, 5)
    step = await begin_noting(store, "never")

    companion = asyncio.ensure_future(other.step(blobs=[blob(b"x" * 100_000)]))
    await asyncio.sleep(0)
    with pytest.raises(StoreUnavailableError, match="make room"):
        await in_time(step.commit([tree.change(stepped(store))]))
    with pytest.raises(StoreUnavailableError, match="make room"):
        await in_time(companion)

    assert await read_notes(store) == []
    assert await write_note(tree, "then") is Outcome.COMMITTED


async def test_transaction_that_cannot_begin_is_refused(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction that cannot begin is refused, and the next one begins."""
    refuse_once(monkeypatch, BEGIN_WRITE, apsw.BusyError("database is locked"))

    with pytest.raises(StoreUnavailableError, match="another process"):
        await store.begin()

    await (await store.begin()).rollback()


async def test_transaction_that_waited_for_another_one_and_cannot_begin_is_refused(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A caller that waited for the transaction gets the same error as the first one."""
    first = await store.begin()
    second = asyncio.ensure_future(store.begin())
    await asyncio.sleep(0)
    refuse_once(monkeypatch, BEGIN_WRITE, apsw.BusyError("database is locked"))

    await first.rollback()

    with pytest.raises(StoreUnavailableError, match="another process"):
        await in_time(second)


async def test_transaction_whose_caller_is_gone_blocks_no_other(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is ended as soon as it has begun, and not when its time is up."""
    monkeypatch.setattr(transaction, "SECONDS_MAX", 1_000)
    tree, first = await begin(store), await store.begin()
    second = asyncio.ensure_future(store.begin(seconds_max=1_000))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.wait([second])

    await first.rollback()

    await in_time(tree.step())


async def test_companions_are_written_when_the_database_refuses_the_step(store: SqliteStore) -> None:
    """A constraint that is judged only at the end fails the step alone."""
    tree, other = await begin(store), await begin(store, "other")
    step = await begin_noting(store)
    await step.handle.execute("CREATE TABLE likes (note INTEGER REFERENCES notes (id) DEFERRABLE INITIALLY DEFERRED)")
    await step.handle.execute("INSERT INTO likes VALUES ($1)", 99)

    companion = asyncio.ensure_future(other.step())
    await asyncio.sleep(0)
    with pytest.raises(apsw.ConstraintError, match="FOREIGN KEY"):
        await step.commit([tree.change(stepped(store))])
    await companion

    assert len(await store.read_journal(other.journal)) == 2
    assert len(await store.read_journal(tree.journal)) == 1
