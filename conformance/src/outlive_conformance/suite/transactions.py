"""A step that writes in the transaction of its journal: both are there, or none.

The suite makes a table of its own, `notes`, in the place that the factory has; it is as empty as everything else.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from uuid import UUID

import pytest

from outlive._kernel.store.contract import Outcome, Store, Transaction
from outlive.errors.store import TransactionOverError, TransactionRefusedError
from outlive_conformance.suite.builders import Writer, begin, message, new_tree, read_names, send, stepped
from outlive_conformance.suite.facet import Facet

MAKE_NOTES = "CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, text TEXT)"
ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT 1 FROM n) SELECT count(*) FROM n"
ADD_NOTE = "INSERT INTO notes (id, text) VALUES ($1, $2)"
CALLS_MAX = 1_000_000
"""More than anybody can make before the time of a transaction is up."""
READ_NOTES = "SELECT text FROM notes ORDER BY id"


class Size(Enum):
    """A value of a user."""

    SMALL = "small"


class TransactionsConformance(Facet):
    """`begin`, and what is done with it."""

    # -- Together ------------------------------------------------------------------------------------------

    async def test_what_a_step_writes_commits_with_its_journal(self, store: Store, other: Store) -> None:
        """Another store sees both when the commit has returned. [OL-T1]"""
        tree = await begin(store)

        outcome = await write_note(tree, "hello")

        assert outcome is Outcome.COMMITTED
        assert await read_notes(other) == ["hello"]
        assert [row[0] for row in await other.read_journal(tree.journal)] == [0, 1]

    async def test_nothing_of_an_open_transaction_is_seen(self, store: Store, other: Store) -> None:
        """Readers go on meanwhile and see the journal as it was. [OL-T1]"""
        tree = await begin(store)
        transaction = await begin_noting(store, "not yet")

        assert [row[0] for row in await other.read_journal(tree.journal)] == [0]
        assert await other.find_run("run-1") is not None
        await transaction.rollback()

    async def test_conflict_leaves_nothing_of_the_step(self, store: Store) -> None:
        """A worker that lost its run writes neither into the journal nor into the user's tables. [OL-T2]"""
        tree = await begin(store)
        await write_note(tree, None)
        late = tree.twin()
        await tree.step()
        transaction = await begin_noting(store, "zombie")

        outcomes = await transaction.commit([late.change(stepped(store), starts=[new_tree(store, "never")])])

        assert outcomes == [(Outcome.CONFLICT, tree.journal)]
        assert await read_notes(store) == []
        assert await store.find_run("never") is None
        assert len(await store.read_journal(tree.journal)) == 3

    async def test_what_comes_after_a_change_that_was_refused_conflicts(self, store: Store) -> None:
        """Another row stands where the one should that it comes after, and the change itself would fit. [OL-T2]"""
        tree = await begin(store)
        await write_note(tree, None)
        late = tree.twin()
        refused = late.change(stepped(store, "refused"))
        late.seq += 1
        await tree.step()
        zombie = late.change(stepped(store))
        zombie.prior = (await store.read_journal(tree.journal))[-1][2]
        transaction = await begin_noting(store, "zombie")
        given = asyncio.create_task(store.commit([refused]))
        await asyncio.sleep(0)

        outcomes = await transaction.commit([zombie], behind=refused.rows[-1])

        assert outcomes == [(Outcome.CONFLICT, tree.journal)]
        assert await given == [(Outcome.CONFLICT, tree.journal)]
        assert await read_notes(store) == []
        assert len(await store.read_journal(tree.journal)) == 3

    async def test_what_comes_after_a_change_that_is_on_its_way_commits_behind_it(self, store: Store) -> None:
        """The change was given to the store first and has no answer yet. [OL-T2]"""
        tree = await begin(store)
        await write_note(tree, None)
        transaction = await begin_noting(store, "good")
        first = tree.change(stepped(store))
        given = asyncio.create_task(store.commit([first]))
        await asyncio.sleep(0)
        tree.seq += 1

        outcomes = await transaction.commit([tree.change(stepped(store))], behind=first.rows[-1])

        assert outcomes == await given == [(Outcome.COMMITTED, tree.journal)]
        assert await read_notes(store) == ["good"]

    async def test_changes_of_a_transaction_are_all_or_nothing(self, store: Store) -> None:
        """If one of them conflicts, the ones before it are not written either. [OL-T2]"""
        tree = await begin(store)
        first = tree.change(stepped(store))
        good, bad = tree.twin(), tree.twin()
        good.seq, bad.seq = tree.seq + 1, tree.seq + 2

        transaction = await begin_noting(store, "never")
        lost = await transaction.commit([first, bad.change(stepped(store))])
        transaction = await begin_noting(store, "both")
        won = await transaction.commit([first, good.change(stepped(store))])

        assert [outcome for outcome, _ in lost] == [Outcome.CONFLICT] * 2
        assert won == [(Outcome.COMMITTED, tree.journal)] * 2
        assert await read_notes(store) == ["both"]
        assert [row[0] for row in await store.read_journal(tree.journal)] == [0, 1, 2]

    async def test_rolled_back_transaction_leaves_nothing(self, store: Store) -> None:
        """However often it is rolled back, and also after a statement that failed. [OL-T3]"""
        tree = await begin(store)
        await write_note(tree, "first")
        transaction = await begin_noting(store, "second", id=2)
        with pytest.raises(Exception, match=r"(?i)unique|duplicate"):
            await transaction.handle.execute(ADD_NOTE, 1, "taken")

        await transaction.rollback()
        await transaction.rollback()

        assert await read_notes(store) == ["first"]

    async def test_constraint_that_is_judged_at_the_end_fails_the_step(self, store: Store) -> None:
        """The error is the database's own, and neither the journal nor the tables keep anything. [OL-T3]"""
        tree = await begin(store)
        transaction = await begin_noting(store, "never")
        await transaction.handle.execute("CREATE TABLE parents (id INTEGER PRIMARY KEY)")
        await transaction.handle.execute(
            "CREATE TABLE children (parent INTEGER REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED)"
        )
        await transaction.handle.execute("INSERT INTO children (parent) VALUES ($1)", 1)

        with pytest.raises(Exception, match=r"(?i)foreign key"):
            await transaction.commit([tree.change(stepped(store), starts=[new_tree(store, "never")])])

        assert await read_notes(store) == []
        assert await store.find_run("never") is None
        assert await write_note(tree, "then") is Outcome.COMMITTED

    async def test_all_that_a_change_carries_commits_with_the_step(self, store: Store) -> None:
        """Messages, trees and consumed messages are part of it, as they are of any commit. [OL-T1]"""
        tree, friend = await begin(store), await begin(store, "friend")
        await send(store, message(store, "run-1", "consumed"))
        (inbound,) = (await store.read_inbox([tree.journal]))[tree.journal]
        transaction = await begin_noting(store, "all")

        await transaction.commit(
            [
                tree.change(
                    stepped(store),
                    consumed=[inbound.id],
                    starts=[new_tree(store, "started")],
                    messages=[message(store, "friend", "hello")],
                )
            ]
        )

        assert await read_names(store, tree) == []
        assert await read_names(store, friend) == ["hello"]
        assert await store.find_run("started") is not None

    # -- With others ---------------------------------------------------------------------------------------

    async def test_transaction_comes_after_what_was_committed_before(self, store: Store) -> None:
        """Changes of the same tree that are under way when it ends are written first. [OL-T4]"""
        tree = await begin(store)
        transaction = await begin_noting(store, "second")
        first = tree.change(stepped(store))
        tree.seq += 1

        under_way = asyncio.ensure_future(store.commit([first]))
        await asyncio.sleep(0)
        outcomes = await transaction.commit([tree.change(stepped(store))])

        assert await under_way == [(Outcome.COMMITTED, tree.journal)]
        assert outcomes == [(Outcome.COMMITTED, tree.journal)]
        assert [row[0] for row in await store.read_journal(tree.journal)] == [0, 1, 2]

    @pytest.mark.parametrize("loser", ["the transaction", "another", "neither"])
    async def test_transaction_and_others_do_not_hurt_each_other(self, store: Store, loser: str) -> None:
        """A change that is committed meanwhile is judged by itself, and so is the transaction. [OL-T5]"""
        tree, second, third = await begin(store), await begin(store, "run-2"), await begin(store, "run-3")
        losers = {"the transaction": tree, "another": second}
        if loser in losers:
            losers[loser].seq -= 1
        transaction = await begin_noting(store, "mine")

        others = [asyncio.ensure_future(store.commit([each.change(stepped(store))])) for each in (second, third)]
        others.append(asyncio.ensure_future(store.commit([new_tree(store, "run-4")])))
        delivery = asyncio.ensure_future(send(store, message(store, "run-3")))
        await asyncio.sleep(0)
        ((mine, _),) = await transaction.commit([tree.change(stepped(store))])

        (((second_outcome, _),), *rest) = [await other for other in others]
        assert mine is (Outcome.CONFLICT if loser == "the transaction" else Outcome.COMMITTED)
        assert second_outcome is (Outcome.CONFLICT if loser == "another" else Outcome.COMMITTED)
        assert [outcome for ((outcome, _),) in rest] == [Outcome.COMMITTED] * 2
        assert await delivery
        assert await read_names(store, third) == ["go"]
        assert await read_notes(store) == ([] if mine is Outcome.CONFLICT else ["mine"])
        assert await store.find_run("run-4") is not None

    async def test_transactions_do_not_lose_updates(self, store: Store, other: Store) -> None:
        """Any number of steps may want one at the same time. [OL-T6]"""
        trees = [await begin(each, f"run-{number}") for number, each in enumerate([store, other] * 4)]
        await write_note(trees[0], "")

        async def append(tree: Writer) -> Outcome:
            transaction = await tree.store.begin()
            await transaction.handle.execute("UPDATE notes SET text = text || 'x' WHERE id = $1", 1)
            ((outcome, _),) = await transaction.commit([tree.change(stepped(tree.store))])
            return outcome

        assert await asyncio.gather(*map(append, trees)) == [Outcome.COMMITTED] * 8
        assert await read_notes(store) == ["x" * 8]

    async def test_abandoned_wait_for_a_transaction_blocks_no_other(self, store: Store) -> None:
        """Whether it was cancelled while it waited for its turn or when it had just come. [OL-T6]"""
        first = await store.begin()
        waiting = [asyncio.ensure_future(store.begin()) for _ in range(2)]
        await asyncio.sleep(0)
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await first.rollback()

        last = await store.begin()
        assert await last.handle.fetchval("SELECT 1") == 1
        await last.rollback()

    # -- The handle ----------------------------------------------------------------------------------------

    async def test_handle_has_the_shapes_of_asyncpg(self, store: Store) -> None:
        """Parameters by number, rows by place and by name, and a word on what was done. [OL-T7]"""
        transaction = await begin_noting(store)
        tx = transaction.handle

        assert await tx.execute("INSERT INTO notes (text, id) VALUES ($2, $1), ($2, 2)", 1, "a") == "INSERT 0 2"
        assert await tx.execute("UPDATE notes SET text = 'b' WHERE id > $1", 1) == "UPDATE 1"
        assert await tx.execute("DELETE FROM notes WHERE id = $1", 99) == "DELETE 0"
        rows = await tx.fetch("SELECT id, text FROM notes WHERE text <> '$1' ORDER BY id")
        row = await tx.fetchrow("SELECT id, text AS words FROM notes WHERE id = $1", 2)

        assert [(each["id"], each[1]) for each in rows] == [(1, "a"), (2, "b")]
        assert row is not None
        assert (dict(row.items()), list(row), len(row)) == ({"id": 2, "words": "b"}, [2, "b"], 2)
        assert (row.get("words"), row.get("none", "nothing")) == ("b", "nothing")
        assert await tx.fetchrow("SELECT id FROM notes WHERE id = $1", 99) is None
        assert await tx.fetchval("SELECT id, text FROM notes ORDER BY id", column=1) == "a"
        assert await tx.fetchval("SELECT text FROM notes WHERE id = $1", 99) is None
        assert await tx.fetchval("INSERT INTO notes (id, text) VALUES (7, $1) RETURNING id", None) == 7
        await transaction.rollback()

    async def test_handle_takes_values_of_common_types(self, store: Store) -> None:
        """Each is found again by an equal value, and instants sort as time does, whatever their time zone. [OL-T7]"""
        transaction = await store.begin()
        tx = transaction.handle
        await tx.execute(
            "CREATE TABLE IF NOT EXISTS values_of_users "
            "(id UUID, at TIMESTAMPTZ, local_at TIMESTAMP, day DATE, price NUMERIC, size TEXT, kept BYTEA, "
            "hour TIME, span INTERVAL)"
        )
        paris, utc = timezone(timedelta(hours=1)), datetime(2026, 11, 18, 9, 30, tzinfo=UTC)
        local = utc.replace(tzinfo=None)
        hour, span = time(9, 30), timedelta(hours=1, milliseconds=500)
        early = (UUID(int=7), utc, local, date(2026, 1, 2), Decimal("2.50"), Size.SMALL, b"1", hour, span)
        late = (UUID(int=8), utc + timedelta(microseconds=1), *early[2:])
        for row in (late, early):
            await tx.execute("INSERT INTO values_of_users VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)", *row)

        equal = (
            "SELECT count(*) FROM values_of_users "
            "WHERE id = $1 AND at = $2 AND local_at = $3 AND day = $4 AND price = $5 AND size = $6 AND kept = $7 "
            "AND hour = $8 AND span = $9"
        )
        assert await tx.fetchval(equal, early[0], utc.astimezone(paris), *early[2:]) == 1
        assert await tx.fetchval("SELECT count(*) FROM values_of_users WHERE at > $1", utc.astimezone(paris)) == 1
        later = "SELECT count(*) FROM values_of_users WHERE hour > $1 AND span > $2"
        assert await tx.fetchval(later, time(9, 29, 59, 999_999), span - timedelta(microseconds=1)) == 2
        assert await tx.fetchval(later, hour, span) == 0
        first = await tx.fetchrow("SELECT id, price, size FROM values_of_users ORDER BY at")
        assert first is not None
        assert (UUID(str(first["id"])), Decimal(first["price"]), Size(first["size"])) == (*early[:1], *early[4:6])
        await transaction.rollback()

    async def test_handle_refuses_a_value_without_a_form(self, store: Store) -> None:
        """No value is written as text from which it cannot be read back. [OL-T7]"""
        transaction = await begin_noting(store)

        with pytest.raises(Exception, match="object"):
            await transaction.handle.execute(ADD_NOTE, 1, object())

        await transaction.rollback()

    async def test_handle_has_a_blocking_twin(self, store: Store) -> None:
        """For a step that is a plain function and runs on a thread. [OL-T7]"""
        tree = await begin(store)
        transaction = await begin_noting(store)
        tx = transaction.handle.sync

        def step() -> tuple[object, ...]:
            status = tx.execute(ADD_NOTE, 1, "from a thread")
            row = tx.fetchrow("SELECT id FROM notes")
            return status, len(tx.fetch(READ_NOTES)), row and row["id"], tx.fetchval(READ_NOTES)

        assert await asyncio.to_thread(step) == ("INSERT 0 1", 1, 1, "from a thread")
        await transaction.commit([tree.change(stepped(store))])
        assert await read_notes(store) == ["from a thread"]

    @pytest.mark.parametrize("statement", ["COMMIT", "ROLLBACK", "BEGIN", " commit;"])
    async def test_step_cannot_end_its_transaction(self, store: Store, statement: str) -> None:
        """Its journal would not be part of it. [OL-T8]"""
        tree = await begin(store)
        await write_note(tree, None)
        transaction = await begin_noting(store, "never")

        with pytest.raises(TransactionRefusedError):
            await transaction.handle.execute(statement)

        await transaction.rollback()
        assert await read_notes(store) == []

    async def test_transaction_that_is_over_says_so(self, store: Store) -> None:
        """To every call but one to roll it back, however it ended. [OL-T9]"""
        tree = await begin(store)
        committed = await begin_noting(store, "first")
        await committed.commit([tree.change(stepped(store))])
        tree.seq += 1
        rolled_back = await begin_noting(store)
        await rolled_back.rollback()

        for transaction in (committed, rolled_back):
            await expect_over(transaction, tree)
        assert await read_notes(store) == ["first"]

    async def test_transaction_ends_when_its_time_is_up(self, store: Store) -> None:
        """Nothing of it stays, and the next one can begin. [OL-T9]"""
        tree = await begin(store)
        await write_note(tree, None)
        transaction = await store.begin(seconds_max=0.05)
        await transaction.handle.execute(ADD_NOTE, 1, "never")

        with suppress(TransactionOverError):
            for _ in range(CALLS_MAX):
                await transaction.handle.fetchval("SELECT 1")

        await expect_over(transaction, tree)
        assert await read_notes(store) == []

    async def test_statement_that_never_ends_ends_with_its_transaction(self, store: Store) -> None:
        """A caller that waits for it hears so, and everything goes on. [OL-T9]"""
        tree = await begin(store)
        transaction = await store.begin(seconds_max=0.05)

        with pytest.raises(TransactionOverError):
            await transaction.handle.fetchval(ENDLESS)

        await expect_over(transaction, tree)
        await tree.step()


async def begin_noting(store: Store, text: str | None = None, *, id: int = 1) -> Transaction:
    """Begin a transaction, see to it that there is a table, and write a note."""
    transaction = await store.begin()
    await transaction.handle.execute(MAKE_NOTES)
    if text is not None:
        await transaction.handle.execute(ADD_NOTE, id, text)
    return transaction


async def write_note(tree: Writer, text: str | None) -> Outcome:
    """Write a note as a step with a transaction does; no text only makes the table."""
    transaction = await begin_noting(tree.store, text)
    ((outcome, _),) = await transaction.commit([tree.change(stepped(tree.store))])
    if outcome is Outcome.COMMITTED:
        tree.seq += 1
    return outcome


async def read_notes(store: Store) -> list[str]:
    """All notes that are there."""
    transaction = await begin_noting(store)
    rows = await transaction.handle.fetch(READ_NOTES)
    await transaction.rollback()
    return [row["text"] for row in rows]


async def expect_over(transaction: Transaction, tree: Writer) -> None:
    """Nothing can be done with it, and nothing happens."""
    with pytest.raises(TransactionOverError):
        await transaction.handle.execute("SELECT 1")
    with pytest.raises(TransactionOverError):
        await transaction.commit([tree.change(stepped(tree.store))])
    await transaction.rollback()
