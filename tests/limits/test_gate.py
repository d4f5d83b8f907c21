"""The gate before a step: which waits are short, what a store that does not answer means, and how it closes."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest

import outlive
from outlive import Retry
from outlive._kernel.model.guard import Guard
from outlive._kernel.runtime.gate.gate import Gate
from outlive.errors import CommitUnknownError, RunFailedError
from outlive.events import StepDelayed
from outlive.limits import Breaker, FixedWindow, RateLimit
from outlive.telemetry import Counters
from outlive.testing.watched_store import WatchedStore
from outlive.types import WorkerOptions
from tests.engine.hand_clock import HandClock
from tests.engine.inside import watch_through
from tests.engine.support import events_of, stage, turns_of_the_loop, until
from tests.limits.world import World, call, noted

pytestmark = pytest.mark.parametrize("world", ["memory"], indirect=True)

ONCE = Retry(attempts=1)


async def gated(what: str) -> str:
    """Fail if it is to."""
    call(what)
    if what == "broken":
        raise ConnectionError(what)
    return what


@outlive.step(name="gate.soon", breaker=Breaker("gate soon", failures=1, reset=2), retry=ONCE)
async def gated_soon(what: str) -> str:
    return await gated(what)


@outlive.step(name="gate.later", breaker=Breaker("gate later", failures=1, reset=2.5), retry=ONCE)
async def gated_later(what: str) -> str:
    return await gated(what)


@outlive.step(name="gate.together", breaker=Breaker("gate together", failures=2, reset=60, shared=True), retry=ONCE)
async def gated_together(what: str) -> str:
    return await gated(what)


GATED = {"soon": gated_soon, "later": gated_later, "together": gated_together}


@outlive.workflow(name="gate.passing")
async def gate_passing(step: str, what: str) -> str:
    return await GATED[step](what)


async def break_one(engine: Any, step: str) -> None:
    """One call that fails."""
    with pytest.raises(RunFailedError):
        await (await engine.start(gate_passing, step, "broken")).result()
    await engine.settle()


async def test_short_wait_is_in_memory_and_a_longer_one_in_the_journal(world: World) -> None:
    """Two seconds are short. A longer wait is written down with its end and its reason, and counted."""
    async with world.engine() as engine:
        await break_one(engine, "soon")
        run = await engine.start(gate_passing, "soon", "a")
        assert "a" == await run.result()
        assert [] == await events_of(run, StepDelayed)
        assert 0 == engine.counters.steps_delayed
        assert 2.0 == world.seconds

        await break_one(engine, "later")
        run = await engine.start(gate_passing, "later", "b")
        assert "b" == await run.result()
        (delayed,) = await events_of(run, StepDelayed)
        assert "breaker gate later" == delayed.by
        assert 2_500_000 == delayed.until_at - delayed.at
        assert 1 == engine.counters.steps_delayed
        assert 4.5 == world.seconds
        assert 2 == engine.counters.breakers_opened


class Silent(WatchedStore):
    """A store that does the next changes of its cells and does not answer, or never comes to them."""

    unanswered = 0
    is_stuck = False

    async def change_cell(self, name: str, change: Any) -> Any:
        """Answers as the test says."""
        if self.is_stuck:
            await asyncio.Event().wait()
        answer = await self.inner.change_cell(name, change)
        if self.unanswered:
            self.unanswered -= 1
            raise CommitUnknownError("the cells", "the line went dead")
        return answer


async def test_failure_that_may_have_reached_a_shared_breaker_is_not_reported_twice(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Two failures open it: one that counted twice would keep everybody out."""
    engine = world.engine()
    silent = watch_through(engine, Silent)
    async with engine:
        hanging = await engine.start(gate_passing, "together", "good")
        assert "good" == await hanging.result()
        await engine.settle()

        original = silent.inner.change_cell
        changes = 0

        async def count(name: str, change: Any, *, audit: Any = None) -> Any:
            nonlocal changes
            changes += 1
            if changes == 2:  # The first one is the question, the second one the news.
                silent.unanswered = 1
            return await original(name, change)

        silent.inner.change_cell = count  # type: ignore[method-assign]
        with caplog.at_level(logging.WARNING, "outlive"):
            await break_one(engine, "together")
        assert 2 == changes
        assert "it is not known whether an outcome was recorded in breaker gate together" in caplog.text
        assert "next" == await (await engine.start(gate_passing, "together", "next")).result()
        assert 0 == engine.counters.breakers_opened
    assert ["good", "broken", "next"] == [what for what, _ in noted()]


async def test_engine_stops_though_the_store_never_answers_a_step_at_the_gate(world: World) -> None:
    """Nothing of the gate goes on behind it."""
    engine = world.engine(worker=WorkerOptions(grace_seconds=0.01))
    silent = watch_through(engine, Silent)
    async with engine:
        silent.is_stuck = True
        await engine.start(gate_passing, "together", "never")

        async def is_asked() -> bool:
            return any(task.get_name() == "outlive-gate" for task in asyncio.all_tasks())

        await until(is_asked)
    await asyncio.sleep(0)
    assert [] == [task for task in asyncio.all_tasks() if task.get_name() == "outlive-gate"]
    assert [] == stage.calls


class Ordered(WatchedStore):
    """A store that notes the changes of its cells, and lets one of them wait."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.changes = 0
        self.blocks_at = 0
        self.may_go = asyncio.Event()

    async def change_cell(self, name: str, change: Any) -> Any:
        """In its turn."""
        self.changes += 1
        if self.changes == self.blocks_at:
            await self.may_go.wait()
        return await self.inner.change_cell(name, change)


@outlive.step(name="gate.held", breaker=Breaker("gate held", failures=2, reset=60, shared=True), retry=ONCE)
async def gated_held(what: str) -> str:
    await stage.gate(what).pass_through()
    return await gated(what)


@outlive.workflow(name="gate.held_passing")
async def gate_held_passing(what: str) -> str:
    return await gated_held(what)


async def test_shared_breaker_gets_outcomes_in_their_order(world: World) -> None:
    """The first news is slow; the second, which is good, does not overtake it."""
    engine = world.engine()
    store = watch_through(engine, Ordered)
    async with engine:
        bad = await engine.start(gate_held_passing, "broken")
        good = await engine.start(gate_held_passing, "good")
        await stage.gate("broken").reached()
        await stage.gate("good").reached()
        assert 2 == store.changes
        store.blocks_at = 3
        stage.gate("broken").open()
        with pytest.raises(RunFailedError):
            await bad.result()
        assert 3 == store.changes
        stage.gate("good").open()
        assert "good" == await good.result()
        await turns_of_the_loop(50)
        assert 3 == store.changes
        store.may_go.set()

        async def are_told() -> bool:
            return 4 == store.changes

        await until(are_told)
        await break_one(engine, "together")
        assert 0 == engine.counters.breakers_opened


async def test_trial_that_is_cancelled_while_it_asks_leaves_its_place_to_another(world: World) -> None:
    """The store lets it through when it is gone already: no other step waits until it would have failed."""
    engine = world.engine()
    store = watch_through(engine, Ordered)
    async with engine:
        for _ in range(2):
            await break_one(engine, "together")
        await engine.skip(seconds=61)
        store.blocks_at = store.changes + 1
        trial = await engine.start(gate_passing, "together", "trial")

        async def is_asked() -> bool:
            return store.changes == store.blocks_at

        await until(is_asked)
        await trial.cancel()
        with pytest.raises(outlive.errors.RunCancelledError):
            await trial.result()
        store.may_go.set()
        assert "next" == await (await engine.start(gate_passing, "together", "next")).result()
    assert [("broken", 0), ("broken", 0), ("next", 61)] == noted()


@pytest.mark.parametrize("is_abandoned", [False, True])
async def test_a_gate_of_a_dead_worker_writes_nothing_more(*, world: World, is_abandoned: bool) -> None:
    """The gate of an abandoned worker writes nothing for a step that is given back."""
    store: Any = SimpleNamespace()  # It has no verbs: a task that wants one fails.
    gate = Gate(store, clock=HandClock(), counters=Counters())
    limit = RateLimit("any", FixedWindow(limit=1, seconds=1))
    command: Any = SimpleNamespace(options=SimpleNamespace(guard=Guard(limit=limit)))
    if is_abandoned:
        gate.abandon()

    gate.give_back(command)

    assert gate.is_resting is is_abandoned
    gate.abandon()
