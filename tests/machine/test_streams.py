"""Streams: windows by count and time, cursors, bad items, crashes and cancels."""

from __future__ import annotations

import enum
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

import pytest

import outlive
from outlive import Retry
from outlive.errors import DefinitionError, RunCancelledError, RunFailedError
from outlive.events import AttemptFailed, CancelRequested, StepSucceeded
from outlive.testing import crash_everywhere
from tests.engine.inside import crash, journal_of
from tests.engine.support import DAY, Place, events_of, in_time, reaches, stage, until, waits

pytestmark = pytest.mark.any_store


class S(enum.Enum):
    """A source, and two ends."""

    READ = "read"
    DONE = "done"
    ENOUGH = "enough"


@dataclass
class Data:
    """How many there are, which are bad, and how many were flushed."""

    items: int = 0
    bad: list[int] = field(default_factory=list)
    flushed: int = 0
    enough: int = 1_000


async def source(data: Data, cursor: int | None) -> AsyncGenerator[tuple[int, tuple[int, bool]], None]:
    """Numbers from 1 on, behind the cursor; it stops for a while where the test says so."""
    stage.call(f"open {cursor}")
    for number in range((cursor or 0) + 1, data.items + 1):
        if number == stage.values.get("idle at"):
            try:
                await stage.gate("idle").pass_through()
            finally:
                stage.call("closed")
        if number == stage.values.get("broken at"):
            raise ConnectionError("the source is away")
        yield number, (number, number in data.bad)


async def odd_source(data: Data, cursor: int | None) -> AsyncGenerator[Any, None]:
    """Something that is not an item, and another item behind it."""
    yield 1, (1, False)
    yield stage.values["odd"]
    yield 2, (2, False)


async def process(item: tuple[int, bool]) -> int:
    """Bad ones raise."""
    number, is_bad = item
    if number == stage.values.get("hold at"):
        await stage.gate("item").pass_through()
    if is_bad:
        raise ValueError(f"{number} is bad")
    return number


async def flush(data: Data, outputs: list[int]) -> S | None:
    """Write the window down."""
    stage.call(tuple(outputs))
    data.flushed += len(outputs)
    return S.ENOUGH if data.flushed >= data.enough else None


def stream(name: str, **options: Any) -> outlive.Machine[S, Data]:
    """A machine that is one stream."""
    made = outlive.Machine(f"streams.{name}", S, data=Data, start=S.READ, exits=[S.DONE, S.ENOUGH])
    made.stream(S.READ, source=source, process=process, flush=flush, then=S.DONE, **options)
    return made


single = stream("single")
threes = stream("threes", items=3)
timed = stream("timed", items=100, seconds=0.01)
careful = stream("careful", items=2, tolerate=2)
careless = stream("careless", items=2, tolerate="all")
again = stream("again", items=3, retry=Retry(attempts=2, first=0))
patient = stream("patient", items=3, retry=Retry(attempts=3, first=DAY, cap=DAY))
hasty = stream("hasty", items=3, timeout=0.05)


strange = outlive.Machine("streams.strange", S, data=Data, start=S.READ, exits=[S.DONE, S.ENOUGH])
strange.stream(S.READ, source=odd_source, process=process, flush=flush, then=S.DONE, items=3)


def flushed() -> list[Any]:
    """The windows."""
    return [call for call in stage.calls if isinstance(call, tuple)]


async def test_windows_are_as_large_as_they_may_be(engine: outlive.Engine) -> None:
    """The last one is what is left. Each is one row, with its cursor; data that has not changed is not in it."""
    run = await engine.start(threes, Data(8))

    result = await in_time(run.result())

    assert (result.state, result.data.flushed) == (S.DONE, 8)
    assert flushed() == [(1, 2, 3), (4, 5, 6), (7, 8)]
    rows = [bytes(event.result.v) for event in await events_of(run, StepSucceeded)]  # type: ignore[arg-type]
    assert b'"cursor":{"at":6}' in rows[1]
    assert b'{"to":"DONE","data":{"items":8,"bad":[],"flushed":8,"enough":1000}}' == rows[2]


async def test_a_window_is_one_item_unless_it_is_said(engine: outlive.Engine) -> None:
    """A window holds one item by default, and an empty source is over at once."""
    assert (await in_time((await engine.start(single, Data(2))).result())).data.flushed == 2
    assert (await in_time((await engine.start(single, Data(0))).result())).state is S.DONE
    assert flushed() == [(1,), (2,)]


async def test_a_flush_can_stop_the_stream(engine: outlive.Engine) -> None:
    """By saying where to go."""
    result = await in_time((await engine.start(threes, Data(100, enough=5))).result())

    assert (result.state, result.data.flushed) == (S.ENOUGH, 6)


async def test_a_window_closes_when_its_time_is_over(engine: outlive.Engine) -> None:
    """However few items came; it begins with the first item, so an idle source makes no windows."""
    stage.values["idle at"] = 3
    run = await engine.start(timed, Data(4))
    await stage.gate("idle").reached()
    await stage.gate("idle").reached()
    assert flushed() == [(1, 2)]
    stage.gate("idle").open()

    assert (await in_time(run.result())).data.flushed == 4
    assert flushed() == [(1, 2), (3, 4)]


async def test_bad_items_in_a_row_are_borne_up_to_a_number(engine: outlive.Engine) -> None:
    """They are dropped; a good one resets the count, also across windows. [CA-X19]"""
    result = await in_time((await engine.start(careful, Data(8, bad=[2, 3, 5, 6]))).result())

    assert result.data.flushed == 4
    assert flushed() == [(1,), (4,), (7, 8)]


async def test_too_many_bad_items_in_a_row_fail_the_run(engine: outlive.Engine) -> None:
    """Counted across windows: the third in a row, which is the first of its window. [CA-X19]"""
    with pytest.raises(RunFailedError, match="5 is bad"):
        await in_time((await engine.start(careful, Data(8, bad=[3, 4, 5]))).result())
    assert flushed() == [(1, 2)]


async def test_any_number_of_bad_items_can_be_borne(engine: outlive.Engine) -> None:
    """If that is said."""
    assert (await in_time((await engine.start(careless, Data(9, bad=list(range(2, 9))))).result())).data.flushed == 2


async def test_a_window_that_fails_is_read_again(engine: outlive.Engine) -> None:
    """From its beginning, as often as its retry says."""
    with pytest.raises(RunFailedError, match="5 is bad"):
        await in_time((await engine.start(again, Data(6, bad=[5]))).result())
    assert [call for call in stage.calls if call not in flushed()] == ["open None", "open 3", "open 3"]


async def test_a_crash_loses_only_the_window_that_was_not_journaled(place: Place) -> None:
    """The others are not flushed again. [CA-X17 FE-S9]"""
    stage.values["hold at"] = 5
    first = await place.engine().__aenter__()
    await first.start(threes, Data(7), id="run-1")
    await stage.gate("item").reached()
    await crash(first)
    stage.gate("item").open()

    async with place.engine() as second:
        assert (await in_time(second.get("run-1").result())).data.flushed == 7
    assert flushed() == [(1, 2, 3), (4, 5, 6), (7,)]


async def test_a_cancel_flushes_what_was_read(place: Place) -> None:
    """The cursor of the partial window is in the journal before the run ends. [CA-X18]"""
    stage.values["idle at"] = 6
    async with place.engine() as engine:
        run = await engine.start(threes, Data(9), id="run-1")
        await stage.gate("idle").reached()
        await run.cancel()

        with pytest.raises(RunCancelledError):
            await in_time(run.result())
        rows = await events_of(run, StepSucceeded)
        assert b'"cursor":{"at":5}' in bytes(rows[-1].result.v)  # type: ignore[arg-type]
    assert flushed() == [(1, 2, 3), (4, 5)]


async def test_a_cancel_reaches_the_process_that_takes_over(place: Place) -> None:
    """The worker dies with the cancel in the journal: the next one reads nothing more. [CA-X18]"""
    stage.values["hold at"] = 4
    first = await place.engine().__aenter__()
    run = await first.start(threes, Data(9), id="run-1")
    await stage.gate("item").reached()
    await run.cancel()

    async def is_cancelled() -> bool:
        return any(type(event).__name__ == "CancelRequested" for event in await journal_of(run))

    await until(is_cancelled)
    await crash(first)
    stage.gate("item").open()

    async with place.engine() as second:
        await reaches(second.get("run-1"), "cancelled")
    assert flushed() == [(1, 2, 3)]


async def test_a_cancel_does_not_wait_for_the_next_attempt_of_a_window(place: Place) -> None:
    """It has read nothing since the last one failed. [CA-C13]"""
    stage.values["broken at"] = 2
    async with place.engine() as engine:
        run = await engine.start(patient, Data(9), id="run-1")
        await waits(run)
        await run.cancel()

        await reaches(run, "cancelled")
    assert (flushed(), stage.count("open None")) == ([], 1)


async def test_a_cancelled_window_that_fails_is_not_tried_again(place: Place) -> None:
    """A window that fails after a cancel is not tried again, and the source is not opened again. [CA-C13]"""
    stage.values |= {"idle at": 2, "hold at": 1}
    async with place.engine() as engine:
        run = await engine.start(patient, Data(9, bad=[1]), id="run-1")
        await stage.gate("item").reached()
        await run.cancel()

        async def is_cancelled() -> bool:
            return bool(await events_of(run, CancelRequested))

        await until(is_cancelled)
        stage.gate("item").open()
        await reaches(run, "cancelled")
        assert len(await events_of(run, AttemptFailed)) == 1
    assert (flushed(), stage.count("open None")) == ([], 1)


async def test_a_window_whose_time_is_over_closes_its_source(engine: outlive.Engine) -> None:
    """A window that exceeds its timeout closes its source and fails the run. [CA-X20]"""
    stage.values["idle at"] = 2
    run = await engine.start(hasty, Data(3))

    with pytest.raises(RunFailedError, match="did not end within its timeout"):
        await in_time(run.result())
    assert stage.count("closed") == 1


@pytest.mark.parametrize("odd", [None, 7, (1, 2, 3)])
async def test_a_source_that_gives_no_item_fails_and_is_not_over(engine: outlive.Engine, odd: Any) -> None:
    """A source that gives something other than a cursor and an item fails, because the items behind it would be
    lost."""
    stage.values["odd"] = odd
    run = await engine.start(strange, Data(2))

    message = f"state READ of machine streams.strange returned {odd!r} from its source; return (cursor, item)"
    with pytest.raises(RunFailedError, match=re.escape(message)):
        await in_time(run.result())


async def test_a_stream_survives_a_crash_at_every_commit(crash_place: dict[str, Any]) -> None:
    """No window that is in the journal is flushed again. [CA-X14]"""
    report = await crash_everywhere(threes, Data(5), **crash_place)

    assert (report.result.data.flushed, report.points >= min(4, crash_place.get("max_points", 4))) == (5, True)


async def test_a_stream_can_be_tried_without_an_engine() -> None:
    """Like every machine."""
    assert (await threes(Data(4))).data.flushed == 4


def test_a_stream_that_cannot_work_is_refused() -> None:
    """Where it is defined, or when it is checked."""

    def plain(item: Any) -> Any:
        return item

    with pytest.raises(DefinitionError, match="plain must be async: write `async def plain`"):
        outlive.Machine("streams.sync", S, data=Data, start=S.READ, exits=[S.DONE]).stream(
            S.READ, source=source, process=plain, flush=flush, then=S.DONE
        )
    with pytest.raises(DefinitionError, match="must be an async generator"):
        outlive.Machine("streams.source", S, data=Data, start=S.READ, exits=[S.DONE]).stream(
            S.READ, source=plain, process=process, flush=flush, then=S.DONE
        )
    with pytest.raises(DefinitionError, match=r"state READ of .*: items=0 "):
        stream("empty", items=0)
    with pytest.raises(DefinitionError, match=r"state READ of .*: seconds=0 "):
        stream("empty", seconds=0)
