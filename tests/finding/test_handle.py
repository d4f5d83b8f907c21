"""Handles: what a run says of itself, to any process, wherever it runs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

import outlive
from outlive.errors import ResultTimeoutError, RunNotFoundError
from outlive.errors.run import RunNotParkedError
from outlive.events import RunCreated, RunSucceeded, StepSucceeded
from outlive.types import RunHandle
from tests.engine.inside import journal_of
from tests.engine.support import DAY, Place, hold, in_time, note, reaches, stage, waits

pytestmark = pytest.mark.any_store


@dataclass(frozen=True)
class Bill:
    lines: tuple[str, ...]
    total: Decimal


@outlive.workflow
async def handled_bill(cents: int) -> Bill:
    return Bill((await note("line"),), Decimal(cents) / 100)


@outlive.workflow
async def handled_failure(text: str) -> None:
    raise ValueError(text)


@outlive.workflow
async def handled_hold(name: str) -> str:
    return await hold(name)


@outlive.workflow
async def handled_child() -> str:
    return await outlive.wait_for_signal("go", str)


@outlive.workflow
async def handled_parent() -> str:
    return await handled_child()


@outlive.workflow
async def handled_waits() -> str:
    async with asyncio.timeout(DAY):
        return await outlive.wait_for_signal("paid", str)


@outlive.workflow
async def handled_many_waits() -> None:
    await asyncio.gather(*[outlive.wait_for_signal(f"signal-{number}") for number in range(7)])


@outlive.workflow
async def handled_stuck() -> None:
    await asyncio.Event().wait()


@outlive.workflow
async def handled_now() -> Any:
    return outlive.now() + timedelta(days=1)


async def test_a_result_has_the_type_that_the_workflow_declares(engine: outlive.Engine) -> None:
    """A dataclass goes into the journal and comes out as itself."""
    run = await engine.start(handled_bill, 1999)

    assert Bill(("line",), Decimal("19.99")) == await in_time(run.result())


async def test_a_failed_run_raises_its_failure(engine: outlive.Engine) -> None:
    """`RunFailedError` says what failed, carries the journaled failure, and has the exception as its cause. [FB-R17]"""
    run = await engine.start(handled_failure, "no such thing")

    with pytest.raises(outlive.errors.RunFailedError, match="ValueError: no such thing") as caught:
        await in_time(run.result())

    assert isinstance(caught.value.__cause__, ValueError)
    assert "ValueError" == caught.value.failure.type
    assert "in handled_failure" in caught.value.failure.traceback


async def test_patience_may_end_before_the_run(engine: outlive.Engine) -> None:
    """A result that does not come in time raises, says why, and leaves the run alone."""
    run = await engine.start(handled_waits)
    await waits(run)

    with pytest.raises(ResultTimeoutError, match=r"it waits for a timer .* or signal 'paid'") as caught:
        await run.result(timeout=0.01)

    assert isinstance(caught.value, TimeoutError)
    await run.signal("paid", "yes")
    assert "yes" == await in_time(run.result())


async def test_any_number_may_wait_for_one_run(engine: outlive.Engine) -> None:
    """A waiter that gives up does not disturb the others."""
    run = await engine.start(handled_hold, "a")
    waiters = [asyncio.create_task(run.result()) for _ in range(5)]
    await stage.gate("a").reached()
    waiters[0].cancel()
    stage.gate("a").open()

    assert ["a"] * 4 == await in_time(asyncio.gather(*waiters[1:]))


async def test_a_result_reaches_an_engine_that_does_not_run_it(place: Place) -> None:
    """A client without a worker starts a run, and hears of its end from the store."""
    async with place.engine(worker=False) as client, place.engine():
        run = await client.start(handled_bill, 100)

        assert Decimal(1) == (await in_time(run.result())).total


async def test_status_follows_the_run(engine: outlive.Engine) -> None:
    """Pending or running, then waiting, then succeeded."""
    run = await engine.start(handled_hold, "a")
    await stage.gate("a").reached()
    assert await run.status() == "running"
    stage.gate("a").open()
    await in_time(run.result())
    assert await run.status() == "succeeded"

    suspended = await engine.start(handled_waits)
    await waits(suspended)
    assert await suspended.status() == "waiting"


async def test_why_says_the_step_and_who_runs_it(engine: outlive.Engine) -> None:
    """A run in a step names the step and its worker."""
    run = await engine.start(handled_hold, "a")
    await stage.gate("a").reached()

    why = await run.why()
    assert why.startswith('it is in step hold(name="a"), for ')
    assert " on " in why
    stage.gate("a").open()
    await in_time(run.result())


async def test_why_says_what_a_suspended_run_waits_for(engine: outlive.Engine) -> None:
    """Every wait that could move it, in one sentence, with the time at which a timer ends it. [TS-R14]"""
    run = await engine.start(handled_waits)
    await waits(run)

    why = await run.why()
    assert why.startswith("it waits for ")
    assert "signal 'paid'" in why
    assert "a timer at 20" in why


async def test_why_names_the_child_that_has_to_be_sent_what_is_waited_for(engine: outlive.Engine) -> None:
    """A signal that is sent to its parent does not reach it."""
    run = await engine.start(handled_parent, id="run-1")
    await waits(run)
    child = engine.get("run-1~1")

    assert "it waits for signal 'go' for run run-1~1" == await run.why()
    assert "it waits for signal 'go'" == await child.why()


async def test_why_does_not_list_waits_without_end(engine: outlive.Engine) -> None:
    """A run that waits for many things names a few and counts the rest."""
    run = await engine.start(handled_many_waits)
    await waits(run)

    assert (await run.why()).endswith("or 3 more")


async def test_why_says_how_a_run_ended(engine: outlive.Engine) -> None:
    """Success, failure and cancellation each in a sentence."""
    good = await engine.start(handled_bill, 1)
    await in_time(good.result())
    assert (await good.why()).endswith(": succeeded")

    bad = await engine.start(handled_failure, "broken")
    await reaches(bad, "failed")
    assert "failed: ValueError: broken" in await bad.why()

    cancelled = await engine.start(handled_waits)
    await cancelled.cancel(reason="not needed")
    await reaches(cancelled, "cancelled")
    assert (await cancelled.why()).endswith("cancelled (not needed)")


async def test_why_says_why_a_run_is_parked(engine: outlive.Engine) -> None:
    """A run that waits for what can never come is parked and names the line."""
    run = await engine.start(handled_stuck)
    await reaches(run, "parked")

    why = await run.why()
    assert why.startswith("it is parked: ")
    assert "test_handle.py" in why


async def test_history_is_the_journal(engine: outlive.Engine) -> None:
    """Every fact in order, from the creation to the end. [FB-R9 TS-R14]"""
    run = await engine.start(handled_bill, 1)
    await in_time(run.result())

    assert [RunCreated, StepSucceeded, RunSucceeded] == [type(event) for event in await journal_of(run)]
    assert await journal_of(run) == await journal_of(engine, run.id)


async def test_a_value_without_annotation_comes_back_exactly(engine: outlive.Engine) -> None:
    """An aware datetime under `Any` is still an aware datetime."""
    run = await engine.start(handled_now)

    when = await in_time(run.result())
    created = (await journal_of(run))[0].at
    assert when.timestamp() == pytest.approx(created / 1_000_000 + DAY)


@pytest.mark.parametrize("verb", ["result", "status", "info", "why", "history", "cancel", "resume", "signal"])
async def test_every_verb_refuses_an_unknown_run(engine: outlive.Engine, verb: str) -> None:
    """No caller waits for a run that does not exist. [FB-R10 TS-R14]"""
    run: RunHandle[Any] = engine.get("missing")
    args = ["name"] if verb == "signal" else []

    with pytest.raises(RunNotFoundError, match="missing"):
        await in_time(getattr(run, verb)(*args))


async def test_only_a_parked_run_is_resumed(engine: outlive.Engine) -> None:
    """Resuming what is not parked is refused with what it is. [FB-R10]"""
    run = await engine.start(handled_waits)
    await waits(run)

    with pytest.raises(RunNotParkedError, match="waiting"):
        await run.resume()
