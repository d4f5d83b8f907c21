"""Connections: how one is made, and what is done with it.

Behind PgBouncer no session is ours: nothing is set, nothing is prepared under a name, and what would be a setting of
the session is a timeout on our side. How connections are kept few, and what happens when one is lost, is described in
`outlive._kernel.store.postgres.pool`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, TypeAlias

import asyncpg

from outlive._kernel.store.postgres.address import PostgresAddress
from outlive._kernel.store.postgres.fault import (
    CONFLICTS,
    ERRORS,
    sqlstate_of,
    translate_connect,
)
from outlive._kernel.store.postgres.query import search_statement, statements
from outlive._kernel.store.tables.journal_rows import Conflict

CONNECT_SECONDS = 5.0
STATEMENT_SECONDS = 30.0
"""For one statement; the server ends it after this, and we give up on the server a little later."""
STATEMENT_KEPT_SECONDS = 0
"""How long a statement stays prepared; 0 is for as long as the connection."""
LOCK_SECONDS = 10.0
PATIENCE_SECONDS = STATEMENT_SECONDS + 5
HURRIED = "BEGIN; SET LOCAL idle_in_transaction_session_timeout = 1000"
"""Begins a transaction of a few short statements that others wait for. The server ends it if this process stands still
in the middle of it: a queue, or a limit, must not stand still with one of its users."""

_SETTINGS = {
    "application_name": "outlive",
    "jit": "off",
    "default_transaction_isolation": "read committed",
    "statement_timeout": str(round(STATEMENT_SECONDS * 1000)),
    "lock_timeout": str(round(LOCK_SECONDS * 1000)),
    "idle_in_transaction_session_timeout": str(round(STATEMENT_SECONDS * 1000)),
    # Plans are made once, when the tables may still be empty, and must be right when they are not.
    "enable_seqscan": "off",
    # Both read all that an index finds before the first row, also for a page of fifty out of a million: a plan that
    # does not know its values takes a million for a few.
    "enable_bitmapscan": "off",
    "enable_sort": "off",
}
USER_SETTINGS = {"application_name": "outlive", "default_transaction_isolation": "read committed"}
"""For a transaction that is a user's: its statements are theirs to plan and to time."""

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

FIRST_USER_TYPE = 16_384
"""The types below this oid are PostgreSQL's own, and the same on every server."""
_known_types: dict[frozenset[int], Any] = {}


class _Introspection(NamedTuple):
    """Stands for the statement that asked for types, on a connection that did not have to ask."""

    name: str = "known"


class _TypeCachingConnection(asyncpg.Connection):
    """Learns once in a process what PostgreSQL's own types are, such as an array of texts.

    The driver asks on each connection, and this question costs the server more than all others of a new one. If a
    later driver asks in another way, this does nothing.
    """

    async def _introspect_types(self, typeoids: set[int], timeout: float | None) -> Any:
        wanted = frozenset(typeoids)
        if (types := _known_types.get(wanted)) is not None:
            return types, _Introspection()
        types, statement = await super()._introspect_types(typeoids, timeout)  # type: ignore[misc]
        if max(wanted) < FIRST_USER_TYPE:
            _known_types[wanted] = types
        return types, statement


async def connect(
    address: PostgresAddress, *, settings: dict[str, str] | None = None, timeout: float = CONNECT_SECONDS
) -> Connection:
    """Make one connection. A statement that a user sends over it with `USER_SETTINGS` takes as long as it takes.

    Raises:
        StoreUnavailableError: there is none to be had.
    """
    patience = None if settings is USER_SETTINGS else PATIENCE_SECONDS
    settings = dict(_SETTINGS if settings is None else settings)
    if "application_name=" in address.dsn:
        del settings["application_name"]  # The driver takes the one from the address only if we have none.
    options: dict[str, Any] = {"server_settings": settings}
    if address.pgbouncer:
        options = {"statement_cache_size": 0}
    try:
        return await asyncpg.connect(
            address.dsn,
            timeout=timeout,
            command_timeout=patience,
            max_cached_statement_lifetime=STATEMENT_KEPT_SECONDS,
            connection_class=_TypeCachingConnection,
            **options,
        )
    except (*ERRORS, ValueError) as error:
        raise translate_connect(error, address) from error


class Session:
    """A connection with the statements of one schema."""

    def __init__(self, connection: Connection, address: PostgresAddress) -> None:
        self.connection = connection
        self.address = address
        self.pid = connection.get_server_pid()
        """The server's process; asked now, because a connection that is closed does not know it."""
        self.sql = statements(address.schema)
        self.incarnation: tuple[str, int] | None = None
        """The server that it leads to, and its timeline, once they are known; see `Incarnation`."""
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
        return await self.connection.fetch(self.sql[name], *values, timeout=PATIENCE_SECONDS)

    async def search(self, name: str, values: Mapping[str, Any]) -> list[asyncpg.Record]:
        """Run a statement that lists or counts runs, with values by name; its rows."""
        statement, names = search_statement(self.address.schema, name)
        return await self.connection.fetch(statement, *map(values.__getitem__, names), timeout=PATIENCE_SECONDS)

    async def run(self, statement: str) -> None:
        """Run a statement without parameters, such as BEGIN."""
        await self.connection.execute(statement, timeout=PATIENCE_SECONDS)

    async def put(self, name: str, *values: Any) -> list[asyncpg.Record]:
        """Run a statement that may conflict; its rows.

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
    async def transaction(self, *, begin: str = "BEGIN") -> AsyncIterator[None]:
        """All statements in here, or none; only while it is being committed its outcome is unknown."""
        self.is_doubtful = False
        await self.run(begin)
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
            self.connection.terminate()  # The caller hears of the earlier error.
