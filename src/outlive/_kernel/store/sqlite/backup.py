"""A copy of the file while others write to it.

A read transaction is open on the source for as long as the copy takes, so that all pages are from one moment and
SQLite does not begin again when another process commits, as it would without. Readers keep no writer waiting; the WAL
grows meanwhile, because no checkpoint can pass the reader.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from outlive._kernel.store.sqlite.connection import (
    APPLICATION_ID,
    Role,
    Session,
    check_version,
    read_identity,
    translate,
)
from outlive._kernel.store.sqlite.file import FILE_MODE
from outlive._platform import pause
from outlive.errors import StoreUnavailableError
from outlive.errors.store import NotADatabaseError

PAGES_AT_ONCE = 1_000
PAUSE_SECONDS = 0.001
"""Between two steps, for the others that want the disk."""
SIDE_FILES = ("-wal", "-shm", "-journal", "-workers")


def copy_file(source: Path, target: Path, *, said: Callable[[int, int], None]) -> None:
    """Copy a database into a file that is made for it; `said` is called with the pages that are left, and all.

    Raises:
        NotADatabaseError: the source is none of ours.
        StoreUnavailableError: one of them cannot be read or written.
    """
    check_version()
    if not source.is_file():
        raise StoreUnavailableError(str(source), "there is no such file")
    with _translated(source):
        application_id, _, is_ours = read_identity(source)
        if not is_ours or application_id != APPLICATION_ID:
            raise NotADatabaseError(str(source), "it is a SQLite database of another program")
    session = Session(source, clock=lambda: 0, role=Role.READER)
    try:
        with _translated(target):
            os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE))
            _copy(session, target, said)
    finally:
        session.close()


def _copy(session: Session, target: Path, said: Callable[[int, int], None]) -> None:
    copy = apsw.Connection(str(target))
    try:
        with session.snapshot():
            session.execute("read_identity").fetchall()  # The transaction sees the moment of its first read.
            with copy.backup("main", session.connection, "main") as backup:
                while not backup.done:
                    backup.step(PAGES_AT_ONCE)
                    said(backup.remaining, backup.page_count)
                    pause(PAUSE_SECONDS)
            session.check_file()
        # One file that needs none beside it; who opens it as a store changes that back.
        copy.pragma("journal_mode", "delete")
    finally:
        copy.close()


def remove_side_files(path: Path) -> None:
    """Remove what a store leaves beside its file when it is closed."""
    for ending in SIDE_FILES:
        path.with_name(path.name + ending).unlink(missing_ok=True)


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except apsw.Error as error:
        raise translate(error, path) from error
    except OSError as error:
        raise StoreUnavailableError(str(path), error.strerror or str(error)) from error
