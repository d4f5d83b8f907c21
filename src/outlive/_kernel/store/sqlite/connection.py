"""How a connection to the file is opened, and what its errors mean.

Durability: WAL with `synchronous=FULL`, so a commit that was answered survives the loss of power. No connection
checkpoints by itself; the writer does it, between commits. The version gate is for the WAL-reset race that every
SQLite before 3.51.3 has, in which two processes can damage the file.

A file that is deleted, moved or replaced while it is open goes on working for its connections, and is lost with them.
So every connection looks, after it has read or written and before the caller gets the answer (`Session.check_file`).

A connection must not cross a fork: the child has a copy of what SQLite remembers of its locks, and not the locks. That
holds for the file, not only for the connection: a new connection of the child would rely on the same memory. And it
holds for SQLite as a whole: its memory, its pages and its list of files have mutexes, and one that a thread of the
parent held at the moment of the fork is held for ever in the child, which does not have that thread. So a child that
was forked while its parent had anything open gets an error for every file, where it would hang now and then, and
its copies of the connections are made immortal, because also to close one takes mutexes, and may write to the file.
"""

from __future__ import annotations

import ctypes
import enum
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakSet

import apsw

from outlive._kernel.store.sqlite.file import file_of, find_file, is_opening_in_parent, opening
from outlive._kernel.store.sqlite.query import BEGIN_READ, ROLLBACK, Value, as_bytes, sql
from outlive._platform import after_fork, pause
from outlive.errors import CommitUnknownError, ConfigurationError, StoreError, StoreUnavailableError
from outlive.errors.store import NotADatabaseError, StoreMovedError
from outlive.telemetry import log

SQLITE_VERSION_MIN = 3_051_003
BUSY_SECONDS = 5.0
"""How long to wait while others write."""
BUSY_LOOK_SECONDS = 0.0005
STATEMENTS_CACHED = 256
APPLICATION_ID = 1_333_097_580
UNAVAILABLE = (
    apsw.BusyError,
    apsw.CantOpenError,
    apsw.CorruptError,
    apsw.FullError,
    apsw.IOError,
    apsw.LockedError,
    apsw.NoMemError,
    apsw.NotADBError,
    apsw.PermissionsError,
    apsw.ProtocolError,
    apsw.ReadOnlyError,
)
"""Errors that say something about the store and nothing about what it was asked."""

_sessions: WeakSet[Session] = WeakSet()
_connections: WeakSet[apsw.Connection] = WeakSet()
_forked_from: set[int] = set()
"""The process that this one was forked from, if it had a connection then; empty otherwise."""


class Role(enum.Enum):
    """The purpose of a connection."""

    WRITER = "writer"
    """The only one that writes journals, and the only one that makes checkpoints."""
    READER = "reader"
    BEAT = "beat"
    """Renews a lease."""


class Session:
    """One connection of one thread: opened when first needed, thrown away after an I/O error."""

    def __init__(self, path: Path, *, clock: Callable[[], int], role: Role) -> None:
        self.path = path
        self.clock = clock
        self.lock_wait = LockWait()
        self.file: tuple[int, int] | None = None
        """Which file it is, whatever its name; the first connection says so, unless the store does."""
        self.made_due = False
        """Whether the open transaction has given other processes something to do: a run without an owner is due, there
        is a message for a run, or a worker has retired."""
        self._role = role
        self._connection: apsw.Connection | None = None
        self._wal_path = path.with_name(f"{path.name}-wal")
        self._wal: tuple[int, int] | None = None
        self._has_moved = ctypes.c_int(0)
        _sessions.add(self)

    @property
    def connection(self) -> apsw.Connection:
        """The open connection."""
        if self._connection is None:
            if self.file is not None and self.file != find_file(self.path):
                raise moved(self.path)
            self._connection = connect(self.path, self._role, self.lock_wait)
            self.file = self.file or file_of(self.path)
        return self._connection

    def open(self) -> None:
        """Connect now, and note which WAL belongs to the file: it may be gone before the first read."""
        self.check_file()

    def check_file(self) -> None:
        """See that the connection's file and its WAL are still at their paths. Called after something was read or
        written, before the caller gets its answer.

        Raises:
            StoreMovedError: they are not.
        """
        connection = self.connection
        # A system that cannot say so leaves it 0; there a file that is open cannot be removed either.
        connection.file_control("main", apsw.SQLITE_FCNTL_HAS_MOVED, ctypes.addressof(self._has_moved))
        wal = find_file(self._wal_path)
        if self._has_moved.value or wal != (self._wal or wal):
            raise moved(self.path)
        self._wal = wal  # It does not change while this connection is open.

    def execute(self, name: str, *values: Value) -> apsw.Cursor:
        """Run the statement in the file of this name."""
        return self.connection.execute(sql(name), values)

    def fetch(self, name: str, *values: Value) -> tuple[Any, ...] | None:
        """The first row that the statement in the file of this name gives."""
        rows = self.connection.execute(sql(name), values).fetchall()
        return rows[0] if rows else None

    def fetch_json(self, name: str, *values: Value) -> str | bytes:
        """The one text that the statement in the file of this name gives; bytes if something in it is damaged."""
        return self.fetch_text(name, values)

    def fetch_text(self, name: str, values: Sequence[Value] | dict[str, Value]) -> str | bytes:
        """The one text that the statement in the file of this name gives, with values by place or by name; bytes if
        something in it is damaged."""
        try:
            ((text,),) = self.connection.execute(sql(name), values)
        except UnicodeDecodeError:
            ((text,),) = self.connection.execute(as_bytes(name), values)
        assert isinstance(text, str | bytes)
        return text

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read everything inside from one state of the file."""
        self.connection.execute(BEGIN_READ)
        try:
            yield
        finally:
            self.roll_back()

    def roll_back(self) -> None:
        """Leave the transaction, if there is one; a connection that cannot do this is thrown away."""
        if self._connection is not None and self._connection.in_transaction:
            try:
                self._connection.execute(ROLLBACK)
            except apsw.Error:
                self.close()

    def close(self) -> None:
        """Close the connection; the next use opens another one."""
        connection, self._connection = self._connection, None
        self._wal = None
        try:
            if connection is not None:
                connection.close(True)
        except apsw.Error as error:
            log.warning("%s: a connection did not close cleanly: %s", self.path, error)

    def abandon(self) -> None:
        """In a forked child: never touch the connection again."""
        self._connection = None


def moved(path: Path) -> StoreMovedError:
    """The error of a file that is not at its place any more, with what may have done that."""
    return StoreMovedError(str(path), has_other_library="_sqlite3" in sys.modules)


def check_version() -> None:
    """Refuse a SQLite in which two processes can damage the file."""
    if apsw.SQLITE_VERSION_NUMBER < SQLITE_VERSION_MIN:
        raise ConfigurationError(
            f"apsw brings SQLite {apsw.sqlite_lib_version()}, which can damage a database that two processes use "
            f"(fixed in 3.51.3); upgrade it: pip install --upgrade apsw"
        )


def connect(path: Path, role: Role, lock_wait: LockWait) -> apsw.Connection:
    """Open a connection to a file that exists. Nothing is written."""
    connection = _open(path, apsw.SQLITE_OPEN_READWRITE, lock_wait)
    if connection.readonly("main"):
        # SQLite makes do with what it can get; nothing of ours works without writing.
        connection.close(True)
        raise apsw.ReadOnlyError("the file is read-only for this user")
    if role is Role.READER:
        connection.pragma("query_only", True)
    if role is not Role.WRITER:
        # Only the writer makes checkpoints, and the last connection to close makes one; the writer closes last.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    return connection


def read_identity(path: Path) -> tuple[int, int, int]:
    """Application id, number of schema objects, and whether ours are among them; the file is only read.

    Raises:
        NotADatabaseError: it is not a SQLite database.
    """
    try:
        # Read-only, because a foreign database may have a transaction to roll back or a WAL to checkpoint.
        connection = _open(path, apsw.SQLITE_OPEN_READONLY, LockWait())
        try:
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            ((application_id, objects, ours),) = connection.execute(sql("read_identity"))
        finally:
            connection.close(True)
    except apsw.NotADBError as error:
        raise NotADatabaseError(str(path), "it is a file of another kind") from error
    return application_id, objects, ours


class LockWait:
    """How a connection waits for the lock while another process writes.

    SQLite's own timeout looks ever more seldom, up to ten times a second, and between two commits of a busy process the
    lock is free for microseconds: it can starve for seconds. Looking often makes it a lottery that each process wins
    soon.
    """

    def __init__(self) -> None:
        self._began_at = 0.0
        self._hurried_until = math.inf

    def hurry(self, seconds: float) -> None:
        """Wait for so long and then never again; any thread may say so."""
        self._hurried_until = time.monotonic() + seconds

    def wait(self, tries: int) -> bool:
        """Wait until the lock may be free; False when it is time to give up. SQLite asks when another process
        writes."""
        # By the clock and not by the tries: on a busy machine a short pause takes many times as long.
        now = time.monotonic()
        if not tries:
            self._began_at = now
        if now >= min(self._began_at + BUSY_SECONDS, self._hurried_until):
            return False
        pause(BUSY_LOOK_SECONDS)
        return True


def _open(path: Path, flags: int, lock_wait: LockWait) -> apsw.Connection:
    if _forked_from:
        raise StoreError(
            f"{path} cannot be opened: process {os.getpid()} was forked while its parent had a store in SQLite open, "
            f"and neither SQLite's locks nor its mutexes survive that; open it after the fork only, or start the "
            f"process another way (spawn)"
        )
    with opening():
        connection = apsw.Connection(str(path), flags, statementcachesize=STATEMENTS_CACHED)
        _connections.add(connection)
    try:
        connection.set_busy_handler(lock_wait.wait)
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
        # A pragma that answers with a row stops there until the row is taken: fetch them all.
        connection.execute(sql("connect")).fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def translate(error: apsw.Error | StoreMovedError, path: Path, *, is_committing: bool = False) -> StoreError:
    """Say what an error of SQLite means for the caller.

    `is_committing`: it happened in a statement that ends a transaction. An I/O error there leaves open whether the
    transaction is in the WAL; a full disk does not, because the record that makes it valid is written last.
    """
    file, reason = str(path), str(error)
    match error:
        case StoreMovedError():
            return moved(path)
        case apsw.IOError() if is_committing:
            return CommitUnknownError(file, f"{reason} (while committing)")
        case apsw.FullError():
            # Not SQLite's own words: those of a backup's failed step are "not an error".
            return StoreUnavailableError(file, "database or disk is full; make room on its disk")
        case apsw.ReadOnlyError() | apsw.CantOpenError() | apsw.PermissionsError():
            return StoreUnavailableError(
                file, f"{reason}; this user needs the right to write to the file and to its folder"
            )
        case apsw.BusyError() | apsw.LockedError():
            return StoreUnavailableError(file, f"{reason}; another process has been writing for {BUSY_SECONDS:g} s")
        case apsw.IOError():  # A full disk raises this too, if SQLite needs a file beside the database.
            return StoreUnavailableError(file, f"{reason}; look at its disk, which may be full or broken")
        case apsw.ProtocolError() | apsw.NoMemError():
            return StoreUnavailableError(file, reason)
        case apsw.CorruptError() | apsw.NotADBError():
            return StoreError(f"{file} is damaged ({reason}); stop every process that uses it and restore a backup")
        case _:
            return StoreError(f"{file}: {type(error).__name__}: {reason}")


def is_connection_lost(error: Exception) -> bool:
    """Whether what the connection believes about the file can no longer be trusted."""
    return isinstance(error, apsw.IOError | apsw.CantOpenError | apsw.CorruptError | apsw.NotADBError)


def _abandon_everything() -> None:
    connections = list(_connections)
    if connections or is_opening_in_parent():
        _forked_from.add(os.getppid())
    for connection in connections:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
    for session in list(_sessions):
        session.abandon()


after_fork(_abandon_everything)
