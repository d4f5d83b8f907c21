"""States of a machine: what is journaled of them, what a handler may do, and what it may not."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

import pytest

import outlive
from outlive import Retry
from outlive.errors import RunCancelledError, RunExistsError, RunFailedError
from outlive.events import AttemptFailed, RunSuspended, StateLeft, StepFailed, StepSucceeded
from outlive.machine import MachineResult
from outlive.testing import TestEngine
from tests.engine.inside import crash
from tests.engine.support import Place, events_of, in_time, note, parks, stage, waits

pytestmark = pytest.mark.any_store


class S(enum.Enum):
    """What an order goes through."""

    RESERVE = "reserve"
    CHOOSE = "choose"
    AGAIN = "again"
    ASK = "ask"
    DONE = "done"
    LOST = "lost"


@dataclass
class Order:
    """What it carries."""

    cents: int = 0
    said: list[str] = field(default_factory=list)


order = outlive.Machine("states.order", S, data=Order, start=S.RESERVE, exits={S.DONE, S.LOST})


@order.state(S.RESERVE, retry=Retry(attempts=3, first=0))
async def reserve(data: Order) -> S:
    """Fails as often as the test wants, after it has changed its copy."""
    data.said.append("reserved")
    stage.call(f"reserve {data.cents}")
    if stage.count(f"reserve {data.cents}") <= stage.values.get("failures", 0):
        raise ValueError("not yet")
    return S.CHOOSE


@order.router(S.CHOOSE)
def choose(data: Order) -> S:
    """A router sees a copy: what it does to the copy changes nothing."""
    data.said.append("router")
    return S.AGAIN if data.cents > 0 else S.LOST


@order.state(S.AGAIN)
def again(data: Order) -> tuple[S, Order]:
    """A sync handler, other data, and a self-loop."""
    stage.call("again")
    left = data.cents - 1
    return S.AGAIN if left else S.ASK, Order(left, [*data.said, f"again {left}"])


@order.workflow(S.ASK)
async def ask(data: Order) -> S:
    """Steps and signals, as in any workflow."""
    data.said.append(await note("asked"))
    data.said.append(await outlive.wait_for_signal("answer", str))
    return S.DONE


async def test_a_transition_is_one_row_and_a_router_none(engine: outlive.Engine) -> None:
    """Data and next state stand together in the row of the state that was left. [CA-U1 FE-A3 FE-S2]"""
    run = await engine.start(order, Order(2), id="order-1")
    await engine.signal("order-1", "answer", "yes")

    result = await in_time(run.result())

    assert result == MachineResult(S.DONE, Order(0, ["reserved", "again 1", "again 0", "asked", "yes"]))
    calls = [event.call for event in await events_of(run, StepSucceeded)]
    assert calls == ["states.order.RESERVE", "states.order.AGAIN", "states.order.AGAIN#2", "note"]
    assert [event.call for event in await events_of(run, StateLeft)] == ["@state/states.order.ASK"]


async def test_an_exit_can_be_where_a_router_leads(engine: outlive.Engine) -> None:
    """One handler, one row."""
    run = await engine.start(order, Order(0))

    assert await in_time(run.result()) == MachineResult(S.LOST, Order(0, ["reserved"]))
    assert 1 == len(await events_of(run, StepSucceeded))


async def test_a_handler_that_raises_changes_nothing(engine: outlive.Engine) -> None:
    """The next attempt is given the data as it was."""
    stage.values["failures"] = 2
    run = await engine.start(order, Order(0))

    assert (await in_time(run.result())).data.said == ["reserved"]
    assert 2 == len(await events_of(run, AttemptFailed))


async def test_a_state_that_fails_for_good_fails_the_run(engine: outlive.Engine) -> None:
    """With what its handler raised."""
    stage.values["failures"] = 3
    run = await engine.start(order, Order(0))

    with pytest.raises(RunFailedError, match="ValueError: not yet"):
        await in_time(run.result())
    assert ["states.order.RESERVE"] == [event.call for event in await events_of(run, StepFailed)]


async def test_states_before_the_crash_do_not_run_again(place: Place) -> None:
    """Another process goes on in the state where the first one waited. [CA-X3]"""
    first = await place.engine().__aenter__()
    await waits(await first.start(order, Order(1), id="order-1"))
    await crash(first)

    async with place.engine() as second:
        await second.signal("order-1", "answer", "late")
        result = await in_time(second.get("order-1").result())

    assert result.data.said == ["reserved", "again 0", "asked", "late"]
    assert stage.calls == ["reserve 1", "again", "asked"]


async def test_a_finished_machine_gives_its_result_at_once(place: Place) -> None:
    """Another process asks for the same id: nothing runs again. [CA-U4]"""
    async with place.engine() as first:
        await in_time((await first.start(order, Order(0), id="order-1")).result())
    stage.calls.clear()

    async with place.engine() as second:
        run = await second.start(order, Order(0), id="order-1")
        assert (await in_time(run.result())).state is S.LOST
    assert stage.calls == []


async def test_a_run_without_an_id_is_given_one(place: Place) -> None:
    """By which every other process finds it. [CA-U3]"""
    async with place.engine() as first:
        run = await first.start(order, Order(0))
        await in_time(run.result())

    async with place.engine() as second:
        assert (await in_time(second.get(run.id).result())).state is S.LOST


async def test_a_fresh_run_over_another_one_is_refused(engine: outlive.Engine) -> None:
    """An id means one run; a start that does not want to join it raises, because the id is taken. [CA-U11]"""
    await engine.start(order, Order(0), id="order-1")

    with pytest.raises(RunExistsError):
        await engine.start(order, Order(7), id="order-1", on_conflict="reject")


async def test_a_cancelled_machine_stops_where_it_is(engine: outlive.Engine) -> None:
    """In the middle of workflow code."""
    run = await engine.start(order, Order(1), id="order-1")
    await waits(run)
    await run.cancel()

    with pytest.raises(RunCancelledError):
        await in_time(run.result())
    assert [] == await events_of(run, StateLeft)


# -- What a handler returns --------------------------------------------------------------------------------------------


class T(enum.Enum):
    """Two states."""

    BEGIN = 1
    ROUTE = 2
    END = 3


wrong = outlive.Machine("states.wrong", T, data=dict[str, Any], start=T.BEGIN, exits=[T.END])


@wrong.state(T.BEGIN, to=[T.ROUTE, T.END])
async def wrong_begin(data: dict[str, Any]) -> Any:
    """Whatever the test wants."""
    return {"nothing": None, "self": T.BEGIN, "route": T.ROUTE, "object": (T.END, {"a": object()})}[data["return"]]


@wrong.router(T.ROUTE)
def wrong_route(data: dict[str, Any]) -> Any:
    """Nowhere."""
    return "nowhere"


@pytest.mark.parametrize(
    ("what", "message"), [("nothing", "returned None; return T.END or T.ROUTE"), ("self", "returned <T.BEGIN: 1>")]
)
async def test_a_handler_must_say_where_to_go(what: str, message: str) -> None:
    """A handler that returns nothing, or a state that it did not declare, fails its run with the states to return."""
    async with TestEngine() as engine:
        run = await engine.start(wrong, {"return": what})

        with pytest.raises(RunFailedError, match=message):
            await run.result()


async def test_data_without_a_stored_form_is_a_failure_of_its_state() -> None:
    """The journal cannot have it. [CA-U16]"""
    async with TestEngine() as engine:
        run = await engine.start(wrong, {"return": "object"})

        with pytest.raises(RunFailedError, match=r"data of machine states\.wrong after BEGIN"):
            await run.result()


async def test_a_router_that_leads_nowhere_parks_the_run(engine: outlive.Engine) -> None:
    """It is code that must be repaired; failing the run would lose it."""
    run = await engine.start(wrong, {"return": "route"})

    assert "state ROUTE of machine states.wrong returned 'nowhere'" in await parks(run)


class R(enum.Enum):
    """Routers."""

    A = 1
    B = 2
    END = 3


circle = outlive.Machine("states.circle", R, start=R.A, exits=[R.END])


@circle.router(R.A)
def circle_a() -> R:
    """There."""
    return R.B


@circle.router(R.B)
def circle_b() -> R:
    """And back."""
    return R.A


async def test_routers_in_a_circle_park_the_run(engine: outlive.Engine) -> None:
    """They are pure, so they would go round for ever. A machine without data takes none."""
    run = await engine.start(circle)

    assert "its routers go in a circle: A -> B -> A" in await parks(run)
    assert [] == await events_of(run, RunSuspended)


# -- Where a machine may stand -----------------------------------------------------------------------------------------


@outlive.workflow
async def states_parent(cents: int) -> str:
    """A machine is a workflow: it may be the child of another run."""
    result = await order(Order(cents))
    return f"{result.state.name} {result.data.cents}"


async def test_a_machine_can_be_a_child(engine: outlive.Engine) -> None:
    """Called like any workflow."""
    assert "LOST 0" == await in_time((await engine.start(states_parent, 0)).result())


async def test_a_machine_can_be_tried_without_an_engine() -> None:
    """Without a store there is no journal, and nothing to resume; handlers are plain functions still. [CA-U2]"""
    assert await order(Order(0)) == MachineResult(S.LOST, Order(0, ["reserved"]))
    assert again(Order(1)) == (S.ASK, Order(0, ["again 0"]))


async def test_a_machine_can_be_the_work_of_a_batch(engine: outlive.Engine) -> None:
    """One for each row, and one for each item of a map."""
    batch = await engine.start_batch(order, [Order(0), Order(0, ["before"])], id="batch-1")

    results: list[Any] = await in_time(batch.results())
    assert [result.data.said for result in results] == [["reserved"], ["before", "reserved"]]
    assert ["LOST", "LOST"] == await in_time((await engine.start(states_map)).result())


@outlive.workflow
async def states_map() -> list[str]:
    """A map of machines."""
    return [result.state.name for result in await outlive.map(order, [Order(0), Order(0)])]


# -- Kinds of steps, and generations -----------------------------------------------------------------------------------

special = outlive.Machine("states.special", T, data=list[str], start=T.BEGIN, exits=[T.END])


@special.state(T.BEGIN, transaction=True)
async def special_begin(tx: Any, data: list[str]) -> T:
    """Its rows commit with the transition."""
    await tx.execute("CREATE TABLE IF NOT EXISTS special (id INTEGER NOT NULL)")
    await tx.execute("INSERT INTO special (id) VALUES (1)")
    data.append(f"{await tx.fetchval('SELECT count(*) FROM special')} row")
    return T.ROUTE


@special.state(T.ROUTE, once=True)
async def special_once(data: list[str]) -> T:
    """Never a second time."""
    stage.call("once")
    await stage.gate("once").pass_through()
    return T.END


@pytest.mark.parametrize("place", ["sqlite", "postgres"], indirect=True)
@pytest.mark.every_store
async def test_a_state_can_be_any_kind_of_step(place: Place) -> None:
    """A transaction that commits with the transition, and a step that is called once: after a crash it is not again."""
    first = await place.engine().__aenter__()
    await first.start(special, [], id="run-1")
    await stage.gate("once").reached()
    await crash(first)
    stage.gate("once").open()

    async with place.engine() as second:
        with pytest.raises(RunFailedError, match="was interrupted"):
            await in_time(second.get("run-1").result())
        assert (await in_time((await second.start(special, [])).result())).data == ["2 row"]
    assert stage.calls == ["once", "once"]


endless = outlive.Machine("states.endless", T, data=int, start=T.BEGIN, exits=[T.END])


@endless.state(T.BEGIN)
async def endless_begin(data: int) -> tuple[T, int]:
    """One more."""
    return (T.ROUTE if data < 3 else T.END), data + 1


@endless.workflow(T.ROUTE)
async def endless_anew(data: int) -> T:
    """From the start, with a fresh journal."""
    outlive.continue_as_new(data)


async def test_a_machine_can_go_on_as_a_new_generation(engine: outlive.Engine) -> None:
    """Its journal does not grow; what waits for it waits for the last one."""
    run = await engine.start(endless, 0, id="run-1")

    assert await in_time(run.result()) == MachineResult(T.END, 4)
    assert 1 == len(await events_of(run, StepSucceeded))
