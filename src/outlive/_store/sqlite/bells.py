"""Rings the readers in other processes of this machine: SQLite tells no process what another one wrote.

Beside the file is a folder with a socket for each process that follows runs. A process that has written something for
readers sends the ids of the runs to all of them, and waits for none. It is a hint: what is not heard is found at the
next look. The socket of a process that was killed is removed by the first one that finds no listener there.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from outlive._platform import open_bell, ring_bell

IDS_MAX = 16
"""Ids in one ring; more are one ring for all runs."""
SEPARATOR = "\n"


class Bells:
    """The folder, and the socket of this process in it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ringers: list[Callable[[str], None]] = []
        self._socket: socket.socket | None = None
        self._own = ""

    def listen(self, ring: Callable[[str], None]) -> bool:
        """Call `ring` on the event loop with the id of each run that another process rings for, or with "" for all of
        them; False if this cannot be done here."""
        self._ringers.append(ring)
        if self._socket is None:
            try:
                self._folder.mkdir(mode=0o700, exist_ok=True)
                self._own = f"{os.getpid()}-{id(self):x}"
                self._socket = open_bell(self._folder / self._own)
                asyncio.get_running_loop().add_reader(self._socket.fileno(), self._hear)
            except (OSError, NotImplementedError):
                # No such sockets here, a path that is too long for one, a folder that may not be made.
                self.close()
                return False
        return True

    def ring(self, run_ids: Iterable[str]) -> None:
        """Tell all other processes that listen."""
        try:
            bells = list(self._folder.iterdir())
        except OSError:
            return  # There is no folder, so that no process listens.
        ids = list(dict.fromkeys(run_ids))
        data = SEPARATOR.join(ids if len(ids) <= IDS_MAX else [""]).encode()
        for bell in bells:
            if bell.name != self._own and not ring_bell(bell, data):
                with suppress(OSError):
                    bell.unlink()

    def _hear(self) -> None:
        while self._socket is not None:
            try:
                data = self._socket.recv(65_536)
            except OSError:
                return
            for run_id in data.decode(errors="replace").split(SEPARATOR):
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
            with suppress(OSError):
                self._folder.rmdir()
            self._own = ""
