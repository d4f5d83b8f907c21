"""The locks by which the kernel says which workers are alive.

A worker locks one byte of a file beside the database for as long as its process lives. The kernel drops the
lock when the process dies, however it dies, so its trees can be taken over at once; the lease, which is judged by
a clock, is needed only for a process that lives and does not move. Nothing about safety depends on this: the
compare-and-swap of the journal does that, and a lock that is seen wrongly costs a take-over, nothing more.

The locks are open-file-description locks (Linux). Unlike POSIX locks they belong to the descriptor, not to the
process: two stores of one process see each other's, and closing some other descriptor of the file does not drop
them. Asking (F_OFD_GETLK) never takes a lock. Where they do not exist, only the leases count.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from weakref import WeakSet

from outlive._platform import HAS_BYTE_LOCKS, after_fork, is_byte_locked, set_byte_lock

_everyone: WeakSet[WorkerLocks] = WeakSet()


class WorkerLocks:
    """The locks that the workers of one store hold, and a look at those of all others."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._holding = self._asking = -1
        self.inode: int | None = None
        """Which file the locks are in. A person may delete the file, and then there are two that know nothing of
        each other; a lock in the other one is not asked for."""
        self.held: set[str] = set()
        _everyone.add(self)

    def open(self) -> None:
        """Open the file; if the system cannot lock it, do without."""
        if not HAS_BYTE_LOCKS:
            return
        with suppress(OSError):
            flags = os.O_CREAT | os.O_RDWR
            self._holding = os.open(self._path, flags, 0o600)
            self._asking = os.open(self._path, flags, 0o600)
            self.inode = os.fstat(self._holding).st_ino
            if self.inode != os.fstat(self._asking).st_ino:
                self.close()

    def take(self, worker_id: str) -> int | None:
        """Hold this worker's lock; the inode of the file if it is held, None if only the lease can speak for it."""
        if self.inode is None or not set_byte_lock(self._holding, _byte_of(worker_id), is_held=True):
            return None
        self.held.add(worker_id)
        return self.inode

    def drop(self, worker_id: str) -> None:
        """Drop this worker's lock."""
        if worker_id in self.held:
            self.held.discard(worker_id)
            set_byte_lock(self._holding, _byte_of(worker_id), is_held=False)

    def is_held(self, worker_id: str) -> bool:
        """Whether this worker's lock is held; also if there is no telling: then the lease decides."""
        return is_byte_locked(self._asking, _byte_of(worker_id))

    def close(self) -> None:
        """Drop all locks."""
        for descriptor in (self._holding, self._asking):
            if descriptor >= 0:
                os.close(descriptor)
        self._holding = self._asking = -1
        self.inode = None
        self.held.clear()


def _byte_of(worker_id: str) -> int:
    # A byte of its own for every worker that will ever be; the file stays empty all the same.
    digest = hashlib.blake2b(worker_id.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 2


def _close_copies() -> None:
    # A forked child has copies of the descriptors, and would keep the locks of its dead parent.
    for locks in list(_everyone):
        with suppress(OSError):
            locks.close()


after_fork(_close_copies)
