"""Forty trips, each a machine, and each fifth of them fails at another place; a job of `tests.machine.killing`."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import outlive
from outlive.machine import All
from tests.machine.killing import Runs, ledger

COUNT = 40
FAILING = ["", "ROOM", "SEAT", "TRUCK", "PAY"]
"""Where a trip fails, by its number."""
WHOLE = ["PAY", "ROOM", "SEAT", "TRUCK"]
"""What a trip holds that came to its exit."""


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
    ledger().enter(data.name, what, 1)


async def release_room(data: Trip) -> None:
    """Undo."""
    ledger().enter(data.name, "ROOM", -1)


async def release_seat(data: Trip) -> None:
    """Undo of a branch."""
    ledger().enter(data.name, "SEAT", -1)


async def release_truck(data: Trip) -> None:
    """Undo of the other one."""
    ledger().enter(data.name, "TRUCK", -1)


async def release_pay(data: Trip) -> None:
    """Undo of the last one."""
    ledger().enter(data.name, "PAY", -1)


trip = outlive.Machine("killed.trip", S, data=Trip, start=S.ROOM, exits=[S.DONE])


@trip.state(S.ROOM, undo=release_room)
async def room(data: Trip) -> S:
    """The first."""
    book(data, "ROOM")
    return S.SPLIT


@outlive.step(undo=release_seat)
async def killed_seat(data: Trip) -> Trip:
    """A branch."""
    book(data, "SEAT")
    return data


@outlive.step(undo=release_truck)
async def killed_truck(data: Trip) -> Trip:
    """Another branch."""
    book(data, "TRUCK")
    return data


trip.split(S.SPLIT, [killed_seat, killed_truck], join=All(then=S.PAY))


@trip.state(S.PAY, undo=release_pay)
async def pay(data: Trip) -> S:
    """The last."""
    book(data, "PAY")
    return S.DONE


def trips(trial: str) -> list[Trip]:
    """All of them."""
    return [Trip(f"{trial}-{number}", FAILING[number % len(FAILING)]) for number in range(COUNT)]


def runs(trial: str) -> Runs:
    """See `tests.machine.killing`."""
    return [(trip, each, each.name) for each in trips(trial)]
