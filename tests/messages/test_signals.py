"""Signals: accepted means durable, consumed means once, early means buffered."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest

import outlive
from outlive.errors import ArgumentTypeError, InvalidArgumentError, RunFinishedError, RunNotFoundError
from outlive.errors.program import UnknownWorkflowError
from outlive.errors.run import InboxFullError
from outlive.events import SignalReceived
from outlive.limits import Limits
from outlive.types import RunHandle
from tests.engine.faults import FaultyStore, faulty
from tests.engine.inside import crash
from tests.engine.support import DAY, Place, events_of, hold, in_time, note, reaches, stage, until, waits

pytestmark = pytest.mark.any_store


@outlive.workflow
async def listening(times: int) -> list[Any]:
    return [await outlive.wait_for_signal("said") for _ in range(times)]


@outlive.workflow
async def listening_late(times: int) -> list[Any]:
    await hold("first")
    return [await outlive.wait_for_signal("said") for _ in range(times)]


@outlive.workflow
async def listening_to_two() -> list[str]:
    other = await outlive.wait_for_signal("other", str)
    return [other, await outlive.wait_for_signal("said", str)]


@outlive.workflow
async def listening_with_patience(seconds: float) -> str:
    try:
        async with asyncio.timeout(seconds):
            return str(await outlive.wait_for_signal("said", str))
    except TimeoutError:
        return await note("no word came")


@outlive.workflow
async def listening_child() -> Any:
    return await outlive.wait_for_signal("said")


@outlive.workflow
async def listening_parent() -> list[Any]:
    return list(await asyncio.gather(listening_child(), listening_child(), outlive.wait_for_signal("said")))


async def test_a_signal_wakes_its_run(engine: outlive.Engine) -> None:
    """A suspended run goes on with the payload that was sent."""
    run = await engine.start(listening, 1)
    await waits(run)

    await run.signal("said", {"answer": 42, "sum": Decimal("1.5")})
    assert [{"answer": 42, "sum": Decimal("1.5")}] == await in_time(run.result())


async def test_early_signals_are_buffered_first_in_first_out(engine: outlive.Engine) -> None:
    """Signals that come before the run asks for them are kept, in their order. [TS-R10 AK-X5 FE-W3]"""
    run = await engine.start(listening_late, 3)
    await stage.gate("first").reached()
    for number in range(3):
        await run.signal("said", number)
    stage.gate("first").open()

    assert [0, 1, 2] == await in_time(run.result())


async def test_signals_of_other_names_wait_their_turn(engine: outlive.Engine) -> None:
    """A signal is kept until code waits for its name. [TS-R11]"""
    run = await engine.start(listening_to_two)
    await waits(run)
    await run.signal("said", "b")
    await run.signal("other", "a")

    assert ["a", "b"] == await in_time(run.result())


@pytest.mark.parametrize("is_killed", [False, True])
async def test_an_accepted_signal_survives_a_restart(place: Place, *, is_killed: bool) -> None:
    """A signal that was sent while no worker ran, or just before its engine died, is delivered once.
    [FB-R16 TS-R8 FE-W2]
    """
    first = await place.engine().__aenter__()
    run = await first.start(listening_late, 2, id="run-1")
    await stage.gate("first").reached()
    await run.signal("said", "before")
    await (crash(first) if is_killed else first.__aexit__(None, None, None))
    async with place.engine(worker=False) as client:
        await client.signal("run-1", "said", "between")
    stage.gate("first").open()

    async with place.engine() as second:
        assert ["before", "between"] == await in_time(second.get("run-1").result())
        assert 2 == len(await events_of(second.get("run-1"), SignalReceived))


async def test_signals_with_one_key_are_one_signal(engine: outlive.Engine) -> None:
    """A second signal with the same key is ignored, before the first is consumed, after it, and after the end of the
    run. [FB-R3 TS-R9]"""
    run = await engine.start(listening, 2)
    await run.signal("said", "once", key="evt-1")
    await run.signal("said", "once", key="evt-1")
    await has_taken(run, 1)

    await run.signal("said", "once", key="evt-1")
    await run.signal("said", "twice", key="evt-2")
    assert ["once", "twice"] == await in_time(run.result())
    await run.signal("said", "twice", key="evt-2")
    assert ["evt-1", "evt-2"] == [event.key for event in await events_of(run, SignalReceived)]


async def has_taken(run: RunHandle[Any], signals: int) -> None:
    """Return when a run has consumed this many signals and waits for more."""

    async def is_so() -> bool:
        taken = await events_of(run, SignalReceived)
        return len(taken) == signals and await run.status() == "waiting"

    await until(is_so)


async def test_a_key_counts_for_one_name(engine: outlive.Engine) -> None:
    """A webhook that sends two signals for one event loses neither."""
    run = await engine.start(listening_to_two)
    await run.signal("said", "b", key="evt-1")
    await run.signal("other", "a", key="evt-1")

    assert ["a", "b"] == await in_time(run.result())


async def test_a_signal_may_start_its_run(engine: outlive.Engine) -> None:
    """`start` creates the run with the signal if there is none, and is no more than a signal if there is one."""
    for number in range(3):
        await engine.signal("run-1", "said", number, start=(listening, 3))

        # By its name, where the code is not.
        await engine.signal("run-2", "said", number, start=("listening", [3]), headers={"tenant": "a"})

    assert [0, 1, 2] == await in_time(engine.get("run-1").result()) == await in_time(engine.get("run-2").result())
    with pytest.raises(UnknownWorkflowError, match="listening"):
        await engine.signal("run-3", "said", 1, start=("listenings", [3]))
    with pytest.raises(InvalidArgumentError, match="listening"):
        await engine.signal("run-3", "said", 1, start=("listening", ["three"]))
    with pytest.raises(ArgumentTypeError, match="by name or in a list"):
        await engine.signal("run-3", "said", 1, start=("listening", 1, 2, 3))
    assert ["run-2", "run-1"] == [run.id for run in await engine.list(workflow="listening")]


async def test_a_signal_may_win_against_a_timeout(engine: outlive.Engine) -> None:
    """A wait with a durable timeout ends with the signal if it comes first."""
    run = await engine.start(listening_with_patience, DAY)
    await waits(run)
    await run.signal("said", "in time")

    assert "in time" == await in_time(run.result())


async def test_a_timeout_may_win_against_a_signal(place: Place) -> None:
    """When no signal comes the other branch runs; a later signal changes nothing. [FE-W4]"""
    async with place.engine() as engine:
        run = await engine.start(listening_with_patience, DAY)
        await waits(run)
        place.clock.skip(seconds=DAY)

        assert "no word came" == await in_time(run.result())


async def test_a_run_of_a_tree_has_signals_of_its_own(engine: outlive.Engine) -> None:
    """A signal to a child's id reaches that child and no other run."""
    run = await engine.start(listening_parent, id="run-1")
    await waits(run)
    await engine.signal("run-1~2", "said", "second")
    await engine.signal("run-1", "said", "parent")
    await engine.signal("run-1~1", "said", "first")

    assert ["first", "second", "parent"] == await in_time(run.result())


async def test_one_key_may_go_to_two_runs_of_a_tree(engine: outlive.Engine) -> None:
    """A sender who forwards one event to a parent and its children reaches each of them once."""
    run = await engine.start(listening_parent, id="run-1")
    await waits(run)
    for run_id in ("run-1", "run-1~1", "run-1~2"):
        await engine.signal(run_id, "said", run_id, key="evt-1")

    assert ["run-1~1", "run-1~2", "run-1"] == await in_time(run.result())


async def test_a_finished_run_refuses_signals(engine: outlive.Engine) -> None:
    """The sender gets an error, for the root and for a child that has ended."""
    run = await engine.start(listening_parent, id="run-1")
    await waits(run)
    await engine.signal("run-1~1", "said", 1)
    await reaches(engine.get("run-1~1"), "succeeded")
    with pytest.raises(RunFinishedError, match="succeeded"):
        await engine.signal("run-1~1", "said", 2)
    await engine.signal("run-1~2", "said", 1)
    await engine.signal("run-1", "said", 1)
    await in_time(run.result())

    with pytest.raises(RunFinishedError, match="'run-1' has ended"):
        await run.signal("said", 2)


async def test_an_unknown_run_refuses_signals(engine: outlive.Engine) -> None:
    """The error says how to create the run with the signal."""
    with pytest.raises(RunNotFoundError, match="send it with a workflow to start"):
        await engine.signal("missing", "said", 1)


async def test_an_inbox_has_an_end(place: Place) -> None:
    """One signal more than the limit is refused; after the run has taken some there is room again."""
    async with place.engine(limits=Limits(inbox_messages_max=3), worker=False) as client:
        await client.start(listening, 4, id="run-1")
        for number in range(3):
            await client.signal("run-1", "said", number)
        with pytest.raises(InboxFullError, match="3 messages wait"):
            await client.signal("run-1", "said", 3)

        async with place.engine():
            run = client.get("run-1")
            await waits(run)
            await client.signal("run-1", "said", 3)
            assert [0, 1, 2, 3] == await in_time(run.result())


async def test_a_signal_on_its_way_into_the_journal_is_not_taken_again(place: Place) -> None:
    """A worker that looks at the inbox while an earlier look is still being committed takes nothing twice."""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores)) as engine:
        (store,) = stores
        run = await engine.start(listening_beside_a_step, 2)
        await stage.gate("first").reached()
        store.gates["commit"] = asyncio.Event()
        await run.signal("said", 1)
        await in_time(store.waiting["commit"].wait())
        await run.signal("said", 2)
        for _ in range(3):
            looks = store.calls["find_inboxes"]
            await until_more(store, "find_inboxes", looks + 1)
        store.gates.pop("commit").set()
        stage.gate("first").open()

        assert [1, 2] == await in_time(run.result())
        assert 2 == len(await events_of(run, SignalReceived))


async def until_more(store: FaultyStore, verb: str, calls: int) -> None:
    """Return when a verb was called this often."""

    async def is_so() -> bool:
        return store.calls[verb] >= calls

    await until(is_so)


@outlive.workflow
async def listening_beside_a_step(times: int) -> list[Any]:
    async def hear() -> list[Any]:
        return [await outlive.wait_for_signal("said") for _ in range(times)]

    said: list[Any] = (await asyncio.gather(hear(), hold("first")))[0]
    return said
