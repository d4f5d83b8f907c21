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


class Watch(enum.Enum):
    """A watch that is wound again and again."""

    WIND = "wind"
    SHOW = "show"
    STOPPED = "stopped"


watch = outlive.Machine("golden.watch", Watch, data=Label, start=Watch.WIND, exits={Watch.STOPPED}, snapshot_after=6)


@outlive.step(name="golden.unwind")
async def unwind(data: Label) -> None:
    """What is owed."""


@watch.state(Watch.WIND, undo=unwind)
async def wind(data: Label) -> Watch:
    """A state that is one step, and owes an undo."""
    data.stamps += 1
    return Watch.SHOW if data.stamps % 3 == 0 else Watch.WIND


@watch.workflow(Watch.SHOW)
async def show(data: Label) -> Watch:
    """Draws a number, shows something, passes a mark."""
    outlive.publish(stamps=data.stamps, chance=outlive.random())
    if outlive.patched("golden.watch.second"):
        data.to += "!"
    return Watch.STOPPED if data.stamps >= 9 else Watch.WIND


async def tell_watch(url: str) -> str:
    """Its journal begins with a snapshot."""
    async with TestEngine(url) as engine:
        run = await engine.start(watch, Label("ann"), id="golden-watch")
        await run.signal("nobody asks", 1)
        await run.result()
        return await engine.export(run.id)


MACHINE_STORIES: dict[str, Callable[[str], Awaitable[str]]] = {"parcel": tell_parcel, "watch": tell_watch}
