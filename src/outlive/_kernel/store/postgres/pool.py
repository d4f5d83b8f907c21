"""Connections kept few: how they are shared, and thrown away.

A pool holds at most so many connections and makes them when they are needed. A connection that failed in any way that
is not the plain answer of a server is thrown away, and the next one who needs it makes another. A verb that may happen
twice, such as one that only reads, does not hear of its first cut: it is asked again at once, over another connection.
While the server is away, all callers wait a little longer before each try (up to `BACKOFF_MAX_SECONDS`), together: a
server that is starting is not met by a storm.

A connection costs the server more than most verbs: a process of its own, which plans every statement once more. So a
pool with `patience` makes another one only if no connection that it has, or is making, comes free meanwhile.

A server may have no connection left for us. Then a caller waits for a connection of its pool; if the pool has none, the
other pools close what they can spare. A few connections are enough to get everything done.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from outlive._kernel.store.contract import CLOSE_SECONDS
from outlive._kernel.store.postgres.address import PostgresAddress
from outlive._kernel.store.postgres.connection import Session, connect
from outlive._kernel.store.postgres.fault import ERRORS, is_cut, is_full, is_useless, translate
from outlive._tasks import own_task
from outlive.errors import StoreUnavailableError

BACKOFF_FIRST_SECONDS = 0.05
BACKOFF_MAX_SECONDS = 2.0
SPREAD_STEPS = 16
SPREAD_STEP = 1 / 32
"""By how much of a pause the process with the next number waits longer."""

T = TypeVar("T")
SessionVerb = Callable[..., Coroutine[Any, Any, T]]
"""A function of a session, which is its first argument."""


class Pool:
    """A few sessions, taken in turn; a caller that finds none free waits.

    `kept` free sessions stay open, even if another pool has none. A caller waits `patience` seconds for a session in
    use before it makes another.
    """

    def __init__(
        self,
        address: PostgresAddress,
        *,
        size: int,
        settings: dict[str, str] | None = None,
        kept: int = 1,
        patience: float = 0.0,
    ) -> None:
        self._address = address
        self._kept = kept
        self._patience = patience
        self._settings = settings
        self.free: list[Session] = []
        """Sessions that no caller has; one that the server has ended is noticed when it is taken."""
        self._taken: set[Session] = set()
        self._room = asyncio.Semaphore(size)
        self._connecting = 0
        self._hoping: deque[asyncio.Future[Session]] = deque()
        """Callers that wait for a session in use, the first first."""
        self._pause = BACKOFF_FIRST_SECONDS
        self._not_before = 0.0
        self._is_closed = False
        self._resetting: set[asyncio.Task[None]] = set()
        self.pids: set[int] = set()
        """The server's processes that serve us."""
        self.waiting: set[asyncio.Task[Any] | None] = set()
        """Verbs that have no session yet."""
        self.others: list[Pool] = []
        """Pools that want connections of the same server."""
        self.connected: Callable[[Session], Awaitable[None]] | None = None
        """Called with each new connection, before it is used."""
        self.is_left: Callable[[Session], bool] = lambda _: False
        """Whether a connection leads to a server that another one has replaced: it is thrown away."""

    async def take(self) -> Session:
        """A session of one's own until `give` or `drop`.

        Raises:
            StoreUnavailableError: the server is away.
        """
        while True:
            await self._room.acquire()
            try:
                session = self._pop() or await self._await_free() or await self._connect()
            except BaseException as error:
                if not isinstance(error, StoreUnavailableError) or not is_full(error.__cause__):
                    self._room.release()
                    raise
                if self.pids:
                    # Their users give them back; the pool is smaller by this one for a while.
                    asyncio.get_running_loop().call_later(BACKOFF_MAX_SECONDS, self._room.release)
                    continue
                self._room.release()
                if not sum(other.close_idle() for other in self.others):
                    raise
            else:
                self._taken.add(session)
                return session

    def close_idle(self) -> int:
        """Close what is free and can be done without; how many that are."""
        spared, self.free = self.free[self._kept :], self.free[: self._kept]
        for session in spared:
            session.connection.terminate()
            self.pids.discard(session.pid)
        return len(spared)

    def _pop(self) -> Session | None:
        while self.free:
            session = self.free.pop()
            if session.is_open and not self.is_left(session):
                return session
            session.connection.terminate()
            self.pids.discard(session.pid)
        return None

    async def _await_free(self) -> Session | None:
        """One that another caller gives back in time; a caller who has waited in vain makes one."""
        if not self._patience or not (self._taken or self._connecting):
            return None
        hope: asyncio.Future[Session] = asyncio.get_running_loop().create_future()
        self._hoping.append(hope)
        try:
            await asyncio.wait([hope], timeout=self._patience)
        except asyncio.CancelledError:
            if hope.done():
                self._pass_on(hope.result())
            raise
        finally:
            if not hope.done():
                self._hoping.remove(hope)
        return hope.result() if hope.done() else None

    def give(self, session: Session) -> None:
        """Let others have it."""
        if not session.is_open or session.is_in_transaction or self._is_closed or self.is_left(session):
            self.drop(session)
            return
        self._room.release()
        self._pass_on(session)

    def _pass_on(self, session: Session) -> None:
        if self._hoping:
            self._hoping.popleft().set_result(session)  # It stays taken meanwhile.
        else:
            self._taken.discard(session)
            self.free.append(session)

    def drop(self, session: Session) -> None:
        """Throw it away."""
        session.connection.terminate()
        self._taken.discard(session)
        self.pids.discard(session.pid)
        self._room.release()

    def reset(self, session: Session) -> None:
        """Let others have it, once nothing is left in it of what a user has set; no caller waits for that."""
        if self._address.pgbouncer or not session.is_open:
            self.give(session)  # The pooler resets its own sessions.
            return
        task = own_task(self._reset(session), name="outlive-postgres-reset")
        self._resetting.add(task)
        task.add_done_callback(self._resetting.discard)

    async def _reset(self, session: Session) -> None:
        try:
            await session.run(session.sql["reset_session"])
        except ERRORS:
            self.drop(session)
        except BaseException:
            self.drop(session)
            raise
        else:
            self.give(session)

    @asynccontextmanager
    async def session(self, *, is_write: bool) -> AsyncIterator[Session]:
        """A session for one verb; errors come out as the contract names them."""
        task = asyncio.current_task()
        self.waiting.add(task)
        try:
            session = await self.take()
        finally:
            self.waiting.discard(task)
        session.is_doubtful = True
        try:
            yield session
        except ERRORS as error:
            if is_useless(error):
                self.drop(session)
            else:
                self.give(session)
            raise translate(error, self._address, is_write=is_write and session.is_doubtful) from error
        except BaseException:
            self.give(session)
            raise
        else:
            self.give(session)

    async def do(self, verb: SessionVerb[T], *arguments: Any, is_write: bool) -> T:
        """Do something with a session of its own."""
        async with self.session(is_write=is_write) as session:
            return await verb(session, *arguments)

    async def do_repeatable(self, verb: SessionVerb[T], *arguments: Any, is_write: bool) -> T:
        """Do something that may happen twice: if the connection is cut, it is tried once more over another one."""
        async with self.session(is_write=is_write) as session:
            try:
                return await verb(session, *arguments)
            except ERRORS as error:
                if not is_cut(error):
                    raise
                session.connection.terminate()
        return await self.do(verb, *arguments, is_write=is_write)

    async def close(self, *, seconds: float = CLOSE_SECONDS) -> None:
        """Close everything. What is still in use is cut off: a step that was given up may have it,
        and would keep what its transaction has locked for as long as it likes. So is what cannot be closed in time."""
        self._is_closed = True
        free, self.free = self.free, []
        closing = asyncio.gather(*(_close(session, seconds) for session in free))
        if self._resetting:
            await asyncio.wait(self._resetting, timeout=max(0.0, seconds))
        for session in self._taken:
            session.connection.terminate()
        await closing

    async def _connect(self) -> Session:
        loop = asyncio.get_running_loop()
        if (pause := self._not_before - loop.time()) > 0:
            await asyncio.sleep(pause)
            if (given := self._pop()) is not None:
                return given
        self._connecting += 1
        try:
            session = await self._new_session()
            if not session.is_open:  # The line was cut before any verb used it: no caller needs to hear of that.
                session = await self._new_session()
        except BaseException:
            # Spread by the process, so that the workers of a fleet do not come back in step.
            spread = 1 + os.getpid() % SPREAD_STEPS * SPREAD_STEP
            self._not_before = loop.time() + self._pause * spread
            self._pause = min(BACKOFF_MAX_SECONDS, self._pause * 2)
            raise
        finally:
            self._connecting -= 1
        self._pause, self._not_before = BACKOFF_FIRST_SECONDS, 0.0
        self.pids.add(session.pid)
        return session

    async def _new_session(self) -> Session:
        session = Session(await connect(self._address, settings=self._settings), self._address)
        try:
            if self.connected is not None:
                await self.connected(session)
        except BaseException:
            session.connection.terminate()
            raise
        return session


async def _close(session: Session, seconds: float) -> None:
    with suppress(*ERRORS):  # One that does not close in time is aborted by the driver.
        await session.connection.close(timeout=seconds)
