"""The schema, brought up to date by numbered files.

`migrations/0001_pre_create.sql` is version 1, and so on without a gap. A migration and its record in
`outlive_migrations` are one transaction that holds the write lock: of any number of processes that start at once one
does the work and the others find it done, and a process that is killed anywhere leaves a version, never half of one.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import apsw

from outlive._kernel.store.sqlite.connection import APPLICATION_ID, Session, read_identity
from outlive._kernel.store.sqlite.file import create_file
from outlive._kernel.store.sqlite.query import BEGIN_WRITE, COMMIT, ROLLBACK, sql
from outlive.errors import StoreUnavailableError
from outlive.errors.store import NotADatabaseError, SchemaTooNewError, SchemaTooOldError

MIGRATIONS = Path(__file__).with_name("migrations")
WAL_TRIES_MAX = 100


@cache
def migrations() -> tuple[Path, ...]:
    """All migrations of this release, the first one first."""
    files = tuple(sorted(MIGRATIONS.glob("*.sql")))
    assert [int(file.name[:4]) for file in files] == list(range(1, len(files) + 1)), "a gap in the migrations"
    return files


def open_database(session: Session) -> None:
    """Make the file an Outlive database of this release; refuse, without writing, what is something else.

    Raises:
        NotADatabaseError: the file is something else.
        SchemaTooNewError: a later release was here.
        StoreUnavailableError: there can be no database here.
    """
    create_file(session.path)
    _check_identity(session.path)
    _check_version(session)
    if not session.path.stat().st_size:
        # In a file that has pages this cannot be changed, and asking for it again would write.
        session.connection.pragma("auto_vacuum", "incremental")
    _enter_wal_mode(session)
    while (version := read_version(session)) < len(migrations()):
        _migrate(session, version + 1)


def check_database(session: Session) -> None:
    """See that the file is an Outlive database of this release; nothing is written.

    Raises:
        NotADatabaseError, SchemaTooNewError: as `open_database`.
        SchemaTooOldError: it is one of an earlier release, or empty.
        StoreUnavailableError: there is no file.
    """
    if not session.path.is_file():
        raise StoreUnavailableError(str(session.path), "there is no such file")
    _check_identity(session.path)
    _check_version(session)
    if (version := read_version(session)) < len(migrations()):
        raise SchemaTooOldError(str(session.path), version, len(migrations()))


def read_version(session: Session) -> int:
    """The version of the schema; 0 for an empty database."""
    ((_, _, is_ours),) = session.execute("read_identity")
    if not is_ours:
        return 0
    ((version,),) = session.execute("read_version")
    return int(version)


def _check_identity(path: Path) -> None:
    application_id, objects, is_ours = read_identity(path)
    if objects and not (is_ours and application_id == APPLICATION_ID):
        raise NotADatabaseError(str(path), "it is a SQLite database of another program")


def _check_version(session: Session) -> None:
    version = read_version(session)
    if version > len(migrations()):
        raise SchemaTooNewError(str(session.path), version, len(migrations()))


def _enter_wal_mode(session: Session) -> None:
    connection = session.connection
    for _ in range(WAL_TRIES_MAX):
        try:
            mode = connection.pragma("journal_mode", "wal")
        except apsw.BusyError:
            # Changing the mode does not wait for its turn. A transaction does: wait with one, and try again.
            connection.execute(BEGIN_WRITE)
            connection.execute(ROLLBACK)
        else:
            if mode != "wal":
                raise StoreUnavailableError(
                    str(session.path), "its file system cannot share memory between processes; use a local disk"
                )
            return
    raise StoreUnavailableError(str(session.path), "other processes keep it locked")


def _migrate(session: Session, version: int) -> None:
    connection, file = session.connection, migrations()[version - 1]
    connection.execute(BEGIN_WRITE)
    try:
        if read_version(session) == version - 1:
            connection.execute(file.read_text("utf-8"))
            connection.execute(sql("record_migration"), (version, file.stem, session.clock()))
        connection.execute(COMMIT)
    finally:
        session.roll_back()
