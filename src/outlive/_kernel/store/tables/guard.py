"""The guard that forbids a step some changes of the database in which its journal lies.

The transaction ends with the journal's commit, so nothing in a step may end it, or the two could part. Outlive's own
tables, and SQLite's counter of their keys, are closed to it. A guard is not a wall against an enemy, who has the file
anyway; it keeps a mistake from becoming a damaged journal.

SQLite asks when it prepares a statement and not when it runs one. A guard stays on its connection for good, because
putting one on makes SQLite prepare everything again, and is switched on for a step's statements alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

OURS = "outlive_"
PRAGMAS = {"table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo", "foreign_key_list"}
"""Pragmas that only describe tables."""
_WRITES = {apsw.SQLITE_INSERT: "INSERT", apsw.SQLITE_UPDATE: "UPDATE", apsw.SQLITE_DELETE: "DELETE"}
_TEMPORARY = {
    apsw.SQLITE_CREATE_TEMP_INDEX,
    apsw.SQLITE_CREATE_TEMP_TABLE,
    apsw.SQLITE_CREATE_TEMP_TRIGGER,
    apsw.SQLITE_CREATE_TEMP_VIEW,
}


class StatementGuard:
    """Asked by SQLite about everything that a statement will do."""

    def __init__(self) -> None:
        self._is_on = False
        self._is_reshaping = False
        self.refusal = ""
        """The reason for which the statement was refused; empty if it was not."""
        self.verb = ""
        """The verb by which the statement changes a table; empty if it changes none."""

    @classmethod
    def of(cls, connection: apsw.Connection) -> StatementGuard:
        """The guard of this connection."""
        guard = connection.authorizer
        if not isinstance(guard, cls):
            connection.authorizer = guard = cls()
        return guard

    @contextmanager
    def switched_on(self) -> Iterator[None]:
        """Watch what is prepared inside."""
        self._is_on, self._is_reshaping, self.refusal, self.verb = True, False, "", ""
        try:
            yield
        finally:
            self._is_on = False

    def __call__(
        self, action: int, first: str | None, second: str | None, database: str | None, trigger: str | None
    ) -> int:
        """Say whether it may."""
        if not self._is_on:
            return apsw.SQLITE_OK
        self._is_reshaping = self._is_reshaping or action in (apsw.SQLITE_DROP_TABLE, apsw.SQLITE_ALTER_TABLE)
        refusal = self._judge(action, (first or "").lower(), (second or "").lower())
        if refusal:
            self.refusal = self.refusal or refusal
            return apsw.SQLITE_DENY
        if not self.verb and trigger is None and action in _WRITES and not (first or "").startswith("sqlite_"):
            self.verb = _WRITES[action]
        return apsw.SQLITE_OK

    def _judge(self, action: int, first: str, second: str) -> str:
        """Why not; empty if nothing speaks against it."""
        if action == apsw.SQLITE_TRANSACTION:
            return first.upper()
        if action in (apsw.SQLITE_ATTACH, apsw.SQLITE_DETACH):
            return "ATTACH, DETACH and VACUUM"
        if action in _TEMPORARY:
            return "temporary tables, views and triggers (they would outlast it)"
        if action == apsw.SQLITE_PRAGMA:
            return "" if first in PRAGMAS else f"PRAGMA {first}"
        if action in (apsw.SQLITE_FUNCTION, apsw.SQLITE_SAVEPOINT):
            return ""
        for name in (first, second):
            if name.startswith(OURS):
                return f"the table {name}" if action != apsw.SQLITE_CREATE_TABLE else f"a table named {name}"
        if first == "sqlite_sequence" and action in _WRITES and not self._is_reshaping:
            return "changes of sqlite_sequence"
        return ""
