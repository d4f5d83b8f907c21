"""A process with machines that is killed: `LEDGER=... DEADLY=... python -m tests.machine.program URL MACHINE ID`.

Every effect is a line in the ledger; the process kills itself once it has written the line DEADLY, the first time.
"""

from __future__ import annotations

import asyncio
import enum
import os
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import outlive
from outlive.machine import All, More
from outlive.types import WorkerOptions

LEDGER = Path(os.environ.get("LEDGER", "ledger"))
DEADLY = os.environ.get("DEADLY", "")


def write(what: str) -> None:
    """Add a line to the ledger; die if it is the deadly one, and the first."""
    is_first = not LEDGER.exists() or what not in LEDGER.read_text().splitlines()
    with LEDGER.open("a") as file:
        file.write(f"{what}\n")
    if is_first and what == DEADLY:
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass
class Data:
    """What it carries."""

    fails: bool = False
    rows: list[int] = field(default_factory=list)


class Work(enum.Enum):
    """An effect in each state."""

    START = "start"
    WORK = "work"
    SPLIT = "split"
    SHIP = "ship"
    DONE = "done"


work = outlive.Machine("program.work", Work, data=Data, start=Work.START, exits=[Work.DONE])


def release(data: Data) -> None:
    """Takes START back."""
    write("undo START")


@work.state(Work.START, undo=release)
async def start(data: Data) -> Work:
    """The first."""
    write("START")
    return Work.WORK


@work.state(Work.WORK)
def do_work(data: Data) -> Work:
    """On a thread."""
    write("WORK")
    return Work.SPLIT


async def wrap(data: Data) -> None:
    """One branch."""
    write("wrap")


async def label(data: Data) -> None:
    """Another one: it begins when the first one is durable."""
    write("label")


work.split(Work.SPLIT, [wrap, label], join=All(then=Work.SHIP), concurrency=1)


@work.state(Work.SHIP)
async def ship(data: Data) -> Work:
    """Fails if it is to."""
    if data.fails:
        raise ValueError("no ship")
    write("SHIP")
    return Work.DONE


class Steps(enum.Enum):
    """A cursor that moves."""

    WALK = "walk"
    DONE = "done"


walk = outlive.Machine("program.walk", Steps, data=Data, start=Steps.WALK, exits=[Steps.DONE])


@walk.stepped(Steps.WALK)
async def advance(data: Data, cursor: int | None) -> More[int] | Steps:
    """Up to 6."""
    write(f"cursor {cursor}")
    return Steps.DONE if cursor == 6 else More((cursor or 0) + 1)


MACHINES: dict[str, tuple[outlive.Machine[Any, Data], Data]] = {
    "work": (work, Data()),
    "fail": (work, Data(fails=True)),
    "walk": (walk, Data()),
}


async def main(url: str, name: str, run_id: str) -> None:
    """Start the machine, or go on with it, and say where it ends."""
    machine, data = MACHINES[name]
    async with outlive.Engine(url, poll_seconds=0.02, worker=WorkerOptions(lease_seconds=2)) as engine:
        run = await engine.start(machine, data, id=run_id)
        try:
            print((await run.result()).state.name)  # noqa: T201
        except outlive.errors.RunFailedError as error:
            print(error)  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
