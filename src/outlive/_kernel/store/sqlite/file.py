"""Where the file is: whether a database can be there, and how it comes to be.

Closing any descriptor of a file drops all POSIX locks that the process has on it, also those of SQLite. Creating
the file opens and closes a descriptor, so no store of this process may open a connection in between (`opening`);
and nothing here ever opens a file that exists.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

from outlive._platform import read_mounts
from outlive.errors import StoreUnavailableError

FILE_MODE = 0o600
NETWORKS = {"afs", "ceph", "cifs", "fuse.glusterfs", "fuse.sshfs", "lustre", "ncpfs", "nfs", "nfs4", "smb3"}

_locks: dict[int, threading.Lock] = {}


def opening() -> threading.Lock:
    """Held while the file is created or a connection is opened; a forked process has one of its own."""
    # Another thread of the parent may have held that of the parent at the moment of the fork.
    return _locks.setdefault(os.getpid(), threading.Lock())


def is_opening_in_parent() -> bool:
    """In a forked child, before it opens anything: whether a thread of the parent was doing so at the fork."""
    return any(lock.locked() for lock in _locks.values())


def create_file(path: Path) -> None:
    """Make the file if there is none, for its owner only; refuse a path that cannot hold a database.

    Raises:
        StoreUnavailableError: no database can be here.
    """
    file, folder = str(path), path.parent
    try:
        if path.is_dir():
            raise StoreUnavailableError(file, "it is a folder; name a file in it")
        if path.exists() and not path.is_file():
            raise StoreUnavailableError(file, "it is a pipe, a device or a socket; name a file")
        if not folder.is_dir():
            raise StoreUnavailableError(file, f"there is no folder {folder}; create it first: mkdir -p {folder}")
        if (network := find_network(folder)) is not None:
            raise StoreUnavailableError(
                file, f"it is on a network file system ({network}), and SQLite's locks need a local one"
            )
        with opening(), suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE))
    except OSError as error:
        raise StoreUnavailableError(
            file, f"{error.strerror}; this user needs the right to write to the folder {folder}"
        ) from error


def find_network(folder: Path, *, mounts: str | None = None) -> str | None:
    """The kind of network file system that the folder is on; None if it is on a local one, or that is not known."""
    kinds = {}
    for line in (read_mounts() if mounts is None else mounts).splitlines():
        mount, _, kind = line.partition(" - ")
        kinds[Path(mount.split()[4])] = kind.split()[0]
    nearest = next((each for each in (folder, *folder.parents) if each in kinds), None)
    return kinds[nearest] if nearest is not None and kinds[nearest] in NETWORKS else None


def file_of(path: Path) -> tuple[int, int]:
    """Which file this is, whatever its name."""
    status = path.stat()
    return status.st_dev, status.st_ino


def find_file(path: Path) -> tuple[int, int] | None:
    """Which file this is; None if there is none."""
    try:
        return file_of(path)
    except OSError:
        return None
