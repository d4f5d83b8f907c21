"""What the client was answered, written down at that moment: after any kill, all of it must be true."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import msgspec

from outlive.testing.line_file import append


class Ack(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One answer of the engine, or one intention that has no answer yet."""

    op: str
    """`trying` (about to start), `started`, `signalled`, `decided`, `answered`, `settled`, `cancelled`, `resumed`
    (after a pause), `retried`, `forked`, `ended`."""
    number: int
    """Of the job."""
    at: float
    pid: int
    key: str = ""
    """Of a signal; the name of an approval, of an ask or of a promise."""
    status: str = ""
    """How the run ended, or what was decided."""
    by: str = ""
    """Who decided."""
    is_first: bool = False
    """Whether the engine said that this decision, or this settlement of a promise, is the one that counts."""
    value: int | None = None
    """The signal's payload, the answer to an ask, what a promise was settled with, or the result."""


class AckLog:
    """Where a client writes; every client process of one trial appends to the same file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, op: str, number: int, **facts: Any) -> None:
        """Write one answer down; it is there when this returns, whatever happens to this process."""
        append(self._path, Ack(op=op, number=number, at=time.time(), pid=os.getpid(), **facts))
