"""Limits: everything has one, with a name, and what goes beyond it gets an error and is not lost."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import outlive
from outlive._kernel.model import RunStatus
from outlive.errors import ConfigurationError, PayloadTooLargeError
from outlive.events import StepSucceeded
from outlive.limits import Limits
from tests.engine.inside import crash, journal_of
from tests.engine.support import DAY, Place, events_of, hold, in_time, note, parks, stage, until, waits

pytestmark = pytest.mark.any_store

PAYLOAD_MAX = 1_000
LIMITS = Limits(payload_bytes_max=PAYLOAD_MAX, payload_inline_bytes_max=PAYLOAD_MAX)


def text_of(size: int) -> str:
    """A text whose JSON has this many bytes."""
    return "x" * (size - 2)


@outlive.step
async def make_text(size: int) -> str:
    return text_of(size)


@outlive.workflow
async def limited_argument(text: str) -> int:
    return len(text)


@outlive.workflow
async def limited_step_result(size: int) -> str:
    try:
        return f"{len(await make_text(size))}"
    except (PayloadTooLargeError, outlive.errors.StepFailedError) as error:
        return str(error)


@outlive.workflow
async def limited_result(size: int) -> str:
    return text_of(size)


@outlive.workflow
async def limited_child_argument(size: int) -> int:
    return await limited_argument(text_of(size))


@outlive.workflow
async def limited_detached_argument(size: int) -> str:
    return (await outlive.start(limited_argument, text_of(size), detached=True)).id


@outlive.workflow
async def limited_signal() -> str:
    return await outlive.wait_for_signal("go", str)


@outlive.workflow
async def limited_steps(count: int) -> int:
    return len([await note(f"{number}") for number in range(count)])


@outlive.workflow
async def limited_sleeper(name: str) -> str:
    await note(f"{name} before")
    await asyncio.sleep(DAY)
    return await note(f"{name} after")


@outlive.workflow
async def limited_hold(name: str) -> str:
    return await hold(name)


# -- Payloads ----------------------------------------------------------------------------------------------------------

SIZES = [(PAYLOAD_MAX - 1, True), (PAYLOAD_MAX, True), (PAYLOAD_MAX + 1, False)]


@pytest.mark.parametrize(("size", "is_good"), SIZES)
async def test_arguments_have_a_limit(place: Place, size: int, *, is_good: bool) -> None:
    """One byte too many is refused at the start, by name and number; nothing is stored."""
    text = text_of(size - 2)  # The brackets around the arguments count too.
    async with place.engine(limits=LIMITS) as engine:
        if is_good:
            assert len(text) == await in_time((await engine.start(limited_argument, text)).result())
            return
        with pytest.raises(PayloadTooLargeError, match=r"limited_argument has 1,001 bytes.*payload_bytes_max"):
            await engine.start(limited_argument, text)
        assert [] == await engine.list()


@pytest.mark.parametrize(("size", "is_good"), SIZES)
async def test_results_of_steps_have_a_limit(place: Place, size: int, *, is_good: bool) -> None:
    """A step that returns too much has failed, without another attempt."""
    async with place.engine(limits=LIMITS) as engine:
        answer = await in_time((await engine.start(limited_step_result, size)).result())

    assert (f"{size - 2}" if is_good else "make_text has 1,001 bytes") in answer


@pytest.mark.parametrize(("size", "is_good"), SIZES)
async def test_results_of_runs_have_a_limit(place: Place, size: int, *, is_good: bool) -> None:
    """A run that returns too much is parked, and goes on when the limit is raised."""
    async with place.engine(limits=LIMITS) as engine:
        run = await engine.start(limited_result, size, id="run-1")
        if is_good:
            assert text_of(size) == await in_time(run.result())
            return
        assert "has 1,001 bytes" in await parks(run)
    async with place.engine() as engine:
        await engine.resume("run-1")
        assert text_of(size) == await in_time(engine.get("run-1").result())


@pytest.mark.parametrize("workflow", [limited_child_argument, limited_detached_argument])
async def test_arguments_of_children_have_a_limit(place: Place, workflow: Any) -> None:
    """A child that cannot be started parks its parent alone, and others go on."""
    async with place.engine(limits=LIMITS) as engine:
        run = await engine.start(workflow, PAYLOAD_MAX + 1)
        other = await engine.start(limited_steps, 3)

        assert "the arguments of limited_argument has" in await parks(run)
        assert 3 == await in_time(other.result())


@pytest.mark.parametrize(("size", "is_good"), SIZES)
async def test_signals_have_a_limit(place: Place, size: int, *, is_good: bool) -> None:
    """The sender gets an error."""
    async with place.engine(limits=LIMITS) as engine:
        run = await engine.start(limited_signal)
        if is_good:
            await run.signal("go", text_of(size))
            assert text_of(size) == await in_time(run.result())
            return
        with pytest.raises(PayloadTooLargeError, match="signal 'go' has 1,001 bytes"):
            await run.signal("go", text_of(size))


# -- Blobs -------------------------------------------------------------------------------------------------------------


@outlive.workflow
async def with_blobs(text: str) -> list[str]:
    child = await blob_child(text + "c")
    detached = await outlive.start(blob_child, text + "d", detached=True)
    made = await make_text(len(text) + 2)
    said = await outlive.wait_for_signal("go", str)
    return [text, child, await detached.result(), made, said]


@outlive.workflow
async def blob_child(text: str) -> str:
    return text * 2


@pytest.mark.parametrize("is_killed", [False, True])
async def test_large_values_become_blobs(place: Place, *, is_killed: bool) -> None:
    """Arguments, results, signals, and those of children are what they were, also after a restart and from outside."""
    limits = Limits(payload_inline_bytes_max=100)
    text = "large" * 200
    first = await place.engine(limits=limits).__aenter__()
    run = await first.start(with_blobs, text, id="run-1")
    await waits(run)
    await (crash(first) if is_killed else first.__aexit__(None, None, None))
    async with place.engine(limits=limits, worker=False) as client:
        await client.signal("run-1", "go", text + "s")
    async with place.engine(limits=limits) as second:
        expected = [text, (text + "c") * 2, (text + "d") * 2, "x" * len(text), text + "s"]
        assert expected == await in_time(second.get("run-1").result())
        (made,) = await events_of(second.get("run-1"), StepSucceeded)
        assert made.result.blob
    async with place.engine(worker=False) as client:
        assert expected == await in_time(client.get("run-1").result())


# -- Runs --------------------------------------------------------------------------------------------------------------


async def test_few_may_move_at_once_and_all_of_them_end(place: Place) -> None:
    """With room for two, twenty runs wait in the store until it is their turn."""
    async with place.engine(limits=Limits(runs_active_max=2)) as engine:
        runs = [await engine.start(limited_hold, f"{number}", id=f"{number}") for number in range(20)]

        async def is_full() -> bool:
            return len(stage.calls) == 2

        await until(is_full)
        assert 2 == len(await engine.list(status=RunStatus.RUNNING))
        assert "as soon as one has room" in await runs[-1].why()
        for number in range(20):
            stage.gate(f"{number}").open()
        assert [f"{number}" for number in range(20)] == [await in_time(run.result()) for run in runs]
    assert 20 == len(stage.calls)


async def test_sleeping_runs_hold_no_place(place: Place) -> None:
    """With room for one, ten sleep at the same time and another one runs meanwhile."""
    async with place.engine(limits=Limits(runs_active_max=1, runs_cached_max=1)) as engine:
        sleepers = [await engine.start(limited_sleeper, f"{number}") for number in range(10)]
        for sleeper in sleepers:
            await waits(sleeper)
        assert 2 == await in_time((await engine.start(limited_steps, 2)).result())
        place.clock.skip(seconds=DAY)

        assert [f"{number} after" for number in range(10)] == [await in_time(sleeper.result()) for sleeper in sleepers]
    assert {1} == {stage.count(f"{number} before") for number in range(10)}


async def test_suspended_runs_leave_memory(place: Place) -> None:
    """With room for one in memory, many waiting runs are evicted, and each goes on where it was."""
    async with place.engine(limits=Limits(runs_cached_max=1)) as engine:
        runs = [await engine.start(limited_signal_between, f"{number}") for number in range(20)]
        for run in runs:
            await waits(run)
        for number, run in enumerate(runs):
            await run.signal("go", f"{number}")

        results = [await in_time(run.result()) for run in runs]
        assert [f"{number} {number} after" for number in range(20)] == results
        assert engine.counters.runs_evicted >= 15
    assert {1} == {stage.count(f"{number} before") for number in range(20)}
    assert 0 == stage.count("clean-up")


@outlive.workflow
async def limited_signal_between(name: str) -> str:
    is_done = False
    try:
        await note(f"{name} before")
        said = await outlive.wait_for_signal("go", str)
        is_done = True
    finally:
        # Python runs this when a suspended coroutine is dropped; no test may see it.
        if not is_done:
            await note("clean-up")
    return f"{name} {said} {await note('after')}"


@pytest.mark.parametrize("steps", [9, 10, 11])
async def test_a_journal_has_an_end(place: Place, steps: int) -> None:
    """A run that reaches the limit is parked with what to do, and goes on when that is done."""
    async with place.engine(limits=Limits(history_events_max=10)) as engine:
        run = await engine.start(limited_steps, steps, id="run-1")
        if steps <= 10:
            assert steps == await in_time(run.result())
            return
        assert "history_events_max is 10" in await parks(run)
        assert len(await journal_of(run)) <= 12
    async with place.engine() as engine:
        await engine.resume("run-1")
        assert steps == await in_time(engine.get("run-1").result())
    assert [f"{number}" for number in range(steps)] == stage.calls


@pytest.mark.parametrize("wrong", [{"runs_active_max": 0}, {"payload_bytes_max": 10}, {"attempts_max": -1}])
def test_a_limit_that_cannot_work_is_refused(wrong: dict[str, int]) -> None:
    """The error names the limit."""
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        Limits(**wrong)
