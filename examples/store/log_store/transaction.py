"""The transaction of a step: its tables are in the file of the log, so that one COMMIT makes both durable.

While it is open no other process can write, and the writes of this one wait. When it commits, they go with it and come
first: the worker may have given the store a change of the same tree just before.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import apsw

from outlive.stores import (
    Change,
    Outcome,
    Row,
    StatementResult,
    TaskHandle,
    TransactionOverError,
    run_statement,
)

if TYPE_CHECKING:
    from examples.store.log_store.store import LogStore


class LogTransaction:
    """See `Transaction`."""

    def __init__(self, store: LogStore, *, seconds_max: float) -> None:
        self._store = store
        self._seconds = seconds_max
        self._ends_at = time.monotonic() + seconds_max
        self._over = ""
        self._timer = asyncio.get_running_loop().call_later(seconds_max, self._expire)
        self.handle = TaskHandle(self._ask)

    async def commit(self, changes: Sequence[Change], *, behind: Row | None = None) -> list[tuple[Outcome, int]]:
        """See `Transaction`."""
        if self._over:
            await self.rollback()
            raise TransactionOverError(self._over)
        self._close("it has ended")
        return await self._store.end_transaction(changes, behind)

    async def rollback(self) -> None:
        """See `Transaction`."""
        if self._store.transaction is self:
            self._close("it was rolled back")
            await self._store.end_transaction()

    def gave_way(self, error: BaseException) -> bool:
        """See `Transaction`: never, because one transaction at a time writes."""
        return False

    def abandon(self, reason: str) -> None:
        """Roll back, if it is not over; no caller waits for it."""
        if self._store.transaction is self:
            self._close(reason)
            self._store.end_transaction_soon()

    def _close(self, reason: str) -> None:
        self._over = self._over or reason
        self._timer.cancel()

    def _expire(self) -> None:
        self.abandon(self._lateness())

    def _lateness(self) -> str:
        return f"it was open for {self._seconds:g} s and was rolled back; do what takes long in another step"

    def _is_late(self) -> bool:
        return time.monotonic() >= self._ends_at

    def _ask(self, query: str, args: tuple[Any, ...]) -> Future[StatementResult]:
        if self._over:
            refused: Future[StatementResult] = Future()
            refused.set_exception(TransactionOverError(self._over))
            return refused
        return self._store.on_thread(self._run, query, args)

    def _run(self, query: str, args: tuple[Any, ...]) -> StatementResult:
        """On the thread of the store."""
        log = self._store.log
        if not log.has_begun():
            raise TransactionOverError(self._over or "SQLite gave it up")
        try:
            with log.interrupted(self._is_late):
                return run_statement(log.connection, query, args)
        except apsw.InterruptError as error:
            self._over = self._lateness()
            log.roll_back()
            raise TransactionOverError(self._over) from error
        except apsw.Error as error:
            if not log.has_begun():
                self._over = f"SQLite gave it up ({error})"
            raise
