"""Retries: the budget and the back-off are in the journal, and waiting holds no slot."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import outlive
from outlive import Retry
from outlive._kernel.model.policy import delay_seconds
from outlive.errors import ConfigurationError
from outlive.events import AttemptFailed, StepFailed, StepSucceeded
from outlive.limits import Limits
from outlive.types import RunHandle
from tests.engine.inside import crash
from tests.engine.support import Place, events_of, hold, in_time, note, stage, until, waits

pytestmark = pytest.mark.any_store

LONG = 3600
QUICK = Retry(attempts=3, first=0.01, factor=1, jitter=0)
SLOW = Retry(attempts=3, first=LONG, factor=2, cap=10 * LONG, jitter=0)


class FlakyError(Exception):
    """Worth another attempt."""


class FlakierError(FlakyError):
    """So is this."""


class HopelessError(Exception):
    """Not worth one."""


def fail_until(attempt: int, error: type[Exception] = FlakyError) -> None:
    """Note the attempt; fail unless it is late enough."""
    me = outlive.current_step()
    stage.call((me.attempt, me.idempotency_key))
    if me.attempt < attempt:
        raise error(f"attempt {me.attempt}")


@outlive.step(retry=QUICK)
async def flaky(good: int) -> int:
    fail_until(good)
    return good


@outlive.step(retry=SLOW)
async def slowly_flaky(good: int) -> int:
    fail_until(good)
    return good


@outlive.step(retry=QUICK)
def flaky_on_thread(good: int) -> int:
    fail_until(good)
    return good


@outlive.step(retry=Retry(attempts=5, first=0, jitter=0, on=(FlakyError,)))
async def picky(kind: str) -> None:
    fail_until(99, {"flaky": FlakyError, "flakier": FlakierError, "hopeless": HopelessError}[kind])


@outlive.step
async def once_only(good: int) -> int:
    fail_until(good)
    return good


@outlive.workflow
async def retrying(good: int) -> int:
    return await flaky(good)


@outlive.workflow
async def retrying_on_thread(good: int) -> int:
    return await flaky_on_thread(good)


@outlive.workflow
async def retrying_slowly(good: int) -> int:
    return await slowly_flaky(good)


@outlive.workflow
async def retrying_picky(kind: str) -> str:
    try:
        await picky(kind)
    except (FlakyError, outlive.errors.StepFailedError) as error:
        return type(error).__name__
    return "nothing"


@outlive.workflow
async def retrying_by_option(good: int) -> int:
    return await once_only.options(retry=QUICK)(good)


@outlive.workflow
async def retrying_not_by_option(good: int) -> str:
    try:
        await flaky.options(retry=Retry(attempts=1))(good)
    except outlive.errors.StepFailedError as error:
        return f"{error.attempts} {error.message}"
    return "went on"


@outlive.workflow
async def retrying_beside_another(good: int) -> list[Any]:
    return list(await asyncio.gather(slowly_flaky(good), hold("other")))


@outlive.workflow
async def retrying_noted() -> str:
    return await note("in between")


async def has_failed(run: RunHandle[Any], attempts: int) -> None:
    """Return when a run waits after this many failed attempts."""

    async def is_so() -> bool:
        return len(await events_of(run, AttemptFailed)) == attempts and await run.status() == "waiting"

    await until(is_so)


@pytest.mark.parametrize("workflow", [retrying, retrying_on_thread])
async def test_a_failed_attempt_is_tried_again(engine: outlive.Engine, workflow: Any) -> None:
    """A step that succeeds within its budget has succeeded; its key is the same in every attempt."""
    run = await engine.start(workflow, 3)

    assert 3 == await in_time(run.result())
    assert [1, 2, 3] == [attempt for attempt, _ in stage.calls]
    assert 1 == len({key for _, key in stage.calls})
    (success,) = await events_of(run, StepSucceeded)
    assert 3 == success.attempt


async def test_a_budget_ends(engine: outlive.Engine) -> None:
    """After its last attempt a step has failed for good, with the last failure. [TS-R12]"""
    run = await engine.start(retrying, 4)

    with pytest.raises(outlive.errors.RunFailedError, match="attempt 3"):
        await in_time(run.result())
    assert [1, 2, 3] == [attempt for attempt, _ in stage.calls]
    assert [1, 2] == [failed.attempt for failed in await events_of(run, AttemptFailed)]
    (failed,) = await events_of(run, StepFailed)
    assert 3 == failed.attempt


async def test_back_off_grows_and_is_in_the_journal(place: Place) -> None:
    """Each failed attempt says when the next one comes, and none comes earlier."""
    async with place.engine() as engine:
        run = await engine.start(retrying_slowly, 3)
        for attempts in (1, 2):
            await has_failed(run, attempts)
            failed = await events_of(run, AttemptFailed)
            assert attempts == len(failed) == len(stage.calls)
            assert LONG * attempts * 1_000_000 == failed[-1].retry_at - failed[-1].at
            assert "the next attempt of slowly_flaky at 20" in await run.why()
            place.clock.skip(seconds=LONG * attempts)

        assert 3 == await in_time(run.result())


async def test_a_waiting_attempt_holds_no_slot(place: Place) -> None:
    """With one slot for steps, another run's step runs while a step waits for its next attempt."""
    async with place.engine(limits=Limits(steps_running_max=1)) as engine:
        waiting = await engine.start(retrying_slowly, 2)
        await waits(waiting)

        assert "in between" == await in_time((await engine.start(retrying_noted)).result())
        place.clock.skip(seconds=LONG)
        assert 2 == await in_time(waiting.result())


async def test_a_waiting_attempt_does_not_hold_up_the_rest_of_its_run(place: Place) -> None:
    """A step goes on beside a step that waits for its retry, and the retry comes in time while the other step still
    runs."""
    async with place.engine() as engine:
        run = await engine.start(retrying_beside_another, 1)
        await stage.gate("other").reached()
        stage.gate("other").open()

        assert [1, "other"] == await in_time(run.result())


@pytest.mark.parametrize("is_killed", [False, True])
async def test_attempts_and_back_off_survive_a_restart(place: Place, *, is_killed: bool) -> None:
    """An engine that stops or dies in the middle of a back-off resets neither the budget nor the clock.
    [SF-U9 FE-R2]
    """
    first = await place.engine().__aenter__()
    run = await first.start(retrying_slowly, 3, id="run-1")
    await waits(run)
    await (crash(first) if is_killed else first.__aexit__(None, None, None))
    (before,) = stage.calls

    async with place.engine() as second:
        run = second.get("run-1")
        await waits(run)
        assert [before] == stage.calls
        place.clock.skip(seconds=LONG)
        await has_failed(run, 2)
        place.clock.skip(seconds=2 * LONG)
        assert 3 == await in_time(run.result())
    assert [1, 2, 3] == [attempt for attempt, _ in stage.calls]
    assert 1 == len({key for _, key in stage.calls})


@outlive.workflow
async def retrying_beside_a_step() -> None:
    async def later() -> None:
        await asyncio.sleep(LONG)
        await note("timer")

    await asyncio.gather(slowly_flaky(2), later(), hold("hot"))


@pytest.mark.parametrize("place", ["memory"], indirect=True)
async def test_time_that_has_passed_before_a_crash_counts(place: Place) -> None:
    """The back-off of a run in motion, and its timers, end when they would have ended without the crash."""
    engine = await place.engine().__aenter__()
    run = await engine.start(retrying_beside_a_step, id="run-1")
    await stage.gate("hot").reached()

    async def has_failed_once() -> bool:
        return 1 == len(await events_of(run, AttemptFailed))

    await until(has_failed_once)
    for part in (0.6, 0.3):
        place.clock.skip(seconds=LONG * part)
        await crash(engine)
        engine = await place.engine().__aenter__()
        await stage.gate("hot").reached()
        assert 1 == len([call for call in stage.calls if isinstance(call, tuple)])
        assert 0 == stage.count("timer")
    await crash(engine)

    place.clock.skip(seconds=LONG * 0.1)
    async with place.engine() as engine:

        async def is_done() -> bool:
            return stage.count("timer") == 1 and 2 == len([call for call in stage.calls if isinstance(call, tuple)])

        await until(is_done)


@pytest.mark.parametrize(
    ("kind", "attempts", "expected"),
    [("flaky", 5, "FlakyError"), ("flakier", 5, "FlakierError"), ("hopeless", 1, "StepFailedError")],
)
async def test_only_what_is_worth_it_is_retried(
    engine: outlive.Engine, kind: str, attempts: int, expected: str
) -> None:
    """`Retry.on` says which exceptions, subclasses too, are tried again; they reach the workflow as themselves.
    [TS-R12 FE-R1]
    """
    run = await engine.start(retrying_picky, kind)

    assert expected == await in_time(run.result())
    assert attempts == len(stage.calls)


async def test_options_of_one_call_replace_those_of_the_step(engine: outlive.Engine) -> None:
    """A step without a budget gets one for a call, and one with a budget can do without. [TS-R12]"""
    assert 3 == await in_time((await engine.start(retrying_by_option, 3)).result())
    stage.clear()
    assert "1 attempt 1" == await in_time((await engine.start(retrying_not_by_option, 2)).result())
    assert 1 == len(stage.calls)


@pytest.mark.parametrize(
    "wrong",
    [
        {"attempts": 0},
        {"first": -1},
        {"factor": 0.5},
        {"cap": -1},
        {"jitter": 2},
        {"on": ValueError},
        {"on": ("ValueError",)},
    ],
)
def test_a_retry_that_cannot_work_is_refused(wrong: dict[str, Any]) -> None:
    """Mistakes in a policy show when it is written, not when it is needed."""
    with pytest.raises(ConfigurationError):
        Retry(**wrong)


@pytest.mark.parametrize(("attempt", "seconds"), [(1, 1), (2, 2), (3, 4), (4, 5), (10_000, 5)])
def test_back_off_grows_up_to_its_cap(attempt: int, seconds: float) -> None:
    """`first * factor ** n`, at most `cap`, however many attempts there were."""
    assert seconds == delay_seconds(Retry(first=1, factor=2, cap=5, jitter=0), attempt, 1.0)
