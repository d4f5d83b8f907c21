"""Generations: a run goes on as a new one, with the same id and a fresh journal, and loses nothing on the way."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path
from typing import Any

import pytest

import outlive
from outlive.errors import ConfigurationError, RunCancelledError, RunFailedError, RunFinishedError, RunTimedOutError
from outlive.errors.program import NotInRunError
from outlive.errors.run import RunContinuedError
from outlive.events import RunContinued, RunCreated, SignalReceived, StepSucceeded
from tests.engine.dying import die_at_each_commit
from tests.engine.faults import FaultyStore, faulty
from tests.engine.inside import journal_of
from tests.engine.support import (
    DAY,
    Place,
    events_of,
    hold,
    in_time,
    note,
    parks,
    registry_of,
    stage,
    until,
    waits,
)

pytestmark = pytest.mark.any_store


@outlive.workflow
async def counts_down(left: int, total: int = 0) -> int:
    if not left:
        return total
    return outlive.continue_as_new(left - 1, total=total + await add_left(left))


@outlive.step
async def add_left(n: int) -> int:
    stage.call(n)
    return n


@outlive.workflow
async def collects(wanted: int, got: list[int]) -> list[int]:
    """Takes one signal in each generation."""
    if len(got) == wanted:
        return got
    value = await outlive.wait_for_signal("item", int)
    await note(f"took {value}")
    return outlive.continue_as_new(wanted, [*got, value])


@outlive.workflow
async def cleans_up(left: int) -> str:
    try:
        if left:
            outlive.continue_as_new(left - 1)
        return "done"
    except Exception:
        return "caught it"
    finally:
        await note(f"cleaned {left}")


@outlive.workflow
async def child_that_sleeps() -> None:
    try:
        await asyncio.sleep(DAY)
    finally:
        await note("child cleaned up")


@outlive.workflow
async def leaves_things_open(left: int) -> str:
    if not left:
        return "done"
    await outlive.start(child_that_sleeps)
    branch = asyncio.ensure_future(hold("branch"))
    await note("ready")
    await stage_gate("ready")
    assert not branch.done()
    return outlive.continue_as_new(left - 1)


@outlive.step
async def stage_gate(name: str) -> None:
    await stage.gate(name).pass_through()


@outlive.workflow
async def winds_up_slowly(left: int) -> str:
    if not left:
        return "done"
    await outlive.start(child_that_holds)
    await note("started")
    return outlive.continue_as_new(left - 1)


@outlive.workflow
async def child_that_holds() -> None:
    try:
        await asyncio.sleep(DAY)
    finally:
        await hold("winding up")


@outlive.workflow
async def continues_in_branch(how: str, left: int) -> str:
    if not left:
        return how
    if how == "gather":
        await asyncio.gather(continue_soon(how, left - 1), hold("other"))
    async with asyncio.TaskGroup() as group:
        group.create_task(continue_soon(how, left - 1))
        group.create_task(hold("other"))
    return "not reached"


async def continue_soon(how: str, left: int) -> None:
    await stage_gate("branch")
    outlive.continue_as_new(how, left)


@outlive.workflow(name="widens")
async def widens(name: str) -> str:
    outlive.continue_as_new(name, 2, workflow=widens_2)


@outlive.workflow(name="widens", version=2)
async def widens_2(name: str, size: int) -> str:
    if size == 2:
        outlive.continue_as_new(workflow=widened.bind(name, size=3))
    return "not reached"


@outlive.workflow
async def widened(name: str, *, size: int) -> str:
    return f"{name} {size}"


@outlive.workflow
async def continues_wrongly(how: str) -> Any:
    try:
        if how == "arguments":
            outlive.continue_as_new("arguments", 2, 3)
        else:
            outlive.continue_as_new(object())
    except TypeError as error:
        return f"{type(error).__name__}: {error}"


@outlive.workflow
async def continues_as_child() -> None:
    await asyncio.sleep(0)
    outlive.continue_as_new()


@outlive.workflow
async def calls_continuing_child() -> str:
    try:
        await continues_as_child()
    except ConfigurationError as error:
        return str(error)
    except RunFailedError as error:
        return str(error)
    return "it went"


@outlive.workflow
async def starts_generations(left: int) -> int:
    child = await outlive.start(counts_down, left, detached=True, id="detached")
    return await child.result()


@outlive.workflow
async def fails_at_last(left: int) -> None:
    if left:
        outlive.continue_as_new(left - 1)
    raise ValueError("in the end")


@outlive.workflow
async def runs_for_ever(turn: int) -> None:
    outlive.publish(turn=turn, born=turn if not turn else None)
    await asyncio.sleep(60)
    outlive.continue_as_new(turn + 1)


# -- Going on ------------------------------------------------------------------------------------------------------


async def test_the_result_is_that_of_the_last_generation(engine: outlive.Engine) -> None:
    """A caller that waits from the start waits across all of them."""
    run = await engine.start(counts_down, 5, id="r")

    assert await in_time(run.result()) == 15
    assert stage.calls == [5, 4, 3, 2, 1]
    assert await in_time(engine.get("r").result()) == 15


async def test_earlier_generations_stay_in_the_store_under_names_of_their_own(engine: outlive.Engine) -> None:
    """Each with its own journal."""
    run = await engine.start(counts_down, 2, id="r")
    await in_time(run.result())

    assert (await events_of(run, RunCreated))[0].generation == 2
    for number in (1, 2):
        old = engine.get(f"r~gen{number}")
        assert await old.status() == "continued"
        assert len(await events_of(old, StepSucceeded)) == 1
        assert len(await events_of(old, RunContinued)) == 1
        assert "continued" in await old.why()
        with pytest.raises(RunContinuedError, match=r"ask for that of 'r'"):
            await old.result()
        with pytest.raises(RunFinishedError):
            await old.signal("item", 1)


async def test_another_process_waits_across_generations_too(place: Place) -> None:
    """It sees only rows, and none of them is the end before the end."""
    async with place.engine(worker=False) as client:
        run = await client.start(collects, 2, [], id="r")
        result = asyncio.ensure_future(run.result())
        async with place.engine() as engine:
            await engine.signal("r", "item", 1)
            await until(lambda: _exists(engine, "r~gen1"))
            assert not result.done()
            await engine.signal("r", "item", 2)
            assert await in_time(result) == [1, 2]


async def _exists(engine: outlive.Engine, run_id: str) -> bool:
    return any(run.id == run_id for run in await engine.list())


async def test_finally_blocks_run_and_except_exception_sees_nothing(engine: outlive.Engine) -> None:
    """It unwinds like an exit."""
    run = await engine.start(cleans_up, 2)

    assert await in_time(run.result()) == "done"
    assert stage.calls == ["cleaned 2", "cleaned 1", "cleaned 0"]


async def test_children_and_branches_end_with_their_generation(engine: outlive.Engine) -> None:
    """Children and branches that a generation leaves open are cancelled and awaited before the next one begins."""
    run = await engine.start(leaves_things_open, 1, id="r")
    await stage.gate("branch").reached()
    stage.gate("ready").open()

    assert await in_time(run.result()) == "done"
    assert {"branch cancelled", "child cleaned up"} <= set(stage.calls)
    assert await engine.get("r~gen1~1").status() == "cancelled"
    assert (await engine.get("r~gen1~1").info()).root_id == "r~gen1"


@pytest.mark.parametrize("how", ["gather", "group"])
async def test_any_branch_may_continue_as_new(engine: outlive.Engine, how: str) -> None:
    """A branch of `gather` or of a `TaskGroup` may continue the run as new; the exception group around it does not hide
    that."""
    run = await engine.start(continues_in_branch, how, 1)
    await stage.gate("branch").reached()
    stage.gate("branch").open()

    assert await in_time(run.result()) == how
    assert (await run.info()).id == run.id


async def test_a_run_may_go_on_as_another_version_or_workflow(engine: outlive.Engine) -> None:
    """A run may go on as another version or another workflow, and has the result of the last one."""
    run = await engine.start(widens, "tree", id="r")

    assert await in_time(run.result()) == "tree 3"
    events = [(await events_of(engine.get(f"r~gen{number}"), RunContinued))[0] for number in (1, 2)]
    assert [(event.workflow, event.version) for event in events] == [("widens", 2), ("widened", 1)]


async def test_arguments_are_checked_where_it_is_said(engine: outlive.Engine) -> None:
    """The workflow hears of it while it can still do something about it."""
    wrong = await engine.start(continues_wrongly, "arguments")
    odd = await engine.start(continues_wrongly, "value")

    assert "WrongArgumentsError" in await in_time(wrong.result())
    assert "UnserialisableError" in await in_time(odd.result())


async def test_a_child_cannot_go_on_as_a_new_run(engine: outlive.Engine) -> None:
    """The error says what to do instead."""
    run = await engine.start(calls_continuing_child)

    assert "detached=True" in await in_time(run.result())


def test_continue_as_new_outside_a_workflow_is_refused() -> None:
    """`continue_as_new` outside a workflow raises NotInRunError with its own name in the message."""
    with pytest.raises(NotInRunError, match="continue_as_new"):
        outlive.continue_as_new()


async def test_a_failure_of_the_last_generation_is_the_failure_of_the_run(engine: outlive.Engine) -> None:
    """With its cause."""
    run = await engine.start(fails_at_last, 2)

    with pytest.raises(RunFailedError, match="in the end"):
        await in_time(run.result())


# -- What is carried over ------------------------------------------------------------------------------------------


async def test_tags_deadline_and_publications_are_carried_over(place: Place) -> None:
    """The deadline is an instant, and counts for all generations together."""
    async with place.engine() as engine:
        run = await engine.start(runs_for_ever, 0, id="r", tags={"shop": "north"}, timeout=200)
        await waits(run)
        first = await run.info()
        for turn in (1, 2, 3):
            place.clock.skip(seconds=60)
            await until(lambda turn=turn: _exists(engine, f"r~gen{turn}"))  # type: ignore[misc]
            await waits(run)
            now = await run.info()
            assert now.tags == {"shop": "north"}
            assert now.timeout_at == first.timeout_at
            assert await run.published() == {"turn": turn, "born": None}
        place.clock.skip(seconds=60)

        with pytest.raises(RunTimedOutError):
            await in_time(run.result())


async def test_signals_that_were_not_taken_reach_the_next_generation_in_order(engine: outlive.Engine) -> None:
    """Ten at once, one for each generation."""
    for number in range(10):
        await engine.signal("r", "item", number, start=(collects, 10, []))

    assert await in_time(engine.get("r").result()) == list(range(10))


async def test_a_key_counts_across_generations(engine: outlive.Engine) -> None:
    """A webhook that is sent again after the run went on is still the same signal."""
    run = await engine.start(collects, 2, [], id="r")
    await run.signal("item", 1, key="evt-1")
    await until(lambda: _exists(engine, "r~gen1"))
    await run.signal("item", 1, key="evt-1")
    await run.signal("item", 2, key="evt-2")

    assert await in_time(run.result()) == [1, 2]


async def test_the_starter_gets_only_the_last_end(engine: outlive.Engine) -> None:
    """A detached run may have as many generations as it likes."""
    run = await engine.start(starts_generations, 3)

    assert await in_time(run.result()) == 6
    assert (await engine.get("detached").info()).parent_id == run.id


# -- Cancelling ----------------------------------------------------------------------------------------------------


async def test_a_cancel_that_comes_while_it_goes_on_reaches_the_next_generation(place: Place) -> None:
    """The message lies in the inbox of the old one when the change is on its way."""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores)) as engine, place.engine(worker=False) as client:
        run = await engine.start(runs_for_ever, 0, id="r")
        await waits(run)
        stores[0].gates["read_inbox"] = asyncio.Event()
        await client.cancel("r", reason="enough")
        place.clock.skip(seconds=60)
        stores[0].gates["read_inbox"].set()

        with pytest.raises(RunCancelledError, match="enough"):
            await in_time(run.result())


async def test_a_cancel_that_comes_while_it_winds_up_ends_it(engine: outlive.Engine) -> None:
    """It has said that it wants to go on, and a child still cleans up."""
    run = await engine.start(winds_up_slowly, 1, id="r")
    await stage.gate("winding up").reached()
    await run.cancel(reason="enough")
    await until(lambda: _has_taken(run))
    stage.gate("winding up").open()

    with pytest.raises(RunCancelledError, match="enough"):
        await in_time(run.result())
    assert not await _exists(engine, "r~gen1")


async def _has_taken(run: Any) -> bool:
    return any(type(event).__name__ == "CancelRequested" for event in await journal_of(run))


async def test_a_signal_that_comes_while_it_winds_up_is_carried_over(engine: outlive.Engine) -> None:
    """No code of the old generation can take it any more."""
    run = await engine.start(winds_up_then_listens, 1, id="r")
    await stage.gate("winding up").reached()
    await run.signal("late", "hello")
    await until(lambda: _has_signal(run))
    stage.gate("winding up").open()

    assert await in_time(run.result()) == "hello"


@outlive.workflow
async def winds_up_then_listens(left: int) -> str:
    if not left:
        return await outlive.wait_for_signal("late", str)
    await outlive.start(child_that_holds)
    await note("started")
    return outlive.continue_as_new(left - 1)


async def _has_signal(run: Any) -> bool:
    return bool(await events_of(run, SignalReceived))


async def test_children_of_the_same_number_are_cancelled_each_for_itself(engine: outlive.Engine) -> None:
    """A cancel of the old generation's first child is not one of the new generation's."""
    run = await engine.start(has_a_child_to_cancel, 1, id="r")
    for generation in (0, 1):
        await waits(run)
        assert (await events_of(run, RunCreated))[0].generation == generation
        await engine.cancel("r~1", reason=f"of {generation}")
        if not generation:
            await until(lambda: _exists(engine, "r~gen1"))

    assert await in_time(run.result()) == "cancelled"


@outlive.workflow
async def has_a_child_to_cancel(left: int) -> str:
    child = await outlive.start(child_that_sleeps)
    try:
        await child.result()
    except RunCancelledError:
        if left:
            outlive.continue_as_new(left - 1)
        return "cancelled"
    return "it ended"


# -- Replacing, crashing, missing code -----------------------------------------------------------------------------


async def test_a_replaced_run_does_not_take_the_names_of_earlier_generations(engine: outlive.Engine) -> None:
    """Generations of one id are counted on."""
    run = await engine.start(counts_down, 2, id="r")
    await in_time(run.result())
    again = await engine.start(counts_down, 2, id="r", on_conflict="replace")

    assert await in_time(again.result()) == 3
    names = {run.id for run in await engine.list()}
    assert names == {"r", "r~old1", "r~gen1", "r~gen2", "r~gen3", "r~gen4"}


async def test_a_generation_whose_code_is_not_here_waits_for_it(place: Place) -> None:
    """It is created all the same, and says what it waits for."""
    async with place.engine(registry=registry_of(widens)) as engine:
        run = await engine.start(widens, "tree", id="r")
        await until(lambda: _exists(engine, "r~gen1"))
        assert await run.why() == "no live worker has widens@2; start one that defines it"
    async with place.engine() as engine:
        assert await in_time(engine.get("r").result()) == "tree 3"


async def test_arguments_that_are_too_large_park_the_old_generation(place: Place) -> None:
    """Nothing is lost, and with another limit it goes on."""
    async with place.engine(limits=outlive.limits.Limits(payload_bytes_max=40_000)) as engine:
        run = await engine.start(widens_heavy, 0, "", id="r")
        assert "payload_bytes_max" in await parks(run)
    async with place.engine() as engine:
        await engine.resume("r")
        assert await in_time(engine.get("r").result()) == 50_000


@outlive.workflow
async def widens_heavy(turn: int, text: str) -> int:
    if turn:
        return len(text)
    return outlive.continue_as_new(1, "x" * 50_000)


async def test_a_worker_that_dies_at_any_commit_loses_and_doubles_nothing(place: Place) -> None:
    """There is exactly one open generation at every moment, and every signal is taken once."""
    async with place.engine(worker=False) as client:
        run = await client.start(collects, 6, [], id="r")
        for number in range(4):
            await run.signal("item", number, key=f"k{number}")
        deaths = 0
        async for _ in die_at_each_commit(place, "r"):
            deaths += 1
            if deaths == 2:
                for number in range(3, 6):
                    await run.signal("item", number, key=f"k{number}")
            rows = {run.id: run.status for run in await client.list()}
            assert rows.pop("r") != "continued"
            assert set(rows.values()) <= {"continued"}
            assert sorted(rows) == [f"r~gen{number}" for number in range(1, len(rows) + 1)]

        assert deaths > 10
        assert await run.result() == list(range(6))


@outlive.workflow
async def goes_on_and_on(left: int) -> str:
    if left:
        outlive.continue_as_new(left - 1)
    return "done"


@pytest.mark.slow
async def test_ten_thousand_generations_leave_nothing_in_memory(tmp_path: Path) -> None:
    """A worker holds about as many objects after ten thousand generations as after three hundred."""
    async with Place(tmp_path / "generations.db").engine() as engine:

        async def live_through(generations: int) -> int:
            run = await engine.start(goes_on_and_on, generations)
            async with asyncio.timeout(1_000):
                assert await run.result() == "done"
            gc.collect()
            return len(gc.get_objects())

        before = await live_through(300)
        assert await live_through(10_000) < before + 500
