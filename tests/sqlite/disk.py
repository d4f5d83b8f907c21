"""A disk that is watched, and that can fail: a VFS of SQLite between all connections and the real one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import apsw

BASE = apsw.vfs_names()[0]
"""The real one, by name: once ours is the default, an empty name would mean ours."""


def nothing_fails(operation: str) -> None:
    """The disk works."""
    del operation


def failing(operation: str, error: apsw.Error) -> Callable[[str], None]:
    """A disk that answers every such operation with this error."""

    def fail(happening: str) -> None:
        if happening == operation:
            raise error

    return fail


class WatchedDisk(apsw.VFS):
    """Notes what is written and synced, and asks `fail` before each of the two."""

    def __init__(self) -> None:
        super().__init__("outlive-watched", BASE, makedefault=True)
        self.log: list[str] = []
        """`write wal`, `sync wal`, `write db`, `sync db`, in the order in which they happened."""
        self.unsynced: set[str] = set()
        """What a loss of power could take now."""
        self.sync_flags: set[int] = set()
        self.opened = 0
        """How often a connection was made."""
        self.fail: Callable[[str], None] = nothing_fails
        """Raises what a broken disk would answer to such an operation."""

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> WatchedFile:  # noqa: N802 (SQLite's name)
        """Open a file that is watched."""
        self.opened += bool(flags[0] & apsw.SQLITE_OPEN_MAIN_DB)
        return WatchedFile(self, name, flags)

    def note(self, verb: str, kind: str) -> None:
        """Something is done to a file."""
        self.fail(f"{verb} {kind}")
        self.log.append(f"{verb} {kind}")
        if verb == "write":
            self.unsynced.add(kind)
        else:
            self.unsynced.discard(kind)


class WatchedFile(apsw.VFSFile):
    """A file of the watched disk."""

    def __init__(self, disk: WatchedDisk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        super().__init__(BASE, name, flags)
        self._disk = disk
        self._kind = "wal" if flags[0] & apsw.SQLITE_OPEN_WAL else "db"

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 (SQLite's name)
        """Hand bytes to the system."""
        self._disk.note("write", self._kind)
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802 (SQLite's name)
        """Wait until they are on the disk."""
        self._disk.sync_flags.add(flags)
        self._disk.note("sync", self._kind)
        super().xSync(flags)


@contextmanager
def watched_disk() -> Iterator[WatchedDisk]:
    """Everything that is opened inside is on this disk; it must be closed inside, too."""
    disk = WatchedDisk()
    try:
        yield disk
    finally:
        disk.unregister()
