"""Keeps another SQLite library of this process from deleting the WAL of the file.

Locks of SQLite belong to the process. A second library in it (Python's `sqlite3`, and with it SQLAlchemy, Django and
pandas) does not see our locks. When it closes its connection it believes that it was the last one, moves the WAL into
the file and deletes it, while we go on writing there. It proves that it is the last one by an exclusive lock. So a
descriptor of this process has a shared one, of the kind that belongs to the descriptor: it stands in the way of every
other library, also in this process, and closing other descriptors does not drop it.

The descriptor of a file is shared by all stores of this process. Before the last of them closes its connections, the
lock is given up, so that the WAL goes as it always has. The descriptor is closed only when no connection of this
process has the file, not even one of a user with apsw: closing it would drop the locks of that one.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

import apsw

from outlive._platform import HAS_BYTE_LOCKS, after_fork, set_shared_lock

SHARED_FIRST, SHARED_SIZE = 0x4000_0002, 510
"""The bytes of the file by which SQLite says that a connection uses it; see "os.h" of SQLite."""


class Holds:
    """The descriptors that this process holds, by device and inode."""

    def __init__(self) -> None:
        self.guard = threading.Lock()
        self.descriptors: dict[tuple[int, int], int] = {}
        self.users: dict[tuple[int, int], int] = {}
        """How many stores have a file open."""

    def close_idle(self) -> None:
        """Close the descriptors of files that no connection of this process has open."""
        idle = {file for file in self.descriptors if not self.users.get(file)}
        if not idle:
            return
        for connection in apsw.connections():
            with suppress(OSError, apsw.Error):
                status = Path(connection.filename).stat()
                idle.discard((status.st_dev, status.st_ino))
        for file in idle:
            self.users.pop(file, None)
            os.close(self.descriptors.pop(file))

    def drop_copies(self) -> None:
        """In a forked child: it has copies of the descriptors, and would keep the locks of its dead parent."""
        for descriptor in self.descriptors.values():
            with suppress(OSError):
                os.close(descriptor)
        self.guard = threading.Lock()
        self.descriptors, self.users = {}, {}


_holds = Holds()
after_fork(_holds.drop_copies)


class FileHold:
    """The hold that one store has on its file."""

    def __init__(self, path: Path) -> None:
        self._file: tuple[int, int] | None = None
        if not HAS_BYTE_LOCKS:
            return
        with _holds.guard, suppress(OSError):
            _holds.close_idle()
            status = path.stat()
            file = status.st_dev, status.st_ino
            if file not in _holds.descriptors:
                _holds.descriptors[file] = os.open(path, os.O_RDONLY)
            _holds.users[file] = _holds.users.get(file, 0) + 1
            self._file = file
            set_shared_lock(_holds.descriptors[file], SHARED_FIRST, SHARED_SIZE, is_held=True)

    def release(self) -> None:
        """The store is about to close its last connection."""
        with _holds.guard:
            file, self._file = self._file, None
            if file in _holds.users:
                _holds.users[file] -= 1
                if not _holds.users[file]:
                    set_shared_lock(_holds.descriptors[file], SHARED_FIRST, SHARED_SIZE, is_held=False)

    def close(self) -> None:
        """The store has closed its connections."""
        with _holds.guard:
            _holds.close_idle()
