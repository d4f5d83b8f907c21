"""Sentences about the engine that users read first, each tried on every store."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

import outlive
from outlive.events import SignalReceived, StepSucceeded
from outlive.types import RunHandle
from tests.engine.support import Place, events_of, in_time, note, reaches, stage, until_calls, waits


@dataclass
class Payment:
    """What a signal brings."""

    cents: int


@outlive.workflow(name="front.refund", version=2)
async def refund(order_id: str, *, currency: str = "EUR") -> str:
    """Wait for a payment, without having said what it is beforehand."""
    payment = await outlive.wait_for_signal("paid", Payment)
    return await note(f"{order_id}: {payment.cents} {currency}")


@outlive.workflow(name="front.dice")
async def dice() -> list[str]:
    """What is deterministic in a run."""
    first = [outlive.now().isoformat(), str(outlive.random()), str(outlive.uuid4())]
    await outlive.wait_for_signal("again", int)
    return [*first, await note(" ".join(first))]


@outlive.workflow(name="front.plain")
async def plain(what: str) -> str:
    """Two steps."""
    return await note(what) + await note("!")


async def test_a_workflow_called_outside_a_run_is_a_plain_function() -> None:
    """A workflow that is called without an engine runs with its steps as plain functions."""
    assert await plain("hello") == "hello!"
    assert stage.calls == ["hello", "!"]


async def test_a_client_only_talks_to_the_store(place: Place) -> None:
    """It starts, signals, shows and cancels runs, and never runs one."""
    async with place.engine(worker=False) as client:
        run = await client.start(refund, "o-1", id="run-1")
        await client.signal("run-1", "paid", Payment(1))
        assert await run.status() == "pending"
        with pytest.raises(outlive.errors.ResultTimeoutError):
            await run.result(timeout=0.1)
        assert stage.calls == []
        async with place.engine():
            assert await in_time(run.result()) == "o-1: 1 EUR"


async def test_a_handle_has_all_its_verbs(engine: outlive.Engine) -> None:
    """.result(timeout=None) .status() .why() .history() .signal() .cancel()"""
    run: RunHandle[str] = await engine.start(refund, "o-1", id="run-1")
    await waits(run)
    assert "paid" in str(await run.why())
    await run.signal("paid", Payment(7), key="evt_1")
    await run.signal("paid", Payment(8), key="evt_1")
    assert await in_time(run.result(timeout=None)) == "o-1: 7 EUR"
    assert await run.status() == "succeeded"
    assert len(await events_of(run, SignalReceived)) == len(await events_of(run, StepSucceeded)) == 1

    other = await engine.start(refund, "o-2", id="run-2")
    await other.cancel(reason="the customer has left")
    with pytest.raises(outlive.errors.RunCancelledError, match="the customer has left"):
        await in_time(other.result())


async def test_a_signal_creates_its_run_once(engine: outlive.Engine) -> None:
    """start=(refund, "o-1"): create it if absent; the same key: once."""
    for _ in range(3):
        await engine.signal("run-1", "paid", Payment(5), key="evt_123", start=(refund, "o-1"))

    assert await in_time(engine.get("run-1").result()) == "o-1: 5 EUR"
    assert stage.calls == ["o-1: 5 EUR"]


async def test_keyword_arguments_of_a_workflow_are_bound(engine: outlive.Engine) -> None:
    """engine.start(refund.bind(order_id="o-1"), id=...), also where a signal starts it."""
    run = await engine.start(refund.bind(order_id="o-1", currency="SEK"), id="run-1", tags={"shop": "a"}, timeout=60)
    await run.signal("paid", Payment(2))
    await engine.signal("run-2", "paid", Payment(3), start=(refund.bind(order_id="o-2"),))

    assert await in_time(run.result()) == "o-1: 2 SEK"
    assert await in_time(engine.get("run-2").result()) == "o-2: 3 EUR"


async def test_now_random_and_uuid4_are_the_same_in_a_replay(place: Place) -> None:
    """Another engine goes on with what the first one saw."""
    async with place.engine() as engine:
        run = await engine.start(dice, id="run-1")
        await waits(run)
    place.clock.skip(seconds=1)
    async with place.engine() as engine:
        await engine.signal("run-1", "again", 1)
        *first, answer = await in_time(engine.get("run-1").result())

    assert answer == " ".join(first)
    await until_calls(answer)


async def test_several_engines_live_in_one_process(place: Place) -> None:
    """Each its own place, and they know nothing of each other."""
    async with place.engine() as engine, outlive.Engine("memory:") as other:
        runs = [await each.start(refund, f"o-{number}", id="run-1") for number, each in enumerate((engine, other))]
        for number, run in enumerate(runs):
            await run.signal("paid", Payment(number))
        assert await asyncio.gather(*(in_time(run.result()) for run in runs)) == ["o-0: 0 EUR", "o-1: 1 EUR"]
        await reaches(runs[0], "succeeded")
