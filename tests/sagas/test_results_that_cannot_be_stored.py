"""An undoable step that returns what cannot be stored: its effect is taken back where it ran, or the run is parked."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import outlive
from outlive._kernel.runtime.lease_deadline import LeaseDeadline
from outlive.errors import RunFailedError, UnserialisableError
from outlive.events import AttemptFailed, StepFailed
from outlive.limits import Limits
from outlive.testing import TestEngine, crash_everywhere
from tests.engine.support import Place, events_of, in_time, parks, stage, until_calls

pytestmark = pytest.mark.any_store


class Ticket:
    """Nothing that a journal knows."""

    def __init__(self, name: str) -> None:
        self.name = name


def hold(name: str) -> None:
    """The effect."""
    stage.values.setdefault("held", set()).add(name)


async def unkept_release(result: Any) -> None:
    """Its undo: given what the step returned, whether that can be stored or not."""
    name = result.name if isinstance(result, Ticket) else result[:4]
    stage.call(f"undo {name}")
    stage.values["keys"] = (stage.values.get("key"), outlive.current_step().idempotency_key)
    if stage.values.get("trouble"):
        raise ConnectionError("cannot release")
    stage.values["held"].discard(name)


release_step = outlive.step(name="unkept.release")(unkept_release)


@outlive.step(undo=release_step)
async def unkept_book(name: str) -> Any:
    """Can be stored, unless the stage says otherwise."""
    stage.call(name)
    stage.values["key"] = outlive.current_step().idempotency_key
    hold(name)
    if stage.values.get("size"):
        return name.ljust(stage.values["size"])
    return name if stage.values.get("repaired") or name != "seat" else Ticket(name)


def unkept_undone_on_thread(result: Any) -> None:
    """On a thread, too."""
    stage.values["held"].discard(result.name)


@outlive.step(undo=unkept_undone_on_thread)
def unkept_on_thread(name: str) -> Any:
    """The same on a thread."""
    hold(name)
    return Ticket(name)


@outlive.step(once=True, undo=release_step)
async def unkept_once(name: str) -> Any:
    """The same, called once."""
    hold(name)
    return Ticket(name)


@outlive.workflow
async def unkept_trip(step: str = "unkept_book") -> str:
    """Two bookings."""
    steps = {"unkept_book": unkept_book, "unkept_on_thread": unkept_on_thread, "unkept_once": unkept_once}
    async with outlive.saga():
        await unkept_book("room")
        await steps[step]("seat")
    return "booked"


@outlive.workflow
async def unkept_alone() -> str:
    """Without a saga."""
    await unkept_book("seat")
    return "booked"


@outlive.workflow
async def unkept_caught() -> list[str]:
    """A saga that goes on without the step."""
    async with outlive.saga():
        await unkept_book("room")
        try:
            await unkept_book("seat")
        except UnserialisableError as error:
            return [str(error)]
    return []


@pytest.mark.parametrize("step", ["unkept_book", "unkept_on_thread", "unkept_once"])
async def test_its_effect_is_taken_back_before_it_has_failed(place: Place, step: str) -> None:
    """With the result while it is at hand; what was booked before is rolled back as ever. [CA-U16]"""
    async with place.engine() as engine:
        run = await engine.start(unkept_trip, step)

        with pytest.raises(RunFailedError, match="cannot be stored"):
            await in_time(run.result())
        assert [UnserialisableError.__name__] == [
            event.failure.type.rpartition(".")[2] for event in await events_of(run, StepFailed)
        ]
    assert set() == stage.values["held"]


async def test_a_step_whose_result_cannot_be_stored_is_undone_first() -> None:
    """A step whose result cannot be stored is undone once, before the earlier steps."""
    async with TestEngine() as engine:
        run = await engine.start(unkept_trip)
        with pytest.raises(RunFailedError):
            await run.result()
    assert stage.calls == ["room", "seat", "undo seat", "undo room"]


async def test_its_undo_has_a_key_of_its_own() -> None:
    """A service that knows the key of a booking must not take the release for the booking."""
    async with TestEngine() as engine:
        await (await engine.start(unkept_caught)).result()
    step, undo = stage.values["keys"]
    assert step != undo
    assert undo.startswith(step.rpartition(":")[0])


async def test_every_death_leaves_nothing_behind() -> None:
    """The failure is written only when the effect is gone: a crash before that costs another attempt."""

    def check(_: object) -> None:
        assert stage.values["held"] == set()

    report = await crash_everywhere(unkept_trip, check=check)

    assert report.error


async def test_a_saga_that_goes_on_keeps_the_rest() -> None:
    """A step that failed has left nothing, as always."""
    async with TestEngine() as engine:
        answer = await (await engine.start(unkept_caught)).result()
    assert "cannot be stored" in answer[0]
    assert stage.values["held"] == {"room"}


async def test_nothing_is_undone_without_a_saga() -> None:
    """Without a saga, the workflow has asked for no undo."""
    async with TestEngine() as engine:
        run = await engine.start(unkept_alone)
        with pytest.raises(RunFailedError, match="cannot be stored"):
            await run.result()
    assert stage.calls == ["seat"]


async def test_a_result_that_is_too_large_is_taken_back_too() -> None:
    """It has a stored form that no store may take."""
    stage.values |= {"size": 200_000, "repaired": True}
    async with TestEngine(limits=Limits(payload_bytes_max=100_000)) as engine:
        run = await engine.start(unkept_alone_in_saga)
        with pytest.raises(RunFailedError, match="payload_bytes_max is 100,000"):
            await run.result()
    assert stage.calls == ["seat", "undo seat"]
    assert stage.values["held"] == set()


@outlive.workflow
async def unkept_alone_in_saga() -> None:
    """One booking."""
    async with outlive.saga():
        await unkept_book("seat")


async def test_a_run_whose_effect_cannot_be_taken_back_is_parked(place: Place) -> None:
    """A run whose undo fails is parked with the reason, and a resume calls the step again."""
    stage.values["trouble"] = True
    async with place.engine() as engine:
        run = await engine.start(unkept_trip)
        reason = await in_time(parks(run))
        assert "undo failed: unkept.release of unkept_book#2: ConnectionError: cannot release" in reason
        assert "result of step unkept_book#2 cannot be stored" in reason
        assert "then resume the run: it calls unkept_book#2 again; cancelling it" in reason
        assert 1 == len(await events_of(run, AttemptFailed))

        await run.resume()
        await until_calls("room", *["seat", "undo seat"] * 2)
        assert reason == await in_time(parks(run))
        stage.values |= {"trouble": False, "repaired": True}
        await run.resume()
        assert "booked" == await in_time(run.result())
    assert stage.calls == ["room", *["seat", "undo seat"] * 2, "seat"]


@outlive.step(undo=release_step, process=True)
def unkept_elsewhere(folder: str) -> Any:
    """In a process of its own."""
    Path(folder, "held").write_text(str(os.getpid()))
    return Ticket("seat")


@outlive.workflow
async def unkept_in_process(folder: str) -> None:
    """What it returned stays there."""
    async with outlive.saga():
        await unkept_elsewhere(folder)


async def test_a_result_in_another_process_cannot_be_undone(tmp_path: Path) -> None:
    """A run is parked with the reason when the result that its undo needs is in another process and cannot be
    stored."""
    async with TestEngine() as engine:
        run = await engine.start(unkept_in_process, str(tmp_path))
        reason = await in_time(parks(run))
    assert "unkept.release cannot be called with what cannot be stored" in reason
    assert "result of step unkept_elsewhere cannot be stored" in reason


@outlive.step(undo=release_step, transaction=True)
async def unkept_in_transaction(tx: Any) -> Any:
    """The database takes it back."""
    stage.call("transaction")
    return Ticket("seat")


@outlive.workflow
async def unkept_transacting() -> None:
    """One of them."""
    async with outlive.saga():
        await unkept_in_transaction()


async def test_a_step_in_a_transaction_needs_no_undo() -> None:
    """A step in a transaction whose result cannot be stored is rolled back and not undone."""
    async with TestEngine() as engine:
        run = await engine.start(unkept_transacting)
        with pytest.raises(RunFailedError, match="cannot be stored"):
            await run.result()
    assert stage.calls == ["transaction"]


@outlive.step(undo=release_step)
async def unkept_stubborn(name: str) -> Any:
    """Goes on when it is cancelled."""
    stage.call(name)
    hold(name)
    with suppress(asyncio.CancelledError):
        await stage.gate(name).pass_through()
    return Ticket(name)


@outlive.workflow
async def unkept_stubbornly() -> None:
    """One of them."""
    async with outlive.saga():
        await unkept_stubborn("seat")


async def test_a_worker_that_has_let_go_of_the_run_takes_nothing_back(place: Place) -> None:
    """Others do the step again, perhaps with repaired code: what it has done is theirs."""
    async with place.engine(grace_seconds=0) as first:
        await first.start(unkept_stubbornly, id="run-1")
        await stage.gate("seat").reached()
    assert stage.calls == ["seat"]
    stage.gate("seat").open()
    async with place.engine() as second:
        with pytest.raises(RunFailedError):
            await in_time(second.get("run-1").result())
    assert stage.calls == ["seat", "seat", "undo seat"]


async def test_nothing_is_taken_back_while_the_lease_is_not_certain(place: Place) -> None:
    """No undo begins while the lease is not certain, because another worker may have the run."""
    async with place.engine() as engine:
        run = await engine.start(unkept_stubbornly, id="run-1")
        await stage.gate("seat").reached()
        with pytest.MonkeyPatch.context() as patch:
            looked = asyncio.Event()

            def is_held(lease: LeaseDeadline) -> bool:
                looked.set()
                return False

            patch.setattr(LeaseDeadline, "is_held", property(is_held))
            stage.gate("seat").open()
            await in_time(looked.wait())
            assert stage.calls == ["seat"]
        with pytest.raises(RunFailedError):
            await in_time(run.result())
    assert stage.calls == ["seat", "undo seat"]
