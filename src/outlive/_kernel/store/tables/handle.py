"""The verbs of a step's transaction, for a task and for a thread.

Who runs the statement is the store's affair: a handle asks, and hears through a future.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NoReturn

from outlive._kernel.store.tables.statement import StatementResult, TableRecord
from outlive.errors import ConfigurationError

StatementAsk = Callable[[str, tuple[Any, ...]], "Future[StatementResult]"]


class BlockingHandle:
    """The transaction of a sync step."""

    def __init__(self, ask: StatementAsk) -> None:
        self._ask = ask

    def execute(self, query: str, /, *args: Any) -> str:
        """See `SyncTx`."""
        return self._ask(query, args).result().status

    def fetch(self, query: str, /, *args: Any) -> list[TableRecord]:
        """See `SyncTx`."""
        return self._ask(query, args).result().records

    def fetchrow(self, query: str, /, *args: Any) -> TableRecord | None:
        """See `SyncTx`."""
        return _first(self._ask(query, args).result())

    def fetchval(self, query: str, /, *args: Any, column: int = 0) -> Any:
        """See `SyncTx`."""
        return _value(self._ask(query, args).result(), column)


class TaskHandle:
    """The transaction of an async step."""

    def __init__(self, ask: StatementAsk) -> None:
        self._ask = ask
        self.sync = BlockingHandle(ask)
        """A handle of this transaction for a function that runs on a thread."""

    async def execute(self, query: str, /, *args: Any) -> str:
        """See `Tx`."""
        return (await _hear(self._ask(query, args))).status

    async def fetch(self, query: str, /, *args: Any) -> list[TableRecord]:
        """See `Tx`."""
        return (await _hear(self._ask(query, args))).records

    async def fetchrow(self, query: str, /, *args: Any) -> TableRecord | None:
        """See `Tx`."""
        return _first(await _hear(self._ask(query, args)))

    def sqlalchemy(self) -> NoReturn:
        """See `Tx`."""
        raise ConfigurationError(
            "tx.sqlalchemy() is for PostgreSQL: SQLAlchemy has no driver that could share the connection of a store on "
            "SQLite or in memory; use tx.execute and tx.fetch, or compile the statement of SQLAlchemy to text"
        )

    async def fetchval(self, query: str, /, *args: Any, column: int = 0) -> Any:
        """See `Tx`."""
        return _value(await _hear(self._ask(query, args)), column)


async def _hear(answer: Future[StatementResult]) -> StatementResult:
    """Wait for an answer, and let others have a turn even if it is there: `wrap_future` of Python 3.14 does not."""
    if answer.done():
        await asyncio.sleep(0)
    return await asyncio.wrap_future(answer)


def _first(answer: StatementResult) -> TableRecord | None:
    return answer.records[0] if answer.records else None


def _value(answer: StatementResult, column: int) -> Any:
    return answer.records[0][column] if answer.records else None
