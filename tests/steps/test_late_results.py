"""What a step returns or raises after its run has given it up is a fact in the journal, and changes nothing else."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import msgspec
import pytest

import outlive
from outlive import Retry
from outlive.events import AttemptFailed, StepEndedLate, StepFailed, StepSucceeded
from outlive.types import RunHandle, WorkerOptions
from tests.engine.inside import crash, journal_of
from tests.engine.support import Place, events_of, in_time, note, reaches, stage, until

SHORT = 0.02
ENOUGH = 0.5
"""For an attempt that is to end in time, also on a machine that is busy."""


@outlive.step(timeout=SHORT)
def late_on_a_thread(kind: str) -> Any:
    stage.call("called")
    stage.gate("late").pass_on_thread()
    if kind == "raises":
        raise LookupError("lost")
    return threading.Lock() if kind == "unstorable" else {"kind": kind}


@outlive.step(timeout=SHORT)
async def late_on_the_loop(kind: str) -> str:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        if kind == "raises":
            raise LookupError("lost") from None
        if kind == "cooperates":
            raise
    return kind


@outlive.step
async def deaf_to_cancel(kind: str) -> str:
    stage.call("begun")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        if kind == "cooperates":
            raise
        if kind == "raises":
            raise LookupError("lost") from None
    return kind


@outlive.step
async def hold_the_run(name: str) -> str:
    await stage.gate(name).pass_through()
    return name


@outlive.workflow
async def giving_up(kind: str, how: str) -> str:
    if how == "cancelled":
        task = asyncio.create_task(deaf_to_cancel(kind))
        await note("before")
        task.cancel()
        outcome = "cancelled"
    else:
        try:
            await (late_on_a_thread(kind) if how == "thread" else late_on_the_loop(kind))
            outcome = "in time"
        except TimeoutError as error:
            outcome = type(error).__name__
    await hold_the_run("end")
    return outcome


async def late_end(run: RunHandle[Any]) -> StepEndedLate:
    """The one late end in a journal, when it is there."""

    async def is_there() -> bool:
        return bool(await events_of(run, StepEndedLate))

    await until(is_there)
    (late,) = await events_of(run, StepEndedLate)
    return late


@pytest.mark.parametrize("how", ["thread", "loop", "cancelled"])
@pytest.mark.parametrize("kind", ["returns", "raises"])
async def test_a_late_end_is_a_fact(kind: str, how: str) -> None:
    """On a thread, on the loop after a swallowed cancellation, and after the workflow has cancelled the call."""
    async with outlive.Engine("memory:", worker=WorkerOptions(tune=False)) as engine:
        run = await engine.start(giving_up, kind, how)
        await stage.gate("end").reached()
        stage.gate("late").open()
        late = await late_end(run)
        stage.gate("end").open()
        assert ("cancelled" if how == "cancelled" else "StepTimeoutError") == await in_time(run.result())
        history = await journal_of(run)
    assert 1 == late.attempt
    if kind == "raises":
        assert late.failure is not None
        assert ("LookupError", "lost", None) == (late.failure.type, late.failure.message, late.result)
    else:
        assert late.result is not None
        assert late.failure is None
        assert b"returns" in msgspec.json.encode(late.result)
    if how != "cancelled":
        failed = [event for event in history if isinstance(event, StepFailed)]
        assert history.index(failed[0]) < history.index(late), "the run got its own outcome first"
    assert late.call not in [event.call for event in history if isinstance(event, StepSucceeded)]


async def test_a_late_result_that_cannot_be_stored_is_a_late_failure() -> None:
    """The event says why."""
    async with outlive.Engine("memory:", worker=WorkerOptions(tune=False)) as engine:
        run = await engine.start(giving_up, "unstorable", "thread")
        await stage.gate("end").reached()
        stage.gate("late").open()
        late = await late_end(run)
        assert late.result is None
        assert late.failure is not None
        assert "UnserialisableError" in late.failure.type
        stage.gate("end").open()
        await in_time(run.result())


@pytest.mark.parametrize("how", ["loop", "cancelled"])
async def test_a_step_that_stops_when_it_is_asked_to_is_not_late(how: str) -> None:
    """Its cancellation is the end of it."""
    async with outlive.Engine("memory:", worker=WorkerOptions(tune=False)) as engine:
        run = await engine.start(giving_up, "cooperates", how)
        await stage.gate("end").reached()
        stage.gate("end").open()
        await in_time(run.result())
        assert [] == await events_of(run, StepEndedLate)


async def test_a_call_that_was_never_made_is_not_late() -> None:
    """An attempt whose time is over before a thread is free has not ended: it has not begun."""
    async with outlive.Engine(
        "memory:", worker=WorkerOptions(tune=False), limits=outlive.limits.Limits(threads_max=1)
    ) as engine:
        runs = [await engine.start(giving_up, "returns", "thread") for _ in range(2)]
        for _ in runs:
            await stage.gate("end").reached()
        stage.gate("late").open()

        async def is_there() -> bool:
            return bool([late for run in runs for late in await events_of(run, StepEndedLate)])

        await until(is_there)
        stage.gate("end").open()
        for run in runs:
            await in_time(run.result())
        assert 1 == len([late for run in runs for late in await events_of(run, StepEndedLate)])
    assert ["called"] == stage.calls


@outlive.step(timeout=ENOUGH, retry=Retry(attempts=2, first=0, jitter=0))
def late_at_first() -> int:
    attempt = outlive.current_step().attempt
    if attempt == 1:
        stage.gate("late").pass_on_thread()
    return attempt


@outlive.workflow
async def late_and_retried() -> int:
    attempt = await late_at_first()
    await hold_the_run("end")
    return attempt


async def test_a_late_attempt_does_not_disturb_the_next_one(place: Place) -> None:
    """The event says which attempt it was; the result of the step is that of the second. A replay reads over it."""
    first = await place.engine().__aenter__()
    run = await first.start(late_and_retried, id="late")
    await stage.gate("end").reached()
    assert 1 == len(await events_of(run, AttemptFailed))
    stage.gate("late").open()
    assert 1 == (await late_end(run)).attempt
    await crash(first)
    async with place.engine() as second:
        await stage.gate("end").reached()
        stage.gate("end").open()
        run = second.get("late")
        assert 2 == await in_time(run.result())
        assert [2, 1] == [event.attempt for event in await events_of(run, StepSucceeded)]


async def test_the_end_of_a_step_whose_run_has_ended_is_only_logged(caplog: pytest.LogCaptureFixture) -> None:
    """No journal changes after its end, and nothing is silent."""
    caplog.set_level(logging.INFO, "outlive")
    async with outlive.Engine("memory:", worker=WorkerOptions(tune=False)) as engine:
        stage.gate("end").open()
        run = await engine.start(giving_up, "returns", "thread")
        await in_time(run.result())
        before = await journal_of(run)
        stage.gate("late").open()

        async def is_logged() -> bool:
            return "attempt 1 of step late_on_a_thread" in caplog.text and "it returned, and that is not" in caplog.text

        await until(is_logged)
        await reaches(run, "succeeded")
        assert before == await journal_of(run)


@outlive.workflow
async def late_and_failing() -> Any:
    try:
        return await late_on_a_thread("returns")
    except TimeoutError:
        await hold_the_run("end")
        raise


async def late_and_failed(engine: outlive.Engine) -> RunHandle[Any]:
    """A run that has failed with its timeout, after the step has returned."""
    run = await engine.start(late_and_failing, id="late-and-failed")
    await stage.gate("end").reached()
    stage.gate("late").open()
    await late_end(run)
    stage.gate("end").open()
    with pytest.raises(outlive.errors.RunFailedError):
        await in_time(run.result())
    return run


async def test_a_run_with_a_late_end_can_be_retried() -> None:
    """The late end answers nothing that a retry would have to take back."""
    async with outlive.Engine("memory:", worker=WorkerOptions(tune=False)) as engine:
        run = await late_and_failed(engine)
        await engine.retry(run.id)
        assert {"kind": "returns"} == await in_time(run.result())
        assert 1 == len(await events_of(run, StepEndedLate))


async def test_a_fork_has_no_late_ends() -> None:
    """They were of another run."""
    async with outlive.Engine("memory:", worker=WorkerOptions(tune=False)) as engine:
        run = await late_and_failed(engine)
        fork = await engine.fork(run.id, id="forked")
        with pytest.raises(outlive.errors.RunFailedError):
            await in_time(fork.result())
        assert [] == await events_of(fork, StepEndedLate)
