"""Machines that fail: what was done is undone, newest first, whatever dies meanwhile."""

from __future__ import annotations

import asyncio
import enum
from collections import Counter
from dataclasses import dataclass, field

import pytest

import outlive
from outlive.errors import RunCancelledError, RunFailedError
from outlive.events import StepSucceeded
from tests.engine.inside import crash
from tests.engine.support import Place, events_of, in_time, parks, stage, waits

pytestmark = pytest.mark.any_store


class S(enum.Enum):
    """Three bookings and a doubt."""

    ROOM = "room"
    SEAT = "seat"
    TELL = "tell"
    PAY = "pay"
    DONE = "done"


NAMES = ["ROOM", "SEAT", "TELL", "PAY"]


@dataclass
class Trip:
    """What fails, and what is booked."""

    name: str = "trip"
    failing: str = ""
    booked: list[str] = field(default_factory=list)


def book(data: Trip, what: str) -> None:
    """One more is held in the world."""
    if data.failing == what:
        raise ValueError(f"no {what}")
    held: Counter[str] = stage.values.setdefault("held", Counter())
    held[data.name] += 1
    data.booked.append(what)


def release(data: Trip) -> None:
    """Given the data as the state left it: the last booking is its own."""
    stage.call(f"undo {data.booked[-1]}")
    stage.values["held"][data.name] -= 1
    if stage.values.get("trouble") == data.booked[-1]:
        stage.values["held"][data.name] += 1
        raise ConnectionError("cannot release")


@outlive.step(retry=outlive.Retry(attempts=2, first=0))
async def undo_release(data: Trip) -> None:
    """The same as a step, with fewer attempts."""
    release(data)


trip = outlive.Machine("undo.trip", S, data=Trip, start=S.ROOM, exits=[S.DONE])


@trip.state(S.ROOM, undo=undo_release)
async def room(data: Trip) -> S:
    """Undone by a step."""
    book(data, "ROOM")
    return S.SEAT


@trip.state(S.SEAT, undo=release)
def seat(data: Trip) -> S:
    """Undone by a function."""
    book(data, "SEAT")
    return S.TELL


@trip.state(S.TELL)
async def tell(data: Trip) -> S:
    """Cannot be undone."""
    if data.failing == "TELL":
        raise ValueError("no TELL")
    data.booked.append("TELL")
    await asyncio.sleep(0)
    return S.PAY


@trip.workflow(S.PAY)
async def pay(data: Trip) -> S:
    """Workflow code with an undoable step, and a wait."""
    await undo_pay(data)
    if data.failing == "wait":
        await outlive.wait_for_signal("never")
    return S.DONE


def refund(name: str) -> None:
    """Given the result of the step."""
    stage.call("undo PAY")
    stage.values["held"][name] -= 1


@outlive.step(undo=refund)
async def undo_pay(data: Trip) -> str:
    """An undoable step of the machine's own code."""
    book(data, "PAY")
    return data.name


def undone() -> list[str]:
    """What was undone, in order."""
    return [call.removeprefix("undo ") for call in stage.calls]


@pytest.mark.parametrize("failing", NAMES)
async def test_a_failure_undoes_exactly_what_was_done(engine: outlive.Engine, failing: str) -> None:
    """Newest first, each with the data as it was left then; only what can be undone. [CA-U9 CA-U15 CA-X13]"""
    run = await engine.start(trip, Trip(failing=failing))

    with pytest.raises(RunFailedError, match=f"no {failing}"):
        await in_time(run.result())
    done = NAMES[: NAMES.index(failing)]
    assert undone() == [name for name in reversed(done) if name != "TELL"]
    assert [] == list(stage.values.get("held", Counter()).elements())


async def test_a_machine_that_comes_to_an_exit_keeps_everything(engine: outlive.Engine) -> None:
    """Nothing is undone."""
    result = await in_time((await engine.start(trip, Trip())).result())

    assert result.data.booked == ["ROOM", "SEAT", "TELL"]
    assert [[], 3] == [undone(), stage.values["held"]["trip"]]


async def test_a_cancel_undoes_the_states_of_an_earlier_process(place: Place) -> None:
    """A cancel undoes the states that an earlier process completed, because the journal has them. [CA-U10]"""
    first = await place.engine().__aenter__()
    run = await first.start(trip, Trip(failing="wait"), id="trip-1")
    await waits(run)
    await crash(first)

    async with place.engine() as second:
        run = second.get("trip-1")
        await run.cancel()
        with pytest.raises(RunCancelledError):
            await in_time(run.result())
    assert undone() == ["PAY", "SEAT", "ROOM"]
    assert stage.values["held"]["trip"] == 0


async def test_an_undo_that_fails_parks_the_run(engine: outlive.Engine) -> None:
    """Visible, with what is left; a person mends the world and resumes, and nothing is undone twice. [CA-U13 CA-X9]"""
    stage.values["trouble"] = "ROOM"
    run = await engine.start(trip, Trip(failing="TELL"))
    reason = await in_time(parks(run))
    assert "undo failed: undo_release" in reason
    assert "cannot release" in reason

    stage.values["trouble"] = ""
    await run.resume()
    with pytest.raises(RunFailedError, match="no TELL"):
        await in_time(run.result())
    assert undone() == ["SEAT", "ROOM", "ROOM", "ROOM"]
    assert stage.values["held"]["trip"] == 0


hanging = outlive.Machine("undo.hanging", S, data=Trip, start=S.ROOM, exits=[S.DONE])


@outlive.step(timeout=0.01, retry=outlive.Retry(attempts=2, first=0))
async def undo_hang(data: Trip) -> None:
    """Hangs as long as the test wants; its time is bounded like that of any step."""
    stage.call("undo ROOM")
    if stage.values.get("trouble"):
        await stage.gate("never").pass_through()


@hanging.state(S.ROOM, undo=undo_hang, to=[S.SEAT])
async def hanging_room(data: Trip) -> S:
    """Undone by what hangs."""
    return S.SEAT


@hanging.state(S.SEAT, undo=release, to=[S.TELL])
async def hanging_seat(data: Trip) -> S:
    """Undone first."""
    book(data, "SEAT")
    return S.TELL


@hanging.state(S.TELL, to=[S.PAY])
async def hanging_tell(data: Trip) -> S:
    """Fails."""
    raise ValueError("no TELL")


@hanging.state(S.PAY, to=[S.DONE])
async def hanging_pay(data: Trip) -> S:
    """Not reached."""
    return S.DONE


async def test_an_undo_that_hangs_is_bounded_by_its_time(engine: outlive.Engine) -> None:
    """Each attempt has the time of its step; then the run is parked like for any failure of an undo. [CA-U13]"""
    stage.values["trouble"] = "hangs"
    run = await engine.start(hanging, Trip())
    assert "undo failed: undo_hang" in await in_time(parks(run))
    assert undone() == ["SEAT", "ROOM", "ROOM"]

    stage.values["trouble"] = ""
    await run.resume()
    with pytest.raises(RunFailedError, match="no TELL"):
        await in_time(run.result())
    assert undone() == ["SEAT", "ROOM", "ROOM", "ROOM"]


async def test_forty_machines_that_fail_everywhere_leave_nothing_behind(engine: outlive.Engine) -> None:
    """Side by side: who was rolled back holds nothing, who completed holds all. [CA-X4 CA-X8]"""
    plans = [Trip(f"trip-{number}", ["", *NAMES][number % 5]) for number in range(40)]
    runs = [await engine.start(trip, plan, id=plan.name) for plan in plans]
    ends = await in_time(asyncio.gather(*(run.result() for run in runs), return_exceptions=True))

    held = stage.values["held"]
    assert [0 if plan.failing else 3 for plan in plans] == [held[plan.name] for plan in plans]
    assert [bool(plan.failing) for plan in plans] == [isinstance(end, RunFailedError) for end in ends]
    counts = [len(await events_of(run, StepSucceeded)) for run in runs[:5]]
    assert counts == [4, 0, 1 + 1, 2 + 2, 3 + 2], "each row is there once, undos among them"
