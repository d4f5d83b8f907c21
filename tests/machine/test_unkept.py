"""A state with an undo whose outcome cannot be stored: its own effect is taken back, then that of the others."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

import pytest

import outlive
from outlive.errors import RunFailedError, UnserialisableError
from outlive.machine import All
from outlive.testing import crash_everywhere
from tests.engine.support import Place, in_time, parks, stage, until_calls

pytestmark = pytest.mark.any_store


class S(enum.Enum):
    """Two bookings and a split."""

    ROOM = "room"
    SEAT = "seat"
    SPLIT = "split"
    DONE = "done"


@dataclass
class Trip:
    """What is booked, and what goes wrong."""

    fault: str = ""
    booked: list[Any] = field(default_factory=list)


def book(data: Trip, name: str) -> None:
    """The effect."""
    stage.call(name)
    stage.values.setdefault("held", set()).add(name)
    data.booked.append(name)


async def release(data: Trip) -> None:
    """With the data as the state left it, whether that can be stored or not."""
    name = next(each for each in reversed(data.booked) if isinstance(each, str))
    stage.call(f"undo {name}")
    if stage.values.get("trouble"):
        raise ConnectionError("cannot release")
    stage.values["held"].discard(name)


trip = outlive.Machine("unkept.trip", S, data=Trip, start=S.ROOM, exits=[S.DONE])


@trip.state(S.ROOM, undo=release)
async def room(data: Trip) -> S:
    """As ever."""
    book(data, "room")
    return S.SEAT


@trip.state(S.SEAT, undo=release)
async def seat(data: Trip) -> Any:
    """In all the ways in which a handler can go wrong after its effect."""
    book(data, "seat")
    match "" if stage.values.get("repaired") else data.fault:
        case "data":
            data.booked.append(object())
        case "new data":
            return S.DONE, Trip(booked=[*data.booked, object()])
        case "target":
            return "nowhere"
        case _:
            pass
    return S.SPLIT if data.fault == "branch" else S.DONE


def untake(ticket: Any) -> None:
    """Undoes a branch."""
    stage.values["held"].discard("ticket")


@outlive.step(undo=untake, name="unkept.ticket")
async def ticket(data: Trip) -> Any:
    """A branch that returns what cannot be stored."""
    stage.values["held"].add("ticket")
    return object()


trip.split(S.SPLIT, [ticket], join=All(then=S.DONE))


@pytest.mark.parametrize("fault", ["data", "new data", "target", "branch"])
async def test_its_own_effect_is_undone_first(place: Place, fault: str) -> None:
    """It has returned, so it has had its effect, whatever is wrong with what it returned. [CA-U16]"""
    async with place.engine() as engine:
        run = await engine.start(trip, Trip(fault))

        with pytest.raises(RunFailedError, match="returned 'nowhere'" if fault == "target" else "cannot be stored"):
            await in_time(run.result())
    assert stage.values["held"] == set()
    assert stage.calls == ["room", "seat", "undo seat", "undo room"]


@pytest.mark.parametrize("fault", ["data", *(pytest.param(it, marks=pytest.mark.slow) for it in ("target", "branch"))])
async def test_every_death_on_the_way_leaves_nothing_behind(fault: str) -> None:
    """A crash between the effect and its undo makes the state begin again."""

    def check(_: object) -> None:
        assert stage.values["held"] == set()

    report = await crash_everywhere(trip, Trip(fault), check=check)

    assert report.error


async def test_a_machine_whose_state_cannot_be_undone_is_parked(place: Place) -> None:
    """The machine is visible, with nothing lost: the person who has repaired it resumes it."""
    stage.values["trouble"] = True
    async with place.engine() as engine:
        run = await engine.start(trip, Trip("data"))
        reason = await in_time(parks(run))
        assert "undo failed: unkept.trip.SEAT.undo of unkept.trip.SEAT: ConnectionError: cannot release" in reason
        assert "data of machine unkept.trip after SEAT cannot be stored" in reason

        stage.values |= {"trouble": False, "repaired": True}
        await run.resume()
        assert (await in_time(run.result())).data.booked == ["room", "seat"]
    await until_calls("room", "seat", "undo seat", "seat")


async def test_a_plain_call_of_the_machine_undoes_it_too() -> None:
    """Outside of a run, in memory."""
    with pytest.raises(UnserialisableError, match=r"data of machine unkept\.trip after SEAT"):
        await trip(Trip("data"))
    assert stage.values["held"] == set()
    assert stage.calls == ["room", "seat", "undo seat", "undo room"]
