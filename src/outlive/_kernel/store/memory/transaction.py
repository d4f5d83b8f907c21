"""Users' own tables beside the dictionaries: a SQLite database in memory, and one transaction of it at a time.

The database is as private as the state that it belongs to. Its transaction and a change of the dictionaries are one
thing because nothing can happen between the two: no verb of this store awaits. A transaction whose time is up is rolled
back by the event loop's clock, as everything else here goes by a clock that a test may hold still.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Lock
from typing import Any

import apsw

from outlive._kernel.journal.codec import Row
from outlive._kernel.store.contract import Change, Outcome
from outlive._kernel.store.tables.handle import TaskHandle
from outlive._kernel.store.tables.statement import StatementResult, run
from outlive.errors.store import TransactionOverError

STEPS_PER_LOOK = 10_000
"""Steps of SQLite's machine between two looks at the clock, in a statement that takes long."""

Outcomes = list[tuple[Outcome, int]]
Commit = Callable[[Sequence[Change], Row | None], tuple[Outcomes, Callable[[], None]]]
"""Writes all changes or none, and gives a way back."""


class Tables:
    """The database, and who may write to it."""

    def __init__(self) -> None:
        self._connection: apsw.Connection | None = None
        self._holder: MemoryTransaction | None = None
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def connection(self) -> apsw.Connection:
        """The database, made when it is first needed."""
        if self._connection is None:
            self._connection = apsw.Connection(":memory:")
            self._connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
            self._connection.config(apsw.SQLITE_DBCONFIG_ENABLE_FKEY, 1)
        return self._connection

    async def begin(self, commit: Commit, *, seconds_max: float) -> MemoryTransaction:
        """Wait until no other transaction is open, and begin."""
        while self._holder is not None:
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if not waiter.cancelled():
                    self._call_next()
                raise
        self._holder = MemoryTransaction(self, commit, seconds_max=seconds_max)
        return self._holder

    def end(self, transaction: MemoryTransaction) -> None:
        """Let the next one begin."""
        if self._holder is transaction:
            self._holder = None
            self._call_next()

    def _call_next(self) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done() and not waiter.get_loop().is_closed():
                waiter.set_result(None)
                return


class MemoryTransaction:
    """A transaction of the database in memory, and a change of the dictionaries with it."""

    def __init__(self, tables: Tables, commit: Commit, *, seconds_max: float) -> None:
        self._tables, self._commit, self._seconds = tables, commit, seconds_max
        self._lock = Lock()
        self._over = ""
        self.handle = TaskHandle(self._ask)
        tables.connection.execute("BEGIN")
        self._loop = asyncio.get_running_loop()
        self._deadline = self._loop.time() + seconds_max
        self._timer = self._loop.call_later(seconds_max, self._expire)
        # The loop cannot end a statement that keeps its thread: the statement has to look at the clock itself.
        tables.connection.set_progress_handler(self._is_late, STEPS_PER_LOOK)

    async def commit(self, changes: Sequence[Change], *, behind: Row | None = None) -> Outcomes:
        """See `Transaction`."""
        with self._lock:
            if self._over:
                self._tables.end(self)
                raise TransactionOverError(self._over)
            outcomes, go_back = self._commit(changes, behind)
            has_won = all(outcome is Outcome.COMMITTED for outcome, _ in outcomes)
            try:
                self.finish("it has ended", "COMMIT" if has_won else "ROLLBACK")
            except apsw.ConstraintError:  # One that is judged when the transaction ends.
                go_back()
                self.finish("SQLite refused what it wrote", "ROLLBACK")
                raise
            return outcomes

    async def rollback(self) -> None:
        """See `Transaction`."""
        self.abandon("it was rolled back")

    def gave_way(self, error: BaseException) -> bool:
        """See `Transaction`: never, because one transaction at a time writes."""
        return False

    def abandon(self, reason: str) -> None:
        """Roll back, if it is not over yet."""
        with self._lock:
            if self._over:
                self._tables.end(self)
            else:
                self.finish(reason, "ROLLBACK")

    def _expire(self) -> None:
        self.abandon(self._lateness())

    def _is_late(self) -> bool:
        return self._loop.time() >= self._deadline

    def _lateness(self) -> str:
        return f"it was open for {self._seconds:g} s and was rolled back; do what takes long in another step"

    def finish(self, reason: str, statement: str) -> None:
        """End it with COMMIT or ROLLBACK; `reason` is what later uses are refused with."""
        self._over = reason
        self._timer.cancel()
        self._tables.connection.set_progress_handler(None)
        if self._tables.connection.in_transaction:
            self._tables.connection.execute(statement)
        self._tables.end(self)

    def _ask(self, query: str, args: tuple[Any, ...]) -> Future[StatementResult]:
        """Run a statement in the thread that asks; there is nothing to wait for."""
        future: Future[StatementResult] = Future()
        with self._lock:
            try:
                if self._over:
                    raise TransactionOverError(self._over)
                if self._is_late():
                    raise apsw.InterruptError  # The loop may be too busy to call the timer.
                future.set_result(run(self._tables.connection, query, args))
            except apsw.InterruptError:
                # The timer, which is late too, lets the next one begin: this may be any thread.
                self._over = self._lateness()
                if self._tables.connection.in_transaction:
                    self._tables.connection.execute("ROLLBACK")
                future.set_exception(TransactionOverError(self._over))
            except Exception as error:
                future.set_exception(error)
                if not self._over and not self._tables.connection.in_transaction:
                    self._over = f"SQLite gave it up ({error})"
        return future
