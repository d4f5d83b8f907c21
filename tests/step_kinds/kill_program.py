"""A process that is killed in a step: `FOLDER=... KIND=... python -m tests.step_kinds.kill_program DATABASE`.

What a step does once it has begun is a line in the file `began`; what it does in the database stands in a table.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import outlive

FOLDER = Path(os.environ.get("FOLDER", "."))
KIND = os.environ.get("KIND", "")
KINDS = ("in a transaction", "behind a transaction", "in a step that is called once")


def begin(what: str) -> None:
    """Note that a step has begun; die the first time, if this is the place."""
    file = FOLDER / "began"
    is_first = not file.exists() or what not in file.read_text().splitlines()
    with file.open("a") as lines:
        lines.write(f"{what}\n")
    if is_first and what == KIND:
        os.kill(os.getpid(), signal.SIGKILL)


@outlive.step(transaction=True)
async def kill_enter(tx: Any, cents: int) -> int:
    await tx.execute("CREATE TABLE IF NOT EXISTS ledger (cents INTEGER NOT NULL)")
    await tx.execute("INSERT INTO ledger (cents) VALUES ($1)", cents)
    begin("in a transaction")
    total: int = await tx.fetchval("SELECT sum(cents) FROM ledger")
    return total


@outlive.step
async def kill_behind() -> None:
    begin("behind a transaction")


@outlive.step(once=True)
async def kill_once() -> str:
    begin("in a step that is called once")
    return "called"


@outlive.workflow
async def kill_workflow() -> list[Any]:
    total = [await kill_enter(10)]
    await kill_behind()
    total.append(await kill_enter(1))
    try:
        return [*total, await kill_once()]
    except outlive.errors.StepInterruptedError:
        return [*total, "interrupted"]


async def main(database: str) -> None:
    """Start the run, or go on with it, and say what it returns."""
    async with outlive.Engine(f"sqlite:{database}", poll_seconds=0.02) as engine:
        run = await engine.start(kill_workflow, id="run-1")
        print(*await run.result(), sep=", ")  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
