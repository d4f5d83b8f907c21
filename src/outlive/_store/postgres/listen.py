"""Hearing that something may be due: LISTEN, on a connection of its own.

What another process makes due is announced in the same transaction (`pg_notify` in the statements that write). Nothing
depends on hearing it: a connection that is lost is made again after a while, and all watchers are woken once then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from outlive._store.postgres.address import PostgresAddress
from outlive._store.postgres.connection import CONNECT_SECONDS, Connection, connect
from outlive._store.postgres.fault import ERRORS
from outlive._store.postgres.pool import BACKOFF_FIRST_SECONDS
from outlive._tasks import own_task
from outlive.errors import StoreError

PING_SECONDS = 30.0
"""How often a silent connection is asked whether it is still there."""
PAUSE_MAX_SECONDS = 5.0


class Listener:
    """Calls all watchers when another process has made something due."""

    def __init__(self, address: PostgresAddress, *, is_own: Callable[[int], bool]) -> None:
        self._address = address
        self._is_own = is_own
        self._ringers: list[Callable[[], None]] = []
        self._task: asyncio.Task[None] | None = None

    def watch(self, ring: Callable[[], None]) -> None:
        """Ring here too."""
        self._ringers.append(ring)
        if self._task is None:
            self._task = own_task(self._run(), name="outlive-postgres-listener")

    async def close(self) -> None:
        """Listen no more."""
        task, self._task = self._task, None
        self._ringers.clear()
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    def _hear(self, _connection: object, pid: int, _channel: str, _payload: object) -> None:
        # What this process made due, it knows already.
        if not self._is_own(pid):
            self._ring()

    def _ring(self) -> None:
        for ring in self._ringers:
            ring()

    async def _run(self) -> None:
        pause = BACKOFF_FIRST_SECONDS
        while True:
            try:
                await self._listen()
                pause = BACKOFF_FIRST_SECONDS
            except (StoreError, *ERRORS):
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
            await _until_lost(connection, lost)
        finally:
            connection.terminate()


async def _until_lost(connection: Connection, lost: asyncio.Event) -> None:
    end = asyncio.ensure_future(lost.wait())
    try:
        while not lost.is_set():
            await asyncio.wait([end], timeout=PING_SECONDS)
            if not lost.is_set():
                await connection.execute("", timeout=CONNECT_SECONDS)
    finally:
        end.cancel()
