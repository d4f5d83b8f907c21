"""A transaction that is half a user's: a step writes its rows in it, and the journal its event, all or nothing.

The step is given a handle (`handle`) that can do everything but end the transaction. A transaction that takes too long
is ended for it, together with its connection. The server would not notice before the end of the statement that it is in
the middle of, and keep all locks until then: so the store ends its session (`end`).

Whatever a step sets in its session (a role, a search path, a temporary table) is its own: the journal is written
without it, and the next step does not find it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import asyncpg

from outlive._kernel.journal.codec import Row
from outlive._kernel.store.contract import Change, Outcome
from outlive._kernel.store.postgres.address import PostgresAddress
from outlive._kernel.store.postgres.commit import Outcomes, Writing, commit_carefully, write_at_once
from outlive._kernel.store.postgres.connection import Session
from outlive._kernel.store.postgres.fault import (
    ERRORS,
    is_lost,
    is_refusal,
    is_useless,
    made_way,
    sqlstate_of,
    translate,
)
from outlive._kernel.store.postgres.handle import StepHandle
from outlive._kernel.store.postgres.pool import Pool
from outlive._kernel.store.postgres.read import read_journal
from outlive._kernel.store.tables.journal_rows import Conflict
from outlive._kernel.store.tables.order import names_in
from outlive.errors import CommitUnknownError, StoreError, StoreUnavailableError
from outlive.errors.store import TransactionOverError

SLACK_SECONDS = 5
FLUSH_SECONDS_MAX = 2.0
"""Behind a pooler: how long the commits before it may keep a transaction, and so one of the pooler's connections."""
_FAILED = "25P02"
"""The SQLSTATE of a transaction in which a statement has failed."""


class PostgresTransaction:
    """See `Transaction`."""

    def __init__(
        self,
        address: PostgresAddress,
        pool: Pool,
        writing: Writing,
        *,
        flush: Callable[[float | None], Awaitable[bool]],
        end: Callable[[int], None],
    ) -> None:
        self._address = address
        self._pool = pool
        self._writing = writing
        self._flush = flush
        self._end = end
        self._session: Session | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._over = "it has not begun"
        self.handle = StepHandle(self._connection, address)

    async def begin(self, *, seconds_max: float) -> PostgresTransaction:
        """Begin; waits for a connection if all are in use."""
        session = await self._pool.take()
        try:
            # The server ends it if we vanish, while it waits for us or computes; else we are the first to know.
            limit = round((seconds_max + SLACK_SECONDS) * 1000)
            await session.run(
                "BEGIN ISOLATION LEVEL READ COMMITTED;"
                f" SET LOCAL idle_in_transaction_session_timeout = {limit}; SET LOCAL statement_timeout = {limit}"
            )
        except ERRORS as error:
            self._pool.drop(session)
            raise StoreUnavailableError(
                str(self._address), str(translate(error, self._address, is_write=False))
            ) from error
        except BaseException:
            self._pool.drop(session)
            raise
        self._session, self._over = session, ""
        self._timer = asyncio.get_running_loop().call_later(seconds_max, self._expire, seconds_max)
        return self

    def _connection(self) -> Any:
        """The connection that the handle works with.

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
            self._end(session.pid)

    async def commit(self, changes: Sequence[Change], *, behind: Row | None = None) -> Outcomes:
        """See `Transaction`."""
        session = self._take("it was committed")
        is_committing = False
        try:
            await self._wait_for_earlier()
            if session.is_open and not session.is_in_transaction:
                raise TransactionOverError("one of its statements has ended it")
            if self.handle.is_altered:
                await session.run(session.sql["reset_role"])
            if behind is not None and [behind] != await read_journal(session, changes[0].journal, behind[0] - 1, 1):
                return [(Outcome.CONFLICT, change.journal) for change in changes]
            outcomes = await self._append(session, changes)
            if outcomes is None:
                return [(Outcome.CONFLICT, change.journal) for change in changes]
            is_committing = True
            await session.run("COMMIT")
        except ERRORS as error:
            if is_useless(error):
                session.connection.terminate()
            if made_way(error) or (is_committing and is_refusal(error)):
                raise  # So do the user's constraints and triggers at the end: their step fails with it.
            raise self._explain(error, is_committing=is_committing) from error
        else:
            return outcomes
        finally:
            await self._let_go(session)

    async def _wait_for_earlier(self) -> None:
        """Wait until the commits that were given to the store before this one are written.

        Raises:
            StoreUnavailableError: behind a pooler, all of its connections are taken, maybe by transactions that wait
            as this one does. One that gives up lets the others go on.
        """
        if not await self._flush(FLUSH_SECONDS_MAX if self._address.pgbouncer else None):
            reason = "the pooler has no connection left for the commits before this one; raise its default_pool_size"
            raise StoreUnavailableError(str(self._address), reason)

    def _take(self, over: str) -> Session:
        """The session, which from now on is the caller's alone."""
        session, self._session = self._session, None
        if session is None:
            raise TransactionOverError(self._over)
        self._over = over
        if self._timer is not None:
            self._timer.cancel()
        return session

    async def _append(self, session: Session, changes: Sequence[Change]) -> Outcomes | None:
        """Write the changes; None if one of them conflicts."""
        names_others = bool(names_in(changes))
        if names_others:
            await session.run("SAVEPOINT changes")
        try:
            outcomes = await write_at_once(session, changes, self._writing)
        except Conflict:
            if not names_others:
                return None
            # Perhaps only a tree that they start has to be left out, or one that was asked for created first.
            await session.run("ROLLBACK TO changes")
            outcomes = await commit_carefully(session, changes, self._writing)
        return outcomes if all(outcome is Outcome.COMMITTED for outcome, _ in outcomes) else None

    def _explain(self, error: BaseException, *, is_committing: bool) -> StoreError:
        if sqlstate_of(error) == _FAILED:
            return TransactionOverError("one of its statements failed; let the step raise what the statement raised")
        if is_committing and (is_lost(error) or isinstance(error, asyncpg.InterfaceError)):
            return CommitUnknownError(str(self._address), f"{error!r} (while committing)")
        return translate(error, self._address, is_write=False)

    async def rollback(self) -> None:
        """See `Transaction`."""
        if self._session is not None:
            await self._let_go(self._take("it was rolled back"))

    def gave_way(self, error: BaseException) -> bool:
        """See `Transaction`."""
        return made_way(error)

    async def _let_go(self, session: Session) -> None:
        try:
            if session.is_in_transaction:
                await session.run("ROLLBACK")
        except ERRORS:
            self._pool.drop(session)
        except BaseException:
            self._pool.drop(session)
            raise
        else:
            self._pool.reset(session)
