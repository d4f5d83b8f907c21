"""The handle with which a step writes: the verbs of an asyncpg connection, without verbs that end a transaction.

A statement that fails raises what the driver raises, and that is the step's own error. But if the session is gone, the
step is not to blame: then it gets `StoreUnavailableError`, and is called again when the store is back.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from enum import Enum
from typing import TYPE_CHECKING, Any

from outlive._kernel.store.postgres.address import PostgresAddress
from outlive._kernel.store.postgres.fault import DISK_FULL, ERRORS, is_last_word, sqlstate_of
from outlive._kernel.store.postgres.orm import open_session
from outlive.errors import StoreUnavailableError
from outlive.errors.store import TransactionRefusedError

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncSession

_OPAQUE = re.compile(
    r"\b[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|(\$\w*\$).*?\1|--[^\n]*|/\*.*?\*/",
    re.DOTALL,
)
"""Texts, names and comments: what stands in them is not SQL."""
_ENDING = re.compile(
    r"(BEGIN|START\s+TRANSACTION|COMMIT|END|ABORT|PREPARE\s+TRANSACTION"
    r"|ROLLBACK(?!\s+(?:WORK\s+|TRANSACTION\s+)?TO\b))\b",
    re.IGNORECASE,
)
_ALTERING = re.compile(r"role|authorization|set_config|synchronous_commit|reset|discard", re.IGNORECASE)
"""Words that may change who writes the journal, and how safely; a statement that only looks so costs little."""


class StepHandle:
    """The transaction of an async step; see `outlive._kernel.store.contract.Transaction`."""

    def __init__(self, connection: Callable[[], Any], address: PostgresAddress) -> None:
        self._get = connection
        self._address = address
        self._loop = asyncio.get_running_loop()
        self.is_altered = False
        """Whether the session may not be what it was."""

    @property
    def sync(self) -> SyncStepHandle:
        """A handle of this transaction for a function that runs on a thread."""
        return SyncStepHandle(self, self._loop)

    async def execute(self, query: str, /, *args: Any) -> str:
        """Run a statement and say what it did."""
        return str(await self._do("execute", query, *args))

    async def fetch(self, query: str, /, *args: Any) -> Any:
        """All rows that a statement gives."""
        return await self._do("fetch", query, *args)

    async def fetchrow(self, query: str, /, *args: Any) -> Any:
        """The first row, None if there is none."""
        return await self._do("fetchrow", query, *args)

    async def fetchval(self, query: str, /, *args: Any, column: int = 0) -> Any:
        """A value of the first row, None if there is none."""
        return await self._do("fetchval", query, *args, column=column)

    def sqlalchemy(self) -> AbstractAsyncContextManager[AsyncSession]:
        """The transaction as a session of SQLAlchemy."""
        return open_session(self._get, self._check, self._address)

    def _check(self, query: str) -> None:
        for statement in _OPAQUE.sub(" ", query).split(";"):
            if ending := _ENDING.match(statement.strip()):
                raise TransactionRefusedError(ending[1].upper())
        self.is_altered = self.is_altered or _ALTERING.search(query) is not None

    async def _do(self, verb: str, query: str, *args: Any, **options: Any) -> Any:
        connection = self._get()
        self._check(query)
        # The driver has no form for enums; all other types it writes as PostgreSQL has them.
        args = tuple(value.value if isinstance(value, Enum) else value for value in args)
        try:
            return await getattr(connection, verb)(query, *args, **options)
        except (AttributeError, *ERRORS) as error:
            # A transaction that was ended for taking too long says so. Between two requests of one statement, which
            # there are behind a pooler, the driver then stumbles over a protocol that is gone (AttributeError).
            self._get()
            if connection.is_closed() or is_last_word(error) or sqlstate_of(error) == DISK_FULL:
                raise StoreUnavailableError(str(self._address), str(error)) from error
            raise


class SyncStepHandle:
    """The transaction of a sync step. Every call blocks its thread."""

    def __init__(self, handle: StepHandle, loop: asyncio.AbstractEventLoop) -> None:
        self._handle = handle
        self._loop = loop

    def execute(self, query: str, /, *args: Any) -> str:
        """Run a statement and say what it did."""
        return str(self._wait(self._handle.execute(query, *args)))

    def fetch(self, query: str, /, *args: Any) -> Any:
        """All rows that a statement gives."""
        return self._wait(self._handle.fetch(query, *args))

    def fetchrow(self, query: str, /, *args: Any) -> Any:
        """The first row, None if there is none."""
        return self._wait(self._handle.fetchrow(query, *args))

    def fetchval(self, query: str, /, *args: Any, column: int = 0) -> Any:
        """A value of the first row, None if there is none."""
        return self._wait(self._handle.fetchval(query, *args, column=column))

    def _wait(self, work: Awaitable[Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(_await(work), self._loop).result()


async def _await(work: Awaitable[Any]) -> Any:
    return await work
