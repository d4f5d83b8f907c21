"""Forty machines in a process that kills itself after some effects: `LEDGER=... LINES=... python -m ... URL`.

Each line of the ledger is `+ machine state` or `- machine state`. An effect that is interrupted comes again, so the
last line about a thing says whether it is held.
"""

from __future__ import annotations

import asyncio
import enum
import itertools
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

import outlive
from outlive import All

LEDGER = Path(os.environ.get("LEDGER", "ledger"))
LINES = int(os.environ.get("LINES", "0"))
COUNT = 40
FAILING = ["", "ROOM", "SEAT", "TRUCK", "PAY"]
written = itertools.count(1)


def write(line: str) -> None:
    """One more line; so many, and the process is dead."""
    with LEDGER.open("a") as file:
        file.write(f"{line}\n")
    if next(written) == LINES:
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass
class Trip:
    """Who, and what will fail."""

    name: str
    failing: str


class S(enum.Enum):
    """Bookings."""

    ROOM = "room"
    SPLIT = "split"
    PAY = "pay"
    DONE = "done"


def book(data: Trip, what: str) -> None:
    """An effect, or a failure."""
    if data.failing == what:
        raise ValueError(f"no {what}")
    write(f"+ {data.name} {what}")


trip = outlive.Machine("saga_program.trip", S, data=Trip, start=S.ROOM, exits=[S.DONE])


def release_room(data: Trip) -> None:
    """Undo."""
    write(f"- {data.name} ROOM")


def release_seat(data: Trip) -> None:
    """Undo of a branch."""
    write(f"- {data.name} SEAT")


def release_truck(data: Trip) -> None:
    """Undo of the other one."""
    write(f"- {data.name} TRUCK")


def release_pay(data: Trip) -> None:
    """Undo of the last one."""
    write(f"- {data.name} PAY")


@trip.state(S.ROOM, undo=release_room)
async def room(data: Trip) -> S:
    """The first."""
    book(data, "ROOM")
    return S.SPLIT


@outlive.step(undo=release_seat)
async def saga_program_seat(data: Trip) -> Trip:
    """A branch."""
    book(data, "SEAT")
    return data


@outlive.step(undo=release_truck)
async def saga_program_truck(data: Trip) -> Trip:
    """Another branch."""
    book(data, "TRUCK")
    return data


trip.split(S.SPLIT, [saga_program_seat, saga_program_truck], join=All(then=S.PAY))


@trip.state(S.PAY, undo=release_pay)
async def pay(data: Trip) -> S:
    """The last."""
    book(data, "PAY")
    return S.DONE


async def main(url: str) -> None:
    """Start them all, or go on with them, and say how many came to their exit."""
    async with outlive.Engine(url, poll_seconds=0.02, lease_seconds=2) as engine:
        runs = [
            await engine.start(trip, Trip(f"trip-{number}", FAILING[number % 5]), id=f"trip-{number}")
            for number in range(COUNT)
        ]
        ends = await asyncio.gather(*(run.result() for run in runs), return_exceptions=True)
        print(sum(isinstance(end, outlive.MachineResult) for end in ends))  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
