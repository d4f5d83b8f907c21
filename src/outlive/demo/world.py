"""The outside world of the demo: a file in which everything that was really done is written down.

It stands for the bank, the warehouse and the carrier. The engine knows nothing of it, so it can bear witness: the
ledger compares what was done here with what the journals say.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

import outlive
from outlive.testing.line_file import Tail, append

PLACE = "OUTLIVE_DEMO_WORLD"
"""The environment variable that tells a worker where the world is."""


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was begun, finished or given up out there."""

    at: float
    pid: int
    mark: str
    """`begin`, `end` or `failed`."""
    what: str
    order: str
    key: str
    """The idempotency key: by this the bank knows that it is asked for the same thing again."""
    epoch: int
    attempt: int
    cents: int = 0


@asynccontextmanager
async def effect(what: str, order: str, *, cents: int = 0) -> AsyncIterator[None]:
    """Do something out there: the body of the `async with` is the time it takes."""
    write("begin", what, order, cents)
    try:
        yield
    except BaseException:
        write("failed", what, order, cents)
        raise
    write("end", what, order, cents)


def write(mark: str, what: str, order: str, cents: int) -> None:
    """Append one line; it is on the disk when this returns."""
    me = outlive.current_step()
    line = Line(
        at=time.time(),
        pid=os.getpid(),
        mark=mark,
        what=what,
        order=order,
        key=me.idempotency_key,
        epoch=me.epoch,
        attempt=me.attempt,
        cents=cents,
    )
    append(os.environ[PLACE], line, sync=True)


class Witness(Tail[Line]):
    """Reads the world as it grows."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, Line)

    def under_way(self, what: str) -> list[Line]:
        """The lines of work that was begun and has neither ended nor failed, oldest first."""
        begun: dict[tuple[int, str], Line] = {}
        for line in self.lines:
            if line.what == what:
                if line.mark == "begin":
                    begun[line.pid, line.key] = line
                else:
                    begun.pop((line.pid, line.key), None)
        return list(begun.values())
