"""Runs that talk to runs: signals and cancels from a workflow, durable and once, and the engine of a step."""

from __future__ import annotations

import asyncio
import contextvars
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

import outlive
from outlive._define.in_run import CURRENT_STEP
from outlive._journal.event import SignalReceived, StepSucceeded
from outlive._runtime.steps.process_child import JobStep
from outlive.errors import ConfigurationError, NotInRunError, UnserialisableError
from outlive.testing import TestEngine, crash_everywhere, replay
from tests.engine.faults import FaultyStore, faulty, unavailable, unknown
from tests.engine.support import Place, events_of, in_time, stage, until, waits


@dataclass(frozen=True)
class Paid:
    cents: int


@outlive.workflow(signals={"paid": Paid})
async def talked_to(count: int) -> list[int]:
    """Waits for payments."""
    return [(await outlive.wait_for_signal("paid", Paid)).cents for _ in range(count)]


@outlive.workflow
async def talker(run_id: str, cents: list[int], key: str | None = None) -> str:
    """Sends payments, and says what it hears."""
    try:
        for amount in cents:
            await outlive.signal(run_id, "paid", Paid(amount), key=key)
    except outlive.OutliveError as error:
        return f"{type(error).__name__}: {error}"
    return "sent"


@outlive.workflow
async def stopper(run_id: str) -> str:
    """Cancels another run, and says what it hears."""
    try:
        await outlive.cancel(run_id, reason="out of stock")
    except outlive.OutliveError as error:
        return f"{type(error).__name__}: {error}"
    return "asked"


async def test_a_workflow_signals_another_run(engine: outlive.Engine) -> None:
    """Typed, in order, and in the journal of both."""
    other = await engine.start(talked_to, 3, id="talked-1")
    run = await engine.start(talker, "talked-1", [1, 2, 3])

    assert "sent" == await in_time(run.result())
    assert [1, 2, 3] == await in_time(other.result())
    assert ["outlive.signal", "outlive.signal#2", "outlive.signal#3"] == [
        event.call for event in await events_of(run, StepSucceeded)
    ]


async def test_a_signal_that_may_have_arrived_is_sent_again_and_comes_once(place: Place) -> None:
    """The store is away, or does not answer: the message has the key of its call."""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores)) as engine:
        other = await engine.start(talked_to, 2, id="talked-1")
        await waits(other)
        stores[0].before["deliver"].append(unavailable())
        stores[0].after["deliver"] += [unknown(), unavailable()]
        run = await engine.start(talker, "talked-1", [5, 6])
        assert "sent" == await in_time(run.result())
        assert [5, 6] == await in_time(other.result())
        assert 2 == len(await events_of(other, SignalReceived))


async def test_a_signal_with_a_key_comes_once_from_whichever_run(engine: outlive.Engine) -> None:
    """The same key, for that run and name, is the same signal."""
    other = await engine.start(talked_to, 1, id="talked-1")
    runs = [await engine.start(talker, "talked-1", [7, 8], "evt-1") for _ in range(2)]

    assert ["sent", "sent"] == [await in_time(run.result()) for run in runs]
    assert [7] == await in_time(other.result())


async def test_what_became_of_a_signal_is_the_same_in_every_replay(tmp_path: Path) -> None:
    """An unknown run, an ended run, a payload of another type: each is an error of its own, and a fact."""
    async with TestEngine() as engine:
        await (await engine.start(talked_to, 0, id="talked-0")).result()
        unknown_run = await engine.start(talker, "missing", [1])
        ended = await engine.start(talker, "talked-0", [1])
        assert "RunNotFoundError: no run has id 'missing'" in await unknown_run.result()
        assert "RunFinishedError: run 'talked-0' has ended (succeeded)" in await ended.result()
        for number, run in enumerate((unknown_run, ended)):
            await run.export(tmp_path / f"{number}.jsonl")
    assert 2 == len(replay(tmp_path / "*.jsonl", workflows=[talker]))


@outlive.workflow
async def mumbler(kind: str) -> str:
    """Sends what cannot be sent."""
    payload: Any = {"wrong type": "five cents", "no stored form": object()}[kind]
    try:
        await outlive.signal("talked-1", "paid", payload)
    except (outlive.OutliveError, UnserialisableError) as error:
        return f"{type(error).__name__}: {error}"
    return "sent"


@pytest.mark.parametrize(
    ("kind", "heard"),
    [("wrong type", "SignalTypeError: signal 'paid' of workflow talked_to"), ("no stored form", "UnserialisableError")],
)
async def test_a_payload_that_cannot_be_sent_is_refused_in_the_workflow(kind: str, heard: str) -> None:
    """Nothing reaches the other run."""
    async with TestEngine() as engine:
        other = await engine.start(talked_to, 1, id="talked-1")
        assert heard in await (await engine.start(mumbler, kind)).result()
        assert [] == await events_of(other, SignalReceived)


async def test_a_workflow_cancels_another_run(engine: outlive.Engine) -> None:
    """Once it is asked, the other run stops as if a client had asked."""
    other = await engine.start(talked_to, 1, id="talked-1")
    await waits(other)

    assert "asked" == await in_time((await engine.start(stopper, "talked-1")).result())
    with pytest.raises(outlive.RunCancelled, match="out of stock"):
        await in_time(other.result())
    assert "asked" == await in_time((await engine.start(stopper, "talked-1")).result())


@pytest.mark.parametrize(("run_id", "heard"), [("missing", "RunNotFoundError"), ("talked-0", "RunFinishedError")])
async def test_cancelling_what_cannot_be_cancelled_is_an_error_in_the_workflow(run_id: str, heard: str) -> None:
    """The run is unknown, or has ended otherwise."""
    async with TestEngine() as engine:
        await (await engine.start(talked_to, 0, id="talked-0")).result()
        assert heard in await (await engine.start(stopper, run_id)).result()


@outlive.workflow
async def conversation() -> list[int]:
    """Starts a run, tells it something, and stops another one."""
    other = await outlive.start(talked_to, 2, detached=True, id="talked-1")
    third = await outlive.start(talked_to, 1, detached=True, id="talked-2")
    await asyncio.gather(outlive.signal(other.id, "paid", Paid(1)), outlive.signal(other.id, "paid", Paid(2)))
    await outlive.cancel(third.id)
    return sorted(await other.result())


async def test_talking_survives_a_crash_at_every_commit() -> None:
    """No signal is lost, and none comes twice."""
    await crash_everywhere(conversation)


async def test_outside_a_workflow_talking_says_where_it_belongs() -> None:
    """In a step there is the engine."""
    with pytest.raises(NotInRunError, match=r"outlive\.signal\(\) was called outside a workflow"):
        await outlive.signal("run-1", "paid")
    with pytest.raises(NotInRunError, match=r"outlive\.current_engine\(\) was called outside a step"):
        outlive.current_engine()
    async with TestEngine() as engine:
        assert "outlive.current_engine()" in await (await engine.start(asks_in_a_step)).result()


@outlive.step
async def talk_in_a_step() -> str:
    """Uses the verb of a workflow."""
    try:
        await outlive.cancel("run-1")
    except NotInRunError as error:
        return str(error)
    return "sent"


@outlive.workflow
async def asks_in_a_step() -> str:
    """Calls it."""
    return await talk_in_a_step()


@outlive.step
async def look_around() -> int:
    """Counts the runs of its store."""
    return len(await outlive.current_engine().list())


@outlive.step
def look_around_on_a_thread() -> str:
    """The same without `await`."""
    return str(outlive.current_engine().sync.get(outlive.current_step().run_id).status())


@outlive.workflow
async def lookouts() -> list[Any]:
    """Each kind of step."""
    return [await look_around(), await look_around_on_a_thread()]


async def test_a_step_has_the_engine_that_runs_it(engine: outlive.Engine) -> None:
    """A sync step uses its `sync`."""
    assert [1, "RunStatus.RUNNING"] == await in_time((await engine.start(lookouts)).result())


def test_a_step_in_a_process_has_no_engine() -> None:
    """And is answered with what to do instead."""
    context = contextvars.Context()
    context.run(CURRENT_STEP.set, JobStep(cast(Any, None), cast(Any, None)))
    with pytest.raises(ConfigurationError, match="process=True"):
        context.run(outlive.current_engine)


@outlive.step
async def start_late() -> str:
    """Uses the engine while that stops."""
    await stage.gate("late").pass_through()
    return str(await outlive.current_engine().get("lateness-1").status())


@outlive.workflow
async def lateness() -> str:
    """One step."""
    return await start_late()


async def test_a_step_that_finishes_while_the_engine_stops_has_its_verbs(place: Place) -> None:
    """Its grace is for finishing, and it cannot finish without them."""
    engine = await place.engine(grace_seconds=20).__aenter__()
    await engine.start(lateness, id="lateness-1")
    await stage.gate("late").reached()
    stopping = asyncio.create_task(engine.__aexit__(None, None, None))

    async def is_stopping() -> bool:
        return engine.loop is None

    await until(is_stopping)
    stage.gate("late").open()
    await in_time(stopping)
    async with place.engine() as engine:
        assert "RunStatus.RUNNING" == await in_time(engine.get("lateness-1").result())
