"""Translates the errors of a connection for the caller.

Three meanings, and the difference is whether a write may have happened:

* The server answered that the statement failed: it was rolled back, and nothing happened.
* The connection broke, or the answer did not come in time, while a write was on its way: that is unknown. A server that
  shuts down closes sessions in the same way, so its last words count as a broken connection.
* The same while nothing was on its way that writes: nothing happened.
"""

from __future__ import annotations

import asyncpg

from outlive._kernel.store.postgres.address import PostgresAddress
from outlive._kernel.store.postgres.query import CONFLICT
from outlive.errors import CommitUnknownError, StoreError, StoreUnavailableError

CONFLICTS = (CONFLICT, "23505", "23502", "21000")
"""The codes of a conflict between a change and the rows in the database: ours, a unique key, the fence, and twice the
same row."""
RETRIED = ("40001", "40P01")
"""The server chose us to make way: doing the same again works."""
_LOST = ("57P01", "57P02", "57P03", "57P04", "57P05", "25P03", "25P04", "40003")
"""Last words of a session that the server closes, or of a server that does not know itself what it did."""
_USELESS = ("25006", "26000", "42P05")
"""A server that has become a replica, and a session that is not the one in which we prepared our statements."""
_POOLER = "another program seems to share our sessions; if it is PgBouncer, add ?pgbouncer=true to the address"
DISK_FULL = "53100"
"""The server's trouble, not that of the statement: with room it works. Not so what else its class holds."""
_AWAY_CLASSES = ("08", "25", "40", "53", "55", "57", "58", "F0")
"""Not 54, a limit of the program: it is not a state of the server, but something in the statement that never fits."""
_HINTS = {
    DISK_FULL: "make room on its disk",
    "53300": "raise max_connections of the server, or use a pooler",
    "25006": "it is a replica or was made read-only; name the primary",
    "26000": _POOLER,
    "42P05": _POOLER,
    "42501": "this user lacks a right on the schema; `outlive doctor` says which",
    "3F000": "the schema is gone; restart",
    "42P01": "a table is gone; restore it, or restart",
}

ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)
"""Everything that a connection raises."""


def sqlstate_of(error: BaseException) -> str:
    """The five letters by which the server names an error; empty for an error that is not the server's."""
    return (error.sqlstate or "") if isinstance(error, asyncpg.PostgresError) else ""


def made_way(error: BaseException) -> bool:
    """Whether the server chose us to make way, and this is what became of it: SQLAlchemy, and many a program, raise an
    error of their own that names the server's as its cause."""
    cause: BaseException | None = error
    while cause is not None:
        if sqlstate_of(cause) in RETRIED:
            return True
        cause = cause.__cause__
    return False


def is_lost(error: BaseException) -> bool:
    """Whether the connection is of no use any more, and so what it was doing is not known."""
    if isinstance(error, asyncpg.PostgresError):
        return (error.sqlstate or "").startswith("08") or error.sqlstate in _LOST
    return isinstance(error, OSError | TimeoutError | asyncpg.InternalClientError)


def is_cut(error: BaseException) -> bool:
    """Whether only this connection is to blame; a server that did not answer in time is not asked again."""
    return is_lost(error) and not isinstance(error, TimeoutError)


def is_full(error: BaseException | None) -> bool:
    """Whether a server, or a pooler, has no connection left for us."""
    return error is not None and (sqlstate_of(error) == "53300" or "no more connections allowed" in str(error))


def is_refusal(error: BaseException) -> bool:
    """Whether the server refuses what a statement asks for, whatever its own state: a constraint, a right, a table that
    is not there. Of a COMMIT it says so about what the user's triggers do."""
    return isinstance(error, asyncpg.PostgresError) and sqlstate_of(error)[:2] not in _AWAY_CLASSES


def is_useless(error: BaseException) -> bool:
    """Whether another connection may do better."""
    return is_lost(error) or sqlstate_of(error) in _USELESS


def is_last_word(error: BaseException) -> bool:
    """Whether a session says that it is gone, and not that a server which it asked for something is.

    What the server says of a statement, whatever its name, has the severity ERROR; what the driver says has none.
    """
    severity = getattr(error, "severity_en", None) or getattr(error, "severity", None)
    return isinstance(error, asyncpg.PostgresError) and is_lost(error) and severity != "ERROR"


def translate(error: BaseException, address: PostgresAddress, *, is_write: bool) -> StoreError:
    """The error for the caller of a statement, or of several, that raised this."""
    state, reason = sqlstate_of(error), _reason(error)
    if is_lost(error):
        if is_write:
            return CommitUnknownError(str(address), f"{reason} (while writing)")
        return StoreUnavailableError(str(address), reason)
    if state[:2] in _AWAY_CLASSES or state in _HINTS:
        return StoreUnavailableError(str(address), reason)
    if isinstance(error, asyncpg.InterfaceError) and not isinstance(error, ValueError):
        return StoreUnavailableError(str(address), reason)  # The connection was closed before anything was sent.
    return StoreError(f"{address}: {type(error).__name__}: {reason}")


def translate_connect(error: BaseException, address: PostgresAddress) -> StoreError:
    """The error for a caller who wanted a new connection: nothing was sent."""
    return StoreUnavailableError(str(address), _reason(error))


def _reason(error: BaseException) -> str:
    text = str(error) or ("no answer in time" if isinstance(error, TimeoutError) else type(error).__name__)
    hint = _HINTS.get(sqlstate_of(error))
    return f"{text}; {hint}" if hint else text
