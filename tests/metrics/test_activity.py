"""What became of the runs of the last hour: the figures of the overview."""

from __future__ import annotations

import asyncio

import pytest

import outlive
from outlive._features.bulk.verbs import BulkOperations
from outlive.errors import RunFailedError
from outlive.metrics import activity
from outlive.metrics.activity import activity_of
from outlive.metrics.figures import figures_of
from outlive.testing import TestEngine


@outlive.workflow
async def activity_nap(*, seconds: int, fails: bool = False) -> None:
    """Takes a while."""
    await asyncio.sleep(seconds)
    if fails:
        raise ValueError


@outlive.step
async def activity_item(number: int) -> int:
    """An item of a batch."""
    return number


ONE_BY_ONE = outlive.Queue("activity-one-by-one", concurrency=1)


async def ended_runs(engine: TestEngine) -> None:
    """Three runs that have ended, of 1, 2 and 3 seconds, and one that has not; a minute apart."""
    for number in (1, 2, 3):
        run = await engine.start(activity_nap.bind(seconds=number, fails=number == 3))
        await engine.skip(seconds=number)
        assert (await run.info()).has_ended
        await engine.skip(seconds=60 - number)
    await engine.start(activity_nap.bind(seconds=7200))


@pytest.mark.parametrize("page", [1000, 1], ids=["few", "many"])
async def test_runs_count_in_the_minute_of_their_creation(page: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By how they are now; the same whether they are listed or counted minute by minute."""
    monkeypatch.setattr(activity, "PAGE_SIZE_MAX", page)
    async with TestEngine() as engine:
        await ended_runs(engine)
        found = await activity_of(engine)

    last = [(it.succeeded, it.failed, it.cancelled, it.open) for it in found.minutes[-4:]]
    assert [(1, 0, 0, 0), (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 0, 1)] == last
    assert (60, 60_000_000) == (len(found.minutes), found.minutes[1].starts_at - found.minutes[0].starts_at)
    assert (3, 2.0, 3.0, 1) == (found.timed, found.p50_seconds, found.p95_seconds, found.failed_today)


async def test_lengths_of_runs_leave_out_their_time_in_line() -> None:
    """A run that was put off for an hour, or had to wait for its turn, took as long as its code."""
    async with TestEngine() as engine:
        late = await engine.start(activity_nap.bind(seconds=2), delay=1800)
        runs = [await engine.start(activity_nap.bind(seconds=2), queue=ONE_BY_ONE) for _ in range(3)]
        await engine.skip(seconds=1810)
        assert all([(await run.info()).has_ended for run in (late, *runs)])
        found = await activity_of(engine)

    assert (4, 2.0, 2.0) == (found.timed, found.p50_seconds, found.p95_seconds)


async def test_activity_is_read_once_for_all_callers_within_seconds() -> None:
    """The activity of an engine is read once for all callers within a few seconds."""
    async with TestEngine() as engine:
        first = await activity_of(engine)
        await ended_runs(engine)

        assert first is await activity_of(engine)
        assert first is not await activity_of(engine, age_seconds_max=-1)


@pytest.mark.parametrize("page", [1000, 1], ids=["few", "many"])
async def test_runs_that_the_engine_makes_for_itself_are_not_in_charts(
    page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An operation on many runs, its requests and the chunks of a batch count neither in the minutes nor in the
    lengths, and one that fails is not among the failures of today."""

    async def broken(*_: object) -> None:
        raise ValueError

    monkeypatch.setattr(activity, "PAGE_SIZE_MAX", page)
    async with TestEngine() as engine:
        await ended_runs(engine)
        await (await engine.bulk.start("retry", workflow="activity_nap")).result()
        await (await engine.start_batch(activity_item, [1, 2])).result()
        monkeypatch.setattr(BulkOperations, "_page", broken)
        with pytest.raises(RunFailedError):
            await (await engine.bulk.start("cancel", workflow="activity_nap")).result()
        shown = await engine.list()
        ended = [run for run in shown if run.has_ended]
        found = await activity_of(engine)

    assert sum(it.succeeded + it.failed + it.cancelled + it.open for it in found.minutes) == len(shown)
    assert (found.timed, found.failed_today) == (len(ended), 1)


async def test_figures_count_the_runs_of_users_only() -> None:
    """A run that the engine makes for itself and that waits for a worker is not among the open runs, and does not make
    them look late."""
    async with TestEngine(worker=False) as engine:
        await engine.bulk.start("cancel", workflow="activity_nap")
        await engine.skip(seconds=60)
        await engine.start(activity_nap.bind(seconds=1))
        await engine.skip(seconds=5)
        found = await figures_of(engine, age_seconds_max=-1)

    assert found is not None
    assert (found.runs["pending"], found.pending_seconds) == (1, 5.0)
