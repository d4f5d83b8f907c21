"""Hearing that something may be due, or that a run has something new for readers: LISTEN, on a connection of its own.

What another process makes due is announced in the same transaction (`pg_notify` in the statements that write), and what
it emits on a channel of its own, which a process listens to from its first reader on. Nothing depends on hearing it: a
connection that is lost is made again after a while, and all watchers and followers are woken once then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from outlive._kernel.store.postgres.address import PostgresAddress
from outlive._kernel.store.postgres.connection import CONNECT_SECONDS, Connection, connect
from outlive._kernel.store.postgres.fault import ERRORS
from outlive._kernel.store.postgres.pool import BACKOFF_FIRST_SECONDS
from outlive._kernel.store.postgres.query import statements
from outlive._kernel.store.postgres.rows import from_text
from outlive._tasks import own_task
from outlive.errors import StoreError
from outlive.telemetry import log

PING_SECONDS = 30.0
"""How often a silent connection is asked whether it is still there."""
PAUSE_MAX_SECONDS = 5.0


class Listener:
    """Calls all watchers when another process has made something due."""

    def __init__(self, address: PostgresAddress, *, is_own: Callable[[int], bool]) -> None:
        self._address = address
        self._is_own = is_own
        self._ringers: list[Callable[[str], None]] = []
        self._followers: list[Callable[[str], None]] = []
        self._rings_channel = ""
        self._connection: Connection | None = None
        self._task: asyncio.Task[None] | None = None

    def watch(self, ring: Callable[[str], None]) -> None:
        """Ring here too: with the name of the cell that has changed, or with ""."""
        self._ringers.append(ring)
        self._begin()

    def follow(self, channel: str, ring: Callable[[str], None]) -> None:
        """Ring here when a process tells on this channel of a run; with "", look at all of them."""
        self._followers.append(ring)
        is_new, self._rings_channel = not self._rings_channel, channel
        if is_new and self._connection is not None:
            # A connection that is lost meanwhile is made again, and listens to both then.
            own_task(self._listen_to_rings(self._connection), name="outlive-postgres-follow")
        self._begin()

    def _begin(self) -> None:
        if self._task is None:
            self._task = own_task(self._run(), name="outlive-postgres-listener")

    async def close(self) -> None:
        """Listen no more."""
        task, self._task = self._task, None
        self._ringers.clear()
        self._followers.clear()
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    def _hear(self, _connection: object, pid: int, _channel: str, cell: object) -> None:
        # This process knows already which runs it made due.
        if not self._is_own(pid):
            self._ring(from_text(str(cell)))

    def _hear_of_run(self, _connection: object, pid: int, _channel: str, run_id: object) -> None:
        if not self._is_own(pid):
            self._ring_followers(from_text(str(run_id)))

    def _ring_followers(self, run_id: str) -> None:
        for ring in self._followers:
            ring(run_id)

    def _ring(self, cell: str = "") -> None:
        for ring in self._ringers:
            ring(cell)

    async def _run(self) -> None:
        pause = BACKOFF_FIRST_SECONDS
        while True:
            try:
                await self._listen()
                pause = BACKOFF_FIRST_SECONDS
            except (StoreError, *ERRORS):
                pause = min(PAUSE_MAX_SECONDS, pause * 2)
            except Exception:  # Without this, one defect of a driver would leave the process deaf for good.
                log.exception("listening to the database failed; it begins again in a while")
                pause = min(PAUSE_MAX_SECONDS, pause * 2)
            await asyncio.sleep(pause)

    async def _listen(self) -> None:
        """Listen until the connection is lost."""
        connection = await connect(self._address, settings={"application_name": "outlive listener"})
        try:
            lost = asyncio.Event()
            connection.add_termination_listener(lambda _: lost.set())
            await connection.add_listener(self._address.schema, self._hear)
            # Something may have been announced while no one listened.
            self._ring()
            self._connection = connection
            if self._rings_channel:
                await self._listen_to_rings(connection)
            await _until_lost(connection, lost)
        finally:
            self._connection = None
            connection.terminate()

    async def _listen_to_rings(self, connection: Connection) -> None:
        with suppress(*ERRORS):
            await connection.add_listener(self._rings_channel, self._hear_of_run)
            # Commits that ring are announced while this connection lives (functions/commit_changes.sql).
            lock = statements(self._address.schema)["lock_followed"]
            await connection.execute(lock, self._rings_channel, timeout=CONNECT_SECONDS)
            self._ring_followers("")


async def _until_lost(connection: Connection, lost: asyncio.Event) -> None:
    end = asyncio.ensure_future(lost.wait())
    try:
        while not lost.is_set():
            await asyncio.wait([end], timeout=PING_SECONDS)
            if not lost.is_set():
                # Not an empty statement: asyncpg 0.32 raises AttributeError for the answer to one.
                await connection.execute("SELECT", timeout=CONNECT_SECONDS)
    finally:
        end.cancel()
