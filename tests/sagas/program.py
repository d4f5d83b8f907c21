"""A process that is killed in the middle of its roll-back, again and again: `LEDGER=... python -m ... DATABASE`.

Every booking and every undo is a line in the ledger; the process kills itself when it has begun an undo that no process
before it has begun.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import outlive

LEDGER = Path(os.environ.get("LEDGER", "ledger"))
NAMES = ["a", "b", "c"]


def write(what: str) -> bool:
    """Add a line to the ledger; whether it is the first of its kind."""
    is_first = not LEDGER.exists() or what not in LEDGER.read_text().splitlines()
    with LEDGER.open("a") as file:
        file.write(f"{what}\n")
    return is_first


def saga_program_undo(name: str) -> None:
    """Kills the first process that comes here."""
    if write(f"begin to undo {name}"):
        os.kill(os.getpid(), signal.SIGKILL)
    write(f"undo {name}")


@outlive.step(undo=saga_program_undo)
async def saga_program_book(name: str) -> str:
    """Book."""
    write(f"book {name}")
    return name


@outlive.workflow
async def saga_program() -> None:
    """Book everything, and fail."""
    async with outlive.saga():
        await outlive.map(saga_program_book, NAMES, concurrency=1)
        raise ValueError("planned")


async def main(url: str) -> None:
    """Run it, or go on with it."""
    async with outlive.Engine(url) as engine:
        run = await engine.start(saga_program, id="run-1")
        try:
            await run.result()
        except outlive.errors.RunFailedError as error:
            sys.stdout.write(f"{error}\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
