"""The transaction of a step as a session of SQLAlchemy, so that a step can use the models of its application.

SQLAlchemy is given the connection that the transaction is open on, and believes that every statement commits by itself:
so it neither begins nor ends anything. The session works in a savepoint. Its `commit` releases that, its `rollback`
goes back to it, and what is released commits with the journal. SQLAlchemy is imported by the first step that asks.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any

from outlive._kernel.store.postgres.address import PostgresAddress
from outlive.errors import ConfigurationError, StoreUnavailableError

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession

_LENT: ContextVar[Any] = ContextVar("outlive_lent_connection")


class LentConnection:
    """A connection of asyncpg that its user cannot end, and that is as it was when it is given back."""

    def __init__(self, connection: Callable[[], Any], check: Callable[[str], None]) -> None:
        self._get = connection
        self._check = check
        self._codecs: list[tuple[str, str]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._get(), name)

    async def prepare(self, query: str, **options: Any) -> Any:
        """Prepare a statement of SQLAlchemy, which is not to end the transaction."""
        self._check(query)
        return await self._get().prepare(query, **options)

    async def executemany(self, query: str, rows: Any, **options: Any) -> Any:
        """Run a statement for many rows."""
        self._check(query)
        return await self._get().executemany(query, rows, **options)

    async def close(self, **options: Any) -> None:
        """Nothing: it is the store's."""

    def terminate(self) -> None:
        """Nothing: it is the store's."""

    async def set_type_codec(self, name: str, *, schema: str = "public", **options: Any) -> None:
        """Read and write a type as SQLAlchemy does, JSON for example, until the connection is given back."""
        await self._get().set_type_codec(name, schema=schema, **options)
        self._codecs.append((name, schema))

    async def give_back(self) -> None:
        """Forget what was set; a connection that cannot do that is of no use to others."""
        connection = self._get()
        try:
            for name, schema in self._codecs:
                await connection.reset_type_codec(name, schema=schema)
        except BaseException:
            connection.terminate()
            raise


@asynccontextmanager
async def open_session(
    connection: Callable[[], Any], check: Callable[[str], None], address: PostgresAddress
) -> AsyncIterator[AsyncSession]:
    """A session in the transaction that is open on a connection; committed into it on leaving the block.

    Raises:
        ConfigurationError: SQLAlchemy is not installed.
        StoreUnavailableError: the connection is lost.
    """
    try:
        from sqlalchemy.ext.asyncio import AsyncSession
    except ImportError as error:
        wanted = "run: pip install 'sqlalchemy[asyncio]'"
        raise ConfigurationError(f"tx.sqlalchemy() needs SQLAlchemy, and it is missing ({error}); {wanted}") from error
    lent = LentConnection(connection, check)
    _LENT.set(lent)
    options: Any = {"join_transaction_mode": "create_savepoint", "expire_on_commit": False}
    try:
        try:
            async with _engine(address).connect() as adapted:
                await adapted.begin()
                async with AsyncSession(adapted, **options) as session:
                    yield session
                    await session.commit()
        finally:
            await lent.give_back()
    except Exception as error:
        if connection().is_closed():
            raise StoreUnavailableError(str(address), str(error)) from error
        raise


@cache
def _engine(address: PostgresAddress) -> AsyncEngine:
    """An engine of SQLAlchemy that knows the server; it has no connection of its own."""
    from sqlalchemy import NullPool
    from sqlalchemy.ext.asyncio import create_async_engine

    # No statement is kept or has a name: behind a pooler it would meet that of another client.
    options = {"prepared_statement_cache_size": 0, "prepared_statement_name_func": str}
    return create_async_engine(
        "postgresql+asyncpg://",
        async_creator=_lend,
        poolclass=NullPool,
        isolation_level="AUTOCOMMIT",
        connect_args=options,
    )


async def _lend(**options: Any) -> Any:
    return _LENT.get()
