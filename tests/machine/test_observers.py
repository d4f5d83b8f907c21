"""Observers of machines: each fact is observed when it is durable, in order, once, and a bad observer hurts no run."""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

import outlive
from outlive._features.machines.observer import HOOKS
from outlive._kernel.runtime.tree import observer_calls
from outlive.errors import DefinitionError, RunCancelledError, RunTimedOutError
from outlive.testing import RecordingObserver, TestEngine
from tests.engine.faults import FaultyStore, faulty
from tests.engine.inside import committer_of, crash, go_silent, worker_of
from tests.engine.support import Place, hold, in_time, parks, stage, until, until_calls, waits

pytestmark = pytest.mark.any_store


class S(enum.Enum):
    """A way with everything on it."""

    CHECK = "check"
    ROUTE = "route"
    WAIT = "wait"
    PAY = "pay"
    DONE = "done"


@dataclass
class Order:
    """What goes wrong."""

    failures: int = 0
    waits: bool = False
    broken: bool = False


heard = outlive.Machine("heard", S, data=Order, start=S.CHECK, exits=[S.DONE], timeout=3600)


async def uncheck(data: Order) -> None:
    """Fails as often as the stage says."""
    if stage.values.get("troubles", 0):
        stage.values["troubles"] -= 1
        raise ConnectionError("cannot undo")


undo_check = outlive.step(name="heard.uncheck", retry=outlive.Retry(attempts=2, first=0))(uncheck)


@heard.state(S.CHECK, undo=undo_check, retry=outlive.Retry(attempts=3, first=0))
async def check(data: Order) -> S:
    """Fails at first, if it is to."""
    stage.call("check")
    if outlive.current_step().attempt <= data.failures:
        raise ConnectionError("busy")
    return S.ROUTE


@heard.router(S.ROUTE)
def route(data: Order) -> S:
    """Leaves no event."""
    return S.WAIT if data.waits else S.PAY


@heard.workflow(S.WAIT)
async def wait(data: Order) -> S:
    """Waits for the world."""
    await outlive.wait_for_signal("go")
    return S.PAY


@heard.state(S.PAY)
async def pay(data: Order) -> S:
    """Fails if it is to, and may be held by the test."""
    stage.call("pay")
    if "pay" in stage.gates:
        await stage.gate("pay").pass_through()
    if data.broken:
        raise ValueError("no money")
    return S.DONE


recorder = RecordingObserver()
heard.observe(recorder)


@pytest.fixture(autouse=True)
def nothing_heard() -> Iterator[None]:
    """Each test hears its own runs."""
    recorder.clear()
    yield
    recorder.clear()


def observed(*hooks: str) -> list[tuple[str, str]]:
    """Which of these hooks were called, each with its state."""
    return [(hook, fact.state) for hook, fact in recorder.heard if hook in hooks]


# -- What is observed --------------------------------------------------------------------------------------------------


async def test_a_run_is_observed_from_its_first_state_to_its_end(engine: outlive.Engine) -> None:
    """Every hook on the way, in the order in which things happened."""
    await engine.start(heard, Order(failures=1), id="order-1")
    await until_heard("ended")

    assert [(hook, fact.state) for hook, fact in recorder.heard] == [
        ("state_entered", "CHECK"),
        ("attempt_started", "CHECK"),
        ("attempt_failed", "CHECK"),
        ("retry", "CHECK"),
        ("attempt_started", "CHECK"),
        ("attempt_succeeded", "CHECK"),
        ("transition_written", "CHECK"),
        ("state_entered", "ROUTE"),
        ("state_entered", "PAY"),
        ("attempt_started", "PAY"),
        ("attempt_succeeded", "PAY"),
        ("transition_written", "PAY"),
        ("state_entered", "DONE"),
        ("ended", "DONE"),
    ]
    failed, retry = recorder.facts("attempt_failed")[0], recorder.facts("retry")[0]
    assert failed == outlive.machine.FailureFact(
        run_id="order-1",
        machine="heard",
        version=1,
        state="CHECK",
        at=failed.at,
        step="heard.CHECK",
        call="heard.CHECK",
        attempt=1,
        failure=failed.failure,
    )
    assert [failed.at.tzinfo, failed.failure.message, retry.attempt, retry.retry_at] == [UTC, "busy", 2, failed.at]
    assert [fact.to for fact in recorder.facts("transition_written")] == ["ROUTE", "DONE"]
    assert ["succeeded", None] == [recorder.facts("ended")[0].status, recorder.facts("ended")[0].failure]


async def test_a_failure_and_its_rollback_are_observed(engine: outlive.Engine) -> None:
    """An undo has hooks of its own, which Cano lacks."""
    stage.values["troubles"] = 1
    await engine.start(heard, Order(broken=True))
    await until_heard("ended")

    hooks = recorder.hooks()
    assert hooks[hooks.index("attempt_failed") :] == [
        "attempt_failed",
        "undo_begun",
        "undo_failed",
        "retry",
        "undo_begun",
        "undo_done",
        "ended",
    ]
    failed, done = recorder.facts("undo_failed")[0], recorder.facts("undo_done")[0]
    assert [failed.step, failed.undoes, failed.attempt, failed.failure.message] == [
        "heard.uncheck",
        "heard.CHECK",
        1,
        "cannot undo",
    ]
    assert [done.attempt, done.failure] == [2, None]
    end = recorder.facts("ended")[0]
    assert [end.status, end.failure.message, end.state] == ["failed", "no money", "PAY"]


async def test_an_undo_that_fails_for_good_is_observed_with_the_parking(engine: outlive.Engine) -> None:
    """No retry is promised; a person resumes, and that is observed too."""
    stage.values["troubles"] = 2
    run = await engine.start(heard, Order(broken=True))
    await in_time(parks(run))
    await until_heard("parked")
    assert recorder.hooks()[-5:] == ["undo_failed", "retry", "undo_begun", "undo_failed", "parked"]
    assert recorder.facts("parked")[0].reason.startswith("undo failed: heard.uncheck")

    await run.resume()
    await until_heard("ended")
    assert recorder.hooks()[-4:] == ["resumed", "undo_begun", "undo_done", "ended"]
    assert recorder.facts("resumed")[0].by == "person"


@pytest.mark.parametrize("end", [RunCancelledError, RunTimedOutError])
async def test_a_cancel_and_a_timeout_are_observed_before_what_they_undo(place: Place, end: type[Exception]) -> None:
    """The cancellation or the timeout comes first, then the roll-back, then the end."""
    async with place.engine() as engine:
        run = await engine.start(heard, Order(waits=True))
        await waits(run)
        await until_heard("state_entered", 3)
        recorder.clear()
        if end is RunCancelledError:
            await run.cancel(reason="too late")
        else:
            place.clock.skip(seconds=3600)
        with pytest.raises(end):
            await in_time(run.result())

    first = "cancelled" if end is RunCancelledError else "timed_out"
    assert recorder.hooks() == [first, "undo_begun", "undo_done", "ended"]
    if end is RunCancelledError:
        assert recorder.facts("cancelled")[0].reason == "too late"
    status = "cancelled" if end is RunCancelledError else "timed_out"
    assert recorder.facts("ended")[0].status is status


async def test_a_take_over_is_observed_and_nothing_that_was_observed_before(place: Place) -> None:
    """A replay tells nothing: only that the run goes on here, and what happens from there on. [CA-X1]"""
    first = await place.engine().__aenter__()
    stage.gate("pay")
    await first.start(heard, Order(), id="order-1")
    await until_calls("check", "pay")
    await until_heard("attempt_started", 2)
    assert recorder.states() == ["CHECK", "ROUTE", "PAY"]
    await crash(first)
    recorder.clear()

    stage.gate("pay").open()
    async with place.engine() as second:
        await in_time(second.get("order-1").result())
    assert recorder.hooks() == [
        "resumed",
        "attempt_started",
        "attempt_succeeded",
        "transition_written",
        "state_entered",
        "ended",
    ]
    resumed = recorder.facts("resumed")[0]
    assert [resumed.by, resumed.state] == ["worker", "PAY"]


async def test_a_clean_stop_is_a_take_over_too(place: Place) -> None:
    """A run that was under way is reported as resumed; a run that only slept is not."""
    stage.gate("pay")
    async with place.engine() as first:
        await first.start(heard, Order(waits=True), id="sleeps")
        await first.start(heard, Order(), id="works")
        await waits(first.get("sleeps"))
        await stage.gate("pay").reached()
    recorder.clear()
    stage.gate("pay").open()
    async with place.engine() as second:
        await in_time(second.get("works").result())
        await second.get("sleeps").signal("go")
        await in_time(second.get("sleeps").result())
    assert [fact.run_id for fact in recorder.facts("resumed")] == ["works"]
    assert recorder.hooks("sleeps")[0] == "transition_written"


async def test_a_run_that_another_process_created_is_observed_from_its_first_state(place: Place) -> None:
    """No worker has seen it before the first one takes it: routers are observed, too."""
    async with place.engine(worker=False) as client:
        await client.start(heard, Order(), id="order-1")
    assert recorder.heard == []
    async with place.engine() as worker:
        await in_time(worker.get("order-1").result())
    assert recorder.states() == ["CHECK", "ROUTE", "PAY", "DONE"]
    assert recorder.facts("resumed") == []


async def test_nothing_is_observed_that_is_not_durable(place: Place) -> None:
    """Observers do not hear of an attempt that a replaced worker made, because the journal refuses it."""
    stores: list[FaultyStore] = []
    stage.gate("pay")
    async with place.engine(wrap=faulty(stores), grace_seconds=0) as zombie:
        await zombie.start(heard, Order(), id="order-1")
        await stage.gate("pay").reached()
        blocked = stores[0].gates["commit"] = asyncio.Event()
        stage.gate("pay").open()
        await in_time(stores[0].waiting["commit"].wait())
        assert observed("attempt_succeeded") == [("attempt_succeeded", "CHECK")]

        await go_silent(stores[0], worker_of(zombie).id)
        async with place.engine() as successor:
            await in_time(successor.get("order-1").result())
            del stores[0].gates["commit"]
            blocked.set()
            assert await committer_of(zombie).drain(outage_seconds_max=1)
    assert observed("attempt_succeeded", "resumed", "ended") == [
        ("attempt_succeeded", "CHECK"),
        ("resumed", "PAY"),
        ("attempt_succeeded", "PAY"),
        ("ended", "DONE"),
    ]
    assert zombie.counters.conflicts == 1


class Child(enum.Enum):
    """A machine inside a workflow."""

    WORK = "work"
    DONE = "done"


small = outlive.Machine("heard.small", Child, start=Child.WORK, exits=[Child.DONE])


@small.workflow(Child.WORK)
async def work() -> Child:
    """Waits as long as the test wants."""
    await outlive.wait_for_signal("go")
    return Child.DONE


small.observe(recorder)


@outlive.workflow
async def heard_parent() -> str:
    """Not observed; its child is."""
    child = asyncio.create_task(small())
    await outlive.wait_for_signal("stop")
    child.cancel()
    await asyncio.wait([child])
    return "done"


async def test_a_machine_that_is_a_child_is_observed(place: Place) -> None:
    """A machine that is a child is observed after a crash and when its parent cancels it; its parent is not."""
    first = await place.engine().__aenter__()
    await first.start(heard_parent, id="parent")
    await waits(first.get("parent"))
    await until_heard("state_entered")
    assert [("state_entered", "WORK")] == observed(*HOOKS)
    await crash(first)
    async with place.engine() as second:
        await second.get("parent").signal("stop")
        assert await in_time(second.get("parent").result()) == "done"
    assert [hook for hook in recorder.hooks() if hook != "resumed"] == ["state_entered", "cancelled", "ended"]
    assert {fact.machine for _, fact in recorder.heard} == {"heard.small"}
    assert recorder.heard[-1][1].run_id != "parent"


# -- Bad observers -----------------------------------------------------------------------------------------------------


class Bad(outlive.machine.Observer):
    """Raises, hangs, or is slow; its hooks are async and plain."""

    hook_timeout = 0.01

    def state_entered(self, fact: outlive.machine.Fact) -> None:
        """Raises what it likes."""
        raise stage.values.get("raises", KeyError)("bad")

    async def transition_written(self, fact: outlive.machine.TransitionFact) -> None:
        """Never returns."""
        await asyncio.get_running_loop().create_future()

    async def ended(self, fact: outlive.machine.EndFact) -> None:
        """Says that it was heard."""
        stage.call(f"ended {fact.state}")


class Two(enum.Enum):
    """From here to there."""

    HERE = "here"
    THERE = "there"


ill = outlive.Machine("heard.ill", Two, start=Two.HERE, exits=[Two.THERE])


@ill.state(Two.HERE)
async def here() -> Two:
    """Says where to go."""
    return Two.THERE


ill.observe(Bad())


@pytest.mark.parametrize("raises", [KeyError, asyncio.CancelledError, SystemExit, GeneratorExit])
async def test_a_hook_that_raises_or_hangs_hurts_no_run(
    engine: outlive.Engine, raises: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged and counted, the run ends, and the hooks after it are called."""
    stage.values["raises"] = raises
    with caplog.at_level(logging.ERROR, "outlive"):
        result = await in_time((await engine.start(ill)).result())
        await until_calls("ended THERE")

    assert result.state is Two.THERE
    assert engine.counters.hooks_failed == 3
    messages = [record.getMessage() for record in caplog.records]
    assert [" ".join(message.split()[:5]) for message in messages] == [
        "hook state_entered of observer Bad",
        "hook transition_written of observer Bad",
        "hook state_entered of observer Bad",
    ]


class Slow(outlive.machine.Observer):
    """Waits for the test."""

    hook_timeout = 60

    async def state_entered(self, fact: outlive.machine.Fact) -> None:
        """Arrives, and goes on when the gate is open."""
        stage.call(f"{fact.run_id} {fact.state}")
        await stage.gate("slow").pass_through()


slow = outlive.Machine("heard.slow", Two, start=Two.HERE, exits=[Two.THERE])
slow.state(Two.HERE)(here)
slow.observe(Slow())


async def test_a_slow_hook_holds_up_neither_its_run_nor_another(engine: outlive.Engine) -> None:
    """A slow hook holds up neither its run nor the facts of another run, and the facts of one run stay in order."""
    for name in ("a", "b"):
        await in_time((await engine.start(slow, id=name)).result())
    await stage.gate("slow").reached()
    await stage.gate("slow").reached()
    assert stage.calls == ["a HERE", "b HERE"]
    stage.gate("slow").open()
    await until_calls("a HERE", "b HERE", "a THERE", "b THERE")
    assert engine.counters.hooks_failed == 0


async def test_an_engine_that_stops_waits_for_hooks_and_not_for_ever(place: Place) -> None:
    """An engine that stops waits for hooks as long as its grace, then cancels them and counts the facts that were
    dropped."""
    async with place.engine(grace_seconds=0.05) as engine:
        await in_time((await engine.start(slow, id="a")).result())
        await stage.gate("slow").reached()
    assert stage.calls == ["a HERE"]
    assert engine.counters.hooks_dropped == 2


async def test_an_observer_that_is_too_far_behind_misses_facts(
    engine: outlive.Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An observer that is too far behind misses facts, which are counted and logged."""
    monkeypatch.setattr(observer_calls, "QUEUE_MAX", 0)
    with caplog.at_level(logging.ERROR, "outlive"):
        await engine.start(slow, id="a")

        async def is_behind() -> bool:
            return engine.counters.hooks_dropped == 2

        await until(is_behind)
    assert [] == stage.calls
    assert "facts behind for run a; more are discarded" in caplog.text


def test_only_observers_with_a_hook_can_observe() -> None:
    """A misspelt hook is found when it is defined, not when it is missed."""

    class Misspelt(outlive.machine.Observer):
        def on_state_enter(self, fact: Any) -> None:
            """No hook of ours."""

    for wrong in (Misspelt(), object()):
        with pytest.raises(DefinitionError, match=r"heard.ill.observe\(.*(it has no hook|outlive.machine.Observer)"):
            ill.observe(wrong)  # type: ignore[arg-type]


async def test_the_base_class_has_every_hook_and_does_nothing() -> None:
    """Each hook is there, and can be called by a subclass."""
    fact: Any = outlive.machine.Fact(run_id="r", machine="m", version=1, state="S", at=datetime.now(UTC))
    assert {None} == {getattr(outlive.machine.Observer(), hook)(fact) for hook in HOOKS}


plain = outlive.Machine("heard.plain", Two, start=Two.HERE, exits=[Two.THERE])


@plain.workflow(Two.HERE)
async def hold_here() -> Two:
    """Until the test has looked at it."""
    await hold("here")
    return Two.THERE


async def test_a_machine_without_observers_pays_for_none() -> None:
    """Nothing listens to it, and nothing is collected."""
    async with TestEngine() as engine:
        run = await engine.start(plain)
        await stage.gate("here").reached()
        (live,) = worker_of(engine).trees.stored()
        assert [None, None] == [live.observers, live.execution.on_stage]
        stage.gate("here").open()
        await run.result()


async def until_heard(hook: str, times: int = 1) -> None:
    """Return when a hook was called so often."""

    async def is_so() -> bool:
        return len(recorder.facts(hook)) >= times

    await until(is_so)
