"""A step's transaction on the writer's own connection: who waits, who may what, and what it costs the others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import apsw
import pytest

from outlive._kernel.store.contract import Outcome
from outlive._kernel.store.sqlite import SqliteStore, connection, transaction
from outlive.errors import ConfigurationError
from outlive.errors.store import TransactionOverError, TransactionRefusedError
from outlive.testing.clock import ManualClock
from outlive_conformance.suite.builders import (
    LEASE_SECONDS,
    Writer,
    begin,
    claim,
    hire,
    message,
    new_tree,
    send,
    stepped,
)
from outlive_conformance.suite.transactions import ADD_NOTE, MAKE_NOTES, begin_noting, read_notes, write_note
from tests.sqlite.threads import on_writer

ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"

Open = Callable[[], Awaitable[SqliteStore]]


async def count_commits(store: SqliteStore) -> list[int]:
    """A list that grows with every transaction of the writer from now on."""
    commits: list[int] = []

    def count() -> bool:
        commits.append(1)
        return False

    await on_writer(store, lambda connection: connection.set_commit_hook(count))
    return commits


# -- The others ----------------------------------------------------------------------------------------------


async def test_end_of_a_transaction_is_part_of_a_group_commit(store: SqliteStore) -> None:
    """Everything that waited for it becomes durable with it, in one wait for the disk."""
    await hire(store, "worker-a")
    tree = await begin(store, worker="worker-a")
    trees = [await begin(store, f"other-{number}") for number in range(30)]
    commits = await count_commits(store)
    step = await begin_noting(store, "mine")

    jobs = asyncio.gather(
        *(other.step() for other in trees),
        *(begin(store, f"new-{number}") for number in range(30)),
        *(send(store, message(store, other.run_id)) for other in trees[:5]),
        store.put_blobs([]),
        claim(store, "worker-a", limit=10),
    )
    await asyncio.sleep(0)
    outcomes = await step.commit([tree.change(stepped(store))])
    await jobs

    assert outcomes == [(Outcome.COMMITTED, tree.journal)]
    assert len(commits) == 1
    assert len(await store.find_runs([f"new-{number}" for number in range(30)])) == 30


async def test_others_are_committed_without_a_transaction_that_lost(store: SqliteStore) -> None:
    """The group is written again as if it had never been there."""
    tree, other = await begin(store), await begin(store, "other")
    tree.seq -= 1
    step = await begin_noting(store, "never")

    jobs = asyncio.gather(other.step(), begin(store, "new"))
    await asyncio.sleep(0)
    ((outcome, _),) = await step.commit([tree.change(stepped(store))])
    await jobs

    assert outcome is Outcome.CONFLICT
    assert (await store.find_runs(["new"])).keys() == {"new"}
    assert len(await store.read_journal(other.journal)) == 2


async def test_job_that_cannot_be_done_fails_alone(store: SqliteStore) -> None:
    """Neither the transaction nor its companions suffer for a job that SQLite chokes on."""
    tree, other = await begin(store), await begin(store, "other")
    step = await begin_noting(store, "mine")

    choking = asyncio.ensure_future(store.end_session(object()))  # type: ignore[arg-type]
    fine = asyncio.ensure_future(other.step())
    await asyncio.sleep(0)
    ((outcome, _),) = await step.commit([tree.change(stepped(store))])

    assert outcome is Outcome.COMMITTED
    await fine
    with pytest.raises(TypeError):
        await choking
    assert await read_notes(store) == ["mine"]


async def test_store_that_is_closed_meanwhile_waits_for_the_transaction(store: SqliteStore, open_store: Open) -> None:
    """A store that is closed waits for the transaction under way."""
    tree = await begin(store)
    step = await begin_noting(store, "mine")

    closing = asyncio.ensure_future(store.close())
    await asyncio.sleep(0)
    await step.commit([tree.change(stepped(store))])
    await closing

    assert await read_notes(await open_store()) == ["mine"]


# -- Time ----------------------------------------------------------------------------------------------------


async def test_transaction_is_shorter_than_the_patience_of_others(store: SqliteStore) -> None:
    """Whatever is asked for: a lease that is renewed meanwhile must not fail."""
    assert transaction.SECONDS_MAX < connection.BUSY_SECONDS < LEASE_SECONDS


async def test_statement_that_never_ends_is_stopped(store: SqliteStore) -> None:
    """The others go on, and the step hears why."""
    tree = await begin(store)
    step = await store.begin(seconds_max=0.05)
    endless = asyncio.ensure_future(step.handle.fetchval(ENDLESS))

    await tree.step()

    with pytest.raises(TransactionOverError, match=r"open for 0\.05 s"):
        await endless
    with pytest.raises(TransactionOverError, match="do what takes long in another step"):
        await step.commit([tree.change(stepped(store))])


async def test_lease_is_renewed_between_two_transactions(
    store: SqliteStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A beat that waits has its turn before the next transaction begins, however many wait."""
    await hire(store, "worker-a")
    waits = threading.Event()

    def wait_and_tell(lock_wait: connection.LockWait, tries: int) -> bool:
        waits.set()
        return connection_wait(lock_wait, tries)

    connection_wait = connection.LockWait.wait
    monkeypatch.setattr(connection.LockWait, "wait", wait_and_tell)
    monkeypatch.setattr(transaction, "LONG_SECONDS", 0.0)
    monkeypatch.setattr(transaction, "MOMENT_SECONDS", 1.0)
    beat = store.open_beat("worker-a")
    first = await store.begin()
    clock.advance(seconds=LEASE_SECONDS - 1)

    renewal = asyncio.ensure_future(asyncio.to_thread(beat.renew, lease_seconds=LEASE_SECONDS))
    await asyncio.to_thread(waits.wait)
    second = asyncio.ensure_future(store.begin())
    await first.rollback()

    await asyncio.wait([renewal, second], return_when=asyncio.FIRST_COMPLETED)
    assert renewal.done()
    assert not second.done()
    assert renewal.result()
    second.cancel()
    beat.close()


# -- What a step may do --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM outlive_runs",
        "DELETE FROM Outlive_Events",
        "UPDATE outlive_runs SET owner = ''",
        "INSERT INTO notes SELECT seq, body FROM outlive_events",
        "DROP TABLE outlive_inbox",
        "ALTER TABLE outlive_runs RENAME TO runs",
        "CREATE TABLE outlive_mine (id)",
        "CREATE INDEX mine ON outlive_runs (status)",
        "CREATE TRIGGER mine AFTER INSERT ON outlive_runs BEGIN SELECT 1; END",
        "DELETE FROM sqlite_sequence",
        "ATTACH ':memory:' AS other",
        "PRAGMA synchronous = OFF",
        "PRAGMA wal_checkpoint",
        "CREATE TEMP TABLE mine (id)",
        "END TRANSACTION",
    ],
)
async def test_statement_that_reaches_beyond_the_users_tables_is_refused(store: SqliteStore, statement: str) -> None:
    """A statement on Outlive's tables is refused, and the transaction of the step goes on without it."""
    tree = await begin(store)
    step = await begin_noting(store, "mine")

    with pytest.raises(TransactionRefusedError):
        await step.handle.execute(statement)

    await step.commit([tree.change(stepped(store))])
    assert await read_notes(store) == ["mine"]


async def test_trigger_of_a_user_cannot_write_into_our_tables(store: SqliteStore) -> None:
    """Not even by a detour."""
    step = await begin_noting(store)
    await step.handle.execute(
        "CREATE TRIGGER mine AFTER INSERT ON notes BEGIN DELETE FROM outlive_events; END",
    )

    with pytest.raises(TransactionRefusedError, match="outlive_events"):
        await step.handle.execute(ADD_NOTE, 1, "x")
    await step.rollback()


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE mine (id INTEGER PRIMARY KEY AUTOINCREMENT)",
        "CREATE INDEX mine ON notes (text)",
        "CREATE VIEW mine AS SELECT id FROM notes",
        "ALTER TABLE notes ADD COLUMN more TEXT",
        "DROP TABLE notes",
        "PRAGMA table_info(notes)",
        "SAVEPOINT mine",
        "EXPLAIN SELECT * FROM notes",
        "SELECT * FROM json_each('[1]')",
    ],
)
async def test_users_own_schema_is_the_users(store: SqliteStore, statement: str) -> None:
    """Whatever stays in the user's tables is fine."""
    tree = await begin(store)
    step = await begin_noting(store, "mine")

    await step.handle.execute(statement)

    assert await step.commit([tree.change(stepped(store))]) == [(Outcome.COMMITTED, tree.journal)]


async def test_table_with_a_counter_can_be_dropped(store: SqliteStore) -> None:
    """SQLite itself tidies up the counter then."""
    step = await store.begin()
    await step.handle.execute("CREATE TABLE mine (id INTEGER PRIMARY KEY AUTOINCREMENT)")
    await step.handle.execute("INSERT INTO mine DEFAULT VALUES")

    assert await step.handle.execute("DROP TABLE mine") == "DROP"
    await step.rollback()


async def test_statement_that_rolls_back_ends_the_transaction(store: SqliteStore) -> None:
    """A statement that rolls back ends the transaction: later statements and the commit of the journal are refused."""
    tree = await begin(store)
    await write_note(tree, "first")
    step = await begin_noting(store, "second", id=2)

    with pytest.raises(apsw.ConstraintError):
        await step.handle.execute("INSERT OR ROLLBACK INTO notes (id) VALUES (1)")
    with pytest.raises(TransactionOverError, match="UNIQUE constraint failed"):
        await step.handle.execute(ADD_NOTE, 3, "third")
    with pytest.raises(TransactionOverError):
        await step.commit([tree.change(stepped(store))])

    assert await read_notes(store) == ["first"]
    assert len(await store.read_journal(tree.journal)) == 2


@pytest.mark.parametrize(
    ("statement", "arguments", "problem"),
    [
        ("SELECT $2", (1,), r"up to \$2 and was given 1"),
        ("SELECT $1", (1, 2), r"up to \$1 and was given 2"),
        ("SELECT ?", (), "(?i)bindings"),
        ("SELECT $1", (object(),), "(?i)object"),
        ("SELEC 1", (), "syntax error"),
    ],
)
async def test_mistake_in_a_statement_raises_and_the_transaction_goes_on(
    store: SqliteStore, statement: str, arguments: tuple[object, ...], problem: str
) -> None:
    """It is the step's to catch, and the writer lives on."""
    step = await begin_noting(store, "mine")

    with pytest.raises((apsw.Error, TypeError), match=problem):
        await step.handle.fetch(statement, *arguments)

    assert await step.handle.fetchval("SELECT count(*) FROM notes") == 1
    await step.rollback()


async def test_tables_are_there_for_other_programs(store: SqliteStore, path: Path) -> None:
    """Another program reads the rows that a step wrote in the same file."""
    tree = await begin(store)
    await write_note(tree, "hello")

    with apsw.Connection(str(path), apsw.SQLITE_OPEN_READONLY) as reader:
        assert reader.execute("SELECT text FROM notes").fetchall() == [("hello",)]


async def test_users_statement_is_guarded_also_when_it_reads_like_one_of_ours(store: SqliteStore) -> None:
    """SQLite asks the guard when it prepares a statement, and ours are prepared already."""
    tree = await begin(store)
    step = await store.begin()
    await step.handle.execute(MAKE_NOTES)
    await step.commit([tree.change(stepped(store))])
    step = await store.begin()

    for statement in ("BEGIN IMMEDIATE", "COMMIT", "ROLLBACK"):
        with pytest.raises(TransactionRefusedError):
            await step.handle.execute(statement)
    await step.rollback()


async def test_join_says_what_to_do_instead(store: SqliteStore) -> None:
    """There is one writer, and it is the store."""
    with pytest.raises(ConfigurationError, match="transaction=True, or use PostgreSQL"):
        await store.request_start(object(), new_tree(store, "run-1"))


async def test_many_transactions_of_two_stores_take_turns(open_store: Open) -> None:
    """Two workers with a file between them, each with steps that write."""
    first, second = await open_store(), await open_store()
    trees = [await begin(store, f"run-{number}") for number, store in enumerate([first, second] * 5)]

    async def note(tree: Writer, id: int) -> Outcome:
        step = await begin_noting(tree.store, "x", id=id)
        ((outcome, _),) = await step.commit([tree.change(stepped(tree.store))])
        return outcome

    outcomes = await asyncio.gather(*(note(tree, id) for id, tree in enumerate(trees)))

    assert outcomes == [Outcome.COMMITTED] * 10
    assert len(await read_notes(first)) == 10


async def test_others_are_written_between_two_transactions(store: SqliteStore) -> None:
    """Other changes are written between two transactions, even if the first one is rolled back and a third one
    waits."""
    tree, other = await begin(store), await begin(store, "other")
    first = await store.begin()
    second, third = (asyncio.ensure_future(store.begin()) for _ in range(2))
    await asyncio.sleep(0)
    await first.commit([tree.change(stepped(store))])
    await second
    job = asyncio.ensure_future(other.step())
    await asyncio.sleep(0)

    await second.result().rollback()
    await job

    assert await (await third).handle.fetchval("SELECT 1") == 1
    await third.result().rollback()


async def test_row_is_compared_by_its_values_and_knows_its_columns(store: SqliteStore) -> None:
    """A row equals a row or tuple of the same values and knows its columns, as a row of PostgreSQL does."""
    step = await store.begin()
    first, other, same = await step.handle.fetch("SELECT 1 AS a, 2 AS b UNION ALL SELECT 1, 3 UNION ALL SELECT 1, 2")
    await step.rollback()

    assert first == same
    assert first == (1, 2)
    assert first != other
    assert first != (1, 3)
    assert first != "(1, 2)"
    assert "a" in first
    assert "c" not in first
