"""A transaction that is half a user's: a step writes its rows in it, and the journal its event, all or nothing.

The step is given a connection that can do everything but end the transaction.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import asyncpg

from outlive._store.contract import Change, Outcome
from outlive._store.postgres.batch import Batch, count_births
from outlive._store.postgres.commit import Outcomes, Writing
from outlive._store.postgres.connection import Pool, Session
from outlive._store.postgres.fault import ERRORS, Conflict, is_lost, sqlstate_of, translate
from outlive._store.postgres.place import Place
from outlive.errors import CommitUnknownError, ConfigurationError, StoreError, StoreUnavailableError

_FORBIDDEN = {"close", "terminate", "reset", "add_listener", "remove_listener", "reload_schema_state"}
_ENDING = re.compile(
    r"\s*(COMMIT|ROLLBACK(?!\s+(WORK\s+|TRANSACTION\s+)?TO\b)|END|ABORT|PREPARE\s+TRANSACTION)\b", re.I
)
_FAILED = "25P02"


class StepConnection:
    """What a step gets: an asyncpg connection in an open transaction that only the engine can end."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        if name in _FORBIDDEN:
            raise ConfigurationError(f"a step may not call {name}() on its transaction: it commits with the journal")
        found = getattr(self._connection, name)
        return _guarded(found) if name in ("execute", "executemany", "fetch", "fetchrow", "fetchval") else found


def _guarded(call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    def checked(query: str, *args: Any, **options: Any) -> Awaitable[Any]:
        if ending := _ENDING.match(query):
            raise ConfigurationError(
                f"a step may not say {ending[1].upper()}: the journal commits its transaction; raise to roll it back"
            )
        return call(query, *args, **options)

    return checked


class PostgresTransaction:
    """See `Transaction`."""

    def __init__(self, place: Place, pool: Pool, writing: Writing, flush: Callable[[], Awaitable[None]]) -> None:
        self._place = place
        self._pool = pool
        self._writing = writing
        self._flush = flush
        self._session: Session | None = None
        self._transaction: Any = None
        self._handle: StepConnection | None = None

    async def begin(self) -> PostgresTransaction:
        """Begin; waits for a connection if all are in use."""
        session = await self._pool.take()
        transaction = session.connection.transaction(isolation="read_committed")
        try:
            await transaction.start()
        except ERRORS as error:
            self._pool.drop(session)
            raise StoreUnavailableError(str(self._place), str(translate(error, self._place, is_write=False))) from error
        except BaseException:
            self._pool.drop(session)
            raise
        self._session, self._transaction = session, transaction
        self._handle = StepConnection(session.connection)
        return self

    @property
    def handle(self) -> StepConnection:
        """See `Transaction`."""
        assert self._handle is not None
        return self._handle

    async def commit(self, changes: Sequence[Change]) -> Outcomes:
        """See `Transaction`."""
        session = self._session
        if session is None:
            raise StoreError("this transaction is over")
        is_committing = False
        try:
            # What was given to the store before comes before.
            await self._flush()
            if not session.connection.is_in_transaction():
                raise ConfigurationError("the step has ended its transaction itself; nothing may end it but the engine")
            outcomes = await self._append(session, changes)
            if outcomes is None:
                return [(Outcome.CONFLICT, change.journal) for change in changes]
            is_committing = True
            await self._transaction.commit()
        except ERRORS as error:
            raise self._explain(error, is_committing=is_committing) from error
        else:
            return outcomes
        finally:
            await self.rollback()

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
            return StoreError(
                "a statement of the step failed, so its transaction cannot be committed; let the step raise"
            )
        if is_committing and (is_lost(error) or isinstance(error, asyncpg.InterfaceError)):
            return CommitUnknownError(str(self._place), f"{error!r} (while committing)")
        return translate(error, self._place, is_write=is_committing)

    async def rollback(self) -> None:
        """See `Transaction`."""
        session, self._session = self._session, None
        if session is None:
            return
        try:
            if session.connection.is_in_transaction():
                await self._transaction.rollback()
            self._pool.give(session)
        except ERRORS:
            self._pool.drop(session)
        except BaseException:
            self._pool.drop(session)
            raise
