"""Who is alive, seen by the kernel.

A worker locks one byte of a file beside the database for as long as its process lives. The kernel lets go of the
lock when the process dies, however it dies, so its trees can be taken over at once; the lease, which is judged by
a clock, is needed only for a process that lives and does not move. Nothing about safety depends on this: the
compare-and-swap of the journal does that, and a lock that is seen wrongly costs a take-over, nothing more.

The locks are open-file-description locks (Linux). Unlike POSIX locks they belong to the descriptor, not to the
process: two stores of one process see each other's, and closing some other descriptor of the file does not drop
them. Asking (F_OFD_GETLK) never takes a lock. Where they do not exist, only the leases count.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import struct
from contextlib import suppress
from pathlib import Path
from weakref import WeakSet

_FLOCK = struct.Struct("@hhqqi4x")
"""`struct flock` where `off_t` has 64 bits: type, whence, start, length, process id."""
_SET: int | None = getattr(fcntl, "F_OFD_SETLK", None)
_GET: int | None = getattr(fcntl, "F_OFD_GETLK", None)

_everyone: WeakSet[WorkerLocks] = WeakSet()


class WorkerLocks:
    """The locks that the workers of one store hold, and a look at those of all others."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._holding = self._asking = -1
        self.inode: int | None = None
        """Which file the locks are in. Somebody may delete the file, and then there are two that know nothing of
        each other; a lock in the other one is not asked for."""
        self.held: set[str] = set()
        _everyone.add(self)

    def open(self) -> None:
        """Open the file; if the system cannot lock it, do without."""
        if _SET is None or _GET is None:
            return
        with suppress(OSError):
            flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC
            self._holding = os.open(self._path, flags, 0o600)
            self._asking = os.open(self._path, flags, 0o600)
            self.inode = os.fstat(self._holding).st_ino
            if self.inode != os.fstat(self._asking).st_ino:
                self.close()

    def take(self, worker_id: str) -> int | None:
        """Hold this worker's lock; the inode of the file if it is held, None if only the lease can speak for it."""
        if self.inode is None or not self._set(fcntl.F_WRLCK, worker_id):
            return None
        self.held.add(worker_id)
        return self.inode

    def drop(self, worker_id: str) -> None:
        """Let go of this worker's lock."""
        if worker_id in self.held:
            self.held.discard(worker_id)
            self._set(fcntl.F_UNLCK, worker_id)

    def is_held(self, worker_id: str) -> bool:
        """Whether somebody holds this worker's lock."""
        assert _GET is not None
        try:
            answer = fcntl.fcntl(self._asking, _GET, _flock(fcntl.F_WRLCK, worker_id))
        except OSError:
            return True  # Nobody can tell; the lease decides.
        return bool(_FLOCK.unpack(answer)[0] != fcntl.F_UNLCK)

    def close(self) -> None:
        """Let go of all locks."""
        for descriptor in (self._holding, self._asking):
            if descriptor >= 0:
                os.close(descriptor)
        self._holding = self._asking = -1
        self.inode = None
        self.held.clear()

    def _set(self, kind: int, worker_id: str) -> bool:
        assert _SET is not None
        try:
            fcntl.fcntl(self._holding, _SET, _flock(kind, worker_id))
        except OSError:
            return False
        return True


def _flock(kind: int, worker_id: str) -> bytes:
    # A byte of its own for every worker that will ever be; the file stays empty all the same.
    digest = hashlib.blake2b(worker_id.encode(), digest_size=8).digest()
    return _FLOCK.pack(kind, os.SEEK_SET, int.from_bytes(digest, "big") >> 2, 1, 0)


def _close_copies() -> None:
    # A forked child has copies of the descriptors, and would keep the locks of its dead parent.
    for locks in list(_everyone):
        with suppress(OSError):
            locks.close()


os.register_at_fork(after_in_child=_close_copies)
