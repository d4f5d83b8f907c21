"""What may happen to a cancel: it comes early, twice, late, during a roll-back, from elsewhere, or with a deadline."""

from __future__ import annotations

from typing import Any

import pytest

import outlive
from outlive.errors import RunFinishedError
from outlive.events import CancelRequested, StepSucceeded
from tests.engine.inside import crash
from tests.engine.support import Place, events_of, in_time, parks, stage, until, waits
from tests.machine.cancelling import Data, S, has, is_cancelled, machine, release, work

pytestmark = pytest.mark.any_store


class TroubleError(Exception):
    """An undo that does not work."""


# -- Machines ----------------------------------------------------------------------------------------------------------

waiting = machine("life.waiting", timeout=7200)


@waiting.workflow(S.WORK)
async def waiting_work(data: Data) -> S:
    """For nothing."""
    await outlive.wait_for_signal("never")
    return S.AFTER


@outlive.step(retry=outlive.Retry(attempts=1))
async def cancel_release(data: Data) -> None:
    """An undo that holds, or fails, as the test wants."""
    await work("undo")
    if stage.values.get("trouble"):
        raise TroubleError("the bank is silent")
    release(data)


failing = outlive.Machine("cancel.failing", S, data=Data, start=S.BOOK, exits=[S.DONE])


@failing.state(S.BOOK, undo=cancel_release, to=[S.CHOOSE])
async def failing_book(data: Data) -> S:
    """Undone by a step."""
    stage.call("BOOK")
    return S.CHOOSE


@failing.router(S.CHOOSE, to=[S.WORK, S.AFTER])
def failing_choose(data: Data) -> S:
    """To the wait, or to the failure."""
    return S.WORK if data.seen else S.AFTER


@failing.workflow(S.WORK, to=[S.DONE])
async def failing_wait(data: Data) -> S:
    """For nothing."""
    await outlive.wait_for_signal("never")
    return S.DONE


@failing.state(S.AFTER, to=[S.DONE])
async def failing_after(data: Data) -> S:
    """Fails."""
    raise ValueError("planned")


ending = machine("life.ending")


@ending.state(S.WORK)
async def ending_work(data: Data) -> S:
    """The last state before the exit."""
    await work("WORK")
    return S.DONE


# -- Before, twice, late -----------------------------------------------------------------------------------------------


async def test_a_machine_that_is_cancelled_before_it_begins_does_nothing(place: Place) -> None:
    """No state is entered, and nothing is undone. [CA-C2 CA-U19]"""
    async with place.engine(worker=False) as client:
        run = await client.start(waiting, Data(), id="run-1")
        await run.cancel(reason="enough")

        async with place.engine():
            await is_cancelled(run)
            assert [] == await events_of(run, StepSucceeded)
    assert stage.calls == []


async def test_cancelling_a_machine_twice_is_cancelling_it_once(engine: outlive.Engine) -> None:
    """The second cancellation changes neither the reason nor the roll-back; after the end it says nothing. [CA-C15]"""
    run = await engine.start(failing, Data(["wait"]))
    await waits(run)
    await run.cancel(reason="enough")
    await stage.gate("undo").reached()
    await run.cancel(reason="really")
    stage.gate("undo").open()

    await is_cancelled(run)
    await run.cancel(reason="once more")
    assert stage.calls == ["BOOK", "undo", "undo BOOK"]
    assert ["enough"] == [event.reason for event in await events_of(run, CancelRequested)]


async def test_a_cancel_that_races_with_the_exit_loses_or_wins_as_a_whole(place: Place) -> None:
    """The caller hears that the run has ended, or the run ends as cancelled with everything undone. [CA-C17]"""
    async with place.engine() as engine:
        runs = [await engine.start(ending, Data(), id=f"run-{number}") for number in range(8)]
        for _ in runs:
            await stage.gate("WORK").reached()
        stage.gate("WORK").open()
        refused = 0
        for run in runs:
            try:
                await run.cancel(reason="enough")
            except RunFinishedError:
                refused += 1
        ends = [await _end(run) for run in runs]
        undone = [any("undo" in event.call for event in await events_of(run, StepSucceeded)) for run in runs]
        assert [end == "cancelled" for end in ends] == undone
        assert refused <= ends.count("succeeded")
        assert stage.count("undo BOOK") == ends.count("cancelled")
        assert {"cancelled", "succeeded"} >= {*ends}


async def _end(run: outlive.types.RunHandle[Any]) -> str:
    try:
        await in_time(run.result())
    except outlive.errors.RunCancelledError:
        return "cancelled"
    return "succeeded"


async def test_a_machine_that_has_come_to_its_exit_keeps_everything(engine: outlive.Engine) -> None:
    """A cancel that comes after the end is refused. [CA-C17]"""
    stage.gate("WORK").open()
    run = await engine.start(ending, Data())
    await in_time(run.result())

    with pytest.raises(RunFinishedError, match="succeeded"):
        await run.cancel()
    assert stage.calls == ["BOOK", "WORK"]


# -- Roll-backs --------------------------------------------------------------------------------------------------------


async def test_a_cancel_does_not_stop_a_roll_back(engine: outlive.Engine) -> None:
    """The machine has failed and is being undone: that goes on to its end, and then it is cancelled. [CA-C16]"""
    run = await engine.start(failing, Data())
    await stage.gate("undo").reached()
    await run.cancel(reason="enough")
    await until(has(run, CancelRequested, 1))
    stage.gate("undo").open()

    await is_cancelled(run)
    assert stage.calls == ["BOOK", "undo", "undo BOOK"]


async def test_a_cancelled_roll_back_goes_on_in_another_process(place: Place) -> None:
    """The worker dies in the undo: the next one takes back what is left, and the run is cancelled. [CA-C16 CA-X9]"""
    first = await place.engine().__aenter__()
    run = await first.start(failing, Data(["wait"]), id="run-1")
    await waits(run)
    await run.cancel(reason="enough")
    await stage.gate("undo").reached()
    await crash(first)
    stage.gate("undo").open()

    async with place.engine() as second:
        await is_cancelled(second.get("run-1"))
    assert 1 == stage.count("undo BOOK")


async def test_a_cancel_whose_undo_fails_parks_the_machine(engine: outlive.Engine) -> None:
    """With what is left; resuming makes the next attempt, and then it has been cancelled. [CA-C3]"""
    stage.values["trouble"] = True
    stage.gate("undo").open()
    run = await engine.start(failing, Data(["wait"]))
    await waits(run)
    await run.cancel(reason="enough")
    assert "the bank is silent" in await parks(run)

    stage.values["trouble"] = False
    await run.resume()
    await is_cancelled(run)
    assert stage.calls == ["BOOK", "undo", "undo", "undo BOOK"]


async def test_a_second_cancel_gives_up_on_an_undo_that_fails(engine: outlive.Engine) -> None:
    """The machine ends, and its reason says that it was not undone. [CA-C3 CA-C15]"""
    stage.values["trouble"] = True
    stage.gate("undo").open()
    run = await engine.start(failing, Data(["wait"]))
    await waits(run)
    await run.cancel(reason="enough")
    await parks(run)
    await run.cancel(reason="never mind")

    with pytest.raises(outlive.errors.RunCancelledError, match="undo failed: cancel_release"):
        await in_time(run.result())
    assert 0 == stage.count("undo BOOK")


# -- Elsewhere, and with a deadline ------------------------------------------------------------------------------------


async def test_another_process_can_cancel_a_machine_that_no_worker_has_in_memory(place: Place) -> None:
    """The cancellation waits in the store; the next worker fulfils it, with the code of today. [CA-C18 CA-U10]"""
    async with place.engine() as first:
        await waits(await first.start(waiting, Data(), id="run-1"))
    async with place.engine(worker=False) as client:
        await client.cancel("run-1", reason="enough")
    assert stage.calls == ["BOOK"]

    async with place.engine() as second:
        await is_cancelled(second.get("run-1"))
    assert stage.calls == ["BOOK", "undo BOOK"]


async def test_a_cancel_beats_the_deadline(place: Place) -> None:
    """Both are found at once, by the same claim: the run was cancelled. [CA-C19 CA-U19]"""
    async with place.engine() as first:
        await waits(await first.start(waiting, Data(), id="run-1"))
    async with place.engine(worker=False) as client:
        await client.cancel("run-1", reason="enough")
    place.clock.skip(seconds=7201)

    async with place.engine() as second:
        await is_cancelled(second.get("run-1"))
    assert stage.calls == ["BOOK", "undo BOOK"]


async def test_a_deadline_does_not_make_a_timeout_of_a_cancel(place: Place) -> None:
    """It comes during the roll-back. [CA-C19]"""
    async with place.engine() as engine:
        run = await engine.start(failing, Data(["wait"]), timeout=7200)
        await waits(run)
        await run.cancel(reason="enough")
        await stage.gate("undo").reached()
        place.clock.skip(seconds=7201)
        stage.gate("undo").open()

        await is_cancelled(run)


async def test_a_cancel_beats_a_deadline_that_came_before_it(place: Place) -> None:
    """The machine is late and being undone: the roll-back goes on, and then it was cancelled. [CA-C16 CA-C19]"""
    async with place.engine() as engine:
        run = await engine.start(failing, Data(["wait"]), timeout=7200)
        await waits(run)
        place.clock.skip(seconds=7201)
        await stage.gate("undo").reached()
        await run.cancel(reason="enough")
        await until(has(run, CancelRequested, 1))
        stage.gate("undo").open()

        await is_cancelled(run)
    assert stage.calls == ["BOOK", "undo", "undo BOOK"]
