"""Timers, polls, batches and stepped states."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import outlive
from outlive import Retry
from outlive.errors import RunFailedError, StepTimeoutError
from outlive.events import AttemptFailed, StateLeft, StepFailed, StepSucceeded, TimerFired
from outlive.machine import More, Pending
from outlive.testing import TestEngine
from tests.engine.inside import crash
from tests.engine.support import Place, events_of, in_time, stage, until, waits

pytestmark = pytest.mark.any_store


class S(enum.Enum):
    """One state and the end."""

    WORK = "work"
    DONE = "done"


@dataclass
class Data:
    """What the machines here carry."""

    wanted: int = 0
    seen: list[Any] = field(default_factory=list)


def machine(name: str) -> outlive.Machine[S, Data]:
    """A machine of one state."""
    return outlive.Machine(f"kinds.{name}", S, data=Data, start=S.WORK, exits=[S.DONE])


async def count_steps(run: outlive.types.RunHandle[Any]) -> int:
    """How many steps have succeeded."""
    return len(await events_of(run, StepSucceeded))


# -- Timers ------------------------------------------------------------------------------------------------------------

AT = datetime(2100, 1, 1, tzinfo=UTC)
pause = machine("pause")
pause.timer(S.WORK, 3600, then=S.DONE)
span = machine("span")
span.timer(S.WORK, timedelta(hours=1), then=S.DONE)
computed = machine("computed")
computed.timer(S.WORK, lambda data: data.wanted, then=S.DONE)
instant = machine("instant")
instant.timer(S.WORK, AT, then=S.DONE)


async def test_a_timer_goes_on_where_it_was_after_a_crash(place: Place) -> None:
    """A timer of Cano begins again; here an hour is an hour, whichever worker waits for it. [FE-W1]"""
    first = await place.engine().__aenter__()
    await waits(await first.start(pause, Data(), id="run-1"))
    place.clock.skip(seconds=3000)
    await crash(first)

    async with place.engine() as second:
        place.clock.skip(seconds=601)
        run = second.get("run-1")
        assert (await in_time(run.result())).state is S.DONE
        assert [1, 1] == [len(await events_of(run, TimerFired)), len(await events_of(run, StateLeft))]


@pytest.mark.parametrize("timer", [pause, span, computed])
async def test_a_timer_waits_as_long_as_it_says(place: Place, timer: outlive.Machine[S, Data]) -> None:
    """Seconds, a timedelta, or what a function of the data says."""
    async with TestEngine(place.url) as engine:
        begun = engine.now()
        await (await engine.start(timer, Data(3600))).result()
        assert 3600 <= (engine.now() - begun).total_seconds() < 3660


async def test_a_timer_waits_until_an_instant(place: Place) -> None:
    """An aware datetime."""
    async with TestEngine(place.url) as engine:
        await (await engine.start(instant, Data())).result()
        assert engine.now() >= AT


# -- Polls -------------------------------------------------------------------------------------------------------------

poll = machine("poll")


@poll.poll(S.WORK, retry=Retry(attempts=3, first=1))
async def look(data: Data) -> Pending | S:
    """Fails when the test says so."""
    stage.call("poll")
    if len(stage.calls) in stage.values.get("failing", ()):
        raise ConnectionError("no answer")
    data.seen.append(len(stage.calls))
    return S.DONE if len(data.seen) >= data.wanted else Pending(timedelta(minutes=10))


async def test_a_poll_asks_until_it_is_ready(place: Place) -> None:
    """Each poll is a step, each pause durable; data of a pending poll is kept. [FE-S10]"""
    async with TestEngine(place.url) as engine:
        begun = engine.now()
        run = await engine.start(poll, Data(3))

        assert (await run.result()).data.seen == [1, 2, 3]
        assert 1200 <= (engine.now() - begun).total_seconds() < 1260
        assert [3, 2] == [await count_steps(run), len(await events_of(run, TimerFired))]


async def test_errors_of_a_poll_count_only_in_a_row(place: Place) -> None:
    """Two in a row are borne, twice; a third would not be."""
    stage.values["failing"] = {1, 2, 4, 5}
    async with TestEngine(place.url) as engine:
        run = await engine.start(poll, Data(2))

        assert (await run.result()).data.seen == [3, 6]
        assert 4 == len(await events_of(run, AttemptFailed))


async def test_too_many_errors_in_a_row_fail_a_poll(place: Place) -> None:
    """Too many errors in a row fail a poll."""
    stage.values["failing"] = {2, 3, 4}
    async with TestEngine(place.url) as engine:
        with pytest.raises(RunFailedError, match="no answer"):
            await (await engine.start(poll, Data(2))).result()
    assert len(stage.calls) == 4


# -- Batches -----------------------------------------------------------------------------------------------------------

batch = machine("batch")


async def load(data: Data) -> list[int]:
    """The items."""
    stage.call("load")
    return list(range(data.wanted))


async def process(item: int) -> str:
    """One of them fails for good, one the first time, and one hangs."""
    stage.call(f"item {item}")
    if item == 2:
        raise ValueError("two")
    if item == 3 and stage.count("item 3") == 1:
        raise ConnectionError("not yet")
    if item == 4:
        await stage.gate("hang").pass_through()
    return f"done {item}"


async def finish(data: Data, results: list[str | Exception]) -> S:
    """Given data and results."""
    stage.call("finish")
    data.seen = [repr(result) for result in results]
    return S.DONE


batch.batch(
    S.WORK,
    load=load,
    process=process,
    finish=finish,
    concurrency=2,
    item_retry=Retry(attempts=2, first=0, on=(ConnectionError,)),
)
hasty = machine("hasty")
hasty.batch(S.WORK, load=load, process=process, finish=finish, concurrency=9, item_timeout=0.01)


async def test_an_item_that_fails_stands_in_its_slot(engine: outlive.Engine) -> None:
    """In the order of the items; each has its own retries."""
    run = await engine.start(batch, Data(4))

    assert (await in_time(run.result())).data.seen == ["'done 0'", "'done 1'", "ValueError('two')", "'done 3'"]
    assert [1, 1] == [len(await events_of(run, StepFailed)), len(await events_of(run, AttemptFailed))]


async def test_a_batch_of_nothing_is_finished_at_once(engine: outlive.Engine) -> None:
    """Load, then finish."""
    assert (await in_time((await engine.start(batch, Data(0))).result())).data.seen == []
    assert stage.calls == ["load", "finish"]


async def test_a_crash_runs_only_unfinished_items_again(place: Place) -> None:
    """After a crash a batch runs only its unfinished items again; what was loaded and done stays. [CA-X14]"""
    first = await place.engine().__aenter__()
    run = await first.start(batch, Data(5), id="run-1")
    await stage.gate("hang").reached()

    async def are_others_done() -> bool:
        return await count_steps(run) == 4

    await until(are_others_done)
    await crash(first)
    stage.gate("hang").open()

    async with place.engine() as second:
        assert "'done 4'" == (await in_time(second.get("run-1").result())).data.seen[4]
    assert [1, 1, 1, 1, 2, 2, 1] == [
        stage.count(each) for each in ("load", "item 0", "item 1", "item 2", "item 3", "item 4", "finish")
    ]


async def test_an_item_that_hangs_is_bounded_by_its_time(engine: outlive.Engine) -> None:
    """It fails, the others do not. [CA-X20]"""
    seen = (await in_time((await engine.start(hasty, Data(5))).result())).data.seen

    assert seen[0] == "'done 0'"
    assert seen[4].startswith(StepTimeoutError.__name__)


# -- Stepped -----------------------------------------------------------------------------------------------------------

stepped = machine("stepped")


@stepped.stepped(S.WORK, retry=Retry(attempts=2, first=0))
async def advance(data: Data, cursor: int | None) -> More[int] | S:
    """Up to what is wanted; at some cursors it fails, or holds."""
    stage.call(cursor)
    if cursor == stage.values.get("failing", "never") and stage.count(cursor) == 1:
        raise ConnectionError("not yet")
    if cursor == stage.values.get("broken", "never"):
        raise ConnectionError("never")
    if cursor == 3:
        await stage.gate("three").pass_through()
    here = cursor or 0
    if here == data.wanted:
        data.seen = [here]
        return S.DONE
    return More(here + 1)


async def test_each_cursor_is_journaled(engine: outlive.Engine) -> None:
    """The first is None; rows of cursors do not carry data that has not changed. [FE-S8]"""
    run = await engine.start(stepped, Data(2))

    assert (await in_time(run.result())).data.seen == [2]
    assert stage.calls == [None, 1, 2]
    rows = [bytes(event.result.v) for event in await events_of(run, StepSucceeded)]  # type: ignore[arg-type]
    assert rows[:2] == [b'{"cursor":1}', b'{"cursor":2}']
    assert rows[2] == b'{"to":"DONE","data":{"wanted":2,"seen":[2]}}'


async def test_a_crash_goes_on_at_the_last_cursor(place: Place) -> None:
    """Another process is given the highest cursor that is in the journal. [CA-X2]"""
    first = await place.engine().__aenter__()
    await first.start(stepped, Data(4), id="run-1")
    await stage.gate("three").reached()
    await crash(first)
    stage.gate("three").open()

    async with place.engine() as second:
        assert (await in_time(second.get("run-1").result())).data.seen == [4]
    assert stage.calls == [None, 1, 2, 3, 3, 4]


async def test_an_error_is_retried_at_the_same_cursor(engine: outlive.Engine) -> None:
    """Not from the beginning. [CA-X15]"""
    stage.values["failing"] = 2
    assert (await in_time((await engine.start(stepped, Data(2))).result())).data.seen == [2]
    assert stage.calls == [None, 1, 2, 2]


async def test_a_cursor_that_fails_for_good_fails_the_run(engine: outlive.Engine) -> None:
    """After its attempts at this cursor."""
    stage.values["broken"] = 1
    with pytest.raises(RunFailedError, match="never"):
        await in_time((await engine.start(stepped, Data(2))).result())
    assert stage.calls == [None, 1, 1]
