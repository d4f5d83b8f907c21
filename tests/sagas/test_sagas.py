"""Sagas in an engine: undone newest first, through crashes and cancels; an undo that fails parks the run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import outlive
from outlive import Retry
from outlive._kernel.model.policy import is_last
from outlive.errors import DefinitionError, RunCancelledError, RunFailedError, RunTimedOutError
from outlive.events import AttemptFailed, CancelRequested, RunParked, StepFailed
from outlive.limits import Limits
from outlive.testing import Survivor, crash_everywhere
from tests.engine.faults import FaultyStore, faulty, unknown
from tests.engine.inside import crash, journal_of
from tests.engine.support import Place, events_of, in_time, parks, stage, until, waits

pytestmark = pytest.mark.any_store


def unbook(name: str) -> object:
    """Takes a booking back; what it returns cannot be stored, and is not needed."""
    stage.call(f"undo {name}")
    if stage.values.get(f"trouble {name}", 0) > 0:
        stage.values[f"trouble {name}"] -= 1
        raise ConnectionError(f"cannot release {name}")
    held = stage.values["held"]
    held.discard(name)  # A crash may have come between the effect and its journal.
    return object()


@outlive.step(retry=Retry(attempts=2, first=0))
async def unbook_twice(name: str) -> None:
    unbook(name)


@outlive.step(undo=unbook)
async def saga_book(name: str) -> str:
    stage.values.setdefault("held", set()).add(name)
    return name


@outlive.step(undo=unbook_twice)
async def saga_book_slowly(name: str) -> str:
    stage.call(name)
    await stage.gate(name).pass_through()
    stage.values.setdefault("held", set()).add(name)
    return name


@outlive.step(raises=(ZeroDivisionError,))
async def saga_fail() -> None:
    raise ZeroDivisionError("planned")


@outlive.workflow
async def saga_sequence(names: list[str], then: str) -> str:
    async with outlive.saga():
        for name in names:
            await saga_book.options(undo=unbook_twice)(name)
        if then == "fail":
            await saga_fail()
        if then == "wait":
            await outlive.wait_for_signal("go")
    return "done"


@outlive.workflow
async def saga_child(name: str) -> str:
    return await saga_book(name)


@outlive.workflow
async def saga_mixed(names: list[str]) -> None:
    async with outlive.saga():
        await asyncio.gather(*[saga_book(name) for name in names])
        await saga_child("child")
        async with outlive.saga():
            await saga_book("nested")
        await outlive.map(saga_book, ["m1", "m2", "m3"], concurrency=2)
        await saga_fail()


@outlive.workflow
async def saga_in_flight() -> None:
    async with outlive.saga():
        await saga_book("first")
        await asyncio.gather(saga_book_slowly("slow"), saga_fail())


@outlive.workflow(timeout=3600)
async def saga_deadline() -> None:
    async with outlive.saga():
        await saga_book("a")
        await outlive.wait_for_signal("go")


@outlive.workflow
async def saga_generations(left: int) -> str:
    async with outlive.saga():
        booked = await saga_book(f"room {left}")
        if left:
            outlive.continue_as_new(left - 1)
    return booked


def undone() -> list[str]:
    """What was undone, in order."""
    return [call.removeprefix("undo ") for call in stage.calls if str(call).startswith("undo ")]


async def test_a_saga_that_succeeds_keeps_everything(engine: outlive.Engine) -> None:
    """Nothing is undone."""
    run = await engine.start(saga_sequence, ["a", "b"], "end")

    assert "done" == await in_time(run.result())
    assert ({"a", "b"}, []) == (stage.values["held"], undone())


async def test_going_on_as_a_new_generation_undoes_nothing(engine: outlive.Engine) -> None:
    """A saga that goes on as a new generation undoes nothing."""
    run = await engine.start(saga_generations, 2)

    assert await in_time(run.result()) == "room 0"
    assert undone() == []


async def test_a_saga_that_fails_is_undone_newest_first(engine: outlive.Engine) -> None:
    """A saga that fails undoes its steps newest first, and its run fails with the error that caused that. [FE-R9]"""
    run = await engine.start(saga_sequence, ["a", "b", "c"], "fail")

    with pytest.raises(RunFailedError, match="planned"):
        await in_time(run.result())
    assert (set(), ["c", "b", "a"]) == (stage.values["held"], undone())


async def test_branches_children_nested_sagas_and_maps_are_undone(engine: outlive.Engine) -> None:
    """All of them, in reverse."""
    run = await engine.start(saga_mixed, ["a", "b"])

    with pytest.raises(RunFailedError, match="planned"):
        await in_time(run.result())
    assert set() == stage.values["held"]
    assert ["nested", "child"] == undone()[3:5]
    assert {"m1", "m2", "m3"} == set(undone()[:3])


async def test_a_cancelled_saga_is_undone(engine: outlive.Engine) -> None:
    """The cancel waits for the roll-back."""
    run = await engine.start(saga_sequence, ["a", "b"], "wait")
    await waits(run)
    await run.cancel(reason="enough")

    with pytest.raises(RunCancelledError):
        await in_time(run.result())
    assert (set(), ["b", "a"]) == (stage.values["held"], undone())


async def test_a_saga_that_runs_out_of_time_is_undone(place: Place, engine: outlive.Engine) -> None:
    """The deadline of its run waits for the roll-back."""
    run = await engine.start(saga_deadline)
    await waits(run)
    place.clock.skip(seconds=3601)

    with pytest.raises(RunTimedOutError):
        await in_time(run.result())
    assert (set(), ["a"]) == (stage.values["held"], undone())


async def test_a_step_in_flight_is_not_cancelled_but_undone(engine: outlive.Engine) -> None:
    """Its effect may happen; the saga waits until it knows, also when the run is cancelled meanwhile."""
    run = await engine.start(saga_in_flight)
    await stage.gate("slow").reached()

    async def has_failed() -> bool:
        return bool(await events_of(run, StepFailed))

    async def is_cancelled() -> bool:
        return bool(await events_of(run, CancelRequested))

    await until(has_failed)
    await run.cancel()
    await until(is_cancelled)
    stage.gate("slow").open()

    with pytest.raises(RunCancelledError):
        await in_time(run.result())
    assert (set(), ["slow", "first"]) == (stage.values["held"], undone())


async def test_a_roll_back_survives_a_crash_after_every_commit(place: Place) -> None:
    """Killed again and again, it goes on where it was."""
    limits = Limits(attempts_max=1_000)
    engine = await place.engine(limits=limits).__aenter__()
    await engine.start(saga_sequence, ["a", "b", "c"], "fail", id="run-1")
    is_over = False
    while not is_over:
        seen = len(await journal_of(engine, "run-1"))
        await crash(engine)
        engine = await place.engine(limits=limits).__aenter__()

        async def has_moved(engine: outlive.Engine = engine, seen: int = seen) -> bool:
            # The claim is an event too.
            has_ended = (await engine.get("run-1").info()).has_ended
            return has_ended or len(await journal_of(engine, "run-1")) > seen + 1

        await until(has_moved)
        is_over = (await engine.get("run-1").info()).has_ended
    with pytest.raises(RunFailedError, match="planned"):
        await in_time(engine.get("run-1").result())
    await engine.__aexit__(None, None, None)

    assert set() == stage.values["held"]


@pytest.mark.parametrize("commit", range(1, 10))
async def test_a_roll_back_survives_a_death_around_any_commit(place: Place, commit: int) -> None:
    """The engine dies while it waits for the answer to a commit; another one takes over."""
    stores: list[FaultyStore] = []
    first = await place.engine(wrap=faulty(stores)).__aenter__()
    stores[0].skip["commit"] = commit
    stores[0].after["commit"].append(unknown())
    await first.start(saga_sequence, ["a", "b", "c"], "fail", id="run-1")

    async def is_far() -> bool:
        return stores[0].calls["commit"] > commit or (await first.get("run-1").info()).has_ended

    await until(is_far)
    await crash(first)
    async with place.engine() as second:
        with pytest.raises(RunFailedError, match="planned"):
            await in_time(second.get("run-1").result())
    assert set() == stage.values["held"]


async def test_an_undo_that_keeps_failing_parks_the_run(engine: outlive.Engine) -> None:
    """It says what failed, what was undone and what is left; nothing in the journal says that the step failed."""
    stage.values["trouble b"] = 2
    run = await engine.start(saga_sequence, ["a", "b", "c"], "fail")

    reason = await in_time(parks(run))

    assert reason.startswith("undo failed: unbook_twice of saga_book#2 after 2 attempts: ")
    assert "ConnectionError: cannot release b" in reason
    assert "undone: saga_book#3\n" in reason
    assert "left:   saga_book#2, saga_book\n" in reason
    assert f"it is parked: {reason}" == await run.why()
    assert ["saga_fail"] == [event.call for event in await events_of(run, StepFailed)]
    assert {"a", "b"} == stage.values["held"]


async def test_resuming_tries_the_undo_again_and_goes_on(engine: outlive.Engine) -> None:
    """Once for each resume; when it works the rest is undone and the run ends as it would have."""
    stage.values["trouble b"] = 3
    run = await engine.start(saga_sequence, ["a", "b", "c"], "fail")
    await in_time(parks(run))
    await engine.resume(run.id)

    async def is_parked_again() -> bool:
        return len(await events_of(run, RunParked)) == 2

    await until(is_parked_again)
    assert 3 == len(await events_of(run, AttemptFailed))
    await engine.resume(run.id)

    with pytest.raises(RunFailedError, match="planned"):
        await in_time(run.result())
    assert (set(), ["c", "b", "b", "b", "b", "a"]) == (stage.values["held"], undone())


async def test_cancelling_a_parked_roll_back_says_what_is_lost(engine: outlive.Engine) -> None:
    """The reason of the run tells that it was not undone."""
    stage.values["trouble a"] = 2
    run = await engine.start(saga_sequence, ["a"], "fail")
    await in_time(parks(run))
    await run.cancel(reason="never mind")

    assert "cancelled" == await run.status()
    reason = (await run.info()).reason
    assert reason.startswith("never mind; its roll-back was not finished: undo failed: unbook_twice of saga_book")
    assert reason in await run.why()


async def test_a_plain_function_can_undo(engine: outlive.Engine) -> None:
    """The function becomes a step that is named after the step that it undoes, and is retried for longer."""
    assert saga_book.call_options.undo is not None
    assert "saga_book.undo" == saga_book.call_options.undo.name
    retry = saga_book.call_options.undo.options.retry
    assert retry is not None
    assert not is_last(retry, 10)
    run = await engine.start(saga_mixed, [])

    with pytest.raises(RunFailedError, match="planned"):
        await in_time(run.result())
    assert set() == stage.values["held"]


def takes_two(result: str, other: str) -> None:
    """Not an undo."""


def test_an_undo_takes_one_argument() -> None:
    """The mistake is raised when the step is defined."""
    with pytest.raises(DefinitionError, match=r"must take one argument, the result of saga_refused"):
        outlive.step(undo=takes_two)(saga_refused)  # type: ignore[arg-type]


def test_an_undo_for_one_call_is_a_step() -> None:
    """A plain function would have no name of its own."""
    with pytest.raises(DefinitionError, match="needs a step"):
        saga_book.options(undo=unbook)  # type: ignore[arg-type]


async def saga_refused() -> str:
    """Would be a step."""
    return ""


# -- An undo that is added before the call -----------------------------------------------------------------------------


@outlive.step(retry=Retry(attempts=2, first=1))
async def saga_take(key: str, how: str) -> str:
    """A bank: the same key is taken once, and the answer may be an error all the same."""
    stage.values.setdefault("held", set()).add(key)
    if how == "500":
        raise ConnectionError("500")
    return key


@outlive.workflow
async def saga_paying(order: str, how: str) -> str:
    async with outlive.saga() as block:
        await saga_book("goods")
        block.add(unbook_twice, f"payment of {order}")
        return await saga_take(f"payment of {order}", how)


def empty_stage() -> None:
    """Forget what the run before this one did."""
    stage.values["held"] = set()
    stage.calls.clear()


def gave_everything_back(end: Survivor) -> None:
    """The payment first, because its undo was added last."""
    assert stage.values["held"] == set()
    firsts = list(dict.fromkeys(undone()))  # An undo that a crash interrupts is called again.
    assert firsts == ["payment of o-1", "goods"], end.crashes


async def test_undo_that_was_added_before_the_call_gives_back_what_a_failed_step_took() -> None:
    """The step has failed, so an undo of its own would not be called; and it holds wherever the process dies."""
    report = await crash_everywhere(
        saga_paying, "o-1", "500", reset=empty_stage, check=gave_everything_back, max_points=8
    )
    assert "500" in report.error


async def test_undo_that_was_added_before_the_call_is_forgotten_with_the_block(engine: outlive.Engine) -> None:
    """The block succeeds, and keeps the payment."""
    assert "payment of o-1" == await in_time((await engine.start(saga_paying, "o-1", "200")).result())
    assert ({"goods", "payment of o-1"}, []) == (stage.values["held"], undone())


# -- Outside of a run --------------------------------------------------------------------------------------------------


@outlive.step(undo=unbook)
def saga_book_now(name: str) -> str:
    stage.values.setdefault("held", set()).add(name)
    return name


async def plain_saga(how: str) -> None:
    """A saga around plain calls."""
    async with outlive.saga() as block:
        await saga_book("a")
        saga_book_now("b")  # type: ignore[unused-coroutine]
        stage.values["held"].add("added")
        block.add(unbook_twice, "added")
        async with outlive.saga():
            await asyncio.gather(saga_book("c"), saga_book("d"))
        if how == "gather":
            await asyncio.gather(saga_book_slowly("slow"), saga_fail())
        if how == "wait":
            await stage.gate("never").pass_through()
        if how == "fail":
            await saga_fail()


@pytest.mark.parametrize("how", ["fail", "gather"])
async def test_a_saga_outside_a_run_undoes_plain_calls(how: str) -> None:
    """A saga block in plain code undoes its calls in memory, newest first."""
    with pytest.raises(ZeroDivisionError):
        await plain_saga(how)
    assert (set(), ["d", "c", "added", "b", "a"]) == (stage.values["held"], undone())


async def test_a_cancelled_saga_outside_a_run_is_undone() -> None:
    """The cancel goes on when that is done."""
    task = asyncio.create_task(plain_saga("wait"))
    await stage.gate("never").reached()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert set() == stage.values["held"]


async def test_a_plain_saga_that_succeeds_keeps_everything() -> None:
    """Nothing is undone."""
    await plain_saga("end")
    assert ({"a", "b", "c", "d", "added"}, []) == (stage.values["held"], undone())


async def test_a_plain_undo_that_fails_does_not_stop_the_others() -> None:
    """It is noted on the exception."""
    stage.values["trouble b"] = 1
    with pytest.raises(ZeroDivisionError) as raised:
        await plain_saga("fail")
    assert {"b"} == stage.values["held"]
    assert ["undo failed: saga_book_now.undo of saga_book_now: ConnectionError: cannot release b"] == (
        raised.value.__notes__
    )


async def not_a_step(result: Any) -> None:
    """Only a function."""


async def test_add_takes_steps() -> None:
    """A plain function has no name to be found by."""
    async with outlive.saga() as block:
        with pytest.raises(outlive.errors.OutliveError, match="give a step"):
            block.add(not_a_step)  # type: ignore[arg-type]
