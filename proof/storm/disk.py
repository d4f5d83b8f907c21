"""A disk that can be made full, and empty again.

As root it is a small file system of its own, in memory: full means that its size is set to what is used. Every process
that writes there hears ENOSPC, the server of a store too. Other users can only limit the size of the files that
their own processes write (`RLIMIT_FSIZE`): good enough for SQLite, where the workers are those who write.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

ROOM_BYTES = 2 * 1024**3
"""Room on the disk while it is not full. Memory is taken only for what is written."""
LIMIT_BYTES = 64 * 1024
TRIES_MAX = 20


class Disk(Protocol):
    """Where the store of a trial is."""

    def fill(self, pids: Iterable[int]) -> bool:
        """Leave no room for these processes; whether that worked."""

    def free(self) -> None:
        """Make room again."""


class OwnDisk:
    """A file system of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def fill(self, pids: Iterable[int]) -> bool:
        """See `Disk`: for all processes."""
        del pids
        for _ in range(TRIES_MAX):
            found = os.statvfs(self._folder)
            used = (found.f_blocks - found.f_bfree) * found.f_frsize
            # Refused if a process has written since we looked.
            if _run("mount", "-o", f"remount,size={used}", str(self._folder)):
                return True
        return False

    def free(self) -> None:
        """See `Disk`."""
        assert _run("mount", "-o", f"remount,size={ROOM_BYTES}", str(self._folder)), "the disk cannot be given room"


class LimitedFiles:
    """No file system, but processes that may not write large files."""

    def __init__(self) -> None:
        self._limited: list[int] = []

    def fill(self, pids: Iterable[int]) -> bool:
        """See `Disk`: what these processes start inherits it, what others start does not."""
        self._limited = list(pids)
        self._limit(LIMIT_BYTES)
        return bool(self._limited)

    def free(self) -> None:
        """See `Disk`."""
        self._limit(resource.RLIM_INFINITY)
        self._limited = []

    def _limit(self, size: int) -> None:
        for pid in self._limited:
            with suppress(ProcessLookupError):  # It was killed meanwhile.
                _, most = resource.prlimit(pid, resource.RLIMIT_FSIZE)
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (size if most < 0 else min(size, most), most))


@contextmanager
def own_disk() -> Iterator[tuple[OwnDisk | None, Path]]:
    """A disk of its own, if we may have one, and the empty folder where it is; both are gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="outlive-disk-"))
    folder.chmod(0o755)  # The server of a store may be another user.
    kind = f"size={ROOM_BYTES},mode=0755"
    may = sys.platform == "linux" and os.geteuid() == 0
    is_mounted = may and _run("mount", "-t", "tmpfs", "-o", kind, "outlive-chaos", str(folder))
    try:
        yield OwnDisk(folder) if is_mounted else None, folder
    finally:
        if is_mounted:
            # Lazily: a process that still has a file open there keeps it until it is gone.
            _run("umount", "--lazy", str(folder))
        shutil.rmtree(folder, ignore_errors=True)


def _run(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=30).returncode == 0
    except FileNotFoundError:
        return False
