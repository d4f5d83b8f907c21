"""Connections: how they are made, kept few, used, and thrown away.

A pool holds at most so many connections and makes them when they are needed. A connection that failed in any way that
is not the plain answer of a server is thrown away, and the next one who needs it makes another. A verb that may happen
twice, such as one that only reads, does not hear of its first cut: it is asked again at once, over another connection.
While the server is away, everybody waits a little longer before each try (up to `BACKOFF_MAX_SECONDS`), together: a
server that is starting is not met by a storm.

Behind PgBouncer no session is ours: nothing is set, nothing is prepared under a name, and what would be a setting of
the session is a timeout on our side.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeAlias, TypeVar

import asyncpg

from outlive._store.postgres.fault import (
    CONFLICTS,
    ERRORS,
    Conflict,
    is_cut,
    is_useless,
    sqlstate_of,
    translate,
    translate_connect,
)
from outlive._store.postgres.place import Place
from outlive._store.postgres.query import statements

CONNECT_SECONDS = 5.0
STATEMENT_SECONDS = 30.0
"""For one statement; the server ends it after this, and we give up on the server a little later."""
LOCK_SECONDS = 10.0
PATIENCE_SECONDS = STATEMENT_SECONDS + 5
BACKOFF_FIRST_SECONDS = 0.05
BACKOFF_MAX_SECONDS = 2.0

_SETTINGS = {
    "application_name": "outlive",
    "jit": "off",
    "default_transaction_isolation": "read committed",
    "statement_timeout": str(round(STATEMENT_SECONDS * 1000)),
    "lock_timeout": str(round(LOCK_SECONDS * 1000)),
    "idle_in_transaction_session_timeout": str(round(STATEMENT_SECONDS * 1000)),
    # Plans are made once, when the tables may still be empty, and must be right when they are not.
    "enable_seqscan": "off",
}
USER_SETTINGS = {"application_name": "outlive", "default_transaction_isolation": "read committed"}
"""For a transaction that is a user's: its statements are theirs to plan and to time."""

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
T = TypeVar("T")
Verb = Callable[..., Coroutine[Any, Any, T]]
"""What is done with a session, which is its first argument."""


async def connect(
    place: Place, *, settings: dict[str, str] | None = None, timeout: float = CONNECT_SECONDS
) -> Connection:
    """Make one connection. A statement that a user sends over it with `USER_SETTINGS` takes as long as it takes.

    Raises:
        StoreUnavailableError: there is none to be had.
    """
    patience = None if settings is USER_SETTINGS else PATIENCE_SECONDS
    settings = dict(_SETTINGS if settings is None else settings)
    if "application_name=" in place.dsn:
        del settings["application_name"]  # The driver takes the one from the address only if we have none.
    options: dict[str, Any] = {"server_settings": settings}
    if place.pgbouncer:
        options = {"statement_cache_size": 0}
    try:
        return await asyncpg.connect(
            place.dsn,
            timeout=timeout,
            command_timeout=patience,
            max_cached_statement_lifetime=0,
            **options,
        )
    except (*ERRORS, ValueError) as error:
        raise translate_connect(error, place) from error


class Session:
    """A connection with the statements of one schema."""

    def __init__(self, connection: Connection, place: Place) -> None:
        self.connection = connection
        self.place = place
        self.pid = connection.get_server_pid()
        """The server's process; asked now, because a connection that is closed does not know it."""
        self.sql = statements(place.schema)
        self.calls = 0
        """Statements sent, for tests that count them."""
        self.is_doubtful = True
        """Whether what is on its way now may happen although we never hear of it."""

    @property
    def is_open(self) -> bool:
        """Whether the connection is there."""
        return not self.connection.is_closed()

    @property
    def is_in_transaction(self) -> bool:
        """Whether a transaction is open on it."""
        return self.is_open and self.connection.is_in_transaction()

    async def fetch(self, name: str, *values: Any) -> list[asyncpg.Record]:
        """Run the statement in the file of this name; its rows."""
        self.calls += 1
        return await self.connection.fetch(self.sql[name], *values, timeout=PATIENCE_SECONDS)

    async def run(self, statement: str) -> None:
        """Run a statement without parameters, such as BEGIN."""
        self.calls += 1
        await self.connection.execute(statement, timeout=PATIENCE_SECONDS)

    async def put(self, name: str, *values: Any) -> list[asyncpg.Record]:
        """The same as `fetch` for what may conflict.

        Raises:
            Conflict: it does; nothing of it was written.
        """
        try:
            return await self.fetch(name, *values)
        except asyncpg.PostgresError as error:
            if sqlstate_of(error) in CONFLICTS:
                raise Conflict(str(error)) from error
            raise

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """All statements in here, or none; only while it is being committed nobody knows."""
        self.is_doubtful = False
        await self.run("BEGIN")
        try:
            yield
            self.is_doubtful = True
            await self.run("COMMIT")
        except BaseException:
            if self.is_in_transaction:
                await self._roll_back()
            raise

    async def _roll_back(self) -> None:
        try:
            await self.run("ROLLBACK")
        except ERRORS:
            self.connection.terminate()  # What was wrong before is what the caller hears.


class Pool:
    """A few sessions, taken in turn; whoever finds none free waits."""

    def __init__(self, place: Place, *, size: int, settings: dict[str, str] | None = None) -> None:
        self._place = place
        self._settings = settings
        self._free: list[Session] = []
        self._slots = asyncio.Semaphore(size)
        self._failures = 0
        self._not_before = 0.0
        self._is_closed = False
        self._washing: set[asyncio.Task[None]] = set()
        self.pids: set[int] = set()
        """The server's processes that serve us."""

    async def take(self) -> Session:
        """A session of one's own until `give` or `drop`.

        Raises:
            StoreUnavailableError: the server is away.
        """
        await self._slots.acquire()
        try:
            while self._free:
                session = self._free.pop()
                if session.is_open:
                    return session
                self.pids.discard(session.pid)
            return await self._connect()
        except BaseException:
            self._slots.release()
            raise

    def give(self, session: Session) -> None:
        """Let others have it."""
        if not session.is_open or session.is_in_transaction or self._is_closed:
            self.drop(session)
            return
        self._free.append(session)
        self._slots.release()

    def drop(self, session: Session) -> None:
        """Throw it away."""
        session.connection.terminate()
        self.pids.discard(session.pid)
        self._slots.release()

    def wash(self, session: Session) -> None:
        """Let others have it, once nothing is left in it of what a user has set; nobody waits for that."""
        if self._place.pgbouncer or not session.is_open:
            self.give(session)  # A pooler's sessions are the pooler's to wash.
            return
        task = asyncio.get_running_loop().create_task(self._wash(session), name="outlive-postgres-wash")
        self._washing.add(task)
        task.add_done_callback(self._washing.discard)

    async def _wash(self, session: Session) -> None:
        try:
            await session.run(session.sql["wash_session"])
        except ERRORS:
            self.drop(session)
        except BaseException:
            self.drop(session)
            raise
        else:
            self.give(session)

    @asynccontextmanager
    async def session(self, *, is_write: bool) -> AsyncIterator[Session]:
        """A session for one verb; errors come out as the contract names them."""
        session = await self.take()
        session.is_doubtful = True
        try:
            yield session
        except ERRORS as error:
            if is_useless(error):
                self.drop(session)
            else:
                self.give(session)
            raise translate(error, self._place, is_write=is_write and session.is_doubtful) from error
        except BaseException:
            self.give(session)
            raise
        else:
            self.give(session)

    async def do(self, verb: Verb[T], *arguments: Any, is_write: bool) -> T:
        """Do something with a session of its own."""
        async with self.session(is_write=is_write) as session:
            return await verb(session, *arguments)

    async def do_repeatable(self, verb: Verb[T], *arguments: Any, is_write: bool) -> T:
        """The same for what may happen twice: if the line is cut, it is asked once more, over another."""
        async with self.session(is_write=is_write) as session:
            try:
                return await verb(session, *arguments)
            except ERRORS as error:
                if not is_cut(error):
                    raise
                session.connection.terminate()
        return await self.do(verb, *arguments, is_write=is_write)

    async def close(self) -> None:
        """Close what is free; what somebody still holds is closed when he gives it back."""
        self._is_closed = True
        if self._washing:
            await asyncio.wait(self._washing)
        free, self._free = self._free, []
        for session in free:
            try:
                await session.connection.close(timeout=CONNECT_SECONDS)
            except ERRORS:
                session.connection.terminate()

    async def _connect(self) -> Session:
        loop = asyncio.get_running_loop()
        if (pause := self._not_before - loop.time()) > 0:
            await asyncio.sleep(pause)
        try:
            connection = await connect(self._place, settings=self._settings)
        except BaseException:
            # Spread by the process, so that the workers of a fleet do not come back in step.
            spread = 1 + os.getpid() % 16 / 32
            pause = min(BACKOFF_MAX_SECONDS, BACKOFF_FIRST_SECONDS * 2**self._failures) * spread
            self._failures = min(self._failures + 1, 16)
            self._not_before = loop.time() + pause
            raise
        self._failures, self._not_before = 0, 0.0
        session = Session(connection, self._place)
        self.pids.add(session.pid)
        return session
