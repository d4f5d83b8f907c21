"""Connections to PostgreSQL that stay open for the next store.

A test of conformance takes a few milliseconds, and the server needs many for each new connection: a process of its own,
which learns of all tables and plans every statement. So a store that closes a connection gives it back here, and the
next store of the same event loop gets it. One that a store has thrown away, or that has a transaction, is gone.
"""

from __future__ import annotations

from typing import Any

from outlive._kernel.store.postgres.address import PostgresAddress
from outlive._kernel.store.postgres.connection import Connection, connect


class LastingConnections:
    """Connections that no store has at the moment, by their address."""

    def __init__(self) -> None:
        self._free: dict[PostgresAddress, list[Connection]] = {}

    async def connect(self, address: PostgresAddress, *, settings: dict[str, str] | None = None) -> Any:
        """In place of `outlive._kernel.store.postgres.connection.connect`."""
        if settings is not None:
            return await connect(address, settings=settings)  # A user may do anything with it.
        free = self._free.setdefault(address, [])
        while free:
            connection = free.pop()
            if not connection.is_closed():
                return Lent(connection, free)
        return Lent(await connect(address), free)

    async def close(self) -> None:
        """Close them all."""
        for connection in (it for free in self._free.values() for it in free):
            await connection.close()


class Lent:
    """A connection for one store: for it, closed is closed."""

    def __init__(self, connection: Connection, free: list[Connection]) -> None:
        self._connection = connection
        self._free = free
        self._is_closed = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def is_closed(self) -> bool:
        """For this store."""
        return self._is_closed or self._connection.is_closed()

    def terminate(self) -> None:
        """For all."""
        self._is_closed = True
        self._connection.terminate()

    async def close(self, *, timeout: float) -> None:
        """For this store; for all, if something is left in it."""
        if self._connection.is_in_transaction():
            await self._connection.close(timeout=timeout)
        elif not self.is_closed():
            self._free.append(self._connection)
        self._is_closed = True
