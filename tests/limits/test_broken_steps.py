"""Steps with breakers: who is called, who waits, and whose outcomes count."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

import outlive
from outlive import Retry
from outlive._kernel.runtime.gate import breakers
from outlive._kernel.runtime.gate.cells import STORE_RETRY_SECONDS
from outlive.errors import CircuitOpenError, CommitUnknownError, RunFailedError, StoreUnavailableError
from outlive.events import AttemptFailed, StepDelayed, StepFailed, StepSucceeded
from outlive.limits import Breaker, FixedWindow, Limits, RateLimit, TokenBucket
from outlive.testing import TestEngine
from outlive.testing.watched_store import WatchedStore
from tests.engine.inside import store_of, watch_through
from tests.engine.support import events_of, stage, until
from tests.limits.world import HOUR, World, call, die, give_up, noted

pytestmark = pytest.mark.any_store


class NoAnswerError(Exception):
    """The bank is away."""


class NoMoneyError(Exception):
    """The bank answered."""


async def bank(what: str) -> str:
    """What the steps call: as good as the test says."""
    call(what)
    if what in stage.values.get("hangs", ()):
        await stage.gate(what).pass_through()
    if stage.values.get("is_away") or what == "no answer" or (what == "twice" and outlive.current_step().attempt == 1):
        raise NoAnswerError(what)
    if what == "no money":
        raise NoMoneyError(what)
    return what


THREE = Retry(attempts=3, first=0, jitter=0)
STUBBORN = Retry(attempts=100, first=0, jitter=0)


@outlive.step(name="breakers.pay", breaker=Breaker("own", failures=2, reset=60), retry=THREE)
async def pay(what: str) -> str:
    return await bank(what)


@outlive.step(name="breakers.pay_together", breaker=Breaker("shared", failures=2, reset=60, shared=True), retry=THREE)
async def pay_together(what: str) -> str:
    return await bank(what)


@outlive.step(
    name="breakers.pay_or_not", breaker=Breaker("quick", failures=2, reset=60, when_open="fail"), retry=STUBBORN
)
async def pay_or_not(what: str) -> str:
    return await bank(what)


@outlive.step(
    name="breakers.pay_picky", breaker=Breaker("picky", failures=1, reset=60, on=(NoAnswerError,)), timeout=0.01
)
async def pay_picky(what: str) -> str:
    return await bank(what)


@outlive.step(name="breakers.pay_carefully", breaker=Breaker("careful", failures=1, reset=60, shared=True), retry=THREE)
async def pay_carefully(what: str) -> str:
    return await bank(what)


BOTH = Breaker("both", failures=1, reset=60)


@outlive.step(name="breakers.pay_rarely", breaker=BOTH, limit=RateLimit("both", FixedWindow(1, HOUR)), retry=THREE)
async def pay_rarely(what: str) -> str:
    return await bank(what)


@outlive.step(name="breakers.pay_slowly", breaker=BOTH, limit=RateLimit("slowly", TokenBucket(1)), retry=THREE)
async def pay_slowly(what: str) -> str:
    return await bank(what)


@outlive.step(
    name="breakers.pay_rarely_together",
    breaker=BOTH,
    limit=RateLimit("together", FixedWindow(1, HOUR), shared=True),
    retry=THREE,
)
async def pay_rarely_together(what: str) -> str:
    return await bank(what)


@outlive.step(name="breakers.pay_often", breaker=BOTH, retry=THREE)
async def pay_often(what: str) -> str:
    return await bank(what)


BOTH_TOGETHER = Breaker("both_together", failures=1, reset=60, shared=True)


@outlive.step(
    name="breakers.pay_rarely_all",
    breaker=BOTH_TOGETHER,
    limit=RateLimit("all", FixedWindow(1, HOUR), shared=True),
    retry=THREE,
)
async def pay_rarely_all(what: str) -> str:
    return await bank(what)


@outlive.step(name="breakers.pay_often_all", breaker=BOTH_TOGETHER, retry=THREE)
async def pay_often_all(what: str) -> str:
    return await bank(what)


@outlive.step(name="breakers.reserve")
async def reserve(what: str) -> str:
    return what


@outlive.step(name="breakers.release", breaker=Breaker("undo", failures=1, reset=60, when_open="fail"), retry=STUBBORN)
async def release(what: str) -> str:
    return await bank(what)


ALL = [pay, pay_together, pay_or_not, pay_picky, pay_rarely, pay_slowly, pay_rarely_together, pay_often, pay_carefully]
STEPS = {step.fn.__name__: step for step in [*ALL, pay_rarely_all, pay_often_all]}


@outlive.workflow(name="breakers.paying")
async def paying(step: str, what: str) -> str:
    return await STEPS[step](what)


@outlive.workflow(name="breakers.failing")
async def failing(step: str) -> str:
    return await STEPS[step].options(retry=Retry(attempts=1))("no answer")


@outlive.workflow(name="breakers.paying_or_not")
async def paying_or_not(what: str) -> Any:
    try:
        return await pay_or_not(what)
    except CircuitOpenError as error:
        return [error.name, error.retry_after]


@outlive.workflow(name="breakers.undoing")
async def undoing(what: str) -> str:
    async with outlive.saga():
        await reserve.options(undo=release)(what)
        raise ValueError("no")


@outlive.step(name="breakers.keep_thread")
def keep_thread() -> None:
    stage.gate("thread").pass_on_thread()


@outlive.workflow(name="breakers.keeping_a_thread")
async def keeping_a_thread() -> None:
    await keep_thread()


@outlive.step(name="breakers.pay_on_thread", breaker=Breaker("threads", failures=2, reset=60))
def pay_on_thread(what: str) -> str:
    call(what)
    return what


@outlive.workflow(name="breakers.paying_on_thread")
async def paying_on_thread(what: str) -> str:
    return await pay_on_thread(what)


@outlive.workflow(name="breakers.paying_on_thread_soon")
async def paying_on_thread_soon(what: str) -> str:
    return await pay_on_thread.options(timeout=0.01, retry=Retry(attempts=2, first=0, jitter=0))(what)


def away(*, is_away: bool) -> None:
    """Whether the bank answers."""
    stage.values["is_away"] = is_away


async def break_it(engine: TestEngine, step: str = "pay") -> None:
    """Fail until the breaker is open; no step waits for it yet."""
    while not engine.counters.breakers_opened:
        with pytest.raises(RunFailedError, match="NoAnswerError"):
            await (await engine.start(failing, step)).result()
        await engine.settle()
    noted().clear()


@pytest.mark.parametrize("step", ["pay", "pay_together"])
async def test_an_open_breaker_uses_up_no_retry(world: World, step: str) -> None:
    """Two attempts open it; the third waits, suspended, for the reset time and no longer, and succeeds."""
    away(is_away=True)
    async with world.engine() as engine:
        run = await engine.start(paying, step, "rent")
        await engine.settle()

        assert [("rent", 0), ("rent", 0)] == noted()
        assert "waiting" == await run.status()
        assert f"breaker {'own' if step == 'pay' else 'shared'}, for breakers.{step} at" in await run.why()

        away(is_away=False)
        assert "rent" == await run.result()
        assert [3] == [event.attempt for event in await events_of(run, StepSucceeded)]
        assert [1, 2] == [event.attempt for event in await events_of(run, AttemptFailed)]
        assert 1 == len(await events_of(run, StepDelayed))
        assert 1 == engine.counters.breakers_opened
    assert [("rent", 0), ("rent", 0), ("rent", 60)] == noted()


@pytest.mark.parametrize("step", ["pay", "pay_together"])
async def test_one_trial_goes_first_and_the_others_follow(world: World, step: str) -> None:
    """When the bank is back, everybody who waited is called within a moment."""
    async with world.engine() as engine:
        await break_it(engine, step)
        runs = [await engine.start(paying, step, f"{number}") for number in range(5)]
        for run in runs:
            await run.result()

    first, *others = noted()
    assert ("0", 60) == first
    assert all(60 < at < 63 for _, at in others)
    assert 4 == len(others)


@pytest.mark.parametrize("step", ["pay", "pay_together"])
async def test_while_the_trial_runs_no_other_attempt_is_called(world: World, step: str) -> None:
    """However long it takes: it is not given up while its engine lives. The others wait in the journal."""
    stage.values["hangs"] = ["trial"]
    async with world.engine(patience_seconds=0.05) as engine:
        await break_it(engine, step)
        trial = await engine.start(paying, step, "trial")
        other = await engine.start(paying, step, "other")
        await engine.skip(seconds=300)

        assert [("trial", 60)] == noted()
        assert "waiting" == await other.status()

        stage.gate("trial").open()
        assert ["trial", "other"] == [await trial.result(), await other.result()]
        assert world.seconds <= 370


@pytest.mark.parametrize("step", ["pay", "pay_together"])
async def test_step_that_waits_for_a_slot_when_its_breaker_opens_is_not_called(world: World, step: str) -> None:
    """A step that waits for a slot while its breaker opens is not called."""
    stage.values["hangs"] = ["first"]
    async with world.engine(limits=Limits(steps_running_max=1)) as engine:
        first = await engine.start(paying, "pay_often", "first")
        await stage.gate("first").reached()
        runs = [await engine.start(failing, step) for _ in range(5)]
        stage.gate("first").open()
        await first.result()
        await engine.settle()

        assert [("first", 0), ("no answer", 0), ("no answer", 0)] == noted()
        assert ["waiting"] * 3 == [await run.status() for run in runs[2:]]
        for run in runs[2:]:
            await give_up(run, engine)


async def test_step_that_waits_for_a_limit_when_its_breaker_opens_is_not_called(world: World) -> None:
    """A step that waits for its rate limit while its breaker opens is called only after the reset."""
    async with world.engine() as engine:
        await engine.start(paying, "pay_slowly", "first")
        run = await engine.start(paying, "pay_slowly", "second")
        await engine.settle()
        await break_it(engine, "pay_often")

        assert "second" == await run.result()
    assert [("second", 60)] == noted()


async def test_a_failed_trial_opens_it_again(world: World) -> None:
    """The others wait for another reset time."""
    async with world.engine() as engine:
        await break_it(engine)
        away(is_away=True)
        trial = await engine.start(paying, "pay", "trial")
        await engine.skip(seconds=61)
        assert [("trial", 60)] == noted()

        away(is_away=False)
        await trial.result()

    assert [("trial", 60), ("trial", 120)] == noted()


async def test_a_late_outcome_of_an_old_epoch_is_ignored(world: World) -> None:
    """A call from before the breaker opened succeeds while it is open: it stays open."""
    stage.values["hangs"] = ["slow"]
    async with world.engine(patience_seconds=0.05) as engine:
        slow = await engine.start(paying, "pay", "slow")
        await stage.gate("slow").reached()
        await break_it(engine)
        stage.gate("slow").open()
        await slow.result()

        await (await engine.start(paying, "pay", "next")).result()

    assert ("next", 60) == noted()[-1]


async def test_a_timeout_counts_as_a_failure(world: World) -> None:
    """Whatever exceptions count."""
    stage.values["hangs"] = ["slow"]
    async with world.engine(patience_seconds=0.05) as engine:
        with pytest.raises(RunFailedError, match="StepTimeoutError"):
            await (await engine.start(paying, "pay_picky", "slow")).result()

        assert 1 == engine.counters.breakers_opened


async def test_an_exception_that_does_not_count_is_an_answer(world: World) -> None:
    """The bank works; only this customer has no money."""
    async with world.engine() as engine:
        for _ in range(3):
            with pytest.raises(RunFailedError, match="NoMoneyError"):
                await (await engine.start(paying, "pay_picky", "no money")).result()
        assert 0 == engine.counters.breakers_opened

        with pytest.raises(RunFailedError, match="NoAnswerError"):
            await (await engine.start(paying, "pay_picky", "no answer")).result()
        assert 1 == engine.counters.breakers_opened


async def test_an_open_breaker_may_fail_the_step_at_once(world: World) -> None:
    """The error can be caught and says when to come back; of a hundred attempts two were made."""
    away(is_away=True)
    async with world.engine() as engine:
        run = await engine.start(paying_or_not, "rent")

        assert ["quick", 60] == await run.result()
        assert [3] == [event.attempt for event in await events_of(run, StepFailed)]
    assert [("rent", 0), ("rent", 0)] == noted()


async def test_a_roll_back_waits_whatever_the_breaker_says(world: World) -> None:
    """An undo that gives up would leave half of it done."""
    away(is_away=True)
    async with world.engine() as engine:
        run = await engine.start(undoing, "seat")
        await engine.skip(seconds=30)
        away(is_away=False)

        with pytest.raises(RunFailedError, match="ValueError: no"):
            await run.result()
    assert [("seat", 0), ("seat", 60)] == noted()


@pytest.mark.parametrize("step", ["pay", "pay_together"])
async def test_a_call_that_is_cancelled_counts_as_a_failure(world: World, step: str) -> None:
    """A call that is cancelled in the middle was too slow for its caller."""
    stage.values["hangs"] = ["slow 1", "slow 2"]
    async with world.engine(patience_seconds=0.05) as engine:
        for what in ("slow 1", "slow 2"):
            run = await engine.start(paying, step, what)
            await stage.gate(what).reached()
            assert "cancelled" == await give_up(run, engine)

        assert 1 == engine.counters.breakers_opened


async def test_a_step_that_is_cancelled_while_it_waits_for_a_thread_says_nothing(world: World) -> None:
    """It was not called either, and neither was it too slow."""
    async with world.engine(patience_seconds=0.05, limits=Limits(threads_max=1)) as engine:
        busy = await engine.start(keeping_a_thread)
        await stage.gate("thread").reached()
        for what in ("a", "b"):
            run = await engine.start(paying_on_thread, what)
            await engine.settle()
            assert "cancelled" == await give_up(run, engine)
        late = await engine.start(paying_on_thread_soon, "late")
        with pytest.raises(RunFailedError, match="StepTimeoutError"):
            await late.result()
        assert 0 == engine.counters.breakers_opened

        stage.gate("thread").open()
        await busy.result()
    assert [] == noted()


async def test_a_step_that_is_cancelled_while_it_waits_says_nothing(world: World) -> None:
    """It was not called: the next one is the trial."""
    async with world.engine() as engine:
        await break_it(engine)
        waiting = await engine.start(paying, "pay", "waiting")
        await engine.settle()
        assert "cancelled" == await give_up(waiting, engine)
        await engine.skip(seconds=60)

        await (await engine.start(paying, "pay", "next")).result()
    assert [("next", 60)] == noted()


async def test_an_engine_that_stops_counts_against_no_breaker(world: World) -> None:
    """It was the engine that cancelled those calls; another one makes them again."""
    stage.values["hangs"] = ["1", "2", "3"]
    async with world.engine(patience_seconds=0.05) as engine:
        for what in ("1", "2", "3"):
            await engine.start(paying, "pay_together", what, id=what)
            await stage.gate(what).reached()
    stage.values["hangs"] = []
    noted().clear()

    async with world.engine() as engine:
        assert ["1", "2", "3"] == [await engine.get(what).result() for what in ("1", "2", "3")]
        assert 0 == world.seconds


async def test_a_permit_is_given_back_when_the_limit_has_no_room(world: World) -> None:
    """The trial of a breaker is not lost in the line of a rate limit: another step may be the one."""
    async with world.engine() as engine:
        await break_it(engine, "pay_rarely")
        rare = await engine.start(paying, "pay_rarely", "rare")
        await engine.skip(seconds=60)

        assert "often" == await (await engine.start(paying, "pay_often", "often")).result()
        assert "rare" == await rare.result()
    assert [("often", 60), ("rare", HOUR)] == noted()


async def test_a_turn_is_kept_when_the_breaker_is_open_on_it(world: World) -> None:
    """It goes on to wait for the breaker, and is lined up all the same."""
    async with world.engine() as engine:
        await engine.start(paying, "pay_rarely", "first")
        run = await engine.start(paying, "pay_rarely", "rare")
        await engine.skip(seconds=HOUR - 30)
        await break_it(engine, "pay_often")
        assert "rare" == await run.result()

        delays = await events_of(run, StepDelayed)
        assert [delay.by for delay in delays] == ["rate limit both (1 in 3600 s)", "breaker both"]
        assert [True, True] == [delay.has_turn for delay in delays]
    assert [("rare", HOUR + 30)] == noted()


async def test_a_turn_is_over_with_the_attempt_that_had_it(world: World) -> None:
    """The next attempt is one like any other."""
    async with world.engine() as engine:
        await (await engine.start(paying, "pay_rarely", "first")).result()
        run = await engine.start(paying, "pay_rarely", "twice")
        await engine.skip(seconds=HOUR + 1)
        assert [("first", 0), ("twice", HOUR)] == noted()
        await engine.settle()

        (_, delay) = await events_of(run, StepDelayed)
        assert ("breaker both", False) == (delay.by, delay.has_turn)
        await give_up(run, engine)


# -- Together ----------------------------------------------------------------------------------------------------------


@pytest.mark.every_store
async def test_a_shared_breaker_is_open_for_all(world: World) -> None:
    """A shared breaker that one engine has opened is open for the other engine."""
    async with world.engine() as one, world.engine() as two:
        await break_it(one, "pay_together")
        await (await two.start(paying, "pay_together", "rent")).result()

    assert [("rent", 60)] == noted()


async def test_a_trial_whose_process_dies_does_not_block_for_ever(world: World) -> None:
    """No report of it comes for half a minute: it has failed, and after the reset time there is another trial."""
    stage.values["hangs"] = ["trial"]
    engine = await world.engine(patience_seconds=0.05).__aenter__()
    await break_it(engine, "pay_together")
    await engine.start(paying, "pay_together", "trial", id="trial")
    await engine.skip(seconds=60)
    await stage.gate("trial").reached()
    await die(engine)
    stage.values["hangs"] = []

    async with world.engine() as engine:
        await (await engine.start(paying, "pay_together", "other")).result()
        await engine.get("trial").result()

    assert [("trial", 60)] == noted()[:1]
    assert 60 + 30 + 60 == round(noted()[1][1])


class Moody(WatchedStore):
    """A store whose cells cannot be had for a while."""

    def __init__(self, inner: Any, errors: Sequence[Exception], *, of: str = "") -> None:
        super().__init__(inner)
        self.errors = list(errors)
        self.of = of
        """How the names of these cells begin."""
        self.refused = asyncio.Event()

    async def change_cell(self, name: str, change: Any) -> Any:
        """As the mood is."""
        if self.errors and name.startswith(self.of):
            self.refused.set()
            raise self.errors.pop(0)
        return await self.inner.change_cell(name, change)


class Slow(WatchedStore):
    """A store that takes its time for the second change: the news of the first call."""

    changes = 0

    async def change_cell(self, name: str, change: Any) -> Any:
        """Now or later."""
        self.changes += 1
        self.under_way += 1
        for _ in range(2_000 if self.changes == 2 else 0):
            await asyncio.sleep(0)
        self.under_way -= 1
        return await self.inner.change_cell(name, change)


async def test_the_next_question_comes_behind_what_was_reported_before(world: World) -> None:
    """The second attempt does not overtake the news of the first failure."""
    away(is_away=True)
    engine = world.engine()
    watch_through(engine, Slow)
    async with engine:
        run = await engine.start(paying, "pay_carefully", "rent")
        await engine.settle()

        assert [("rent", 0)] == noted()
        assert "waiting" == await run.status()


@pytest.mark.parametrize("error", [StoreUnavailableError, CommitUnknownError])
async def test_a_store_that_is_away_is_waited_for(world: World, error: type[StoreUnavailableError]) -> None:
    """A step that was not counted is not called, and nothing is lost."""
    engine = world.engine()
    moody = watch_through(engine, lambda store: Moody(store, [error("the cells", "it is away") for _ in range(2)]))
    async with engine:
        run = await engine.start(paying, "pay_together", "rent")
        await moody.refused.wait()
        assert [] == noted()

        assert "rent" == await run.result()
    assert [("rent", 0)] == noted()


async def test_an_answer_that_makes_no_sense_fails_no_step(world: World) -> None:
    """An error of the store while a step asks its breaker does not fail the step."""
    engine = world.engine()
    watch_through(engine, lambda store: Moody(store, [LookupError("a bug")]))
    async with engine:
        assert "rent" == await (await engine.start(paying, "pay_together", "rent")).result()


@pytest.mark.parametrize(
    ("rare", "often"),
    [("pay_rarely_together", "pay_often"), ("pay_rarely_all", "pay_often_all")],
    ids=["own", "shared"],
)
async def test_a_trial_is_given_back_when_the_limit_cannot_be_asked(world: World, rare: str, often: str) -> None:
    """No step may call while the limit makes no sense, but another step may be the trial, and at once."""
    engine = world.engine()
    moody = watch_through(engine, lambda store: Moody(store, [], of="limit/"))
    async with engine:
        await break_it(engine, often)
        await engine.skip(seconds=61)
        moody.errors = [LookupError("a bug")] * 3
        stuck = await engine.start(paying, rare, "stuck")
        await engine.settle()
        await engine.skip(seconds=2)

        assert "often" == await (await engine.start(paying, often, "often")).result()
        assert "stuck" == await stuck.result()
    assert ("often", 63) == noted()[0]


@pytest.mark.parametrize("error", [CommitUnknownError("the cells", "it is away"), LookupError("a bug")], ids=type)
async def test_a_good_trial_is_reported_again_if_its_answer_was_lost(world: World, error: Exception) -> None:
    """A second report of a trial changes nothing, so it is repeated, and no step waits until the trial is given up."""
    away(is_away=True)
    engine = world.engine()
    moody = watch_through(engine, lambda store: Moody(store, []))
    stage.values["hangs"] = ["trial"]
    async with engine:
        await break_it(engine, "pay_carefully")
        away(is_away=False)
        await engine.skip(seconds=61)
        trial = await engine.start(paying, "pay_carefully", "trial")
        await stage.gate("trial").reached()
        moody.errors = [error]
        stage.gate("trial").open()
        await trial.result()

        assert "next" == await (await engine.start(paying, "pay_carefully", "next")).result()
    assert [("trial", 61), ("next", 61)] == noted()


async def test_a_store_that_makes_no_sense_gets_a_pause_before_the_next_report(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One pause for each answer that made none."""
    pauses: list[float] = []

    class QuickBell:
        async def sleep(self, seconds: float) -> None:
            pauses.append(seconds)

    monkeypatch.setattr(breakers, "Wakeup", QuickBell)
    engine = world.engine()
    moody = watch_through(engine, lambda store: Moody(store, []))
    stage.values["hangs"] = ["first"]
    async with engine:
        first = await engine.start(paying, "pay_together", "first")
        await stage.gate("first").reached()
        moody.errors = [LookupError("a bug")] * 2
        stage.gate("first").open()
        await first.result()
        await (await engine.start(paying, "pay_together", "second")).result()

    assert [STORE_RETRY_SECONDS] * 2 == pauses


async def test_a_cell_that_cannot_be_read_begins_empty(world: World) -> None:
    """Another release may have written it; no step can wait for that release."""
    async with world.engine() as engine:
        await store_of(engine).change_cell("breaker/shared", lambda data, now_at: (b'{"phase": 7}', None))

        assert "rent" == await (await engine.start(paying, "pay_together", "rent")).result()


async def test_step_that_is_cancelled_while_the_store_is_away_ends_at_once(world: World) -> None:
    """A step that is cancelled while it asks a store that is away does not wait for its answer."""
    engine = world.engine()
    away_for_long = [StoreUnavailableError("the cells", "it is away") for _ in range(3)]
    moody = watch_through(engine, lambda store: Moody(store, away_for_long))
    async with engine:
        run = await engine.start(paying, "pay_together", "rent")
        await moody.refused.wait()
        await run.cancel()

        async def is_cancelled() -> bool:
            return await run.status() == "cancelled"

        await until(is_cancelled)
        assert moody.errors
    assert [] == noted()
