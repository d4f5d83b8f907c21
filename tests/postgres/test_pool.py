"""A pool of connections: what failed is not used again, no place in the pool is lost, and a server is left in peace.

The server here is made up, so that it fails at the very moment that a test is about.
"""

from __future__ import annotations

import asyncio
import gc
import os
import weakref
from collections.abc import AsyncIterator
from itertools import count

import asyncpg
import pytest

from outlive._kernel.store.postgres import pool as pools
from outlive._kernel.store.postgres.address import PostgresAddress
from outlive._kernel.store.postgres.checkpoints import append_checkpoint
from outlive._kernel.store.postgres.commit import Writing
from outlive._kernel.store.postgres.connection import USER_SETTINGS, Session
from outlive._kernel.store.postgres.pool import BACKOFF_FIRST_SECONDS, BACKOFF_MAX_SECONDS, Pool
from outlive._kernel.store.postgres.transaction import PostgresTransaction
from outlive.errors import CommitUnknownError, StoreError, StoreUnavailableError
from tests.postgres.support import in_time

PLACE = PostgresAddress("postgresql://host/db")
FULL = asyncpg.TooManyConnectionsError("sorry, too many clients already")


class Line:
    """A connection as the driver has it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.is_open = True
        self.is_begun = False
        self.failure: BaseException | None = None
        """What the next statement, or closing it, raises."""
        self.said_farewell = False
        self.asked = 0

    def get_server_pid(self) -> int:
        return self.pid

    def is_closed(self) -> bool:
        return not self.is_open

    def is_in_transaction(self) -> bool:
        return self.is_begun

    def terminate(self) -> None:
        self.is_open = False

    async def fetch(self, _statement: str, *_values: object, timeout: float) -> list[tuple[int]]:
        await self.execute("", timeout=timeout)
        return [(1,)]

    async def execute(self, _statement: str, *, timeout: float) -> None:
        assert timeout > 0
        self.asked += 1
        await asyncio.sleep(0)
        if self.failure is not None:
            raise self.failure

    async def close(self, *, timeout: float) -> None:
        assert timeout > 0
        was_open, self.is_open = self.is_open, False
        if self.failure is not None:
            raise self.failure
        self.said_farewell = was_open


class Server:
    """Gives connections, at most `limit` at a time, or none while it is away."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.settings: list[dict[str, str] | None] = []
        self.limit = 1_000
        self.away: BaseException | None = None
        self.waits = asyncio.Event()
        self.waits.set()
        self._pids = count(1)

    async def connect(self, _place: PostgresAddress, *, settings: dict[str, str] | None) -> Line:
        await self.waits.wait()
        if self.away is not None:
            raise self.away
        if sum(line.is_open for line in self.lines) >= self.limit:
            raise StoreUnavailableError("there", "full") from FULL
        self.settings.append(settings)
        self.lines.append(Line(next(self._pids)))
        return self.lines[-1]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    """The server that every pool of a test asks."""
    server = Server()
    monkeypatch.setattr(pools, "connect", server.connect)
    return server


@pytest.fixture
async def pool(server: Server) -> AsyncIterator[Pool]:
    """A pool of one: a place that is lost is missed at once."""
    assert server.limit
    pool = Pool(PLACE, size=1)
    yield pool
    await pool.close()


def line_of(session: Session) -> Line:
    """The made-up connection of a session."""
    line: object = session.connection
    assert isinstance(line, Line)
    return line


async def take_another(pool: Pool, instead_of: Session) -> None:
    """The pool gives a new session, and knows the old one no more."""
    session = await in_time(pool.take())
    assert session is not instead_of
    assert not instead_of.is_open
    assert pool.pids == {session.pid}
    pool.give(session)


# -- Taking and giving back --------------------------------------------------------------------------------------------


async def test_session_is_used_again(pool: Pool, server: Server) -> None:
    """A verb does not connect by itself; a pool waits until what it has is given back."""
    session = await pool.take()
    waiting = asyncio.ensure_future(pool.take())
    await asyncio.sleep(0)
    assert not waiting.done()
    pool.give(session)

    assert await in_time(waiting) is session
    pool.give(session)
    assert len(server.lines) == 1


@pytest.mark.parametrize("what", ["closed", "in a transaction"])
async def test_session_that_is_not_as_it_was_is_not_used_again(pool: Pool, what: str) -> None:
    """The next one would read or write in another caller's transaction."""
    session = await pool.take()
    line_of(session).is_open = what != "closed"
    line_of(session).is_begun = what == "in a transaction"

    pool.give(session)

    await take_another(pool, session)


async def test_session_that_dies_while_it_is_free_is_replaced(pool: Pool) -> None:
    """The server has restarted at night."""
    session = await pool.take()
    pool.give(session)
    line_of(session).is_open = False

    await take_another(pool, session)


async def test_place_of_a_caller_that_gave_up_connecting_is_free_again(pool: Pool, server: Server) -> None:
    """A timeout of the caller's, while the server does not answer."""
    server.waits.clear()
    waiting = asyncio.ensure_future(pool.take())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    server.waits.set()

    pool.give(await in_time(pool.take()))


async def test_settings_are_asked_for(server: Server) -> None:
    """A pool with settings asks the server for them when it connects."""
    steps = Pool(PLACE, size=1, settings=USER_SETTINGS)

    steps.give(await steps.take())

    assert server.settings == [USER_SETTINGS]
    await steps.close()


# -- Washing -----------------------------------------------------------------------------------------------------------


async def test_reset_session_is_used_again(pool: Pool) -> None:
    """A session that is reset is given to the next caller when it is clean."""
    session = await pool.take()
    pool.reset(session)
    waiting = asyncio.ensure_future(pool.take())

    assert await in_time(waiting) is session
    pool.give(session)


@pytest.mark.parametrize(
    "failure", [ConnectionResetError("cut"), TimeoutError(), asyncio.CancelledError()], ids=["cut", "late", "cancelled"]
)
async def test_session_that_cannot_be_reset_is_thrown_away(pool: Pool, failure: BaseException) -> None:
    """The next step must not find what this one has set."""
    session = await pool.take()
    line_of(session).failure = failure

    pool.reset(session)
    (resetting,) = asyncio.all_tasks() - {asyncio.current_task()}

    await take_another(pool, session)
    assert resetting.cancelled() is isinstance(failure, asyncio.CancelledError)


async def test_lost_session_is_not_reset(pool: Pool) -> None:
    """It is replaced at once."""
    session = await pool.take()
    line_of(session).is_open = False

    pool.reset(session)

    await take_another(pool, session)


async def test_session_of_a_pooler_is_left_as_it_is(server: Server) -> None:
    """The pooler resets it; for us it may be another one at every statement."""
    pool = Pool(PostgresAddress("postgresql://host/db", pgbouncer=True), size=1)
    session = await pool.take()
    line_of(session).failure = ConnectionResetError("a statement was sent")

    pool.reset(session)

    assert await in_time(pool.take()) is session
    assert len(server.lines) == 1
    pool.give(session)


async def test_pool_keeps_nothing_of_a_session_that_is_gone(pool: Pool) -> None:
    """A process that loses a connection every day for years does not grow."""
    session = await pool.take()
    pool.reset(session)
    session = await in_time(pool.take())
    await asyncio.sleep(0)
    kept = weakref.ref(session)

    pool.drop(session)

    del session
    gc.collect()
    assert kept() is None


# -- Verbs -------------------------------------------------------------------------------------------------------------


class Verb:
    """Fails as often as there are errors, then answers."""

    def __init__(self, *errors: BaseException) -> None:
        self._errors = list(errors)
        self.sessions: list[Session] = []

    async def __call__(self, session: Session, question: str) -> str:
        self.sessions.append(session)
        if self._errors:
            raise self._errors.pop(0)
        return f"{question} answered"


async def test_verb_whose_line_is_cut_is_asked_once_more(pool: Pool) -> None:
    """Over another line."""
    verb = Verb(ConnectionResetError("cut"))

    assert await in_time(pool.do_repeatable(verb, "first", is_write=False)) == "first answered"

    assert len(verb.sessions) == 2
    await take_another(pool, verb.sessions[0])


@pytest.mark.parametrize(
    ("errors", "expected", "times", "is_kept"),
    [
        ([ConnectionResetError("cut")] * 2, StoreUnavailableError, 2, False),
        ([TimeoutError()], StoreUnavailableError, 1, False),
        ([asyncpg.AdminShutdownError("bye")] * 2, StoreUnavailableError, 2, False),
        ([asyncpg.ReadOnlySQLTransactionError("no")], StoreUnavailableError, 1, False),
        ([asyncpg.DiskFullError("no room")], StoreUnavailableError, 1, True),
        ([asyncpg.ProgramLimitExceededError("too large")], StoreError, 1, True),
        ([ValueError("a bug")], ValueError, 1, True),
    ],
    ids=["cut twice", "late", "shut down", "replica", "disk full", "too large", "not the server's"],
)
async def test_verb_that_fails_is_repeated_only_after_a_cut(
    pool: Pool, errors: list[BaseException], expected: type[Exception], times: int, *, is_kept: bool
) -> None:
    """A server that is late or has said no is not asked again; a session is thrown away if another may do better."""
    verb = Verb(*errors)

    with pytest.raises(expected) as caught:
        await in_time(pool.do_repeatable(verb, "?", is_write=False))

    assert type(caught.value) is expected
    assert len(verb.sessions) == times
    assert verb.sessions[-1].is_open is is_kept
    pool.give(await in_time(pool.take()))  # Its place is free in any case.


@pytest.mark.parametrize(("is_doubtful", "expected"), [(True, CommitUnknownError), (False, StoreUnavailableError)])
async def test_write_that_is_cut_off_is_unknown_unless_nothing_was_on_its_way(
    pool: Pool, expected: type[Exception], *, is_doubtful: bool
) -> None:
    """A transaction that was not being committed is rolled back; to read it back would cost for nothing."""

    async def write(session: Session) -> None:
        assert session.is_doubtful
        session.is_doubtful = is_doubtful
        raise ConnectionResetError("cut")

    with pytest.raises(StoreUnavailableError) as caught:
        await pool.do(write, is_write=True)

    assert type(caught.value) is expected


async def test_doubt_of_one_verb_is_not_left_to_the_next(pool: Pool) -> None:
    """A session that was sure of itself may be asked for a write that is not."""

    async def be_sure(session: Session) -> None:
        session.is_doubtful = False

    await pool.do(be_sure, is_write=True)

    with pytest.raises(CommitUnknownError):
        await pool.do(Verb(ConnectionResetError("cut")), "?", is_write=True)


# -- Transactions ------------------------------------------------------------------------------------------------------

FAILURES = pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (ConnectionResetError("cut"), StoreUnavailableError),
        (TimeoutError(), StoreUnavailableError),
        (asyncio.CancelledError(), asyncio.CancelledError),
    ],
    ids=["cut", "late", "cancelled"],
)


def transaction_of(pool: Pool) -> PostgresTransaction:
    """The transaction of a step."""

    async def flush(_seconds_max: float | None) -> bool:
        return True

    return PostgresTransaction(PLACE, pool, Writing(lambda: None, None, []), flush=flush, end=lambda _pid: None)


@FAILURES
async def test_transaction_that_cannot_begin_gives_its_place_back(
    pool: Pool, failure: BaseException, expected: type[BaseException]
) -> None:
    """Nothing has happened, and it is not known what the server makes of that session."""
    session = await pool.take()
    pool.give(session)
    line_of(session).failure = failure

    with pytest.raises(expected) as caught:
        await transaction_of(pool).begin(seconds_max=10)

    assert type(caught.value) is expected
    await take_another(pool, session)


@FAILURES
async def test_transaction_that_cannot_be_rolled_back_gives_its_place_back(
    pool: Pool, failure: BaseException, expected: type[BaseException]
) -> None:
    """The server rolls back when the session is cut off; a caller that does not want anything of it hears nothing."""
    session = await pool.take()
    pool.give(session)
    transaction = await transaction_of(pool).begin(seconds_max=10)
    line_of(session).is_begun = True
    line_of(session).failure = failure

    if expected is asyncio.CancelledError:
        with pytest.raises(expected):
            await transaction.rollback()
    else:
        await transaction.rollback()

    await take_another(pool, session)


async def test_session_that_cannot_roll_back_is_cut_off(pool: Pool) -> None:
    """A session that cannot roll back is cut off, and its caller gets the error that came first."""
    session = await pool.take()

    async def fail() -> None:
        async with session.transaction():
            line_of(session).is_begun = True
            line_of(session).failure = TimeoutError()
            raise ValueError("what was wrong before")

    with pytest.raises(ValueError, match="what was wrong before"):
        await fail()

    pool.give(session)
    await take_another(pool, session)


@pytest.mark.parametrize(("failure", "sessions"), [(ConnectionResetError("cut"), 2), (TimeoutError(), 1)])
async def test_checkpoint_is_sent_again_only_after_a_cut(
    pool: Pool, server: Server, failure: Exception, sessions: int
) -> None:
    """A server that is late may be at it still: the caller gets the error that says that the outcome is unknown."""
    session = await pool.take()
    pool.give(session)
    line_of(session).failure = failure

    appending = append_checkpoint(pool, "run-1", (1, 1, 1, b"", None))
    if sessions == 1:
        with pytest.raises(CommitUnknownError):
            await in_time(appending)
    else:
        assert await in_time(appending)

    assert [line.asked for line in server.lines] == [1] * sessions


# -- A server that is away ---------------------------------------------------------------------------------------------


class CommitRetry:
    """How long the pools of one process wait before they try again; no time passes."""

    def __init__(self, server: Server, monkeypatch: pytest.MonkeyPatch, *, pid: int) -> None:
        self._server = server
        self.pauses: list[float] = []
        self.time = 100.0
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: self.time)
        monkeypatch.setattr(asyncio, "sleep", self._sleep)
        monkeypatch.setattr(os, "getpid", lambda: pid)

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.time += seconds

    async def try_often(self, pool: Pool, times: int) -> list[float]:
        """Ask a server that is away; the pauses before the tries."""
        self._server.away = StoreUnavailableError("there", "away")
        self.pauses.clear()
        for _ in range(times):
            with pytest.raises(StoreUnavailableError):
                await pool.take()
        return self.pauses.copy()


async def test_tries_to_connect_become_rarer_and_then_begin_at_once_again(
    pool: Pool, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that is starting is not met by a storm; one that has been back is not kept waiting."""
    growing = [BACKOFF_FIRST_SECONDS * 2**n for n in range(6)]
    with monkeypatch.context() as patch:
        patience = CommitRetry(server, patch, pid=0)

        assert await patience.try_often(pool, 10) == pytest.approx([*growing, *[BACKOFF_MAX_SECONDS] * 3])
        server.away = None
        for _ in range(2):
            pool.drop(await pool.take())
        assert len(patience.pauses) == 10
        assert await patience.try_often(pool, 3) == pytest.approx(growing[:2])
        patience.time += BACKOFF_MAX_SECONDS
        assert await patience.try_often(pool, 1) == []


async def test_processes_of_a_fleet_do_not_try_in_step(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each waits a little longer than the one before it, and none of them much longer."""
    pauses = []
    for pid in range(pools.SPREAD_STEPS):
        with monkeypatch.context() as patch:
            pauses += await CommitRetry(server, patch, pid=pid).try_often(Pool(PLACE, size=1), 2)

    assert pauses[0] == pytest.approx(BACKOFF_FIRST_SECONDS)
    assert pauses == sorted(set(pauses))
    assert pauses[-1] < 1.5 * BACKOFF_FIRST_SECONDS


async def test_session_that_is_given_back_during_the_pause_is_taken(server: Server) -> None:
    """Before anybody asks a server again that was away a moment ago."""
    pool = Pool(PLACE, size=2)
    session = await pool.take()
    server.away = StoreUnavailableError("there", "away")
    with pytest.raises(StoreUnavailableError):
        await pool.take()
    waiting = asyncio.ensure_future(pool.take())
    await asyncio.sleep(0)

    pool.give(session)

    assert await in_time(waiting) is session
    pool.give(session)
    await pool.close()


# -- A connection that comes free --------------------------------------------------------------------------------------


async def test_patient_caller_takes_what_another_gives_back(server: Server) -> None:
    """Before it makes a connection of its own; also one that is only being made."""
    pool = Pool(PLACE, size=3, patience=60)
    first, second, third = (asyncio.ensure_future(pool.take()) for _ in range(3))

    session = await in_time(first)
    assert not second.done()
    pool.give(session)
    assert await in_time(second) is session
    assert not third.done()
    pool.give(session)
    assert await in_time(third) is session

    assert len(server.lines) == 1
    pool.give(session)
    await pool.close()


async def test_patient_caller_makes_a_connection_if_none_comes_free(server: Server) -> None:
    """A patient caller makes a connection if none comes free, and takes the free one at once if the pool is full."""
    pool = Pool(PLACE, size=2, patience=0.001)

    first, second = await in_time(pool.take()), await in_time(pool.take())

    assert [first.pid, second.pid] == [1, 2]
    pool.give(second)
    assert await in_time(pool.take()) is second
    pool.give(first)
    pool.give(second)
    await pool.close()
    assert not any(line.is_open for line in server.lines)


async def test_patient_caller_that_is_cancelled_loses_no_connection(server: Server) -> None:
    """Neither before it is given one nor at that moment: then the next one has it."""
    pool = Pool(PLACE, size=4, patience=60)
    session = await pool.take()
    given_up, given, last = (asyncio.ensure_future(pool.take()) for _ in range(3))
    await asyncio.sleep(0)
    given_up.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    pool.give(session)
    given.cancel()

    assert await in_time(last) is session
    assert given_up.cancelled()
    assert given.cancelled()
    pool.give(session)
    assert pool.free == [session]
    assert len(server.lines) == 1
    await pool.close()


# -- A server that is full ---------------------------------------------------------------------------------------------


async def test_pool_that_gets_no_more_connections_uses_those_that_it_has(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pool that a full server refuses uses the connections that it has, and grows again when the server has room."""
    monkeypatch.setattr(pools, "BACKOFF_FIRST_SECONDS", 0.0)
    monkeypatch.setattr(pools, "BACKOFF_MAX_SECONDS", 0.001)
    pool = Pool(PLACE, size=2)
    server.limit = 1
    first = await pool.take()
    waiting = asyncio.ensure_future(pool.take())
    await asyncio.sleep(0)
    assert not waiting.done()
    pool.give(first)
    assert await in_time(waiting) is first

    server.limit = 2
    second = await in_time(pool.take())

    assert pool.pids == {first.pid, second.pid}
    pool.give(first)
    pool.give(second)
    await pool.close()


async def test_pool_without_a_connection_is_given_what_others_can_spare(server: Server) -> None:
    """They keep what they need themselves, and what is in use."""
    mine, theirs = Pool(PLACE, size=2), Pool(PLACE, size=4, kept=1)
    mine.others = [theirs]
    sessions = [await theirs.take() for _ in range(4)]
    for session in sessions[:3]:
        theirs.give(session)
    server.limit = 4

    got = await in_time(mine.take())

    assert [session.is_open for session in sessions] == [True, False, False, True]
    assert theirs.pids == {sessions[0].pid, sessions[3].pid}
    assert mine.pids == {got.pid}
    theirs.give(sessions[3])
    mine.give(got)
    await mine.close()
    await theirs.close()


async def test_pool_for_which_nothing_can_be_spared_says_so(pool: Pool, server: Server) -> None:
    """Instead of asking for ever; and it works as soon as there is room."""
    other = Pool(PLACE, size=1)
    pool.others = [other]
    server.limit = 0

    with pytest.raises(StoreUnavailableError, match="full"):
        await in_time(pool.take())

    server.limit = 1
    pool.give(await in_time(pool.take()))
    await other.close()


# -- The end -----------------------------------------------------------------------------------------------------------


async def test_pool_that_is_closed_says_farewell_and_cuts_off_who_holds_on(server: Server) -> None:
    """A server would keep the locks of a transaction that does not end; a line that fails while it is closed keeps
    none."""
    pool = Pool(PLACE, size=4)
    held, idle, broken, dirty = [await pool.take() for _ in range(4)]
    for session in (broken, idle):
        pool.give(session)
    pool.reset(dirty)
    line_of(broken).failure = ConnectionResetError("cut")

    await in_time(pool.close())

    assert not any(line.is_open for line in server.lines)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert [line_of(it).said_farewell for it in (held, idle, broken, dirty)] == [False, True, False, False]
    pool.give(held)
    assert not pool.pids & {held.pid}
