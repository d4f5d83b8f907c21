"""Where features meet: what each of them promises must hold in the company of the others."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

import outlive
from outlive import Retry
from tests.engine.inside import claimer_of, crash, sessions_of, trees_of
from tests.engine.support import Place, hold, in_time, note, parks, stage, until, waits

pytestmark = pytest.mark.any_store


@outlive.workflow
async def meeting_holds_once() -> str:
    return await hold("a")


async def test_step_that_returns_while_the_engine_stops_is_not_called_again(place: Place) -> None:
    """It has returned, and the worker has not looked at that yet when it releases everything."""
    async with place.engine() as engine:
        await engine.start(meeting_holds_once, id="run-1")
        await stage.gate("a").reached()
        station = sessions_of(engine)
        claimer = claimer_of(engine)
        assert claimer is not None
        stop_claiming = claimer.stop

        async def stop() -> None:
            await stop_claiming()
            stage.gate("a").open()
            while station.steps_running:  # noqa: ASYNC110 (turn by turn)
                await asyncio.sleep(0)

        claimer.stop = stop  # type: ignore[method-assign]
    async with place.engine() as engine:
        assert "a" == await in_time(engine.get("run-1").result())
    assert ["a"] == stage.calls


@outlive.step(once=True, retry=Retry(attempts=1))
async def meeting_give_back(what: str) -> None:
    stage.call(f"give back {what}")
    if stage.values.get("refuse"):
        raise ValueError("refused")
    await stage.gate("giving").pass_through()


@outlive.step(undo=meeting_give_back)
async def meeting_take(what: str) -> str:
    stage.call(f"take {what}")
    return what


@outlive.workflow
async def meeting_takes_and_fails() -> None:
    async with outlive.saga():
        await meeting_take("x")
        raise ValueError("no")


async def test_once_undo_that_was_interrupted_can_be_tried_again(place: Place) -> None:
    """It parks the run, as an undo that failed does; and a resume calls it again."""
    engine = place.engine()
    await engine.__aenter__()
    run = await engine.start(meeting_takes_and_fails, id="run-1")
    await stage.gate("giving").reached()
    await crash(engine)
    async with place.engine() as engine:
        run = engine.get("run-1")
        reason = await in_time(parks(run))
        assert reason.startswith("undo failed: meeting_give_back")
        stage.gate("giving").open()
        await run.resume()
        with pytest.raises(outlive.errors.RunFailedError, match="no"):
            await in_time(run.result())
    assert ["take x", "give back x", "give back x"] == stage.calls


async def test_once_undo_that_failed_can_be_tried_again(place: Place) -> None:
    async with place.engine() as engine:
        stage.values["refuse"] = True
        run = await engine.start(meeting_takes_and_fails, id="run-1")
        await in_time(parks(run))
        stage.values["refuse"] = False
        stage.gate("giving").open()
        await run.resume()
        with pytest.raises(outlive.errors.RunFailedError, match="no"):
            await in_time(run.result())
    assert ["take x", "give back x", "give back x"] == stage.calls


@outlive.step
async def meeting_make_much(letter: str) -> str:
    return letter * 5_000


@outlive.workflow
async def meeting_keeps_little(letter: str) -> str:
    sizes = [len(await meeting_make_much(letter)) for _ in range(3)]
    await outlive.wait_for_signal("go", int)
    much = await outlive.wait_for_signal("much", str)
    await note(letter)
    return f"{much[:1]} {sum(sizes)}"


async def test_run_forgets_large_values_that_it_has_seen(place: Place) -> None:
    """Not so a large signal that it has not looked at; and none knows those of others that were claimed with it."""

    def held(engine: outlive.Engine) -> list[int]:
        return sorted(len(live.payloads.blobs) for live in trees_of(engine))

    limits = outlive.limits.Limits(payload_inline_bytes_max=1_000)
    ids = ["run-a", "run-b"]
    async with place.engine(limits=limits) as engine:
        runs = [await engine.start(meeting_keeps_little, run_id[-1], id=run_id) for run_id in ids]
        for run in runs:
            await waits(run)

        async def holds(count: int) -> bool:
            return sum(held(engine)) == count

        await until(partial(holds, 0))
        for number, run in enumerate(runs, 1):
            await run.signal("much", run.id[-1] * 5_000)
            await until(partial(holds, number))
    async with place.engine(limits=limits) as engine:
        for run_id in ids:
            await engine.signal(run_id, "go", 1)
            assert f"{run_id[-1]} 15000" == await in_time(engine.get(run_id).result())
