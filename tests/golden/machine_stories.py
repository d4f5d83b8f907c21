"""A machine whose history is golden. Never change it: write another beside it."""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import outlive
from outlive.testing import TestEngine


class Parcel(enum.Enum):
    """Where a parcel is."""

    PACKED = "packed"
    CLEARED = "cleared"
    DELIVERED = "delivered"


@dataclass
class Label:
    """What is written on it."""

    to: str
    stamps: int = 0


parcel = outlive.Machine("golden.parcel", Parcel, data=Label, start=Parcel.PACKED, exits={Parcel.DELIVERED})


@parcel.state(Parcel.PACKED)
async def pack(data: Label) -> Parcel:
    """A state that is one step."""
    data.stamps += 1
    return Parcel.CLEARED


@parcel.workflow(Parcel.CLEARED)
async def clear(data: Label) -> Parcel:
    """A state that waits for the world."""
    data.stamps += await outlive.wait_for_signal("stamps", int)
    return Parcel.DELIVERED


async def tell_parcel(url: str) -> str:
    """Packed, stamped, delivered."""
    async with TestEngine(url) as engine:
        run = await engine.start(parcel, Label("ann"), id="golden-parcel")
        await run.signal("stamps", 2)
        await run.result()
        return await engine.export(run.id)


MACHINE_STORIES: dict[str, Callable[[str], Awaitable[str]]] = {"parcel": tell_parcel}
