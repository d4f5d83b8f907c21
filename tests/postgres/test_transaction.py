"""Transactions of steps, where PostgreSQL is more than the contract asks for."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import pytest

import outlive
from outlive._kernel.store.contract import Outcome
from outlive._kernel.store.postgres import PostgresStore
from outlive._kernel.store.postgres.address import parse_address
from outlive._kernel.store.postgres.connection import Session
from outlive._kernel.store.postgres.handle import StepHandle
from outlive._kernel.store.postgres.store import STEP_SESSIONS_MAX
from outlive.errors import CommitUnknownError, StoreUnavailableError
from outlive.errors.store import TransactionOverError, TransactionRefusedError
from outlive_conformance.servers.proxy import Proxy
from outlive_conformance.suite.builders import begin, stepped
from tests.engine.inside import journal_of
from tests.postgres.conftest import Opener
from tests.postgres.support import in_time, through

MAKE = "CREATE TABLE IF NOT EXISTS ledger (entry text)"
ADD = "INSERT INTO ledger VALUES ($1)"
COUNT = "SELECT count(*) FROM ledger WHERE entry = $1"


@pytest.fixture
async def ledger(store: PostgresStore) -> PostgresStore:
    """A store in a database that has a table of the user's."""
    tree = await begin(store, "maker")
    transaction = await store.begin()
    await transaction.handle.execute(MAKE)
    await transaction.handle.execute("DELETE FROM ledger")
    await transaction.commit([tree.change(stepped(store))])
    return store


async def count(store: PostgresStore, entry: str) -> int:
    """How often an entry is there."""
    transaction = await store.begin()
    found = await transaction.handle.fetchval(COUNT, entry)
    await transaction.rollback()
    assert isinstance(found, int)
    return found


@pytest.mark.parametrize(
    "query",
    [
        "COMMIT",
        "/* harmless */ rollback work",
        "SELECT 1; COMMIT",
        "-- nothing\nEND;",
        "PREPARE TRANSACTION 'x'",
        "start transaction",
        r"SELECT E'\''; COMMIT; SELECT '1'",
    ],
)
async def test_nothing_in_a_step_can_end_its_transaction(ledger: PostgresStore, query: str) -> None:
    """However it is written."""
    transaction = await ledger.begin()
    await transaction.handle.execute(ADD, "never")

    with pytest.raises(TransactionRefusedError):
        await transaction.handle.execute(query)

    await transaction.rollback()
    assert await count(ledger, "never") == 0


async def test_a_statement_that_only_looks_like_an_end_is_let_through(ledger: PostgresStore) -> None:
    """A statement with "commit" in a text or a block of code is let through, and so is a savepoint."""
    tree = await begin(ledger)
    transaction = await ledger.begin()
    tx = transaction.handle
    await tx.execute("INSERT INTO ledger VALUES ('a; commit')")
    await tx.execute("DO $$ BEGIN PERFORM 1; END $$")
    await tx.execute("SAVEPOINT mine")
    await tx.execute(ADD, "gone")
    await tx.execute("ROLLBACK TO SAVEPOINT mine")

    assert await transaction.commit([tree.change(stepped(ledger))]) == [(Outcome.COMMITTED, tree.journal)]
    assert (await count(ledger, "a; commit"), await count(ledger, "gone")) == (1, 0)


async def test_constraint_that_is_judged_at_the_end_is_the_steps_own_error(ledger: PostgresStore) -> None:
    """The driver's exception, as if the statement itself had raised it."""
    tree = await begin(ledger)
    transaction = await ledger.begin()
    await transaction.handle.execute(
        "CREATE TEMPORARY TABLE late (n int UNIQUE DEFERRABLE INITIALLY DEFERRED) ON COMMIT DROP"
    )
    await transaction.handle.execute("INSERT INTO late VALUES (1), (1)")

    with pytest.raises(asyncpg.UniqueViolationError):
        await transaction.commit([tree.change(stepped(ledger))])

    assert len(await ledger.read_journal(tree.journal)) == 1


TRIGGERED = """
CREATE TEMPORARY TABLE late (n int) ON COMMIT DROP;
CREATE FUNCTION pg_temp.refuse() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'the books do not balance'; END $$;
CREATE CONSTRAINT TRIGGER balance AFTER INSERT ON late
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION pg_temp.refuse();
INSERT INTO late VALUES (1)
"""


async def test_trigger_that_speaks_at_the_end_is_the_steps_own_error(ledger: PostgresStore) -> None:
    """Whatever it raises: it is not an error of the store."""
    tree = await begin(ledger)
    transaction = await ledger.begin()
    await transaction.handle.execute(TRIGGERED)

    with pytest.raises(asyncpg.RaiseError, match="do not balance"):
        await transaction.commit([tree.change(stepped(ledger))])

    assert len(await ledger.read_journal(tree.journal)) == 1


async def test_step_that_has_ended_its_transaction_fails(ledger: PostgresStore) -> None:
    """The handle cannot read every statement: it takes the dollars of these names for quotes. But the journal must not
    say that the rows of the step commit with it."""
    tree = await begin(ledger)
    transaction = await ledger.begin()
    await transaction.handle.execute("SELECT 1 AS a$b$; COMMIT; SELECT 1 AS c$b$")

    with pytest.raises(TransactionOverError, match="has ended it"):
        await transaction.commit([tree.change(stepped(ledger))])

    assert len(await ledger.read_journal(tree.journal)) == 1


async def test_failed_statement_cannot_be_swallowed(ledger: PostgresStore) -> None:
    """PostgreSQL would roll back at the commit; the journal must not say that the step succeeded."""
    tree = await begin(ledger)
    transaction = await ledger.begin()
    await transaction.handle.execute(ADD, "lost")
    with pytest.raises(asyncpg.UndefinedTableError):
        await transaction.handle.execute("SELECT * FROM nowhere")

    with pytest.raises(TransactionOverError, match="one of its statements failed"):
        await transaction.commit([tree.change(stepped(ledger))])

    assert await count(ledger, "lost") == 0
    assert len(await ledger.read_journal(tree.journal)) == 1


async def test_lost_commit_is_unknown(
    ledger: PostgresStore, open_store: Opener, postgres_url: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server has committed both, and the answer never came."""
    far = await open_store(through(proxy, postgres_url))
    tree = await begin(far)
    transaction = await far.begin()
    await transaction.handle.execute(ADD, "there")
    run = Session.run

    async def run_and_never_hear(self: Session, statement: str) -> None:
        proxy.cut_request(1 if statement == "COMMIT" else None)
        await run(self, statement)

    with monkeypatch.context() as patch:
        patch.setattr(Session, "run", run_and_never_hear)
        with pytest.raises(CommitUnknownError):
            await transaction.commit([tree.change(stepped(far))])

    assert proxy.cuts == 1
    assert await count(ledger, "there") == 1
    assert len(await ledger.read_journal(tree.journal)) == 2


async def test_statement_of_a_lost_session_says_that_the_store_is_away(
    ledger: PostgresStore, other: PostgresStore
) -> None:
    """A statement of a lost session, and the one after it, raise StoreUnavailableError."""
    transaction = await ledger.begin()
    pid = await transaction.handle.fetchval("SELECT pg_backend_pid()")
    killer = await other.begin()
    await killer.handle.execute("SELECT pg_terminate_backend($1)", pid)
    await killer.rollback()

    for _ in range(2):
        with pytest.raises(StoreUnavailableError):
            await transaction.handle.execute(ADD, "gone")

    await transaction.rollback()
    assert await count(ledger, "gone") == 0


async def test_mistake_in_a_statement_stays_the_steps_own(ledger: PostgresStore) -> None:
    """A connection that is well has nothing to do with it."""
    transaction = await ledger.begin()

    with pytest.raises(asyncpg.InterfaceError):
        await transaction.handle.execute(ADD, "one", "too many")
    with pytest.raises(asyncpg.ConnectionDoesNotExistError):  # As dblink says it of a server that it asks.
        await transaction.handle.execute("DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '08003'; END $$")

    await transaction.rollback()


@outlive.step(name="lost.write", transaction=True)
async def write(tx: Any) -> int:
    calls.append(await tx.fetchval("SELECT pg_backend_pid()"))
    if len(calls) == 1:
        await tx.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    return len(calls)


@outlive.workflow(name="lost.workflow")
async def workflow() -> int:
    return await write()


calls: list[int] = []


async def test_session_that_is_lost_in_the_middle_of_a_step_fails_no_attempt(postgres_url: str) -> None:
    """The step is called again, and the run knows nothing of it."""
    calls.clear()
    async with outlive.Engine(postgres_url) as engine:
        run = await engine.start(workflow, id="lost")

        assert await in_time(run.result()) == 2
        kinds = [type(event).__name__ for event in await journal_of(run)]

    assert "AttemptFailed" not in kinds


async def test_more_steps_than_connections_wait_for_their_turn(ledger: PostgresStore) -> None:
    """No step fails because many want one; and the engine's own verbs are not kept waiting by steps."""
    first = [await ledger.begin() for _ in range(STEP_SESSIONS_MAX)]
    late = asyncio.ensure_future(ledger.begin())
    assert await in_time(ledger.find_run("maker")) is not None
    assert not late.done()

    await first[0].rollback()

    transaction = await in_time(late)
    for each in (*first, transaction):
        await each.rollback()


async def test_step_plans_its_statements_itself_and_has_its_whole_time_for_each(ledger: PostgresStore) -> None:
    """Settings that suit our tables are not for a user's; but nothing goes on when its transaction is over."""
    transaction = await ledger.begin()

    assert await transaction.handle.fetchval("SELECT current_setting('enable_seqscan')") == "on"
    assert await transaction.handle.fetchval("SELECT current_setting('statement_timeout')") == "35s"
    await transaction.rollback()


async def test_transaction_that_ends_between_two_requests_of_a_statement_says_so() -> None:
    """Not what the driver stumbles over."""

    class Torn:
        async def fetch(self, _query: str) -> None:
            connections.clear()
            raise AttributeError("'NoneType' object has no attribute 'bind_execute'")

    def connection() -> Torn:
        if not connections:
            raise TransactionOverError("it took too long")
        return connections[0]

    connections = [Torn()]

    with pytest.raises(TransactionOverError):
        await StepHandle(connection, parse_address("postgresql://nowhere/x")).fetch("SELECT 1")


async def test_a_full_disk_is_the_stores_trouble_and_not_the_steps(ledger: PostgresStore) -> None:
    """A statement of the step is refused for want of room: the store refuses for now, and no step has failed."""
    transaction = await ledger.begin()
    try:
        with pytest.raises(StoreUnavailableError, match="no room"):
            await transaction.handle.execute("DO $$ BEGIN RAISE 'no room' USING ERRCODE = 'disk_full'; END $$")
    finally:
        await transaction.rollback()


async def test_a_limit_that_a_statement_exceeds_is_its_own_failure(ledger: PostgresStore) -> None:
    """To do the same again would never work."""
    transaction = await ledger.begin()
    try:
        with pytest.raises(asyncpg.ConfigurationLimitExceededError):
            await transaction.handle.execute(
                "DO $$ BEGIN RAISE 'too large' USING ERRCODE = 'configuration_limit_exceeded'; END $$"
            )
    finally:
        await transaction.rollback()
