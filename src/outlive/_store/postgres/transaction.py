"""A transaction that is half a user's: a step writes its rows in it, and the journal its event, all or nothing.

The step is given a handle (`handle`) that can do everything but end the transaction. A transaction that takes too long
is ended for it, together with its connection: whatever statement it is in the middle of ends too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import asyncpg

from outlive._store.contract import Change, Outcome
from outlive._store.postgres.batch import Batch, count_births
from outlive._store.postgres.commit import Outcomes, Writing
from outlive._store.postgres.connection import Pool, Session
from outlive._store.postgres.fault import ERRORS, Conflict, is_lost, sqlstate_of, translate
from outlive._store.postgres.handle import StepHandle
from outlive._store.postgres.place import Place
from outlive.errors import CommitUnknownError, StoreError, StoreUnavailableError, TransactionOverError

_FAILED = "25P02"
"""The SQLSTATE of a transaction in which a statement has failed."""
_BROKEN = "23"
"""How every SQLSTATE of a broken constraint begins."""


class PostgresTransaction:
    """See `Transaction`."""

    def __init__(self, place: Place, pool: Pool, writing: Writing, flush: Callable[[], Awaitable[None]]) -> None:
        self._place = place
        self._pool = pool
        self._writing = writing
        self._flush = flush
        self._session: Session | None = None
        self._transaction: Any = None
        self._timer: asyncio.TimerHandle | None = None
        self._over = "it has not begun"
        self.handle = StepHandle(self._connection, place)

    async def begin(self, *, seconds_max: float) -> PostgresTransaction:
        """Begin; waits for a connection if all are in use."""
        session = await self._pool.take()
        try:
            transaction = session.connection.transaction(isolation="read_committed")
            await transaction.start()
        except ERRORS as error:
            self._pool.drop(session)
            raise StoreUnavailableError(str(self._place), str(translate(error, self._place, is_write=False))) from error
        except BaseException:
            self._pool.drop(session)
            raise
        self._session, self._transaction, self._over = session, transaction, ""
        self._timer = asyncio.get_running_loop().call_later(seconds_max, self._expire, seconds_max)
        return self

    def _connection(self) -> Any:
        """What the handle works with.

        Raises:
            TransactionOverError: there is nothing to work with any more.
        """
        if self._session is None:
            raise TransactionOverError(self._over)
        return self._session.connection

    def _expire(self, seconds_max: float) -> None:
        session, self._session = self._session, None
        if session is not None:
            self._over = f"it took more than {seconds_max:g} s and was rolled back"
            self._pool.drop(session)

    async def commit(self, changes: Sequence[Change]) -> Outcomes:
        """See `Transaction`."""
        session = self._take("it was committed")
        is_committing = False
        try:
            # What was given to the store before comes before.
            await self._flush()
            outcomes = await self._append(session, changes)
            if outcomes is None:
                return [(Outcome.CONFLICT, change.journal) for change in changes]
            is_committing = True
            await self._transaction.commit()
        except ERRORS as error:
            if is_committing and sqlstate_of(error).startswith(_BROKEN):
                raise  # A constraint of the user's that is judged at the end: their step fails with it.
            raise self._explain(error, is_committing=is_committing) from error
        else:
            return outcomes
        finally:
            await self._let_go(session)

    def _take(self, over: str) -> Session:
        """The session, which from now on is nobody else's."""
        session, self._session = self._session, None
        if session is None:
            raise TransactionOverError(self._over)
        self._over = over
        if self._timer is not None:
            self._timer.cancel()
        return session

    async def _append(self, session: Session, changes: Sequence[Change]) -> Outcomes | None:
        """Write the changes; None if one of them conflicts."""
        count = count_births(changes)
        try:
            batch = Batch(await self._writing.reserve(session, count) if count else ())
            for change in changes:
                batch.add(change)
            values = batch.values(now=self._writing.time(), channel=self._writing.channel)
            ((lost, _),) = await session.put("commit_changes", *values)
        except Conflict:
            return None
        outcomes = batch.outcomes(lost)
        return outcomes if all(outcome is Outcome.COMMITTED for outcome, _ in outcomes) else None

    def _explain(self, error: BaseException, *, is_committing: bool) -> StoreError:
        if sqlstate_of(error) == _FAILED:
            return TransactionOverError("one of its statements failed; let the step raise what the statement raised")
        if is_committing and (is_lost(error) or isinstance(error, asyncpg.InterfaceError)):
            return CommitUnknownError(str(self._place), f"{error!r} (while committing)")
        return translate(error, self._place, is_write=False)

    async def rollback(self) -> None:
        """See `Transaction`."""
        if self._session is not None:
            await self._let_go(self._take("it was rolled back"))

    async def _let_go(self, session: Session) -> None:
        try:
            if session.is_in_transaction:
                await self._transaction.rollback()
        except ERRORS:
            self._pool.drop(session)
        except BaseException:
            self._pool.drop(session)
            raise
        else:
            self._pool.give(session)
