"""The log: records in one order, which all processes see, in a SQLite file; and the leases of workers, in another.

A log needs three things, and whatever has them can take the place of SQLite here (a stream of a broker with a
compare-and-swap on its last sequence, an object that is written only if its version is the one that was read):

* one writer at a time, or a writer that is refused if another one was first;
* a record is there as a whole or not at all, and stays when its write has returned;
* a reader finds what follows behind the last record that it has.

Leases are not in the log. They are renewed every few seconds and mean nothing later, and a beat must never wait for a
transaction of a step: so they have a file of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

import apsw
import msgspec

from examples.store.log_store.rules import Session
from outlive.errors import StoreUnavailableError
from outlive.stores import (
    MICROSECONDS,
    NotADatabaseError,
    SchemaTooNewError,
    SchemaTooOldError,
    StoreWentBackError,
    WorkerInfo,
)

APPLICATION, VERSION = 0x4F4C4F47, 1
"""Marks of the file: that it is such a log, and the version of its tables."""
BUSY_MILLISECONDS = 10_000
DAY = 24 * 3600 * MICROSECONDS
TABLES = """
CREATE TABLE IF NOT EXISTS outlive_log (
    id INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, verb TEXT NOT NULL, args BLOB NOT NULL,
    answer INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS outlive_snapshot (one INTEGER PRIMARY KEY CHECK (one = 1), id INTEGER, data BLOB);
"""
SESSIONS = """
CREATE TABLE IF NOT EXISTS sessions (
    id TEXT PRIMARY KEY, expires_at INTEGER NOT NULL, is_retired INTEGER NOT NULL, info BLOB NOT NULL
)
"""


class Record(NamedTuple):
    """A verb that was called."""

    id: int
    at: int
    verb: str
    args: bytes
    answer: int
    """The digest of its answer."""


def connect(path: str, *pragmas: str) -> apsw.Connection:
    """A connection that waits a while for others.

    Raises:
        StoreUnavailableError: the file cannot be opened.
    """
    try:
        connection = apsw.Connection(path)
        connection.set_busy_timeout(BUSY_MILLISECONDS)
        connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_FKEY, 1)
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")
    except apsw.NotADBError as error:
        raise NotADatabaseError(path, str(error)) from error
    except apsw.Error as error:
        raise StoreUnavailableError(path, str(error)) from error
    return connection


class Log:
    """The records, on one connection, which belongs to one thread."""

    def __init__(self, path: str, *, migrate: bool) -> None:
        self._path = path
        # A commit is on the disk when it returns, and readers do not wait for the writer.
        self.connection = connect(path, "journal_mode = WAL", "synchronous = FULL")
        application = self.connection.pragma("application_id")
        version = self.connection.pragma("user_version")
        if application not in (0, APPLICATION):
            raise NotADatabaseError(path, "another program has marked it as its own")
        if version > VERSION:
            raise SchemaTooNewError(path, version, VERSION)
        if version < VERSION and not migrate:
            raise SchemaTooOldError(path, version, VERSION)
        if version < VERSION:
            self.connection.execute("BEGIN IMMEDIATE")
            self.connection.execute(TABLES)
            self.connection.pragma("application_id", APPLICATION)
            self.connection.pragma("user_version", VERSION)
            self.connection.execute("COMMIT")
        self.connection.set_busy_timeout(0)

    def try_begin(self) -> bool:
        """Become the one writer; false if another process or another store is."""
        try:
            self.connection.execute("BEGIN IMMEDIATE")
        except apsw.BusyError:
            return False
        return True

    def has_begun(self) -> bool:
        """Whether a transaction is open on this connection."""
        return bool(self.connection.in_transaction)

    def append(self, record: Record) -> int:
        """Write a record behind all others, in the transaction that is open; its id."""
        insert = "INSERT INTO outlive_log (at, verb, args, answer) VALUES (?, ?, ?, ?)"
        self.connection.execute(insert, record[1:])
        return self.connection.last_insert_rowid()

    def commit(self) -> None:
        """Make it durable."""
        self.connection.execute("COMMIT")

    def roll_back(self) -> None:
        """Leave nothing of the transaction, if one is open."""
        if self.has_begun():
            with suppress(apsw.Error):
                self.connection.execute("ROLLBACK")

    def read(self, after: int) -> Iterator[Record]:
        """The records behind this one, in order."""
        found = self.connection.execute(
            "SELECT id, at, verb, args, answer FROM outlive_log WHERE id > ? ORDER BY id", (after,)
        )
        return (Record(*row) for row in found)

    def snapshot_behind(self, after: int) -> tuple[int, bytes] | None:
        """The snapshot, and the record after which it was taken, if that is behind `after`."""
        found = self.connection.execute("SELECT id, data FROM outlive_snapshot WHERE id > ?", (after,)).fetchone()
        return None if found is None else (int(found[0]), bytes(found[1]))

    def put_snapshot(self, id: int, data: bytes) -> None:
        """Let a snapshot stand for all records up to this one, in the transaction that is open."""
        self.connection.execute("REPLACE INTO outlive_snapshot VALUES (1, ?, ?)", (id, data))
        self.connection.execute("DELETE FROM outlive_log WHERE id <= ?", (id,))

    def count(self) -> int:
        """How many records there are behind the snapshot."""
        ((first, last),) = self.connection.execute("SELECT min(id), max(id) FROM outlive_log")
        return 0 if first is None else int(last) - int(first) + 1

    @contextmanager
    def interrupted(self, is_late: Callable[[], bool]) -> Iterator[None]:
        """Interrupt a statement that runs when it is late."""
        self.connection.set_progress_handler(is_late, 10_000)
        try:
            yield
        finally:
            self.connection.set_progress_handler(None)

    def close(self) -> None:
        """Close the connection."""
        self.roll_back()
        self.connection.close()


class Leases:
    """The sessions of workers, on one connection, which belongs to one thread."""

    def __init__(self, path: str) -> None:
        self._path = path
        # A lease need not survive a loss of power: the workers of this machine do not either.
        self._connection = connect(path, "journal_mode = TRUNCATE", "synchronous = OFF")
        self._connection.execute(SESSIONS)

    def register(self, worker: WorkerInfo, *, now: int, lease_seconds: float) -> None:
        """Begin a session, and forget sessions that ended a day ago."""
        expires_at = now + round(lease_seconds * MICROSECONDS)
        info = msgspec.msgpack.encode(worker)
        self._connection.execute("DELETE FROM sessions WHERE expires_at < ?", (now - DAY,))
        self._connection.execute("REPLACE INTO sessions VALUES (?, ?, 0, ?)", (worker.id, expires_at, info))

    def redefine(self, worker_id: str, definitions: list[str]) -> None:
        """Write what a session can run by now, if it has not ended."""
        for worker, is_retired in self.list_all():
            if worker.id == worker_id and not is_retired:
                info = msgspec.msgpack.encode(msgspec.structs.replace(worker, definitions=tuple(definitions)))
                self._connection.execute("UPDATE sessions SET info = ? WHERE id = ?", (info, worker_id))

    def renew(self, worker_id: str, *, now: int, lease_seconds: float, renewed: int) -> int | None:
        """Extend a lease; until when it is now, None if the session has ended.

        Raises:
            StoreWentBackError: the file has forgotten the session, or the renewal before this one.
        """
        found = self._connection.execute("SELECT expires_at, is_retired FROM sessions WHERE id = ?", (worker_id,))
        row = found.fetchone()
        if row is not None and row[1]:
            return None
        if row is None or row[0] < renewed:
            raise StoreWentBackError(self._path, f"it has forgotten session {worker_id}, or its last renewal")
        expires_at = now + round(lease_seconds * MICROSECONDS)
        extend = "UPDATE sessions SET expires_at = ? WHERE id = ? AND NOT is_retired"
        self._connection.execute(extend, (expires_at, worker_id))
        return expires_at if self._connection.changes() else None

    def retire(self, worker_id: str, *, now: int) -> None:
        """End a session; it is remembered, because it may still own trees."""
        end = "UPDATE sessions SET is_retired = 1, expires_at = min(expires_at, ?) WHERE id = ? AND NOT is_retired"
        self._connection.execute(end, (now, worker_id))

    def list_all(self) -> list[tuple[WorkerInfo, bool]]:
        """All sessions, each with whether it has ended."""
        found = self._connection.execute("SELECT info, expires_at, is_retired FROM sessions ORDER BY id")
        return [
            (
                msgspec.structs.replace(msgspec.msgpack.decode(info, type=WorkerInfo), expires_at=expires_at),
                bool(is_retired),
            )
            for info, expires_at, is_retired in found
        ]

    def list_sessions(self) -> list[Session]:
        """As much of them as a claim looks at."""
        found = self._connection.execute("SELECT id, expires_at, is_retired FROM sessions ORDER BY id")
        return [Session(id, expires_at, bool(is_retired)) for id, expires_at, is_retired in found]

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class LogBeat:
    """Renews the lease of one session, on a thread and a connection of its own."""

    def __init__(self, path: str, worker_id: str, now: Callable[[], int]) -> None:
        self._path, self._worker_id, self._now = path, worker_id, now
        self._leases: Leases | None = None
        self._renewed = 0

    def renew(self, *, lease_seconds: float) -> bool:
        """See `Beat`."""
        try:
            self._leases = self._leases or Leases(self._path)
            renewed = self._leases.renew(
                self._worker_id, now=self._now(), lease_seconds=lease_seconds, renewed=self._renewed
            )
        except apsw.Error as error:
            raise StoreUnavailableError(self._path, str(error)) from error
        self._renewed = renewed or self._renewed
        return renewed is not None

    def close(self) -> None:
        """See `Beat`."""
        leases, self._leases = self._leases, None
        if leases is not None:
            leases.close()
