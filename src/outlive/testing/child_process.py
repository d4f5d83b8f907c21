"""A child process that is started, killed, and never left behind.

It stops when its standard input is closed, which is also how it notices that its parent is gone, in whatever
way; or when it is sent SIGTERM, as a supervisor of services does. Ctrl-C reaches only the parent: the child has a
session of its own.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO

STOP_SECONDS_MAX = 5.0
FURTHER_LINE = "| "
"""How the further lines of a message begin in the log of a child. The traceback of a run that failed is part of a
message; any other traceback is that of a surprise."""


class _Formatter(logging.Formatter):
    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (its name in the library)
        return super().formatMessage(record).replace("\n", f"\n{FURTHER_LINE}")


def log_to_stderr() -> None:
    """Let a child log warnings to its log file."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Formatter())
    logging.basicConfig(handlers=[handler], level=logging.WARNING)


def tracebacks_in(text: str) -> list[str]:
    """The text behind the first line of each traceback in a log that is not a part of a message."""
    lines = text.splitlines(keepends=True)
    kept = "".join(line for line in lines if not line.startswith(FURTHER_LINE))
    return kept.split("Traceback (most recent call last):\n")[1:]


class ChildProcess:
    """A Python module that runs in a process of its own."""

    def __init__(self, module: str, *args: str, log: Path, env: Mapping[str, str] | None = None) -> None:
        self._log = log
        self.killed_at: float | None = None
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, *args],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                env={**os.environ, **(env or {})},
                start_new_session=True,
            )
        self.started_at = time.time()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """How it ended; None while it runs."""
        return self._process.poll()

    @property
    def is_lost(self) -> bool:
        """Whether it ended badly and was not killed."""
        return self.killed_at is None and bool(self.exit_code)

    def last_words(self, lines: int = 30) -> str:
        """The end of what it wrote to its standard error."""
        return "\n".join(self._log.read_text("utf-8", "replace").splitlines()[-lines:])

    def surprises(self) -> list[str]:
        """The tracebacks in its log that are not part of a message."""
        return tracebacks_in(self._log.read_text("utf-8", "replace"))

    def read_line(self) -> bytes:
        """Wait for a line of its standard output; empty if it is gone."""
        return _pipe(self._process.stdout).readline()

    def freeze(self) -> None:
        """Stop it where it is, so that one can look at what it was doing; returns when it stands still."""
        self._process.send_signal(signal.SIGSTOP)
        os.waitpid(self.pid, os.WUNTRACED)

    def thaw(self) -> None:
        """Let it go on."""
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """`kill -9`: no last word, no clean-up."""
        self.killed_at = time.time()
        self._process.kill()
        self._process.wait()
        self._close_pipes()

    def ask_to_stop(self) -> None:
        """Close its standard input."""
        _pipe(self._process.stdin).close()

    def terminate(self) -> None:
        """Ask it to stop as a supervisor of services does; returns at once."""
        self._process.terminate()

    def wait(self, seconds: float) -> bool:
        """Wait for its end; whether it came."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def end(self, *, deadline: float) -> None:
        """See that it is gone; one that has not stopped by then is killed."""
        if not self.wait(max(0.0, deadline - time.monotonic())):
            self._process.kill()
            self._process.wait()
        self._close_pipes()

    def _close_pipes(self) -> None:
        _pipe(self._process.stdin).close()
        _pipe(self._process.stdout).close()


def end_all(children: list[ChildProcess]) -> None:
    """Ask all to stop, then see that they are gone."""
    for child in children:
        child.ask_to_stop()
    deadline = time.monotonic() + STOP_SECONDS_MAX
    for child in children:
        child.end(deadline=deadline)


async def until_asked_to_stop() -> None:
    """In the child: wait until the parent closes our standard input, or dies, or SIGTERM comes."""
    loop = asyncio.get_running_loop()
    is_asked = asyncio.Event()
    stdin = sys.stdin.fileno()

    def look() -> None:
        if not os.read(stdin, 4096):
            is_asked.set()

    loop.add_reader(stdin, look)
    loop.add_signal_handler(signal.SIGTERM, is_asked.set)
    try:
        await is_asked.wait()
    finally:
        loop.remove_reader(stdin)
        loop.remove_signal_handler(signal.SIGTERM)


def say(line: str) -> None:
    """In the child: tell the parent something."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None, "all pipes of a child process were asked for"
    return pipe
