"""Cancelling follows asyncio: a workflow that catches its cancellation and returns has succeeded.

The store does not matter here: everything runs in memory, and what a crash may change is replayed at every commit.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

import outlive
from outlive._kernel.values.run import ENDED
from outlive.errors import RunFailedError
from outlive.events import CancelRequested, RunSucceeded
from outlive.testing import crash_everywhere
from outlive.types import RunHandle, WorkerOptions
from tests.engine.inside import journal_of
from tests.engine.support import SkippingClock, events_of, hold, in_time, note, stage, until, waits

pytestmark = pytest.mark.any_store


@pytest.fixture
async def engine() -> AsyncIterator[outlive.Engine]:
    """A running engine."""
    async with outlive.Engine("memory:", worker=WorkerOptions(tune=False)) as engine:
        yield engine


async def cancelled(engine: outlive.Engine, workflow: Any, *args: Any) -> RunHandle[Any]:
    """A run that was cancelled while it waits for a signal."""
    run = await engine.start(workflow, *args)
    await waits(run)
    await run.cancel(reason="enough")
    return run


async def ends_as(run: RunHandle[Any], status: str) -> None:
    """Return when a run has ended in this way."""
    kinds = {"cancelled": outlive.errors.RunCancelledError, "timed_out": outlive.errors.RunTimedOutError}
    with pytest.raises(kinds.get(status, RunFailedError)):
        await in_time(run.result())
    assert await run.status() == status


async def waits_for(run: RunHandle[Any], name: str) -> bool:
    """Whether a run waits for this signal."""
    return name in await run.why()


@outlive.workflow(name="caught.ships")
async def ships() -> str:
    """Goes on behind its point of no return."""
    try:
        await outlive.wait_for_signal("go")
    except asyncio.CancelledError:
        await note("ship anyway")
    finally:
        await note("tidy up")
    return "shipped"


async def test_a_workflow_that_catches_its_cancellation_and_returns_has_succeeded(engine: outlive.Engine) -> None:
    """Its result is what it returned, its `finally` blocks have run, and the journal has the request."""
    run = await cancelled(engine, ships)
    assert "shipped" == await in_time(run.result())
    assert await run.status() == "succeeded"
    assert ["ship anyway", "tidy up"] == stage.calls
    assert [1, 1] == [len(await events_of(run, kind)) for kind in (CancelRequested, RunSucceeded)]


@outlive.workflow(name="caught.passes")
async def passes() -> None:
    """Lets it pass, after a clean-up."""
    try:
        await outlive.wait_for_signal("go")
    except asyncio.CancelledError:
        await note("tidy up")
        raise


async def test_a_workflow_that_lets_it_pass_is_cancelled(engine: outlive.Engine) -> None:
    """After its clean-up."""
    run = await cancelled(engine, passes)
    await ends_as(run, "cancelled")
    assert ["tidy up"] == stage.calls
    assert "enough" in await run.why()


@outlive.workflow(name="caught.bad_clean_up")
async def bad_clean_up() -> None:
    try:
        await outlive.wait_for_signal("go")
    finally:
        raise ValueError("in the clean-up")


async def test_a_clean_up_that_fails_fails_the_run(engine: outlive.Engine) -> None:
    """A run whose clean-up raises after a cancel has failed with that error: the cancel does not hide it. [FB-R17]"""
    run = await cancelled(engine, bad_clean_up)
    await ends_as(run, "failed")
    assert "in the clean-up" in await run.why()


@outlive.workflow(name="caught.self")
async def cancels_itself() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(1)


async def test_a_workflow_that_cancels_itself_is_cancelled(engine: outlive.Engine) -> None:
    """No request was made."""
    run = await engine.start(cancels_itself)
    await ends_as(run, "cancelled")


# -- Deadlines ---------------------------------------------------------------------------------------------------------


@outlive.workflow(name="caught.late", timeout=60)
async def late() -> str:
    try:
        await outlive.wait_for_signal("go")
    except asyncio.CancelledError:
        await note("caught")
    return "late"


async def test_a_deadline_cannot_be_caught() -> None:
    """A workflow that catches the cancellation of its timeout and returns has timed out all the same."""
    clock = SkippingClock()
    async with outlive.Engine(
        "memory:", worker=WorkerOptions(tune=False, lease_seconds=10_000), _clock=clock
    ) as engine:
        run = await engine.start(late)
        await waits(run)
        clock.skip(seconds=61)
        await ends_as(run, "timed_out")
    assert ["caught"] == stage.calls


@outlive.workflow(name="caught.then_late", timeout=60)
async def caught_then_late(*, returns: bool) -> str:
    try:
        await outlive.wait_for_signal("go")
    except asyncio.CancelledError:
        try:
            await outlive.wait_for_signal("never")
        except asyncio.CancelledError:
            if not returns:
                raise
    return "late"


@pytest.mark.parametrize(("returns", "end"), [(True, "timed_out"), (False, "cancelled")])
async def test_a_caught_cancel_does_not_lift_the_deadline(*, returns: bool, end: str) -> None:
    """A workflow that goes on is still bound by its timeout; if it lets that pass, it was cancelled after all."""
    clock = SkippingClock()
    async with outlive.Engine(
        "memory:", worker=WorkerOptions(tune=False, lease_seconds=10_000), _clock=clock
    ) as engine:
        run = await cancelled(engine, caught_then_late.bind(returns=returns))
        await until(partial(waits_for, run, "never"))
        clock.skip(seconds=61)
        await ends_as(run, end)


@outlive.workflow(name="caught.inner_timeout")
async def inner_timeout() -> str:
    try:
        async with asyncio.timeout(3600):
            await outlive.wait_for_signal("go")
    except TimeoutError:
        return "timeout"
    return "no"


async def test_a_timeout_around_the_wait_is_not_taken_for_the_cancel(engine: outlive.Engine) -> None:
    """`asyncio.timeout` lets a cancellation pass that is not its own."""
    await ends_as(await cancelled(engine, inner_timeout), "cancelled")


# -- Children, sagas, generations --------------------------------------------------------------------------------------


@outlive.workflow(name="caught.parent")
async def parent() -> str:
    return f"child: {await ships()}"


async def test_a_child_that_catches_it_gives_its_parent_the_result(engine: outlive.Engine) -> None:
    """Only the child was cancelled."""
    run = await engine.start(parent, id="parent")
    await waits(run)
    (child,) = [row for row in await engine.list() if row.id != "parent"]
    await engine.cancel(child.id)
    assert "child: shipped" == await in_time(run.result())


async def test_a_parent_that_lets_it_pass_is_cancelled_while_its_child_finishes(engine: outlive.Engine) -> None:
    """Each run ends as its own code says."""
    run = await cancelled(engine, parent)
    await ends_as(run, "cancelled")
    ends = {row.workflow: row.status for row in await engine.list()}
    assert {"caught.parent": "cancelled", "caught.ships": "succeeded"} == ends


async def undo_book(result: str) -> None:
    stage.call("undo")


@outlive.step(name="caught.book", undo=undo_book)
async def book() -> str:
    stage.call("book")
    return "booked"


@outlive.workflow(name="caught.saga")
async def in_saga(*, is_caught: bool) -> str:
    try:
        async with outlive.saga():
            await book()
            await outlive.wait_for_signal("go")
    except asyncio.CancelledError:
        if not is_caught:
            raise
    return "undone"


@pytest.mark.parametrize("is_caught", [True, False])
async def test_a_cancelled_saga_is_undone_and_the_workflow_decides(engine: outlive.Engine, *, is_caught: bool) -> None:
    """Around the block the cancellation can be caught; the roll-back has happened either way."""
    run = await engine.start(in_saga.bind(is_caught=is_caught))
    await waits(run)
    await run.cancel()
    if is_caught:
        assert "undone" == await in_time(run.result())
    else:
        await ends_as(run, "cancelled")
    assert ["book", "undo"] == stage.calls


@outlive.workflow(name="caught.saga_fails")
async def failing_saga() -> str:
    async with outlive.saga():
        await held_book()
        raise LookupError("planned")


@outlive.step(name="caught.slow_undo")
async def slow_undo(result: str) -> None:
    stage.call("undo begins")
    await stage.gate("undo").pass_through()
    stage.call("undo ends")


@outlive.step(name="caught.held_book", undo=slow_undo)
async def held_book() -> str:
    return "booked"


async def test_a_cancel_during_a_roll_back_waits_for_it(engine: outlive.Engine) -> None:
    """The roll-back goes on to its end; then the block is left as cancelled."""
    run = await engine.start(failing_saga)
    await stage.gate("undo").reached()
    await run.cancel(reason="enough")
    stage.gate("undo").open()
    await ends_as(run, "cancelled")
    assert ["undo begins", "undo ends"] == stage.calls


@outlive.workflow(name="caught.generations")
async def generations(number: int) -> int:
    if number:
        return number
    try:
        await outlive.wait_for_signal("go")
    except asyncio.CancelledError:
        outlive.continue_as_new(number + 1)
    return 0


async def test_a_workflow_that_catches_it_may_go_on_as_a_new_run(engine: outlive.Engine) -> None:
    """It has decided not to stop; the next generation was not cancelled."""
    run = await cancelled(engine, generations, 0)
    assert 1 == await in_time(run.result())


@outlive.workflow(name="caught.stubborn")
async def stubborn(number: int) -> None:
    try:
        await outlive.wait_for_signal("go")
    except asyncio.CancelledError:
        if number:
            raise
        outlive.continue_as_new(number + 1)


async def test_the_next_generation_can_be_cancelled_too(engine: outlive.Engine) -> None:
    """It keeps the messages and the keys of the one before it, and that one has caught a cancel."""
    run = await cancelled(engine, stubborn, 0)

    async def has_gone_on() -> bool:
        return 1 == (await journal_of(run))[0].generation  # type: ignore[union-attr]

    await until(has_gone_on)
    await waits(run)
    await run.cancel(reason="enough, I said")
    await ends_as(run, "cancelled")


@outlive.workflow(name="caught.goes_on")
async def goes_on() -> str:
    try:
        await outlive.wait_for_signal("go")
    except asyncio.CancelledError:
        return await hold("rest")
    return "no"


async def test_a_second_cancel_does_not_reach_a_workflow_that_has_caught_the_first(engine: outlive.Engine) -> None:
    """Asking twice is asking once: what it does behind its point of no return is not interrupted."""
    run = await cancelled(engine, goes_on)
    await stage.gate("rest").reached()
    await run.cancel(reason="enough, I said")
    stage.gate("rest").open()
    assert "rest" == await in_time(run.result())
    assert 0 == stage.count("rest cancelled")


async def test_a_caught_cancel_is_the_same_after_a_crash_at_every_commit() -> None:
    """The journal decides, not the process that heard the request."""

    async def cancel(engine: Any, run_id: str) -> None:
        run = engine.get(run_id)
        status = await run.status()
        while status != "waiting" and status not in ENDED:
            await asyncio.sleep(0)
            status = await run.status()
        if status not in ENDED:
            await run.cancel()

    report = await crash_everywhere(ships, drive=cancel)
    assert report.points > 3
