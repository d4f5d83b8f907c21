"""States with limits and breakers: every kind that is a step."""

from __future__ import annotations

import enum
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

import pytest

import outlive
from outlive import Retry
from outlive.errors import DefinitionError, RunFailedError
from outlive.limits import Breaker, FixedWindow, RateLimit
from outlive.machine import More, Pending
from tests.engine.support import stage
from tests.limits.world import HOUR, World, call, die, give_up, noted

pytestmark = pytest.mark.any_store


class S(enum.Enum):
    """One state and the end."""

    WORK = "work"
    DONE = "done"


@dataclass
class Data:
    """What the machines here carry."""

    wanted: int = 3
    seen: list[Any] = field(default_factory=list)


def machine(name: str) -> outlive.Machine[S, Data]:
    """A machine of one state."""
    return outlive.Machine(f"limits.{name}", S, data=Data, start=S.WORK, exits=[S.DONE])


def hourly(name: str, limit: int = 1, **options: Any) -> RateLimit:
    """So many in an hour."""
    return RateLimit(f"machine {name}", FixedWindow(limit, HOUR), **options)


plain = machine("plain")


@plain.state(S.WORK, limit=hourly("plain"), timeout=1)
async def work(data: Data) -> S:
    call("work")
    data.wanted -= 1
    return S.WORK if data.wanted else S.DONE


weighed = machine("weighed")


@weighed.state(S.WORK, limit=hourly("weighed", 4), cost=lambda data: data.wanted)
async def weigh(data: Data) -> S:
    call(data.wanted)
    data.wanted -= 1
    return S.WORK if data.wanted else S.DONE


polling = machine("polling")


@polling.poll(S.WORK, limit=hourly("polling"))
async def look(data: Data) -> S | Pending:
    call("look")
    return S.DONE if len(noted()) == data.wanted else Pending(60)


stepping = machine("stepping")


@stepping.stepped(S.WORK, limit=hourly("stepping", 4), cost=lambda data, cursor: 1 if cursor is None else 2)
async def step(data: Data, cursor: int | None) -> S | More[int]:
    call(cursor)
    cursor = (cursor or 0) + 1
    return S.DONE if cursor == data.wanted else More(cursor)


batching = machine("batching")


async def load(data: Data) -> list[int]:
    return list(range(data.wanted))


async def process(item: int) -> int:
    call(item)
    return item


async def finish(data: Data, results: list[Any]) -> S:
    data.seen = results
    return S.DONE


batching.batch(
    S.WORK,
    load=load,
    process=process,
    finish=finish,
    concurrency=3,
    limit=hourly("batching", 3),
    cost=lambda item: 1 + item,
)

streaming = machine("streaming")


async def source(data: Data, cursor: int | None) -> AsyncGenerator[tuple[int, int], None]:
    for number in range(cursor or 0, data.wanted):
        yield number + 1, number


async def flush(data: Data, items: list[int]) -> None:
    call(tuple(items))


streaming.stream(S.WORK, source=source, process=process, flush=flush, then=S.DONE, items=2, limit=hourly("streaming"))

splitting = machine("splitting")


@outlive.step(name="limits.branch", limit=hourly("branch"))
async def branch(data: Data) -> str:
    call("branch")
    return "branch"


@outlive.step(name="limits.other_branch", limit=hourly("branch"))
async def other_branch(data: Data) -> str:
    call("other")
    return "other"


splitting.split(S.WORK, [branch, other_branch], join=outlive.machine.All(then=S.DONE))

impatient = machine("impatient")


@impatient.state(S.WORK, limit=hourly("impatient", when_full="fail"), retry=Retry(attempts=5))
async def hurry(data: Data) -> S:
    call("hurry")
    return S.WORK


broken = machine("broken")


@broken.state(
    S.WORK, breaker=Breaker("machine", failures=2, reset=60, shared=True), retry=Retry(attempts=3, first=0, jitter=0)
)
async def break_down(data: Data) -> S:
    call("try")
    if len(noted()) < 3:
        raise ConnectionError
    return S.DONE


async def run_through(world: World, made: outlive.Machine[S, Data]) -> list[tuple[Any, float]]:
    """The calls of a run, in hours."""
    async with world.engine() as engine:
        assert (await (await engine.start(made, Data())).result()).state is S.DONE
    return [(what, at / HOUR) for what, at in noted()]


async def test_a_state_waits_for_its_limit(world: World) -> None:
    """Each time it is entered."""
    assert [("work", 0), ("work", 1), ("work", 2)] == await run_through(world, plain)


async def test_the_cost_of_a_state_may_be_a_function_of_its_data(world: World) -> None:
    """The cost of a state may be a function of its data: three and then two do not fit into four, and two and one
    do."""
    assert [(3, 0), (2, 1), (1, 1)] == await run_through(world, weighed)


async def test_each_poll_waits_for_the_limit(world: World) -> None:
    """Each call of a poll waits for the limit of its state."""
    assert [("look", 0), ("look", 1), ("look", 2)] == await run_through(world, polling)


async def test_each_step_of_a_stepped_state_waits_for_the_limit(world: World) -> None:
    """Each step of a stepped state waits for the limit, with a cost that may depend on the cursor."""
    assert [(None, 0), (1, 0), (2, 1)] == await run_through(world, stepping)


async def test_the_items_of_a_batch_wait_for_the_limit(world: World) -> None:
    """Not so its load and its finish."""
    assert [(0, 0), (1, 0), (2, 1)] == await run_through(world, batching)


async def test_the_windows_of_a_stream_wait_for_the_limit(world: World) -> None:
    """One window of two items in an hour."""
    calls = await run_through(world, streaming)

    assert [((0, 1), 0), ((2,), 1)] == [(what, at) for what, at in calls if isinstance(what, tuple)]


async def test_branches_of_a_split_bring_their_own(world: World) -> None:
    """Two steps that share a limit share it in a machine too."""
    assert [("branch", 0), ("other", 1)] == await run_through(world, splitting)


async def test_a_state_may_fail_at_once(world: World) -> None:
    """A state that does not wait for its full limit fails, and its run fails with that."""
    async with world.engine() as engine:
        with pytest.raises(RunFailedError, match="rate limit machine impatient is full"):
            await (await engine.start(impatient, Data())).result()
    assert [("hurry", 0)] == noted()


async def test_a_state_waits_for_its_breaker(world: World) -> None:
    """Two attempts open it, and the third one has not been used up by waiting."""
    assert ["try", "try", "try"] == [what for what, _ in await run_through(world, broken)]
    assert [0, 0, 60] == [at for _, at in noted()]


async def test_a_waiting_state_survives_a_crash(world: World) -> None:
    """It is entered once, and its handler is called once."""
    async with world.engine() as engine:
        await engine.start(plain, Data(wanted=2), id="machine")
        await engine.settle()
        await die(engine)
    async with world.engine() as engine:
        await engine.get("machine").result()

    assert ["work", "work"] == [what for what, _ in noted()]


@pytest.mark.parametrize("made", [plain, streaming, batching], ids=lambda made: made.name)
async def test_a_waiting_machine_is_cancelled_at_once(world: World, made: outlive.Machine[S, Data]) -> None:
    """A stream too: a window that waits has read nothing that would have to be flushed."""
    async with world.engine() as engine:
        run = await engine.start(made, Data())
        await engine.settle()
        assert "waiting" == await run.status()

        assert "cancelled" == await give_up(run, engine)
        assert 0 == world.seconds


def test_a_cost_that_wants_more_than_it_is_given_is_refused() -> None:
    """When the state is defined."""
    stage.values["world"] = World("memory:")
    with pytest.raises(DefinitionError, match="wants more than the 1 it is given"):
        machine("wrong").state(S.WORK, limit=hourly("wrong"), cost=lambda data, cursor: 1)(work)
