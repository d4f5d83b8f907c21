"""What observers hear on the less travelled ways: other code, policies, people, breakers, splits, generations."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

import outlive
from outlive.errors import RunFailedError
from outlive.testing import RecordingObserver, TestEngine
from tests.engine.inside import crash
from tests.engine.support import Place, in_time, parks, registry_of, stage, until, waits

pytestmark = pytest.mark.any_store

recorder = RecordingObserver()


@pytest.fixture(autouse=True)
def nothing_heard() -> Iterator[None]:
    """Each test hears its own runs."""
    recorder.clear()
    yield
    recorder.clear()


async def until_heard(hook: str) -> None:
    """Return when a hook was called."""

    async def is_so() -> bool:
        return bool(recorder.facts(hook))

    await until(is_so)


class Old(enum.Enum):
    """As it was."""

    ASK = "ask"
    MORE = "more"
    END = "end"


class New(enum.Enum):
    """MORE has another name."""

    ASK = "ask"
    FURTHER = "further"
    END = "end"


async def ask() -> Any:
    """On to the next state, whatever it is called."""
    return list(stage.values["states"])[1]


async def wait() -> Any:
    """Waits for the new code."""
    await outlive.wait_for_signal("go")
    return list(stage.values["states"])[2]


def machine(states: type[enum.Enum]) -> outlive.Machine[Any, Any]:
    """The code of some day."""
    first, second, last = states
    made: outlive.Machine[Any, Any] = outlive.Machine("observed.code", states, start=first, exits=[last])
    made.state(first)(ask)
    made.workflow(second)(wait)
    made.observe(recorder)
    stage.values["states"] = states
    return made


async def test_a_state_that_the_code_does_not_have_is_marked(place: Place) -> None:
    """Before the parking, which has the same reason. [CA-U5]"""
    old = machine(Old)
    async with place.engine(registry=registry_of(old)) as engine:
        await waits(await engine.start(old, id="run-1"))
    recorder.clear()
    async with place.engine(registry=registry_of(machine(New))) as engine:
        await engine.signal("run-1", "go")
        await in_time(parks(engine.get("run-1")))
        await until_heard("parked")

    assert recorder.hooks() == ["unknown_state", "parked"]
    unknown, parked = (fact for _, fact in recorder.heard)
    assert "is in state MORE, which this code does not have" in unknown.reason
    assert [unknown.reason, "MORE"] == [parked.reason, parked.state]


class S(enum.Enum):
    """Work that can be undone, and an end that is not always reached."""

    WORK = "work"
    SPLIT = "split"
    AGAIN = "again"
    DONE = "done"


many = outlive.Machine("observed.many", S, data=dict[str, int], start=S.WORK, exits=[S.DONE])
many.observe(recorder)


async def unwork(data: dict[str, int]) -> None:
    """Cannot."""
    raise ValueError("never")


@many.state(S.WORK, undo=outlive.step(name="observed.unwork")(unwork))
async def work(data: dict[str, int]) -> S:
    """May be held by the test."""
    if "work" in stage.gates:
        await stage.gate("work").pass_through()
    return S.SPLIT


async def left(data: dict[str, int]) -> int:
    """A branch."""
    return 1


async def right(data: dict[str, int]) -> int:
    """A branch that may fail."""
    if data.get("broken"):
        raise KeyError("right")
    return 2


many.split(S.SPLIT, [left, right], join=outlive.machine.All(then=S.AGAIN), concurrency=1)


@many.workflow(S.AGAIN)
async def again(data: dict[str, int]) -> S:
    """Begins a fresh journal, once."""
    if data.get("rounds", 0):
        outlive.continue_as_new({"rounds": data["rounds"] - 1})
    return S.DONE


async def test_a_run_that_a_policy_parks_is_observed_without_its_state(place: Place) -> None:
    """No worker has read its journal, and none has taken it over."""
    stage.gate("work")
    first = await place.engine().__aenter__()
    await first.start(many, {}, id="run-1")
    await stage.gate("work").reached()
    await crash(first)
    recorder.clear()
    async with place.engine(recovery=outlive.types.Recovery(auto_resume=False)) as second:
        await in_time(parks(second.get("run-1")))
        await until_heard("parked")
        assert recorder.hooks() == ["parked"]
        assert [recorder.heard[0][1].machine, recorder.heard[0][1].state] == ["observed.many", ""]

        stage.gate("work").open()
        await second.resume("run-1")
        await in_time(second.get("run-1").result())
    assert recorder.hooks()[1:3] == ["resumed", "attempt_started"]
    assert recorder.facts("resumed")[0].by == "person"


async def test_skipping_a_step_resumes_the_run(place: Place) -> None:
    """An undo that was not done is not observed."""
    async with place.engine() as engine:
        run = await engine.start(many, {"broken": 1})
        await in_time(parks(run))
        await until_heard("parked")
        recorder.clear()
        await engine.skip_step(run.id, result=None)
        with pytest.raises(RunFailedError):
            await in_time(run.result())
    assert recorder.hooks() == ["resumed", "ended"]
    assert recorder.facts("resumed")[0].by == "person"


async def test_branches_and_generations_are_observed(place: Place) -> None:
    """A branch is a step of its own; a run that goes on as a new run is observed from its first state again."""
    async with place.engine() as engine:
        run = await engine.start(many, {"rounds": 1}, id="run-1")
        await in_time(run.result())
    assert recorder.states() == ["WORK", "SPLIT", "AGAIN"] * 2 + ["DONE"]
    steps = [fact.step for fact in recorder.facts("attempt_succeeded")]
    assert steps == ["observed.many.WORK", "observed.many.SPLIT.left", "observed.many.SPLIT.right"] * 2
    assert [fact.status for fact in recorder.facts("ended")] == ["continued", "succeeded"]


class Way(enum.Enum):
    """Only routers."""

    A = "a"
    B = "b"
    END = "end"


routers = outlive.Machine("observed.routers", Way, start=Way.A, exits=[Way.END])
routers.router(Way.A)(lambda: Way.B)
routers.router(Way.B)(lambda: Way.END)
routers.observe(recorder)


async def test_routers_are_entered_and_write_nothing(engine: outlive.Engine) -> None:
    """The whole way is one commit."""
    await engine.start(routers)
    await until_heard("ended")
    assert recorder.hooks() == ["state_entered"] * 3 + ["ended"]
    assert recorder.states() == ["A", "B", "END"]


class Gate(enum.Enum):
    """One step."""

    CALL = "call"
    DONE = "done"


guarded = outlive.Machine("observed.guarded", Gate, data=str, start=Gate.CALL, exits=[Gate.DONE])
guarded.observe(recorder)


@guarded.state(Gate.CALL, breaker=outlive.limits.Breaker("observed.bank", failures=1, reset=60))
async def call(data: str) -> Gate:
    """Answers the second one."""
    if data == "first":
        raise ConnectionError("no answer")
    return Gate.DONE


async def test_a_breaker_that_is_open_is_observed() -> None:
    """Once for an attempt that has to wait for it, and before that is made."""
    async with TestEngine() as engine:
        with pytest.raises(outlive.errors.RunFailedError):
            await (await engine.start(guarded, "first", id="first")).result()
        await (await engine.start(guarded, "second", id="second")).result()

    assert recorder.facts("circuit_open", "first") == []
    (fact,) = recorder.facts("circuit_open", "second")
    assert [fact.breaker, fact.step, fact.attempt, fact.state] == ["observed.bank", "observed.guarded.CALL", 1, "CALL"]
    assert timedelta(seconds=59) < fact.until - fact.at <= timedelta(seconds=60)
    hooks = recorder.hooks("second")
    assert hooks.index("circuit_open") < hooks.index("attempt_started")


class Reader(outlive.machine.Observer):
    """Asks the engine about the run, as dashboards do."""

    async def state_entered(self, fact: Any) -> None:
        """Async, and in order."""
        for _ in range(3):
            await asyncio.sleep(0)
        run = await stage.values["engine"].get(fact.run_id).info()
        stage.call((fact.state, run.workflow))


reading = outlive.Machine("observed.reading", Way, start=Way.A, exits=[Way.END])
reading.router(Way.A)(lambda: Way.B)
reading.router(Way.B)(lambda: Way.END)
reading.observe(Reader())
reading.observe(recorder)


async def test_an_async_hook_may_ask_the_engine(place: Place) -> None:
    """An async hook that asks the engine finds its fact in the store, and a second observer does not wait for it."""
    async with place.engine(grace_seconds=5) as engine:
        stage.values["engine"] = engine
        await engine.start(reading)
        await until_heard("ended")
        assert recorder.states() == ["A", "B", "END"]

        async def is_read() -> bool:
            return len(stage.calls) == 3

        await until(is_read)
    assert stage.calls == [(state, "observed.reading") for state in ("A", "B", "END")]
