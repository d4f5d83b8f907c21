"""What the server's refusals mean: who tries again, on which connection, and which error a person gets."""

from __future__ import annotations

import secrets

import asyncpg
import pytest

from outlive._kernel.store.contract import Outcome
from outlive._kernel.store.postgres import PostgresStore
from outlive._kernel.store.postgres.address import PostgresAddress
from outlive._kernel.store.postgres.fault import ERRORS, is_cut, is_full, is_last_word, is_lost, is_useless, translate
from outlive.errors import CommitUnknownError, StoreError, StoreUnavailableError
from outlive_conformance.suite.builders import begin, new_tree, stepped
from tests.postgres.support import writer_session


async def test_server_that_became_a_replica_is_left(store: PostgresStore) -> None:
    """It never takes a write again on this connection, however often one tries; the address may lead elsewhere now."""
    tree = await begin(store)
    session = await writer_session(store)
    await session.run("SET default_transaction_read_only = on")

    with pytest.raises(StoreUnavailableError, match="replica"):
        await store.commit([tree.change(stepped(store))])

    assert await tree.try_write(stepped(store)) is Outcome.COMMITTED
    assert not session.is_open


async def test_a_value_that_no_server_can_hold_is_not_taken_for_an_outage(store: PostgresStore) -> None:
    """A value that no server can hold is an error of its commit, and not an outage for which callers would wait for
    ever."""
    with pytest.raises(StoreError, match="exceeds") as caught:
        await store.commit([new_tree(store, "run-1", workflow=secrets.token_hex(3_000))])

    assert not isinstance(caught.value, StoreUnavailableError)
    assert await store.find_run("run-1") is None


async def test_session_that_forgot_its_statements_is_left(store: PostgresStore) -> None:
    """So it is behind a pooler that the URL does not name; the log says what to write."""
    tree = await begin(store)
    await tree.step()
    session = await writer_session(store)
    await session.run("DEALLOCATE ALL")

    with pytest.raises(StoreUnavailableError, match="pgbouncer=true"):
        await store.commit([tree.change(stepped(store))])

    assert await tree.try_write(stepped(store)) is Outcome.COMMITTED


async def test_step_that_makes_its_session_forget_does_not_harm_the_next(store: PostgresStore) -> None:
    """The session is thrown away; the step is done again, on another one."""
    tree = await begin(store)

    async def forgets() -> None:
        transaction = await store.begin()
        await transaction.handle.execute("DEALLOCATE ALL")
        await transaction.commit([tree.change(stepped(store))])

    async def works_until_one_forgets() -> None:
        # A session that has nothing to forget yet learns it now, and forgets it the next time.
        for _ in range(10):
            await forgets()
            await tree.catch_up()

    with pytest.raises(StoreUnavailableError):
        await works_until_one_forgets()

    transaction = await store.begin()
    assert await transaction.commit([tree.change(stepped(store))]) == [(Outcome.COMMITTED, tree.journal)]


@pytest.mark.parametrize(
    "kind",
    [
        asyncpg.StatementCompletionUnknownError,
        asyncpg.TransactionResolutionUnknownError,
        asyncpg.AdminShutdownError,
    ],
)
def test_server_that_does_not_know_itself_leaves_it_unknown(kind: type[asyncpg.PostgresError]) -> None:
    """Saying that nothing happened would be a lie."""
    explained = translate(kind("who knows"), PostgresAddress("postgresql://host/db"), is_write=True)

    assert isinstance(explained, CommitUnknownError)


def test_every_error_of_the_driver_has_a_meaning() -> None:
    """None of them comes out raw, and only a lost connection leaves anything unknown."""
    kinds = [kind for kind in vars(asyncpg.exceptions).values() if isinstance(kind, type)]
    for kind in kinds:
        if issubclass(kind, Exception) and not issubclass(kind, Warning):
            assert issubclass(kind, ERRORS), kind
            explained = translate(kind("trouble"), PostgresAddress("postgresql://host/db"), is_write=True)
            assert isinstance(explained, StoreError)
            assert isinstance(explained, CommitUnknownError) == is_lost(kind("trouble")), kind


GONE = "lost, cut, useless, last word"
NO_MORE = "no more connections allowed (max_client_conn)"
MEANINGS: list[tuple[BaseException, str, type[StoreError]]] = [
    (ConnectionResetError("cut"), "lost, cut, useless", CommitUnknownError),
    (TimeoutError(), "lost, useless", CommitUnknownError),
    (asyncpg.InternalClientError("torn"), "lost, cut, useless", CommitUnknownError),
    (asyncpg.ConnectionDoesNotExistError("gone"), GONE, CommitUnknownError),
    (asyncpg.AdminShutdownError("bye"), GONE, CommitUnknownError),
    (asyncpg.ProtocolViolationError(NO_MORE), f"{GONE}, full", CommitUnknownError),
    (asyncpg.TooManyConnectionsError("sorry"), "full", StoreUnavailableError),
    (asyncpg.ReadOnlySQLTransactionError("no"), "useless", StoreUnavailableError),
    (asyncpg.InvalidSQLStatementNameError("what?"), "useless", StoreUnavailableError),
    (asyncpg.DiskFullError("no room"), "", StoreUnavailableError),
    (asyncpg.LockNotAvailableError("held"), "", StoreUnavailableError),
    (asyncpg.UndefinedTableError("gone"), "", StoreUnavailableError),
    (asyncpg.InterfaceError("closed before anything was sent"), "", StoreUnavailableError),
    (asyncpg.ClientConfigurationError("one of the values"), "", StoreError),
    (asyncpg.ProgramLimitExceededError("too large"), "", StoreError),
    (asyncpg.UniqueViolationError("twice"), "", StoreError),
    (asyncpg.PostgresError("a server without a name for it"), "", StoreError),
]


@pytest.mark.parametrize(("error", "what", "expected"), MEANINGS, ids=lambda it: type(it).__name__)
def test_an_error_tells_the_state_of_its_connection_and_of_a_write(
    error: BaseException, what: str, expected: type[StoreError]
) -> None:
    """An error tells whether its connection is lost, cut, useless or full, and whether the write is known."""
    said = {
        "lost": is_lost(error),
        "cut": is_cut(error),
        "useless": is_useless(error),
        "last word": is_last_word(error),
        "full": is_full(error),
    }

    assert ", ".join(name for name, is_so in said.items() if is_so) == what
    assert type(translate(error, PostgresAddress("postgresql://host/db"), is_write=True)) is expected
    assert type(translate(error, PostgresAddress("postgresql://host/db"), is_write=False)) is not CommitUnknownError


def test_no_error_is_not_a_full_server() -> None:
    """A connection that was never asked for was not refused."""
    assert not is_full(None)


@pytest.mark.parametrize(
    ("severities", "is_last"),
    [
        ({"severity_en": "FATAL", "severity": "FATAL"}, True),
        ({"severity_en": "ERROR", "severity": "FEHLER"}, False),
        ({"severity": "ERROR"}, False),
        ({"severity": "FATAL"}, True),
    ],
)
def test_failed_statement_about_another_server_is_not_the_end_of_the_session(
    severities: dict[str, str], *, is_last: bool
) -> None:
    """A failed statement that speaks of another server, as with dblink, does not end the session, in whatever language
    the server says it."""
    error = asyncpg.ConnectionDoesNotExistError("gone")
    vars(error).update(severities)

    assert is_last_word(error) is is_last


def test_reason_says_what_to_do() -> None:
    """The words of the server, or what there is instead of them, and the remedy."""
    place = PostgresAddress("postgresql://host/db")

    assert "no room; make room on its disk" in str(translate(asyncpg.DiskFullError("no room"), place, is_write=False))
    assert "no answer in time" in str(translate(TimeoutError(), place, is_write=False))
    assert "ConnectionResetError" in str(translate(ConnectionResetError(), place, is_write=False))
