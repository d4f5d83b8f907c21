"""Rings other processes of this machine: SQLite tells no process what another one wrote.

Beside the file is a folder with a socket for each process that listens: one of a worker, which wants to hear that
something may be due, and one of a process that reads along with runs. A process that has written something for them
sends a datagram to each, and waits for none. It is a hint: what is not heard is found at the next look. The socket of a
process that was killed is removed by the first ring that finds no listener there.

The folder is for one user alone. In a place that many may write to, as `/tmp`, another user could make
it first: to hear which runs there are, and to ring. Such a folder is not used, and there are no bells then.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from weakref import WeakSet

from outlive._platform import after_fork, is_own_folder, open_bell, ring_bells
from outlive.telemetry import log

IDS_MAX = 256
"""Ids in one ring; more are one ring for all runs. An id has a few hundred bytes at most."""
BINDS_MAX = 5
"""How often it is tried to make a socket: the last process to leave may remove the folder at this moment, and the name
may be taken."""
HEARD_MAX = 100
"""Rings that are taken at once; the others follow in the next turn of the loop."""
SEPARATOR = "\n"
WORKERS, READERS = "workers", "readers"
"""The purpose of a socket: the first part of its name."""

_everyone: WeakSet[Bells] = WeakSet()


class Bells:
    """All sockets for one purpose in the folder, and that of this store among them."""

    def __init__(self, folder: Path, kind: str) -> None:
        self._folder = folder
        self._kind = f"{kind}-"
        self._ringers: list[Callable[[str], None]] = []
        self._socket: socket.socket | None = None
        self._own = ""
        _everyone.add(self)

    def listen(self, ring: Callable[[str], None]) -> bool:
        """Call `ring` on the event loop with the id of each run that another process rings for, or with "" for all of
        them; False if this cannot be done here."""
        self._ringers.append(ring)
        if self._socket is None:
            try:
                self._socket = self._open()
                asyncio.get_running_loop().add_reader(self._socket.fileno(), self._hear)
            except (OSError, NotImplementedError):
                # No such sockets here, or a folder that this user may not make or write to.
                self.close()
                return False
        return True

    def _open(self) -> socket.socket:
        for tries in range(1, BINDS_MAX + 1):
            self._folder.mkdir(mode=0o700, exist_ok=True)
            # A process in another container may have the same number.
            self._own = f"{self._kind}{os.getpid()}-{id(self):x}-{tries}"
            try:
                self._check_folder()
                return open_bell(self._folder, self._own)
            except OSError as error:
                self._own = ""
                if error.errno not in {errno.ENOENT, errno.EADDRINUSE} or tries == BINDS_MAX:
                    raise
        raise AssertionError("the last try returns or raises")

    def _check_folder(self) -> None:
        if not is_own_folder(self._folder):
            log.warning(
                "%s is not a folder of this user alone, so no process is rung by another one here: each looks by "
                "itself. Remove it, or give it the mode 0700 and this user as its owner",
                self._folder,
            )
            raise PermissionError(errno.EPERM, "not a folder of this user alone", str(self._folder))

    def ring(self, run_ids: Iterable[str] = ("",)) -> None:
        """Tell all other processes that listen; from any thread."""
        try:
            if not is_own_folder(self._folder):
                return
            names = os.listdir(self._folder)  # noqa: PTH208 (a third of the time of `iterdir`, at every end of a run)
        except OSError:
            return  # There is no folder, so that no process listens; or it is another user's.
        names = [name for name in names if name.startswith(self._kind) and name != self._own]
        if not names:
            return
        ids = list(dict.fromkeys(run_ids))
        data = SEPARATOR.join(ids if len(ids) <= IDS_MAX else [""]).encode()
        for name in ring_bells(self._folder, names, data):
            with suppress(OSError):
                (self._folder / name).unlink()

    def _hear(self) -> None:
        rung: dict[str, None] = {}
        assert self._socket is not None, "only a bell that listens hears"
        for _ in range(HEARD_MAX):
            try:
                data = self._socket.recv(65_536)
            except OSError:
                break
            rung |= dict.fromkeys(data.decode(errors="replace").split(SEPARATOR))
        for run_id in rung:
            for ring in self._ringers:
                ring(run_id)

    def close(self) -> None:
        """Listen no more; the last one takes the folder away."""
        own, self._socket = self._socket, None
        self._ringers.clear()
        if own is not None:
            with suppress(RuntimeError):  # The event loop is closed.
                asyncio.get_running_loop().remove_reader(own.fileno())
            own.close()
        if self._own:
            with suppress(OSError):
                (self._folder / self._own).unlink()
            self._own = ""
        with suppress(OSError):
            self._folder.rmdir()

    def forget(self) -> None:
        """In a forked child: the socket is the parent's."""
        own, self._socket, self._own = self._socket, None, ""
        self._ringers.clear()
        if own is not None:
            own.close()


def _close_copies() -> None:
    # A copy would keep the bell of a dead parent alive: others would ring there and never remove it.
    for bells in list(_everyone):
        with suppress(OSError):
            bells.forget()


after_fork(_close_copies)
