"""A journal that has become long: `why` and the log say what to do before it is too long."""

from __future__ import annotations

import asyncio
import enum
import logging
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

import outlive
from outlive._kernel.client import client
from outlive._kernel.client.shown import EVENTS_AT_ONCE
from outlive._kernel.values.event import event_of
from outlive.events import SignalReceived
from outlive.limits import Limits
from tests.engine.support import Place, events_of, in_time, note, parks, until, waits

pytestmark = pytest.mark.any_store

LONG = 20
LIMITS = Limits(history_events_advised_max=LONG)
ADVICE = "; its journal has more than 20 events, which every replay reads: let it go on with outlive.continue_as_new, "


@outlive.workflow
async def long_talk(turns: int) -> int:
    """A turn for each step, and then signals."""
    for number in range(turns):
        await note(str(number))
    while await outlive.wait_for_signal("go", str) != "end":
        pass
    return turns


@outlive.workflow
async def long_family(turns: int) -> int:
    """A child with many turns: they are in the journal of its root."""
    return await long_talk(turns)


@outlive.workflow
async def talk_in_generations(turns: int) -> int:
    """Ten turns in each journal."""
    for number in range(min(turns, 10)):
        await note(str(number))
    if turns > 10:
        outlive.continue_as_new(turns - 10)
    await outlive.wait_for_signal("go")
    return turns


class Round(enum.Enum):
    """What a wheel does."""

    TURN = "turn"
    REST = "rest"
    DONE = "done"


@dataclass
class Turns:
    """How often it turned."""

    count: int = 0


wheel = outlive.Machine(
    "long_journals.wheel", Round, data=Turns, start=Round.TURN, exits=[Round.DONE], snapshot_after=10
)


@wheel.state(Round.TURN)
async def turn(data: Turns) -> Round:
    """Turn."""
    data.count += 1
    return Round.TURN if data.count < 100 else Round.REST


@wheel.workflow(Round.REST)
async def rest(data: Turns) -> Round:
    """Wait for a person."""
    await outlive.wait_for_signal("go")
    return Round.DONE


def advice_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the log has advised."""
    return [record.getMessage() for record in caplog.records if "events, which every replay" in record.getMessage()]


async def has_heard(run: outlive.types.RunHandle[Any], signals: int) -> bool:
    """Whether a run has consumed so many signals."""
    return len(await events_of(run, SignalReceived)) >= signals


@pytest.mark.every_store
async def test_why_and_the_log_advise_a_fresh_journal_for_a_long_one(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """In every process, while the run goes on; the log once for each time that a worker takes the run into memory."""
    caplog.set_level(logging.WARNING, "outlive")
    async with place.engine(limits=LIMITS) as engine:
        run = await engine.start(long_talk, LONG * 2, id="long")
        short = await engine.start(long_talk, LONG // 2, id="short")
        await waits(run)
        await waits(short)
        assert (await run.why()).startswith(f"it waits for signal 'go'{ADVICE}")
        assert await short.why() == "it waits for signal 'go'"
        (line,) = advice_in(caplog)
        assert line.startswith("run long goes on, but its journal has more than 20 events")
    async with place.engine(worker=False, limits=LIMITS) as other:
        assert ADVICE in await other.get("long").why()
    async with place.engine(limits=LIMITS) as engine:
        run = engine.get("long")
        for count in (1, 2):
            await run.signal("go", "on")
            await until(partial(has_heard, run, count))
        assert len(advice_in(caplog)) == 2
        await run.signal("go", "end")
        await in_time(run.result())
        assert "journal has" not in await run.why()


async def test_a_tree_has_one_journal(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """Its root has the advice, however many events are of its children."""
    async with place.engine(limits=LIMITS) as engine:
        run = await engine.start(long_family, LONG * 2, id="p")
        await waits(run)
        assert ADVICE in await run.why()
        assert ADVICE not in await engine.get("p~1").why()
        assert len(advice_in(caplog)) == 1


@pytest.mark.parametrize("how", ["generations", "snapshots"])
async def test_a_run_that_begins_fresh_journals_needs_no_advice(
    place: Place, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    """However long it lives: by `continue_as_new`, or as a machine with snapshots."""
    async with place.engine(limits=LIMITS) as engine:
        run: outlive.types.RunHandle[Any]
        if how == "generations":
            run = await engine.start(talk_in_generations, 100, id="r")
        else:
            run = await engine.start(wheel, Turns(), id="r")

        async def rests() -> bool:
            return "signal 'go'" in await engine.get("r").why()

        await until(rests)
        assert await run.why() == "it waits for signal 'go'"
        assert advice_in(caplog) == []


async def test_runs_with_code_of_the_engine_have_no_advice(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """The journal of a batch grows with its chunks."""
    async with place.engine(limits=Limits(history_events_advised_max=2)) as engine:
        batch = await engine.start_batch(note, [str(number) for number in range(40)], id="b", concurrency=1)
        await in_time(batch.result())
        await asyncio.sleep(0)
        assert advice_in(caplog) == []


async def test_the_loop_turns_while_a_long_history_is_read(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A web handler that shows it does not keep all others waiting."""
    turn, seen = 0, list[int]()

    def count() -> None:
        nonlocal turn
        turn += 1
        asyncio.get_running_loop().call_soon(count) if turn < 100_000 else None

    def note_turn(*args: Any) -> Any:
        seen.append(turn)
        return event_of(*args)

    async with place.engine() as engine:
        run = await engine.start(long_talk, EVENTS_AT_ONCE * 3)
        await waits(run)
        monkeypatch.setattr(client, "event_of", note_turn)
        count()
        history = await run.history()
        turn = 100_000
    assert len(history) == len(seen) > EVENTS_AT_ONCE * 3
    assert max(Counter(seen).values()) <= EVENTS_AT_ONCE


async def test_a_journal_at_its_limit_parks_the_run_with_what_to_do(place: Place) -> None:
    """A run at the limit of its journal is parked with the advice to continue as new, even if that limit is below the
    length that brings a warning."""
    async with place.engine(limits=Limits(history_events_max=10)) as engine:
        run = await engine.start(long_talk, 20, id="r")
        reason = await parks(run)
        assert "let runs go on with outlive.continue_as_new before that" in reason
        assert (await run.why()).count("continue_as_new") == 1
