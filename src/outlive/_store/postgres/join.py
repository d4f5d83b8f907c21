"""Creating a tree in a transaction that is open on a user's own connection.

One statement with one JSON text, so that every driver can run it: asyncpg, psycopg (async and blocking) and SQLAlchemy
(both, connections and sessions). None of them is imported: a connection is known by the module of its class, and
whoever has one has imported its driver. Blocking ones are used on a thread, because their caller waits anyway.
"""

from __future__ import annotations

import asyncio
import base64
import re
import sys
from typing import Any

from outlive._store.contract import Change, Outcome
from outlive._store.postgres.query import RUN_COLUMNS
from outlive._store.postgres.rows import birth_of
from outlive._store.tables.rows import to_json
from outlive.errors import ConfigurationError

_PARAMETER = re.compile(r"\$(\d)")
_KINDS = {
    ("asyncpg", "Connection"): "asyncpg",
    ("asyncpg", "PoolConnectionProxy"): "asyncpg",
    ("psycopg", "AsyncConnection"): "psycopg async",
    ("psycopg", "Connection"): "psycopg",
    ("sqlalchemy", "AsyncConnection"): "sqlalchemy async",
    ("sqlalchemy", "AsyncSession"): "sqlalchemy async",
    ("sqlalchemy", "async_scoped_session"): "sqlalchemy async",
    ("sqlalchemy", "Connection"): "sqlalchemy",
    ("sqlalchemy", "Session"): "sqlalchemy",
    ("sqlalchemy", "scoped_session"): "sqlalchemy",
}
"""By package and class; a class that derives from one of these counts too."""
KNOWN = (
    "asyncpg.Connection, psycopg.AsyncConnection, psycopg.Connection, and SQLAlchemy's AsyncConnection, AsyncSession, "
    "Connection and Session"
)


def tree_of(change: Change) -> str:
    """A change that creates a tree, as the JSON text of join_tree.sql."""
    assert not change.journal, "only a new tree can join a transaction"
    extras = [change.starts, change.messages, change.items, change.renames, change.consumed, change.heir_of]
    assert not any(extras), "only a new tree and nothing else can join a transaction"
    is_ended = any(run.number == 0 and run.status.is_terminal for run in change.runs)
    last = change.rows[-1][0]
    rows = [
        {"seq": seq, "format": format_, "crc": crc, "is_last": is_ended and seq == last, "body": _base64(body)}
        for seq, format_, crc, body in change.rows
    ]
    runs = [dict(zip(RUN_COLUMNS, birth_of(run, key=None, journal=0), strict=True)) for run in change.runs]
    blobs = [{"id": blob.id, "data": _base64(blob.data)} for blob in change.blobs]
    return to_json(
        {"rows": rows, "runs": runs, "blobs": blobs, "tagged": [run.number for run in change.runs if run.tags]}
    )


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


async def join(connection: Any, statement: str, values: tuple[Any, ...]) -> Outcome:
    """Run join_tree.sql in the transaction that is open on a user's connection."""
    key = await _run(connection, statement, values)
    return Outcome.CONFLICT if key is None else Outcome.COMMITTED


async def _run(connection: Any, statement: str, values: tuple[Any, ...]) -> Any:
    match _kind_of(connection):
        case "asyncpg":
            _check(connection.is_in_transaction())
            return await connection.fetchval(statement, *values)
        case "psycopg async":
            _check(not connection.autocommit or _is_in_psycopg_transaction(connection))
            cursor = connection.cursor(row_factory=sys.modules["psycopg"].rows.tuple_row)
            await cursor.execute(_percent(statement), values)
            return (await cursor.fetchone())[0]
        case "psycopg":
            _check(not connection.autocommit or _is_in_psycopg_transaction(connection))
            return await asyncio.to_thread(_run_psycopg, connection, statement, values)
        case "sqlalchemy async":
            return (await connection.execute(*_named(statement, values))).scalar()
        case _:
            return await asyncio.to_thread(_run_sqlalchemy, connection, statement, values)


def _kind_of(connection: Any) -> str:
    for base in type(connection).__mro__:
        kind = _KINDS.get((base.__module__.partition(".")[0], base.__name__))
        if kind is not None:
            return kind
    raise ConfigurationError(
        f"a {type(connection).__module__}.{type(connection).__qualname__} is no connection that a run can be started "
        f"on; known are {KNOWN}"
    )


def _check(is_in_transaction: bool) -> None:  # noqa: FBT001 (it is all there is to say)
    if not is_in_transaction:
        raise ConfigurationError("no transaction is open on this connection; begin one, and commit it after the start")


def _is_in_psycopg_transaction(connection: Any) -> bool:
    return bool(connection.info.transaction_status.name == "INTRANS")


def _run_psycopg(connection: Any, statement: str, values: tuple[Any, ...]) -> Any:
    cursor = connection.cursor(row_factory=sys.modules["psycopg"].rows.tuple_row)
    cursor.execute(_percent(statement), values)
    return cursor.fetchone()[0]


def _run_sqlalchemy(connection: Any, statement: str, values: tuple[Any, ...]) -> Any:
    return connection.execute(*_named(statement, values)).scalar()


def _percent(statement: str) -> str:
    """With psycopg's placeholders; they stand in the order of the values."""
    return _with_parameters(statement.replace("%", "%%"), "%s")


def _named(statement: str, values: tuple[Any, ...]) -> tuple[Any, dict[str, Any]]:
    """With SQLAlchemy's placeholders."""
    text = _with_parameters(statement.replace(":", r"\:"), r":value_\1")
    return sys.modules["sqlalchemy"].text(text), {f"value_{n}": value for n, value in enumerate(values, 1)}


def _with_parameters(statement: str, form: str) -> str:
    # The name of the schema stands before the function and may hold anything.
    head, name, parameters = statement.rpartition(".join_tree(")
    return head + name + _PARAMETER.sub(form, parameters)
