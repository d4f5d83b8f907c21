"""Runs and messages that are asked for in a transaction that is open on a user's own connection.

The user's transaction writes one row, a request, with the change that creates the tree. After its commit the
first store that looks makes that change and deletes the row, in one transaction: for a worker that looks for something
due, or for anyone who names the run. So a request is as good as a run for all who ask, and the open transaction of a
user is in no one's way.

One statement with one JSON text writes the request, so that every driver can run it: asyncpg, psycopg (async and
blocking) and SQLAlchemy (both, connections and sessions). None of them is imported: a connection is known by the module
of its class, and a caller that has one has imported its driver. Blocking ones are used on a thread, because their
caller waits anyway.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Sequence
from typing import Any

from outlive._kernel.model import Run
from outlive._kernel.store.contract import Change, Delivery, Outcome
from outlive._kernel.store.postgres import read
from outlive._kernel.store.postgres.commit import RequestedMessage, Writing, start_requested
from outlive._kernel.store.postgres.connection import Session
from outlive._kernel.store.postgres.query import statements
from outlive._kernel.store.postgres.rows import to_text
from outlive._kernel.store.tables.rows import to_json
from outlive._kernel.store.tables.searching import RunSearch
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


async def request_start(connection: Any, change: Change, *, schema: str, channel: str | None) -> Outcome:
    """Write a request in the transaction that is open on a user's connection."""
    assert not change.journal, "only a new tree can be requested"
    values = to_text(change.runs[0].id), to_json(change), channel
    is_new = await _run(connection, statements(schema)["request_start"], values)
    return Outcome.COMMITTED if is_new else Outcome.CONFLICT


async def request_message(connection: Any, request: RequestedMessage, *, schema: str, channel: str | None) -> Delivery:
    """Write a request for a message in the transaction that is open on a user's connection."""
    values = to_text(request.message.run_id), request.start is not None, to_json(request), channel
    return Delivery(await _run(connection, statements(schema)["request_message"], values))


async def find_runs(session: Session, run_ids: Sequence[str], writing: Writing) -> dict[str, Run]:
    """Runs by id, also runs that were only asked for."""
    found = await read.find_runs(session, run_ids)
    if missing := [run_id for run_id in run_ids if run_id not in found]:
        await start_requested(session, writing, missing)
        # Even if there was no request: another process may have made a run of it since we looked.
        found |= await read.find_runs(session, missing)
    return found


async def list_runs(session: Session, search: RunSearch, writing: Writing) -> list[Run]:
    """Runs that pass a filter, also runs that were only asked for."""
    await _start_all(session, writing)
    return await read.list_runs(session, search)


async def count_runs(session: Session, search: RunSearch, writing: Writing) -> int:
    """How many runs pass a filter; runs that were only asked for count too."""
    await _start_all(session, writing)
    return await read.count_runs(session, search)


async def count_groups(session: Session, search: RunSearch, writing: Writing) -> dict[str, int]:
    """How many runs of each group pass a filter; runs that were only asked for count too."""
    await _start_all(session, writing)
    return await read.count_groups(session, search)


async def _start_all(session: Session, writing: Writing) -> None:
    while await start_requested(session, writing):
        pass


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
        f"a {type(connection).__module__}.{type(connection).__qualname__} is not a connection on which a run can be "
        f"started; known are {KNOWN}"
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
    head, name, parameters = statement.rpartition(".request_")
    return head + name + _PARAMETER.sub(form, parameters)
