"""The findings of a doctor about a file: whether it exists and is ours, may be written, and lies where SQLite is
safe."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import apsw

from outlive._kernel.store.diagnosis import Finding, problem, size, warning, well
from outlive._kernel.store.sqlite.connection import (
    APPLICATION_ID,
    SQLITE_VERSION_MIN,
    Role,
    Session,
    read_identity,
)
from outlive._kernel.store.sqlite.file import find_network
from outlive._kernel.store.sqlite.migrate import migrations, read_version
from outlive.errors import StoreError
from outlive.errors.store import NotADatabaseError

FREE_BYTES_MIN = 100 * 1024 * 1024
FREE_BYTES_WANTED = 1024 * 1024 * 1024
WAL_BYTES_MAX = 256 * 1024 * 1024
"""The writer empties it long before, unless a reader stands in its way."""
_SYNCHRONOUS = {0: "OFF", 1: "NORMAL", 2: "FULL", 3: "EXTRA"}


def diagnose_driver() -> Finding:
    """Whether SQLite has the bugs in which two processes can damage a file."""
    said = f"SQLite {apsw.sqlite_lib_version()}, apsw {apsw.apsw_version()}"
    if apsw.SQLITE_VERSION_NUMBER < SQLITE_VERSION_MIN:
        return problem(
            "sqlite", f"{said}: two processes can damage a file (fixed in 3.51.3)", "pip install --upgrade apsw"
        )
    return well("sqlite", said)


def diagnose_file(name: str) -> Iterator[Finding]:
    """The findings about a file; the last one is about its schema if a store of this release can be opened there."""
    path = Path(name).expanduser().resolve()
    if path.is_dir():
        yield problem("store", f"{path} is a folder", "name a file in it in the store URL")
        return
    if not path.parent.is_dir():
        yield problem("store", f"there is no folder {path.parent}", f"mkdir -p {path.parent}; or correct the store URL")
        return
    if not path.is_file():
        yield problem("store", f"there is no file {path}", "a worker that starts makes it; or correct the store URL")
        yield _disk(path)
        return
    yield well("store", f"{path}, {size(path.stat().st_size)}")
    yield _permissions(path)
    network = find_network(path.parent)
    if network is None:
        yield well("file system", "local, or not known as a network file system")
    else:
        yield problem("file system", f"{network}, where locks are not safe", "move the file to a local disk")
    yield _disk(path)
    yield from _database(path)


def _permissions(path: Path) -> Finding:
    if not os.access(path, os.R_OK | os.W_OK) or not os.access(path.parent, os.W_OK | os.X_OK):
        return problem(
            "permissions",
            "this user may not write the file and its folder",
            f"run it as the owner of {path}: SQLite keeps files beside it",
        )
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        return warning("permissions", f"mode {mode:o}: other users may open it", f"chmod 600 {path}")
    return well("permissions", "writable, and only for its owner")


def _disk(path: Path) -> Finding:
    free = shutil.disk_usage(path.parent).free
    own = path.stat().st_size if path.is_file() else 0
    said = f"{size(free)} free"
    if free < FREE_BYTES_MIN:
        return problem("disk", said, "make room: when the disk is full, no run moves")
    if free < max(FREE_BYTES_WANTED, own):
        return warning("disk", said, "make room: a backup of the store needs as much as the store")
    return well("disk", said)


def _database(path: Path) -> Iterator[Finding]:
    try:
        application_id, objects, is_ours = read_identity(path)
    except (NotADatabaseError, apsw.NotADBError, apsw.CorruptError) as error:
        yield problem("schema", f"it cannot be read: {error}", "name another file, or restore a backup")
        return
    except apsw.Error as error:
        advice = "look at its rights, its disk and who else uses it; nothing says that the file is damaged"
        yield problem("schema", f"it cannot be read: {error}", advice)
        return
    if objects and not (is_ours and application_id == APPLICATION_ID):
        yield problem("schema", "it is a SQLite database of another program", "name another file")
        return
    session = Session(path, clock=lambda: 0, role=Role.READER)
    try:
        yield from _settings(session, path)
        yield _schema(session)
    except (apsw.Error, StoreError) as error:
        yield problem("schema", f"it cannot be read: {error}", "look at its rights, and run outlive fsck")
    finally:
        session.close()


def _settings(session: Session, path: Path) -> Iterator[Finding]:
    mode, level = session.connection.pragma("journal_mode"), session.connection.pragma("synchronous")
    said = f"journal_mode {mode}, synchronous {_SYNCHRONOUS.get(level, level)}"
    if mode != "wal":
        yield warning("durability", said, "a copy that no engine has opened; the first one changes it to wal")
    else:
        yield well("durability", said)
    wal = path.with_name(f"{path.name}-wal")
    if wal.is_file() and wal.stat().st_size > WAL_BYTES_MAX:
        advice = "a process that reads for long, or a program beside Outlive, keeps it from being emptied; end it"
        yield warning("wal", f"{size(wal.stat().st_size)} beside the file", advice)


def _schema(session: Session) -> Finding:
    version, known = read_version(session), len(migrations())
    if version > known:
        return problem("schema", f"{version}, and this release knows up to {known}", "upgrade outlive here")
    if version < known:
        advice = "the next engine of this release migrates it; make a backup first"
        return warning("schema", f"{version}, and this release has {known}: {known - version} migrations wait", advice)
    return well("schema", f"{version}, up to date")
