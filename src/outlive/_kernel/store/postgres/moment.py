"""One session that sees the whole store as it was at one moment, for as long as it is open.

It takes the place of the pool that verbs read with. PostgreSQL keeps the rows of that moment until it is closed, so
that a long one lets tables grow.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from outlive._kernel.store.postgres.address import PostgresAddress
from outlive._kernel.store.postgres.connection import Session, connect
from outlive._kernel.store.postgres.examine import ONE_MOMENT
from outlive._kernel.store.postgres.fault import ERRORS, translate
from outlive._kernel.store.postgres.pool import Pool, SessionVerb
from outlive.errors import StoreUnavailableError

REQUESTS_ASKED = 1
PATIENT = "SET LOCAL idle_in_transaction_session_timeout = 0"
"""The caller may be busy with what it has read for longer than a transaction of ours may stand still."""

T = TypeVar("T")


class MomentSession(Session):
    """A session in which a transaction is open already."""

    @asynccontextmanager
    async def transaction(self, *, begin: str = "BEGIN") -> AsyncIterator[None]:
        """All statements see the same moment anyhow."""
        assert begin == ONE_MOMENT, "nothing is written in such a transaction"
        yield


class Moment(Pool):
    """A pool with one session, which is never replaced: another one would see another moment."""

    def __init__(self, address: PostgresAddress) -> None:
        super().__init__(address, size=1)
        self._session: MomentSession | None = None

    async def begin(self) -> bool:
        """Take the moment; False if runs or messages were only requested at that moment, and have to be made first."""
        await self.end()
        session = MomentSession(await connect(self._address), self._address)
        try:
            await session.run(f"{ONE_MOMENT}; {PATIENT}")
            requested = await session.fetch("find_requests", None, REQUESTS_ASKED)
        except ERRORS as error:
            session.connection.terminate()
            raise translate(error, self._address, is_write=False) from error
        self._session = session
        return not requested

    async def end(self) -> None:
        """Let the moment go."""
        session, self._session = self._session, None
        if session is not None:
            session.connection.terminate()  # It has read, and nothing else.

    async def take(self) -> Session:
        """See `Pool`."""
        await self._room.acquire()
        if self._session is None or not self._session.is_open:
            self._room.release()
            raise StoreUnavailableError(str(self._address), "the connection was lost; begin again")
        return self._session

    def give(self, session: Session) -> None:
        """See `Pool`."""
        self._room.release()

    def drop(self, session: Session) -> None:
        """See `Pool`."""
        session.connection.terminate()
        self._room.release()

    async def do_repeatable(self, verb: SessionVerb[T], *arguments: Any, is_write: bool) -> T:
        """See `Pool`. Nothing is repeated: what a second session would see is another moment."""
        return await self.do(verb, *arguments, is_write=is_write)
