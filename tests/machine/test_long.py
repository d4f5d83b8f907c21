"""Long machines: thousands of transitions are replayed with a few reads and no handler; self-loops go on for ever."""

from __future__ import annotations

import enum
from typing import Any

import pytest

import outlive
from outlive._kernel.journal.event import AnyEvent
from outlive.events import StepSucceeded
from outlive.testing import TestEngine
from tests.engine.faults import FaultyStore, faulty
from tests.engine.inside import journal_of
from tests.engine.support import Place, events_of, in_time, stage, until, waits
from tests.machine.journals import put_run

TRANSITIONS = 10_000


class S(enum.Enum):
    """A loop, a question, an end."""

    COUNT = "count"
    ASK = "ask"
    DONE = "done"


counter = outlive.Machine("long.counter", S, data=int, start=S.COUNT, exits=[S.DONE], snapshot_after=None)


@counter.state(S.COUNT)
async def count(data: int) -> tuple[S, int]:
    """To itself, until it is enough."""
    stage.values["counted"] = stage.values.get("counted", 0) + 1
    return (S.COUNT if data + 1 < TRANSITIONS else S.ASK), data + 1


@counter.workflow(S.ASK)
async def ask(data: int) -> S:
    """Wait, so that another process has to go on."""
    await outlive.wait_for_signal("go")
    return S.DONE


async def history_of_counter() -> list[AnyEvent]:
    """What a machine has written that waits in ASK; in memory that takes a moment."""
    async with outlive.Engine("memory:") as engine:
        run = await engine.start(counter, 0)
        await waits(run)
        return await journal_of(run)


@pytest.mark.parametrize("place", ["memory", pytest.param("sqlite", marks=pytest.mark.slow)], indirect=True)
async def test_ten_thousand_transitions_are_replayed_with_a_few_reads(place: Place) -> None:
    """No handler is called for what is in the journal, and the journal is read in pages of a thousand. [CA-U17]"""
    history = await history_of_counter()
    assert TRANSITIONS == stage.values.pop("counted") == sum(isinstance(event, StepSucceeded) for event in history)
    await put_run(place, counter, 0, history)
    async with place.engine(worker=False) as client:
        await client.signal("run-1", "go")
    stores: list[FaultyStore] = []

    async with place.engine(wrap=faulty(stores)) as engine:
        result = await in_time(engine.get("run-1").result())

    assert (result.state, result.data) == (S.DONE, TRANSITIONS)
    assert "counted" not in stage.values
    assert (0, 11) == (stores[0].calls["read_journals"], stores[0].calls["read_journal"])
    assert stores[0].calls["get_blobs"] <= 1


# -- Loops that do not end ---------------------------------------------------------------------------------------------

endless = outlive.Machine("long.endless", S, data=int, start=S.COUNT, exits=[S.DONE])


@endless.state(S.COUNT)
async def count_on(data: int) -> tuple[S, int]:
    """To itself, as often as it may."""
    stage.values["counted"] = data
    return S.COUNT, data + 1


@endless.state(S.ASK)
async def stop(data: int) -> S:
    """Never reached."""
    return S.DONE


async def test_an_endless_loop_goes_on_until_it_is_cancelled(engine: outlive.Engine) -> None:
    """It lets others run meanwhile, and its calls differ by their number."""
    run = await engine.start(endless, 0)

    async def is_far() -> bool:
        return bool(stage.values.get("counted", 0) >= 50)

    await until(is_far)
    await run.cancel()
    await until(lambda: _is_cancelled(run))
    calls = [event.call for event in await events_of(run, StepSucceeded)]
    assert calls[:3] == ["long.endless.COUNT", "long.endless.COUNT#2", "long.endless.COUNT#3"]
    assert len(calls) == len(set(calls)) >= 50


async def _is_cancelled(run: outlive.types.RunHandle[Any]) -> bool:
    return await run.status() == "cancelled"


async def test_an_endless_loop_does_not_outgrow_its_limit() -> None:
    """A journal that has become too long parks the run with a reason, and does not fail it."""
    limits = outlive.limits.Limits(history_events_max=100)
    async with TestEngine(limits=limits) as engine:
        run = await engine.start(endless, 0)
        await until(lambda: _is_parked(run))
        assert "the limit history_events_max is 100" in (await run.info()).reason


async def _is_parked(run: outlive.types.RunHandle[Any]) -> bool:
    return await run.status() == "parked"
