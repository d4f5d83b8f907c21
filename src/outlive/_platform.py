"""Features that only some systems have, each with a replacement elsewhere. No other module asks for one by name.

Linux has all of it. Where something is missing nothing is lost: a worker that died is known by its lease instead of by
the kernel, and a process of a step that is killed leaves behind what it has started itself.
"""

from __future__ import annotations

import errno
import os
import signal
import socket
import stat
import struct
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

try:
    import fcntl
except ImportError:  # Windows.
    fcntl = None  # type: ignore[assignment]

_FLOCK = struct.Struct("@hhqqi4x")
"""`struct flock` where `off_t` has 64 bits: type, whence, start, length, process id."""
_SET: int | None = getattr(fcntl, "F_OFD_SETLK", None)
_GET: int | None = getattr(fcntl, "F_OFD_GETLK", None)
_PR_SET_PDEATHSIG = 1

FOLDER_BYTES_MAX = 72
"""How long the path of a folder with sockets may be: with their names, it must fit into 104 bytes (macOS)."""

NAME_CHARACTERS_MAX = 50
"""How much of the name of a file is in that of its draft, which must not be too long."""

HAS_BYTE_LOCKS = _SET is not None and _GET is not None
"""Whether a byte of a file can be locked by a descriptor (Linux), and not only by a process."""


def after_fork(do: Callable[[], None]) -> None:
    """Do this in every child that is forked; where there are no forks, never."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=do)


def is_trusted_owner(path: Path) -> bool:
    """Whether a file belongs to the user of this process, or to the system; where files have no such owner, yes."""
    return not hasattr(os, "getuid") or path.stat().st_uid in (os.getuid(), 0)


def is_own_folder(path: str | os.PathLike[str]) -> bool:
    """Whether this is a folder, and no link to one, that the user of this process alone may use; where files have no
    such owner, whether it is a folder.

    Raises:
        OSError: there is nothing.
    """
    found = os.lstat(path)
    if not hasattr(os, "getuid"):
        return stat.S_ISDIR(found.st_mode)
    is_private = stat.S_ISDIR(found.st_mode) and not stat.S_IMODE(found.st_mode) & 0o077
    return is_private and found.st_uid == os.getuid()


def open_private(path: str | os.PathLike[str]) -> BinaryIO:
    """A file to write, emptied if it is there; a new one is its owner's alone, whatever the umask is."""
    return open(path, "wb", opener=lambda name, flags: os.open(name, flags, 0o600))


def write_private(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a whole file for its owner alone. It takes the name of a file, or of a link to one, that is there: others
    may have put that there. What is not a file, such as a pipe, is written to."""
    place = Path(path)
    if place.exists() and not place.is_file():
        with open_private(place) as opened:
            opened.write(data)
        return
    part = place.with_name(f".{place.name[:NAME_CHARACTERS_MAX]}.{os.getpid()}.part")
    part.unlink(missing_ok=True)
    try:
        with open(part, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as opened:
            opened.write(data)
        part.replace(place)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def fsync_folder(folder: Path) -> None:
    """Let the names in a folder survive a loss of power, where a folder can be asked for that."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def pause(seconds: float) -> None:
    """Let other threads and processes go on for a moment."""
    threading.Event().wait(seconds)


# -- Locks of bytes ----------------------------------------------------------------------------------------------------


def set_byte_lock(descriptor: int, at: int, *, is_held: bool) -> bool:
    """Lock one byte of a file, or let go of it; False if that cannot be done. Needs `HAS_BYTE_LOCKS`."""
    assert _SET is not None
    kind = fcntl.F_WRLCK if is_held else fcntl.F_UNLCK
    try:
        fcntl.fcntl(descriptor, _SET, _FLOCK.pack(kind, os.SEEK_SET, at, 1, 0))
    except OSError:
        return False
    return True


def set_shared_lock(descriptor: int, at: int, size: int, *, is_held: bool) -> bool:
    """Share a lock of some bytes of a file, or let go of it; False if that cannot be done. Needs `HAS_BYTE_LOCKS`."""
    assert _SET is not None
    kind = fcntl.F_RDLCK if is_held else fcntl.F_UNLCK
    try:
        fcntl.fcntl(descriptor, _SET, _FLOCK.pack(kind, os.SEEK_SET, at, size, 0))
    except OSError:
        return False
    return True


def is_byte_locked(descriptor: int, at: int) -> bool:
    """Whether another descriptor has locked this byte; also if there is no telling. Needs `HAS_BYTE_LOCKS`."""
    assert _GET is not None
    try:
        answer: Any = fcntl.fcntl(descriptor, _GET, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, at, 1, 0))
    except OSError:
        return True
    return bool(_FLOCK.unpack(answer)[0] != fcntl.F_UNLCK)


# -- Bells between processes -------------------------------------------------------------------------------------------


def open_bell(folder: Path, name: str) -> socket.socket:
    """A socket of this name by which other processes of this machine can ring, and that never blocks.

    Raises:
        OSError: it cannot be made, or this system has no such thing.
    """
    if not hasattr(socket, "AF_UNIX"):
        raise OSError("no sockets of the file system here")
    bell = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        bell.setblocking(False)
        with _in_short(folder) as place:
            bell.bind(f"{place}/{name}")
    except OSError:
        bell.close()
        raise
    return bell


def ring_bells(folder: Path, names: Iterable[str], data: bytes) -> list[str]:
    """Send something to the processes that listen at these sockets, without waiting; those where none does."""
    silent: list[str] = []
    if not hasattr(socket, "AF_UNIX"):
        return silent
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ringer, _in_short(folder) as place:
        ringer.setblocking(False)
        for name in names:
            try:
                ringer.sendto(data, f"{place}/{name}")
            except (ConnectionRefusedError, FileNotFoundError):
                silent.append(name)
            except OSError:
                """It has more to read than it can, or belongs to another user."""
    return silent


@contextmanager
def _in_short(folder: Path) -> Iterator[str]:
    """A way to name a folder that leaves room for the name of a socket: an address has about 100 bytes."""
    if len(os.fsencode(folder)) <= FOLDER_BYTES_MAX or sys.platform != "linux":
        yield str(folder)
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


# -- Files ------------------------------------------------------------------------------------------------------------


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """A file of others, to read. A pipe, a device or a socket of this name is refused: it may have no end.
    What the system itself hands over (`/dev/stdin`, and `/dev/fd/63` of a shell) may be a pipe.

    Raises:
        OSError: it cannot be opened, or is not a regular file.
    """
    if os.fspath(path).startswith(("/dev/fd/", "/dev/stdin")):
        return Path(path).open("rb")
    # Without waiting: a pipe of this name would let the caller wait for ever.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is not a regular file", os.fspath(path))


def open_below(folder: Path, parts: Sequence[str]) -> int:
    """A descriptor of a file below a folder, for reading. No part of the way to it may be a link, whenever it became
    one; where the system cannot promise that, none may be one now.

    Raises:
        OSError: it cannot be opened, or the way leads through a link.
    """
    assert parts
    if os.open not in os.supports_dir_fd or not hasattr(os, "O_NOFOLLOW"):
        path = folder.joinpath(*parts)
        if path.resolve(strict=True) != folder.resolve(strict=True).joinpath(*parts):
            raise OSError("the way to it leads through a link")
        return os.open(path, os.O_RDONLY)
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in parts[:-1]:
            there = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = there
        # Without waiting: a pipe of this name would let the caller wait for ever.
        return os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=here)
    finally:
        os.close(here)


# -- What /proc tells --------------------------------------------------------------------------------------------------


def find_home() -> str:
    """Where process numbers mean the same: this boot of this machine, and this namespace.

    Raises:
        OSError: the system does not tell.
    """
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}/{Path('/proc/self/ns/pid').stat().st_ino}"


def look_at_process(number: int) -> tuple[str, str]:
    """State and start of a process. Its command may contain anything, but the last bracket closes it.

    Raises:
        OSError: there is none, or the system does not tell.
    """
    fields = Path(f"/proc/{number}/stat").read_text(errors="replace").rpartition(")")[2].split()
    return fields[0], fields[19]


def ask_for_process(number: int) -> None:
    """Return if there is a process of this number. Call it only where `find_home` has answered.

    Raises:
        ProcessLookupError: there is none.
        PermissionError: there is one, of another user.
    """
    os.kill(number, 0)


def read_mounts() -> str:
    """The mounted file systems, in the format of `/proc/self/mountinfo`; empty if the system does not list them."""
    try:
        return Path("/proc/self/mountinfo").read_text("utf-8", errors="replace")
    except OSError:
        return ""


# -- Processes of steps ------------------------------------------------------------------------------------------------


def hold_back_interrupts() -> None:
    """Keep Ctrl-C from this thread and from the processes that it begins, until they stand alone."""
    if hasattr(signal, "pthread_sigmask"):
        from multiprocessing import resource_tracker

        resource_tracker.ensure_running()  # First, because beginning it lets go of Ctrl-C again.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def stand_alone(parent_id: int) -> None:
    """Lead a group of processes, take Ctrl-C from now on, and die with the parent; what of it the system can do."""
    if hasattr(os, "setsid"):
        with suppress(OSError):
            os.setsid()
        # The parent began this process with Ctrl-C held back. One that came meanwhile is dropped.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if sys.platform == "linux":
        import ctypes

        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent_id:
            os._exit(1)  # The parent died before the kernel watched it.


def kill_group(process_id: int) -> bool:
    """Kill a process and what it has started; False if it does not lead a group of its own yet, or any more."""
    assert process_id > 1, "0 would be our own group, and 1 every process of the machine"
    try:
        os.killpg(process_id, signal.SIGKILL)
    except (AttributeError, OSError):  # Or there is no such thing here.
        return False
    return True


def end_with_group() -> NoReturn:
    """End this process at once, and what it has started if it leads a group of its own."""
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
