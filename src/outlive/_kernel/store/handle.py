"""The handle of a step with a transaction: a few verbs in the shapes of asyncpg, the same on every store.

Parameters are written `$1`, `$2` and so on. A statement that fails raises the error of the database's own driver. A
transaction belongs to one task or one thread: one call at a time.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncSession


class Record(Protocol):
    """One row: `row[0]` and `row["name"]` are values, and so is what it iterates over."""

    def __getitem__(self, key: Any, /) -> Any:
        """The value at this place or of this column."""

    def __len__(self) -> int:
        """How many columns it has."""

    def __iter__(self) -> Iterator[Any]:
        """The values in the order of the columns."""

    def get(self, key: str, default: Any = None, /) -> Any:
        """The value of this column, or `default` if there is none of this name."""

    def items(self) -> ItemsView[str, Any] | Iterator[tuple[str, Any]]:
        """Names and values."""


class SyncTx(Protocol):
    """The transaction of a sync step. Every call blocks its thread."""

    def execute(self, query: str, /, *args: Any) -> str:
        """Run a statement and say what it did: `INSERT 0 1`, `UPDATE 3`, `DELETE 0`."""

    def fetch(self, query: str, /, *args: Any) -> Sequence[Record]:
        """All rows that a statement gives."""

    def fetchrow(self, query: str, /, *args: Any) -> Record | None:
        """The first row, None if there is none."""

    def fetchval(self, query: str, /, *args: Any, column: int = 0) -> Any:
        """A value of the first row, None if there is none."""


class Tx(Protocol):
    """The transaction of an async step."""

    @property
    def sync(self) -> SyncTx:
        """A handle of this transaction for a function that runs on a thread."""

    async def execute(self, query: str, /, *args: Any) -> str:
        """Run a statement and say what it did: `INSERT 0 1`, `UPDATE 3`, `DELETE 0`."""

    async def fetch(self, query: str, /, *args: Any) -> Sequence[Record]:
        """All rows that a statement gives."""

    async def fetchrow(self, query: str, /, *args: Any) -> Record | None:
        """The first row, None if there is none."""

    async def fetchval(self, query: str, /, *args: Any, column: int = 0) -> Any:
        """A value of the first row, None if there is none."""

    def sqlalchemy(self) -> AbstractAsyncContextManager[AsyncSession]:
        """A session of SQLAlchemy in this transaction, on PostgreSQL: `async with tx.sqlalchemy() as session:`. It is
        flushed when the block ends, and commits with the journal.

        Raises:
            ConfigurationError: on another store, or SQLAlchemy is not installed.
        """
