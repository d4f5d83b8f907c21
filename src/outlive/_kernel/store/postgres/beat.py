"""Renewing a lease: blocking, and on a connection of its own.

The driver knows only event loops, so a beat has a small one of its own, on a thread of its own. The keeper waits
for it, but never longer than a third of the lease.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from outlive._kernel.store.contract import CLOSE_SECONDS
from outlive._kernel.store.postgres.address import PostgresAddress
from outlive._kernel.store.postgres.claim import microseconds
from outlive._kernel.store.postgres.connection import Session, connect
from outlive._kernel.store.postgres.fault import ERRORS, translate
from outlive._kernel.store.postgres.incarnation import Incarnation
from outlive._kernel.store.postgres.time import StoreTime
from outlive._kernel.store.tables.session_rows import forgotten
from outlive.errors import StoreUnavailableError
from outlive.errors.store import StoreWentBackError

LEASE_SHARE = 1 / 3
"""How much of a lease one renewal may take."""
SLACK_SECONDS = 0.5

T = TypeVar("T")


class PostgresBeat:
    """Renews the lease of one session."""

    def __init__(self, address: PostgresAddress, worker_id: str, *, time: StoreTime, incarnation: Incarnation) -> None:
        self._address = address
        self._incarnation = incarnation
        self._renewed = 0
        """Until when the lease was renewed the last time. A store that says less has gone back since."""
        self._worker_id = worker_id
        self._time = time
        self._thread: ThreadPoolExecutor | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._session: Session | None = None

    def renew(self, *, lease_seconds: float) -> bool:
        """See `Beat`."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "outlive-postgres-beat")
            self._loop = asyncio.new_event_loop()
        assert self._loop is not None
        try:
            answer = self._thread.submit(_run, self._loop, self._renew, lease_seconds)
        except RuntimeError as error:
            raise StoreUnavailableError(str(self._address), "the interpreter ends") from error
        try:
            return answer.result(lease_seconds * LEASE_SHARE + SLACK_SECONDS)
        except TimeoutError as error:
            raise StoreUnavailableError(str(self._address), "no answer in time") from error

    async def _renew(self, lease_seconds: float) -> bool:
        deadline = asyncio.get_running_loop().time() + lease_seconds * LEASE_SHARE
        if self._session is None or not self._session.is_open:
            self._session = Session(await connect(self._address, timeout=lease_seconds * LEASE_SHARE), self._address)
        session = self._session
        left = max(0.001, deadline - asyncio.get_running_loop().time())
        # Behind a pooler the same connection may lead to another server at any time.
        if (change := await self._incarnation.look(session, timeout=left)) is not None:
            raise change
        left = max(0.001, deadline - asyncio.get_running_loop().time())
        values = self._time.given(), self._worker_id, microseconds(lease_seconds), self._renewed
        try:
            renewed = await session.connection.fetch(session.sql["renew_worker"], *values, timeout=left)
            if renewed:
                self._renewed = renewed[0]["expires_at"]
                return True
            rows = await session.connection.fetch(session.sql["read_lease"], self._worker_id, timeout=left)
        except ERRORS as error:
            self._session = None
            session.connection.terminate()
            raise StoreUnavailableError(
                str(self._address), translate(error, self._address, is_write=False).args[0]
            ) from error
        if not rows or not rows[0]["is_retired"]:
            raise StoreWentBackError(
                str(self._address), forgotten(self._worker_id, rows[0]["expires_at"] if rows else None)
            )
        return False

    def close(self) -> None:
        """See `Beat`."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        assert self._loop is not None
        # Python ends the threads of pools before the threads that use them: then no thread is left to close it.
        with suppress(RuntimeError):
            thread.submit(_run, self._loop, self._close)
            thread.submit(self._loop.close)
        thread.shutdown(wait=True)

    async def _close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            with suppress(*ERRORS):  # One that does not close in time is aborted by the driver.
                await session.connection.close(timeout=CLOSE_SECONDS)


def _run(loop: asyncio.AbstractEventLoop, work: Callable[..., Coroutine[Any, Any, T]], *arguments: Any) -> T:
    # The coroutine is made here: one that is never run is a warning.
    return loop.run_until_complete(work(*arguments))
