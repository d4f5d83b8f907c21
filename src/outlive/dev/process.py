"""A worker process of `outlive dev`, seen from outside."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from asyncio.subprocess import Process
from collections.abc import Callable, Sequence
from contextlib import suppress

from outlive.dev.child import GRACE_SECONDS
from outlive.dev.message import GO, Imported, Loaded, Message, Ready, Refused, Stopped, decode

STOP_SECONDS_MAX = GRACE_SECONDS + 1.5
"""A process that has not released its runs by then is killed: another worker sees that and takes them."""
DEAF_TO_CTRL_C = """\
import signal
signal.signal(signal.SIGINT, lambda *_: None)
from outlive.dev.child import main
main()
"""
"""Ctrl-C reaches every process of the terminal, also one that still imports; what it means, the other one decides."""
LEAVE_SECONDS_MAX = 0.5
"""How long a process may take to end that has nothing left to do."""
LINE_BYTES_MAX = 4_000_000
"""A line names every file that a program has imported."""


class WorkerProcess:
    """One worker process: it imports the program, waits for `GO`, works, and ends."""

    def __init__(self, process: Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._process, self._reader, self._writer = process, reader, writer
        self.ended = asyncio.ensure_future(process.wait())
        self._listening: asyncio.Future[None] | None = None
        """Ends when the process has released its runs, or is gone; None before it works."""

    @classmethod
    async def start(cls, arguments: Sequence[str]) -> WorkerProcess:
        """Start one; it imports the program, and then waits."""
        ours, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", DEAF_TO_CTRL_C, str(number), *arguments, pass_fds=[number]
            )
        reader, writer = await asyncio.open_connection(sock=ours, limit=LINE_BYTES_MAX)
        return cls(process, reader, writer)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    async def load(self) -> Loaded | Refused:
        """Wait until it has imported the program; what it found."""
        message = await self._hear()
        if isinstance(message, Loaded | Refused):
            return message
        await self.ended
        return Refused(error=f"the process {self.how_it_ended()} before it had imported the program", files=[])

    async def work(self, on_import: Callable[[Sequence[str]], None]) -> Ready | None:
        """Let it work; what it said when it was ready, or None if it ended before."""
        self._writer.write(GO)
        message = await self._hear()
        if not isinstance(message, Ready):
            return None
        self._listening = asyncio.ensure_future(self._listen(on_import))
        return message

    async def stop(self) -> None:
        """Let it release its runs and end; kill it if it does not."""
        with suppress(OSError):
            if self._writer.can_write_eof():
                self._writer.write_eof()
        if self._listening is not None:
            await asyncio.wait([self._listening], timeout=STOP_SECONDS_MAX)
        await asyncio.wait([self.ended], timeout=LEAVE_SECONDS_MAX)
        if not self.ended.done():
            with suppress(ProcessLookupError):
                self._process.kill()
        await self.ended
        self._writer.close()

    def how_it_ended(self) -> str:
        """In words: by which signal, or with which code."""
        code = self._process.returncode
        if code is not None and code < 0:
            return f"was ended by {signal.Signals(-code).name}"
        return f"ended with code {code}"

    async def _listen(self, on_import: Callable[[Sequence[str]], None]) -> None:
        """Hear what it says until it has released its runs, or is gone."""
        while (message := await self._hear()) is not None and not isinstance(message, Stopped):
            if isinstance(message, Imported):
                on_import(message.files)

    async def _hear(self) -> Message | None:
        with suppress(OSError):
            line = await self._reader.readline()
            return decode(line) if line.endswith(b"\n") else None
        return None
