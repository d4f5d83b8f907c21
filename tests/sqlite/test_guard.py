"""What a step may do to the file that its journal lies in: nothing that the engine would stumble over later."""

from __future__ import annotations

import pytest

from outlive._kernel.store.contract import Outcome
from outlive._kernel.store.sqlite import SqliteStore
from outlive.errors.store import TransactionRefusedError
from outlive_conformance.suite.builders import begin, message, read_message_ids, send, stepped


@pytest.mark.parametrize(
    "query",
    [
        "CREATE TABLE orders (run TEXT REFERENCES outlive_runs (status))",
        'CREATE TABLE orders (mail INTEGER, FOREIGN KEY (mail) references "outlive_inbox" (name))',
        "ALTER TABLE mine ADD COLUMN run TEXT REFERENCES [Outlive_Runs] (id)",
    ],
)
async def test_foreign_key_to_our_tables_is_refused(store: SqliteStore, query: str) -> None:
    """One that does not fit makes SQLite refuse every later change of our table; one that fits, some of them."""
    tree = await begin(store)
    await send(store, message(store, "run-1"))
    step = await store.begin()
    await step.handle.execute("CREATE TABLE mine (id INTEGER PRIMARY KEY)")

    with pytest.raises(TransactionRefusedError, match="foreign key"):
        await step.handle.execute(query)

    assert await step.commit([tree.change(stepped(store))]) == [(Outcome.COMMITTED, tree.journal)]
    await tree.catch_up()
    await tree.suspend(consumed=await read_message_ids(store, tree))


async def test_step_may_rename_its_tables(store: SqliteStore) -> None:
    """A step may rename its table, even one that counts its keys, but not to a name that is reserved for Outlive."""
    step = await store.begin()
    await step.handle.execute("CREATE TABLE mine (id INTEGER PRIMARY KEY AUTOINCREMENT)")
    await step.handle.execute("INSERT INTO mine DEFAULT VALUES")

    await step.handle.execute("ALTER TABLE mine RENAME TO yours")
    with pytest.raises(TransactionRefusedError, match="a table named outlive_"):
        await step.handle.execute("ALTER TABLE yours RENAME TO 'outlive_ours'")

    assert await step.handle.fetchval("SELECT seq FROM sqlite_sequence WHERE name = 'yours'") == 1
    await step.rollback()


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("CREATE TABLE outlive_mine (id INTEGER)", "a table named outlive_mine"),
        ("DELETE FROM outlive_runs", "the table outlive_runs"),
        ("DROP TABLE outlive_runs", "the table outlive_runs"),
    ],
)
async def test_refusal_names_the_table(store: SqliteStore, query: str, what: str) -> None:
    """The refusal of a statement names the table and says whether it is a table of Outlive or only has a reserved
    name."""
    step = await store.begin()

    with pytest.raises(TransactionRefusedError, match=what):
        await step.handle.execute(query)

    await step.rollback()
