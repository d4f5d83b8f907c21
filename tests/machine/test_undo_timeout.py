"""A roll-back has a time of its own: when that is over the run is parked, and says what is undone and what is left."""

from __future__ import annotations

import asyncio
import enum
import math
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

import outlive
from outlive._kernel.model.policy import NO_RETRY
from outlive._kernel.replay.command import StepOptions
from outlive._kernel.replay.undo_deadline import with_attempt_timeout
from outlive.errors import ConfigurationError, RunCancelledError, RunFailedError, RunTimedOutError
from outlive.events import AttemptFailed
from outlive.testing import RecordingObserver, TestEngine
from tests.engine.inside import crash
from tests.engine.support import Place, events_of, in_time, note, parks, stage, until_calls, waits

pytestmark = pytest.mark.any_store


class S(enum.Enum):
    """Three bookings, and the place where it goes wrong."""

    ROOM = "room"
    SEAT = "seat"
    CAR = "car"
    WAIT = "wait"
    DONE = "done"


@dataclass
class Trip:
    """What is booked, and whether it waits instead of failing."""

    waits: bool = False
    booked: list[str] = field(default_factory=list)


async def release(data: Trip) -> None:
    """Hangs, or fails, for what the stage says."""
    what = data.booked[-1]
    stage.call(f"undo {what}")
    if stage.values.get("hanging") == what:
        await asyncio.get_running_loop().create_future()
    if stage.values.get("failing") == what:
        raise ConnectionError("cannot release")


trip = outlive.Machine("bounded.trip", S, data=Trip, start=S.ROOM, exits=[S.DONE], undo_timeout=timedelta(minutes=1))


@trip.state(S.ROOM, undo=release)
async def room(data: Trip) -> S:
    """Undone last."""
    data.booked.append("ROOM")
    return S.SEAT


@trip.state(S.SEAT, undo=release)
async def seat(data: Trip) -> S:
    """Undone in the middle."""
    data.booked.append("SEAT")
    return S.CAR


@trip.state(S.CAR, undo=release)
async def car(data: Trip) -> S:
    """Undone first."""
    data.booked.append("CAR")
    return S.WAIT


@trip.workflow(S.WAIT)
async def fail_or_wait(data: Trip) -> S:
    """Where it fails."""
    if data.waits:
        await outlive.wait_for_signal("go")
    raise ValueError("no luck")


async def test_a_rollback_that_hangs_is_bounded_also_by_several_processes(place: Place) -> None:
    """The bound counts from where the roll-back began in the journal: a crash does not wind it up again. [CA-U13]"""
    stage.values["hanging"] = "SEAT"
    first = await place.engine().__aenter__()
    await first.start(trip, Trip(), id="trip-1")
    await until_calls("undo CAR", "undo SEAT")
    await crash(first)

    place.clock.skip(seconds=40)
    second = await place.engine().__aenter__()
    await until_calls("undo CAR", "undo SEAT", "undo SEAT")
    await crash(second)

    place.clock.skip(seconds=21)
    async with place.engine() as third:
        run = third.get("trip-1")
        reason = await in_time(parks(run))
        assert "undo failed: the roll-back has not ended within its undo_timeout of 60 s" in reason
        assert "undone: bounded.trip.CAR\n" in reason
        assert "left:   bounded.trip.SEAT, bounded.trip.ROOM\n" in reason
        assert stage.count("undo SEAT") == 2, "what is late is not begun again"

        stage.values["hanging"] = ""
        await run.resume()
        with pytest.raises(RunFailedError, match="no luck"):
            await in_time(run.result())
    assert stage.calls == ["undo CAR", "undo SEAT", "undo SEAT", "undo SEAT", "undo ROOM"]


async def test_a_resumed_rollback_has_as_much_time_again(place: Place) -> None:
    """The time counts from the resumption; when it is over the run is parked once more. [CA-U13]"""
    stage.values["hanging"] = "ROOM"
    engine = await place.engine().__aenter__()
    await engine.start(trip, Trip(), id="trip-1")
    await until_calls("undo CAR", "undo SEAT", "undo ROOM")
    for resumed in range(2):
        await crash(engine)
        place.clock.skip(seconds=61)
        engine = await place.engine().__aenter__()
        run = engine.get("trip-1")
        await in_time(parks(run))
        place.clock.skip(seconds=1000)
        await run.resume()
        await until_calls("undo CAR", "undo SEAT", *["undo ROOM"] * (resumed + 2))
    await crash(engine)
    place.clock.skip(seconds=59)
    stage.values["hanging"] = ""
    async with place.engine() as engine:
        with pytest.raises(RunFailedError, match="no luck"):
            await in_time(engine.get("trip-1").result())


async def test_an_undo_that_hangs_is_cut_off_where_it_runs() -> None:
    """Its attempt is stopped and counted, in the process that runs it. [CA-U13]"""
    stage.values["hanging"] = "CAR"
    async with TestEngine(patience_seconds=0.05) as engine:
        run = await engine.start(trip, Trip())
        began = engine.now()
        await engine.skip(seconds=61)
        reason = await in_time(parks(run))
        assert "undone: nothing" in reason
        assert engine.now() - began < timedelta(seconds=62)
        cut = (await events_of(run, AttemptFailed))[-1]
        assert "undo_timeout of 60 s" in cut.failure.message

        stage.values["hanging"] = ""
        await run.resume()
        with pytest.raises(RunFailedError, match="no luck"):
            await run.result()


async def test_an_undo_that_keeps_failing_is_bounded_too() -> None:
    """Twenty attempts would take a quarter of an hour."""
    stage.values["failing"] = "SEAT"
    async with TestEngine() as engine:
        run = await engine.start(trip, Trip())
        began = engine.now()
        await engine.skip(seconds=59)
        assert await run.status() == "waiting"
        await engine.skip(seconds=1)
        assert "it was busy with bounded.trip.SEAT" in await parks(run)
        assert engine.now() - began == timedelta(seconds=60)


@pytest.mark.parametrize("origin", ["parked", "orphan"])
async def test_a_fork_in_the_middle_of_a_rollback_has_all_of_its_time(place: Place, origin: str) -> None:
    """Counted from when a worker goes on with the fork, whether its origin was parked for the same limit or not."""
    stage.values["hanging"] = "ROOM"
    engine = await place.engine().__aenter__()
    await engine.start(trip, Trip(), id="trip-1")
    await until_calls("undo CAR", "undo SEAT", "undo ROOM")
    await crash(engine)
    place.clock.skip(seconds=61)
    if origin == "parked":
        async with place.engine() as engine:
            await in_time(parks(engine.get("trip-1")))
    async with place.engine(worker=False) as client:
        await client.fork("trip-1", id="fork")
        place.clock.skip(seconds=1000)
        await client.cancel("trip-1", reason="the fork goes on for it")
    engine = await place.engine().__aenter__()
    await until_calls("undo CAR", "undo SEAT", "undo ROOM", "undo ROOM")
    await crash(engine)
    place.clock.skip(seconds=59)
    stage.values["hanging"] = ""
    async with place.engine() as engine:
        with pytest.raises(RunFailedError, match="no luck"):
            await in_time(engine.get("fork").result())


@pytest.mark.parametrize("end", [RunCancelledError, RunTimedOutError])
async def test_the_rollback_of_a_cancel_or_a_timeout_is_bounded(place: Place, end: type[Exception]) -> None:
    """The run ends as what it was when its roll-back began, whenever that is finished. [CA-U13, CA-U19]"""
    stage.values["hanging"] = "CAR"
    async with place.engine() as engine:
        run = await engine.start(trip, Trip(waits=True), id="trip-1", timeout=3600)
        await waits(run)
        if end is RunCancelledError:
            await run.cancel()
        else:
            place.clock.skip(seconds=3600)
        await until_calls("undo CAR")
        await crash(engine)
    place.clock.skip(seconds=61)
    async with place.engine() as engine:
        run = engine.get("trip-1")
        assert "undo_timeout" in await in_time(parks(run))
        stage.values["hanging"] = ""
        await run.resume()
        with pytest.raises(end):
            await in_time(run.result())
    assert stage.calls == ["undo CAR", "undo CAR", "undo SEAT", "undo ROOM"]


def test_an_attempt_of_an_undo_leaves_time_for_another() -> None:
    """Half of the bound, at most five minutes; an undo that says how long it may take is taken at its word."""
    silent, own = StepOptions(retry=NO_RETRY), StepOptions(retry=NO_RETRY, timeout_seconds=7)
    assert [30, 300, None] == [with_attempt_timeout(silent, bound).timeout_seconds for bound in (60, 3600, None)]
    assert [7, 7] == [with_attempt_timeout(own, bound).timeout_seconds for bound in (60, None)]


@pytest.mark.parametrize("argument", ["timeout", "undo_timeout"])
@pytest.mark.parametrize("seconds", [0.0, math.inf, math.nan, 1e18])
def test_a_time_that_cannot_be_is_refused(argument: str, seconds: float) -> None:
    """When the machine is defined, and when the block is entered: not by a roll-back, which would then undo nothing."""
    wrong = {argument: seconds}
    with pytest.raises(outlive.errors.DefinitionError, match=f"{argument}=.* give more than 0 seconds"):
        outlive.Machine("bounded.bad", S, start=S.ROOM, exits=[S.DONE], **wrong)  # type: ignore[call-overload]
    with pytest.raises(ConfigurationError, match=r"more than 0 seconds, .* up to 100 years"):
        outlive.saga(undo_timeout=seconds)


# -- The same for sagas of functions -----------------------------------------------------------------------------------


@outlive.step
async def bounded_release(what: str) -> None:
    """Hangs if the stage says so."""
    stage.call(f"undo {what}")
    if what in stage.values.get("hanging", ()):
        await asyncio.get_running_loop().create_future()


@outlive.step(undo=bounded_release)
async def bounded_book(what: str) -> str:
    """Takes as long as the test wants."""
    stage.call(what)
    if what == "slow":
        await stage.gate().pass_through()
    return what


@outlive.workflow
async def bounded_trip(*, nested: bool) -> None:
    """A saga with a bound, or one inside it, which has the same."""
    async with outlive.saga(undo_timeout=60):
        await bounded_book("room")
        if nested:
            async with outlive.saga():
                await bounded_book("seat")
                raise ValueError("no luck")
        raise ValueError("no luck")


@outlive.workflow
async def bounded_race() -> None:
    """Fails while an undoable step runs, whose outcome must be known."""
    async with outlive.saga(undo_timeout=60):
        await bounded_book("room")
        async with asyncio.timeout(5):
            await bounded_book("slow")


@pytest.mark.parametrize("nested", [False, True])
async def test_a_saga_can_have_a_bound(*, nested: bool) -> None:
    """Those inside it have the same unless they have their own."""
    stage.values["hanging"] = ["seat" if nested else "room"]
    async with TestEngine(patience_seconds=0.05) as engine:
        run = await engine.start(bounded_trip.bind(nested=nested))
        await engine.skip(seconds=61)
        assert f"left:   bounded_book{'#2' if nested else ''}\n" in await parks(run)
        stage.values["hanging"] = ""
        await run.resume()
        with pytest.raises(RunFailedError, match="no luck"):
            await run.result()


async def test_a_step_in_flight_counts_too() -> None:
    """A roll-back that waits for it is not over either; the reason names it."""
    async with TestEngine(patience_seconds=0.05) as engine:
        run = await engine.start(bounded_race)
        await engine.skip(seconds=66)
        reason = await parks(run)
        assert "it waited for bounded_book#2 to end" in reason
        assert "undone: nothing\n  left:   bounded_book\n" in reason
        stage.gate().open()
        await run.resume()
        with pytest.raises(RunFailedError):
            await run.result()
    assert stage.calls == ["room", "slow", "slow", "undo slow", "undo room"]


@outlive.workflow
async def bounded_and_quick() -> str:
    """A roll-back that is in time leaves no trace of its bound."""
    try:
        async with outlive.saga(undo_timeout=1):
            await bounded_book("room")
            raise ValueError
    except ValueError:
        await asyncio.sleep(5)
        return await note("done")


async def test_a_rollback_in_time_ends_its_bound(place: Place) -> None:
    """A workflow whose roll-back ended in time may wait longer afterwards than the bound of the roll-back."""
    async with place.engine() as engine:
        run = await engine.start(bounded_and_quick)
        await waits(run)
        assert [wait.name for wait in (await run.info()).waits] == ["@timer"]
        place.clock.skip(seconds=5)
        assert await in_time(run.result()) == "done"


class Both(enum.Enum):
    """One state with two roll-backs."""

    BOOK = "book"
    DONE = "done"


both = outlive.Machine("bounded.both", Both, start=Both.BOOK, exits=[Both.DONE])
recorder = RecordingObserver()
both.observe(recorder)


@both.workflow(Both.BOOK)
async def book_both() -> Both:
    """Two sagas that fail at the same time."""

    async def book(what: str) -> None:
        async with outlive.saga(undo_timeout=60):
            await bounded_book(what)
            raise ValueError("no luck")

    await asyncio.gather(book("one"), book("other"))
    return Both.DONE


async def test_no_undo_that_was_cut_off_is_promised_another_try() -> None:
    """However many were cut off: the run is parked, and only a person lets it go on."""
    stage.values["hanging"] = ["one", "other"]
    async with TestEngine(patience_seconds=0.05) as engine:
        run = await engine.start(both)
        await engine.skip(seconds=61)
        await in_time(parks(run))
    last = {fact.call: fact.attempt for fact in recorder.facts("undo_failed")}
    assert len(last) == 2
    assert all(fact.attempt <= last[fact.call] for fact in recorder.facts("retry"))
    assert recorder.hooks()[-1] == "parked"


@outlive.step(once=True)
async def bounded_release_once(what: str) -> None:
    """Called once, or not at all."""
    stage.call(f"undo {what}")


@outlive.step
async def bounded_hold(what: str) -> None:
    """Keeps the only slot."""
    stage.call(what)
    await stage.gate(what).pass_through()


@outlive.workflow
async def bounded_holding(what: str) -> None:
    """Keeps the only slot."""
    await bounded_hold(what)


@outlive.workflow
async def bounded_in_line(*, once: bool) -> None:
    """Fails when the test says so."""
    async with outlive.saga(undo_timeout=60):
        await bounded_book.options(undo=bounded_release_once if once else bounded_release)("room")
        await outlive.wait_for_signal("fail")
        raise ValueError("no luck")


@pytest.mark.parametrize("once", [False, True], ids=["plain", "once"])
async def test_an_undo_that_only_waits_for_a_slot_has_not_failed(*, once: bool) -> None:
    """It uses up no attempt, and one that may be called once has not been called."""
    async with TestEngine(patience_seconds=0.05, limits=outlive.limits.Limits(steps_running_max=1)) as engine:
        run = await engine.start(bounded_in_line.bind(once=once))
        await waits(run)
        busy = await engine.start(bounded_holding, "busy")
        await stage.gate("busy").reached()
        await run.signal("fail")
        await engine.skip(seconds=61)
        assert "left:   bounded_book\n" in await in_time(parks(run))
        assert [] == await events_of(run, AttemptFailed)

        stage.gate("busy").open()
        await in_time(busy.result())
        await run.resume()
        with pytest.raises(RunFailedError, match="no luck"):
            await in_time(run.result())
    assert stage.calls == ["room", "busy", "undo room"]
