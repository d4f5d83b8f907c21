"""Timeouts and cancellation of attempts: cooperative, and what comes late is not heard."""

from __future__ import annotations

import asyncio
import threading

import pytest

import outlive
from outlive import Retry
from outlive.errors import DefinitionError, StepTimeoutError
from outlive.events import AttemptFailed, StepFailed, StepSucceeded
from outlive.limits import Limits
from outlive.types import WorkerOptions
from tests.engine.inside import journal_of
from tests.engine.support import Place, events_of, hold, in_time, note, stage, until

pytestmark = pytest.mark.any_store

SHORT = 0.03


@outlive.step(timeout=SHORT)
async def too_slow() -> None:
    stage.call("began")
    try:
        await asyncio.Event().wait()
    finally:
        stage.call("ended")


@outlive.step(timeout=SHORT)
def too_slow_on_thread() -> str:
    stage.gate("thread").pass_on_thread()
    stage.values["late"].set()
    return "late"


@outlive.step(timeout=SHORT, retry=Retry(attempts=2, first=0, jitter=0))
async def slow_at_first() -> str:
    if outlive.current_step().attempt == 1:
        await asyncio.Event().wait()
    return "second"


@outlive.step(timeout=60)
async def fails_with_timeout_error() -> None:
    raise TimeoutError("of its own")


@outlive.step
async def ignores_cancellation() -> str:
    gate = stage.gate("deaf")
    while True:
        try:
            await gate.pass_through()
        except asyncio.CancelledError:
            stage.call("deaf")
        else:
            return "late"


@outlive.step
def looks_now_and_then() -> str:
    me = outlive.current_step()
    stage.gate("look").open()
    stage.gate("look").pass_on_thread()
    while not me.is_cancelled:
        threading.Event().wait(0.001)
    stage.values["loop"].call_soon_threadsafe(stage.values["seen"].set)
    return "late"


@outlive.step
def block_thread(name: str) -> str:
    stage.call(name)
    stage.gate(name).pass_on_thread()
    return name


@outlive.workflow
async def timing_out() -> str:
    try:
        await too_slow()
    except StepTimeoutError as error:
        return f"{error.step} {error.seconds}"
    return "went on"


@outlive.workflow
async def timing_out_on_thread() -> str:
    try:
        return await too_slow_on_thread()
    except TimeoutError:
        return await note("timed out")


@outlive.workflow
async def timing_out_once() -> str:
    return await slow_at_first()


@outlive.workflow
async def timing_out_with_a_policy_for_connections() -> str:
    retry = Retry(attempts=2, first=0, jitter=0, on=(ConnectionError,))
    try:
        await too_slow.options(retry=retry)()
    except StepTimeoutError:
        return f"attempts: {stage.calls.count('began')}"
    return "went on"


@outlive.workflow
async def timing_out_by_itself() -> str:
    try:
        await fails_with_timeout_error()
    except TimeoutError as error:
        return f"{type(error).__name__} {error}"
    return "went on"


@outlive.workflow
async def timing_out_by_option() -> str:
    try:
        await hold.options(timeout=SHORT)("slow")
    except StepTimeoutError:
        return "timed out"
    return "went on"


@outlive.workflow
async def impatient(kind: str) -> str:
    try:
        async with asyncio.timeout(SHORT):
            if kind == "async":
                await hold("slow")
            elif kind == "deaf":
                await ignores_cancellation()
            else:
                await looks_now_and_then()
    except TimeoutError:
        return await note("gave up")
    return "went on"


@outlive.workflow
async def impatient_with_threads() -> list[str]:
    async def try_for_a_moment(name: str) -> str:
        try:
            return await block_thread.options(timeout=SHORT)(name)
        except TimeoutError:
            return f"no {name}"

    return list(await asyncio.gather(try_for_a_moment("a"), try_for_a_moment("b")))


async def test_an_attempt_that_takes_too_long_is_stopped(engine: outlive.Engine) -> None:
    """An async step is cancelled, cleans up, and its workflow gets `StepTimeoutError`. [FE-R3]"""
    run = await engine.start(timing_out)

    assert f"too_slow {SHORT}" == await in_time(run.result())
    assert ["began", "ended"] == stage.calls


async def test_the_late_result_of_a_timed_out_thread_is_ignored(engine: outlive.Engine) -> None:
    """A thread cannot be stopped, but what it returns after its time is not heard. [TS-R12]"""
    stage.values["late"] = threading.Event()
    run = await engine.start(timing_out_on_thread)

    assert "timed out" == await in_time(run.result())
    before = await journal_of(run)
    stage.gate("thread").open()
    await in_time(asyncio.to_thread(stage.values["late"].wait))
    assert before == await journal_of(run)
    assert 1 == len(await events_of(run, StepFailed))


async def test_a_timed_out_attempt_is_retried(engine: outlive.Engine) -> None:
    """A timeout is a failure like others: it counts as an attempt. [TS-R12]"""
    run = await engine.start(timing_out_once)

    assert "second" == await in_time(run.result())
    (failed,) = await events_of(run, AttemptFailed)
    assert "StepTimeoutError" in failed.failure.type


async def test_a_timeout_is_retried_only_if_the_policy_names_it(engine: outlive.Engine) -> None:
    """A policy for errors of connections alone makes the first timeout the end of the step."""
    run = await engine.start(timing_out_with_a_policy_for_connections)

    assert "attempts: 1" == await in_time(run.result())
    assert [] == await events_of(run, AttemptFailed)


async def test_a_timeout_error_of_a_step_differs_from_its_timeout(engine: outlive.Engine) -> None:
    """A workflow can tell a step that raised TimeoutError from a step that was stopped."""
    run = await engine.start(timing_out_by_itself)

    assert "TimeoutError of its own" == await in_time(run.result())


async def test_a_call_may_have_a_timeout_of_its_own(engine: outlive.Engine) -> None:
    """Options of a call count for that call."""
    run = await engine.start(timing_out_by_option)

    assert "timed out" == await in_time(run.result())
    assert ["slow", "slow cancelled"] == stage.calls


async def test_a_timeout_that_cannot_work_is_refused() -> None:
    """Zero seconds are refused where they are written."""
    with pytest.raises(DefinitionError, match="hold: timeout=0"):
        hold.options(timeout=0)


async def test_a_workflow_may_give_up_on_a_step(engine: outlive.Engine) -> None:
    """A durable `asyncio.timeout` around a running step fires in time and cancels it."""
    run = await engine.start(impatient, "async")

    assert "gave up" == await in_time(run.result())
    assert ["slow", "slow cancelled", "gave up"] == stage.calls


async def test_a_step_that_ignores_cancellation_holds_up_no_other(engine: outlive.Engine) -> None:
    """The run goes on and ends; what the deaf step returns at last is not heard."""
    run = await engine.start(impatient, "deaf")

    assert "gave up" == await in_time(run.result())
    assert 1 == stage.count("deaf")
    stage.gate("deaf").open()
    assert ["note"] == [event.call for event in await events_of(run, StepSucceeded)]


async def test_a_sync_step_can_see_that_it_is_not_waited_for(engine: outlive.Engine) -> None:
    """`current_step().is_cancelled` turns true on the thread."""
    stage.values |= {"loop": asyncio.get_running_loop(), "seen": asyncio.Event()}
    stage.gate("look")
    run = await engine.start(impatient, "thread")

    assert "gave up" == await in_time(run.result())
    await in_time(stage.values["seen"].wait())


async def test_an_attempt_that_timed_out_in_the_queue_never_runs(place: Place) -> None:
    """With one thread, a call that waits behind a blocked one is not made after its time is over."""
    async with place.engine(limits=Limits(threads_max=1)) as engine:
        run = await engine.start(impatient_with_threads)
        assert ["no a", "no b"] == await in_time(run.result())
        stage.gate("a").open()
        stage.gate("b").open()
        assert "after" == await in_time((await engine.start(after_threads)).result())
        # Which of the two got the thread does not matter: the other one was never called.
        assert stage.calls in (["a", "after"], ["b", "after"])


@outlive.workflow
async def after_threads() -> str:
    stage.gate("after").open()
    return await block_thread("after")


async def test_a_full_house_of_steps_waits_its_turn(place: Place) -> None:
    """With two slots, ten steps run two at a time, and all of them run."""
    async with place.engine(limits=Limits(steps_running_max=2)) as engine:
        runs = [await engine.start(crowded, f"{number}", id=f"run-{number}") for number in range(10)]

        async def has_two() -> bool:
            return len(stage.calls) == 2

        await until(has_two)
        stage.gate("crowd").open()
        assert [f"{number}" for number in range(10)] == [await in_time(run.result()) for run in runs]
        assert stage.values["most"] == 2


@outlive.step
async def crowd(name: str) -> str:
    stage.call(name)
    stage.values["now"] = stage.values.get("now", 0) + 1
    stage.values["most"] = max(stage.values["now"], stage.values.get("most", 0))
    await stage.gate("crowd").pass_through()
    stage.values["now"] -= 1
    return name


@outlive.workflow
async def crowded(name: str) -> str:
    return await crowd(name)


@outlive.step(timeout=SHORT)
async def swallows(*, raises: bool) -> str:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        stage.call("swallowed")
        if raises:
            raise ConnectionError("the line was cut") from None
    return "late"


@outlive.workflow
async def with_swallowing_step(*, raises: bool) -> str:
    try:
        return await swallows(raises=raises)
    except outlive.errors.StepTimeoutError as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("raises", [False, True])
async def test_a_step_that_swallows_its_cancellation_has_failed_with_its_timeout(*, raises: bool) -> None:
    """A step that swallows its cancellation and then returns or raises has failed with its timeout."""
    async with outlive.Engine("memory:", worker=WorkerOptions(tune=False)) as engine:
        result = await in_time((await engine.start(with_swallowing_step.bind(raises=raises))).result())
    assert f"StepTimeoutError: step swallows did not end within its timeout of {SHORT:g} s" == result
    assert ["swallowed"] == stage.calls
