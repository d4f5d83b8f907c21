"""Steps with rate limits: when they are called, and what waiting costs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import outlive
from outlive import Retry
from outlive.errors import DefinitionError, RateLimitedError, RunFailedError
from outlive.events import AttemptFailed, RunSuspended, StepDelayed, StepFailed, StepIntended, StepSucceeded
from outlive.limits import FixedWindow, Limits, RateLimit, TokenBucket
from tests.engine.inside import journal_of
from tests.engine.support import events_of, stage
from tests.limits.world import HOUR, World, call, die, give_up, noted

pytestmark = pytest.mark.any_store

HOURLY = FixedWindow(1, HOUR)


@outlive.step(name="limits.often", limit=RateLimit("often", TokenBucket(1, burst=2)))
async def often(what: str) -> str:
    call(what)
    return what


@outlive.step(name="limits.hourly", limit=RateLimit("hourly", HOURLY), timeout=1)
async def hourly(what: str) -> str:
    call(what)
    return what


@outlive.step(name="limits.hourly_together", limit=RateLimit("hourly", HOURLY, shared=True))
async def hourly_together(what: str) -> str:
    call(what)
    return what


@outlive.step(name="limits.tiered", limit=RateLimit("two tiers", TokenBucket(1, burst=10), FixedWindow(3, 60)))
async def tiered(what: str) -> str:
    call(what)
    return what


@outlive.step(
    name="limits.impatient",
    limit=RateLimit("impatient", TokenBucket(5, burst=5), HOURLY, when_full="fail"),
    retry=Retry(attempts=5),
)
async def impatient(what: str) -> str:
    call(what)
    return what


def weight_of(what: str, weight: int) -> int:
    """The cost of a call."""
    if weight > 100:
        raise OverflowError(f"{what} weighs {weight}")
    return weight


@outlive.step(name="limits.weighed", limit=RateLimit("weighed", TokenBucket(1, burst=10)), cost=weight_of)
async def weighed(what: str, weight: int) -> str:
    call(what)
    return what


@outlive.step(name="limits.only_once", limit=RateLimit("once", HOURLY), once=True)
async def only_once(what: str) -> str:
    call(what)
    return what


@outlive.step(name="limits.flaky", limit=RateLimit("flaky", HOURLY), retry=Retry(attempts=2, first=1, jitter=0))
async def flaky(what: str) -> str:
    call(what)
    if outlive.current_step().attempt == 1:
        raise ConnectionError(what)
    return what


@outlive.step(name="limits.free")
async def free(what: str) -> str:
    call(what)
    return what


@outlive.step(name="limits.long")
async def long() -> None:
    await stage.gate("long").pass_through()


ALL = (often, hourly, hourly_together, tiered, impatient, weighed, only_once, flaky)
STEPS: dict[str, outlive.types.Step[..., Any]] = {step.fn.__name__: step for step in ALL}


@outlive.workflow(name="limits.limited")
async def limited(step: str, *args: Any) -> Any:
    return await STEPS[step](*args)


@outlive.workflow(name="limits.limited_or_not")
async def limited_or_not(step: str, what: str) -> Any:
    try:
        return await STEPS[step](what)
    except RateLimitedError as error:
        return [error.name, error.tier, error.retry_after]


@outlive.workflow(name="limits.limited_then_signal")
async def limited_then_signal(step: str, what: str) -> str:
    await STEPS[step](what)
    return str(await outlive.wait_for_signal("go", str))


@outlive.workflow(name="limits.limited_beside_free")
async def limited_beside_free(what: str) -> list[str]:
    return list(await asyncio.gather(often(what), free(f"free {what}")))


@outlive.workflow(name="limits.taking_long")
async def taking_long() -> None:
    await long()


@outlive.workflow(name="limits.limited_within")
async def limited_within(seconds: float, step: str, what: str) -> str:
    try:
        async with asyncio.timeout(seconds):
            return str(await STEPS[step](what))
    except TimeoutError:
        return "late"


async def results(*runs: outlive.types.RunHandle[Any]) -> list[Any]:
    """Of all of them."""
    return [await run.result() for run in runs]


async def test_calls_beyond_the_burst_come_one_at_a_time(world: World) -> None:
    """In the order in which they were asked for, however many runs ask."""
    async with world.engine() as engine:
        runs = [await engine.start(limited, "often", f"call {number}") for number in range(5)]
        await results(*runs)

    assert [0, 0, 1, 2, 3] == [at for _, at in noted()]
    assert [f"call {number}" for number in range(5)] == [what for what, _ in noted()]


async def test_all_tiers_hold_at_once(world: World) -> None:
    """The window has room for three, whatever the bucket says. [FE-R6]"""
    async with world.engine() as engine:
        runs = [await engine.start(limited, "tiered", f"call {number}") for number in range(5)]
        await results(*runs)

    assert [0, 0, 0, 60, 60] == [at for _, at in noted()]


async def test_a_short_wait_leaves_no_trace_in_the_journal(world: World) -> None:
    """It is in memory only."""
    async with world.engine() as engine:
        runs = [await engine.start(limited, "often", "call") for _ in range(4)]
        await results(*runs)

        assert [] == await events_of(runs[-1], StepDelayed)
        assert [] == await events_of(runs[-1], RunSuspended)


async def test_a_long_wait_is_in_the_journal_and_holds_nothing(world: World) -> None:
    """The run is suspended until its turn, and says what it waits for. No attempt is used up, no timeout runs."""
    async with world.engine() as engine:
        first, second = [await engine.start(limited, "hourly", name) for name in ("first", "second")]
        await engine.settle()

        assert ["succeeded", "waiting"] == [await first.status(), await second.status()]
        assert "rate limit hourly (1 in 3600 s), for limits.hourly at " in await second.why()
        assert 1 == engine.counters.steps_delayed

        await second.result()

        (delayed,) = await events_of(second, StepDelayed)
        assert (delayed.until_at - delayed.at, delayed.has_turn) == (HOUR * 1_000_000, True)
        assert [1] == [event.attempt for event in await events_of(second, StepSucceeded)]
        assert [] == await events_of(second, AttemptFailed)
    assert [("first", 0), ("second", HOUR)] == noted()


async def test_waiting_survives_a_restart(world: World) -> None:
    """Another engine goes on when it is time, and not before; its own limit begins again, a shared one does not."""
    async with world.engine() as engine:
        runs = [await engine.start(limited, "hourly_together", f"call {number}", id=f"{number}") for number in range(3)]
        await engine.settle()
        await die(engine)

    async with world.engine() as engine:
        await engine.settle()
        assert [("call 0", 0)] == noted()
        assert await results(*(engine.get(run.id) for run in runs)) == ["call 0", "call 1", "call 2"]

    assert [("call 0", 0), ("call 1", HOUR), ("call 2", 2 * HOUR)] == noted()


async def test_a_turn_that_comes_while_no_worker_runs_is_asked_for_again(world: World) -> None:
    """All were away for ten hours: one is called in each hour all the same."""
    async with world.engine() as engine:
        runs = [await engine.start(limited, "hourly_together", f"call {number}", id=f"{number}") for number in range(4)]
        await engine.settle()
        await die(engine)
    world.clock.skip_to(world.clock.now() + 10 * HOUR * 1_000_000)

    async with world.engine() as engine:
        await results(*(engine.get(run.id) for run in runs))

    assert [0, 10, 11, 12] == [at // HOUR for _, at in noted()]


@pytest.mark.every_store
async def test_two_engines_obey_one_shared_limit_together(world: World) -> None:
    """Four runs on two engines with one shared limit of one call an hour are called in four different hours. [FE-R6]"""
    async with world.engine() as one, world.engine() as two:
        runs = [await engine.start(limited, "hourly_together", "call") for engine in (one, two, one, two)]
        await results(*runs)

    assert [0, HOUR, 2 * HOUR, 3 * HOUR] == [at for _, at in noted()]


async def test_a_limit_that_is_not_shared_is_each_engines_own(world: World) -> None:
    """Two engines, two calls an hour."""
    async with world.engine() as one, world.engine() as two:
        runs = [await engine.start(limited, "hourly", "call") for engine in (one, two)]
        await one.settle()
        at_once = list(noted())
        await results(*runs)

    assert [("call", 0), ("call", 0)] == at_once


async def test_a_replay_asks_no_limit(world: World) -> None:
    """A step that has its outcome is not counted again: the next one that is called has the hour for itself."""
    async with world.engine() as engine:
        await engine.start(limited_then_signal, "hourly", "before", id="old")
        await engine.settle()
        await die(engine)

    async with world.engine() as engine:
        await engine.signal("old", "go", "on")
        assert "on" == await engine.get("old").result()
        await (await engine.start(limited, "hourly", "after")).result()

    assert [("before", 0), ("after", 0)] == noted()


async def test_a_step_that_waits_for_its_limit_holds_no_slot(world: World) -> None:
    """A step without a limit overtakes the steps that wait for theirs, even with one slot."""
    async with world.engine(limits=Limits(steps_running_max=1)) as engine:
        runs = [await engine.start(limited_beside_free, f"{number}") for number in range(4)]
        await results(*runs)

    assert [0, 0, 1, 2] == [at for what, at in noted() if not what.startswith("free")]
    assert [0, 0, 0, 0] == [at for what, at in noted() if what.startswith("free")]


async def test_step_without_a_slot_is_counted_when_it_gets_one(world: World) -> None:
    """Steps that wait for a slot save up no calls of their limit: they begin at its pace when there is a slot."""
    async with world.engine(limits=Limits(steps_running_max=1)) as engine:
        await engine.start(taking_long)
        await stage.gate("long").reached()
        runs = [await engine.start(limited, "often", f"{number}") for number in range(4)]
        await engine.skip(seconds=10)
        assert [] == noted()

        stage.gate("long").open()
        await results(*runs)
    assert [10, 10, 11, 12] == [at for _, at in noted()]


async def test_step_without_a_slot_after_a_short_wait_is_counted_again(world: World) -> None:
    """A step that finds no slot after a short wait asks its limit again when it has one."""
    async with world.engine(limits=Limits(steps_running_max=1)) as engine:
        runs = [await engine.start(limited, "often", f"{number}") for number in range(4)]
        await engine.settle()
        await engine.start(taking_long)
        await stage.gate("long").reached()
        await engine.skip(seconds=10)
        assert [0, 0] == [at for _, at in noted()]
        runs += [await engine.start(limited, "often", f"{number}") for number in range(4, 6)]

        stage.gate("long").open()
        await results(*runs)
    assert [0, 0, 10, 10, 11, 12] == [at for _, at in noted()]


async def test_a_failed_attempt_asks_again_for_the_next_one(world: World) -> None:
    """Each attempt is a call; a wait in between uses up nothing."""
    async with world.engine() as engine:
        run = await engine.start(limited, "flaky", "call")

        assert "call" == await run.result()
        assert [2] == [event.attempt for event in await events_of(run, StepSucceeded)]
    assert [("call", 0), ("call", HOUR)] == noted()


async def test_a_full_limit_may_fail_the_step_at_once(world: World) -> None:
    """The error says which tier has no room, and when it has; no retry is used up, and nothing is charged."""
    async with world.engine() as engine:
        await (await engine.start(limited, "impatient", "first")).result()
        await engine.skip(seconds=1800)
        run = await engine.start(limited_or_not, "impatient", "second")

        assert ["impatient", "1 in 3600 s", 1800] == await run.result()
        assert [1] == [event.attempt for event in await events_of(run, StepFailed)]
        assert [] == await events_of(run, AttemptFailed)
    assert [("first", 0)] == noted()


async def test_an_error_that_is_not_caught_fails_the_run(world: World) -> None:
    """With what to do next."""
    async with world.engine() as engine:
        runs = [await engine.start(limited, "impatient", f"{number}") for number in range(2)]

        with pytest.raises(RunFailedError, match=r"rate limit impatient is full: its tier of 1 in 3600 s has room"):
            await results(*runs)


async def test_a_call_costs_what_a_function_of_its_arguments_says(world: World) -> None:
    """Ten tokens: seven and three at once, and then one token a second."""
    async with world.engine() as engine:
        runs = [await engine.start(limited, "weighed", f"{cost}", cost) for cost in (7, 3, 2, 0)]
        await results(*runs)

    assert [("0", 0), ("2", 2), ("3", 0), ("7", 0)] == sorted(noted())


async def test_a_cost_that_never_fits_fails_the_step(world: World) -> None:
    """It would wait for ever."""
    async with world.engine() as engine:
        run = await engine.start(limited, "weighed", "heavy", 11)

        with pytest.raises(RunFailedError, match="a call that costs 11 never fits into its tier of 1 a second, 10 at"):
            await run.result()


async def test_a_cost_that_cannot_be_computed_fails_the_step(world: World) -> None:
    """With what its function raised."""
    async with world.engine() as engine:
        run = await engine.start(limited, "weighed", "an elephant", 5000)

        with pytest.raises(RunFailedError, match="OverflowError: an elephant weighs 5000"):
            await run.result()


@pytest.mark.parametrize("step", ["often", "hourly", "hourly_together"])
async def test_a_waiting_step_is_cancelled_at_once(world: World, step: str) -> None:
    """Whether it waits in memory or in the journal."""
    async with world.engine() as engine:
        runs = [await engine.start(limited, step, f"{number}") for number in range(3)]
        await engine.settle()

        assert "cancelled" == await give_up(runs[2], engine)
        assert 0 == world.seconds
    assert "2" not in [what for what, _ in noted()]


async def test_the_turn_of_a_cancelled_step_goes_to_the_next(world: World) -> None:
    """Three are lined up and the first two of them give up: a newcomer does not wait for these."""
    async with world.engine() as engine:
        runs = [await engine.start(limited, "hourly_together", f"{number}") for number in range(4)]
        await engine.settle()
        for run in runs[1:3]:
            await give_up(run, engine)
        last = await engine.start(limited, "hourly_together", "last")
        await results(runs[0], runs[3], last)

    assert [("0", 0), ("last", 2 * HOUR), ("3", 3 * HOUR)] == noted()


async def test_a_workflow_may_give_up_waiting(world: World) -> None:
    """Its own timeout ends the wait, and the turn is given back."""
    async with world.engine() as engine:
        first = await engine.start(limited_within, 60, "hourly", "first")
        second = await engine.start(limited_within, 60, "hourly", "second")

        assert ["first", "late"] == await results(first, second)
        assert 60 == world.seconds


async def test_a_step_that_is_called_once_is_not_interrupted_while_it_waits(world: World) -> None:
    """Its intent is taken back when it has to wait: it was certainly not called, and is after the crash."""
    async with world.engine() as engine:
        for number in range(2):
            await engine.start(limited, "only_once", f"{number}", id=f"{number}")
        await engine.settle()
        await die(engine)

    async with world.engine() as engine:
        run = engine.get("1")
        assert "1" == await run.result()
        kinds = [type(event) for event in await journal_of(run) if isinstance(event, StepIntended | StepDelayed)]

    assert [StepIntended, StepDelayed, StepIntended] == kinds
    assert [("0", 0), ("1", HOUR)] == noted()


async def test_a_step_may_have_another_limit_for_one_call(world: World) -> None:
    """A step with another limit for one call keeps its own limit for other calls."""
    other = often.options(limit=RateLimit("other", HOURLY), cost=1)

    assert other.call_options != other.spec.options
    assert "often" == often.spec.options.guard.limit.name  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cost": 2}, "costs nothing without limit="),
        ({"limit": TokenBucket(1)}, "give a RateLimit"),
        ({"breaker": "bank"}, "give a Breaker"),
        ({"limit": RateLimit("api", HOURLY), "cost": 2}, "never fits"),
    ],
    ids=["a cost alone", "a bare tier", "a name", "too high a cost"],
)
def test_wrong_limit_or_breaker_is_refused_when_a_step_is_defined(options: dict[str, Any], message: str) -> None:
    """A limit, a breaker or a cost that cannot work is refused when the step is defined."""
    with pytest.raises(DefinitionError, match=message):
        outlive.step(**options)(free.fn)


async def test_outside_of_a_run_a_step_is_a_plain_function() -> None:
    """A call outside of a run asks no limit."""
    stage.values["world"] = World("memory:")

    assert ["a", "b"] == [await hourly("a"), await hourly("b")]
