"""Cancelling: at any point, once, through the whole tree, with time to clean up; and runs that take too long."""

from __future__ import annotations

import asyncio
import gc
from contextlib import suppress
from typing import Any

import pytest

from outlive import start, wait_for_signal
from outlive.errors import RunCancelledError, RunTimedOutError
from tests.replay.define import Code, cancel, signal, step, workflow
from tests.replay.driver import live
from tests.replay.life import Life, assert_replays

SEEDS = [None, *range(6)]


@step()
async def work(n: int) -> int:
    """Something to cancel."""
    return n


@step()
async def clean_up(what: str) -> None:
    """Something to do all the same."""


@workflow()
async def child(n: int) -> int:
    """A run inside the tree that cleans up after itself."""
    try:
        await asyncio.sleep(n)
        return await work(n)
    finally:
        await clean_up(f"child {n}")


@workflow()
async def busy() -> str:
    """Everything that a workflow can wait for, one after the other and side by side."""
    try:
        await work(1)
        await asyncio.sleep(5)
        await asyncio.gather(work(2), child(3), asyncio.sleep(4))
        async with asyncio.timeout(100):
            await wait_for_signal("go")
        async with asyncio.TaskGroup() as group:
            group.create_task(work(4))
            group.create_task(child(1))
        return "done"
    finally:
        await clean_up("parent")


CODE = Code(busy, child)


def uncancelled() -> Life:
    """How the busy workflow lives when it is left alone."""
    return live(busy, code=CODE, messages=[signal("go")])


@pytest.mark.parametrize("at", range(1, len(uncancelled().journal) - 1))
@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_can_be_cancelled_at_every_point(at: int, seed: int | None) -> None:
    """Wherever the cancel arrives the run ends as cancelled, its clean-up has run, and nothing is left to do."""
    life = live(
        busy, code=CODE, seed=seed, messages=[signal("go")], inject={at: [cancel("enough")]}, crash_at=range(99)
    )

    if life.asked[at - 1] and life.asked[at - 1][-1][:2] == ("end", 0):
        assert life.status == "succeeded", "too late: the workflow had returned"
    else:
        assert life.status == "cancelled"
        assert life.end is not None
        assert life.end.reason == "enough"  # type: ignore[union-attr]
    assert life.books[-1].outstanding == ()
    assert life.books[-1].waits == ()
    assert_replays(life)


def test_a_cancel_before_the_first_turn_runs_nothing_of_the_workflow() -> None:
    """A child that is cancelled before its first turn runs nothing, as an asyncio task does that was cancelled before
    it began."""
    life = live(parent_that_gives_up, code=Code(parent_that_gives_up, child))

    assert "1:clean_up" not in life.steps_run
    assert life.result == "gave up"


@workflow()
async def parent_that_gives_up() -> str:
    """Asks for a child and gives it up in the same breath, before it exists."""
    task = asyncio.create_task(child(1))
    await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    return "gave up"


def test_finally_blocks_run_their_steps_on_cancel() -> None:
    """The clean-up of parent and child is journaled like everything else."""
    life = live(busy, code=CODE, inject={6: [cancel()]}, crash_at=range(99))

    assert life.status == "cancelled"
    assert {"clean_up", "1:clean_up"} <= set(life.steps_run)
    assert_replays(life)


@pytest.mark.parametrize("at", range(2, 8))
def test_cancelling_twice_is_cancelling_once(at: int) -> None:
    """The second request does not disturb the clean-up, and the first reason counts."""
    inject = {2: [cancel("first")], at: [cancel("first"), cancel("second")]}
    life = live(busy, code=CODE, inject=inject)

    assert life.status == "cancelled"
    assert life.steps_run[-1] == "clean_up"
    assert life.end is not None
    assert life.end.reason == "first"  # type: ignore[union-attr]
    assert_replays(life)


@workflow()
async def stubborn() -> str:
    """Does not want to be cancelled."""
    for n in range(3):
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(10)
            await work(n)
    return "I am not cancelled"


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_workflow_that_catches_the_cancel_and_returns_has_succeeded(at: int) -> None:
    """It may go on for as long as it wants, whatever crashes meanwhile."""
    life = live(stubborn, inject={at: [cancel()]}, crash_at=range(99))

    assert life.status == "succeeded"
    assert_replays(life)


@workflow()
async def fails_on_cancel() -> str:
    """Raises something else when it is cancelled."""
    try:
        await asyncio.sleep(10)
    except asyncio.CancelledError:
        raise ValueError("the clean-up failed") from None
    return "done"


def test_a_clean_up_that_fails_fails_the_run() -> None:
    """A run whose clean-up raises after a cancel has failed."""
    assert live(fails_on_cancel, inject={1: [cancel()]}).status == "failed"


@workflow()
async def cancels_itself() -> None:
    """Raises the error of asyncio itself."""
    raise asyncio.CancelledError


def test_a_workflow_can_cancel_itself() -> None:
    """Without a request it is a cancelled run all the same."""
    life = live(cancels_itself)

    assert life.status == "cancelled"
    assert life.end is not None
    assert life.end.reason == "the workflow cancelled itself"  # type: ignore[union-attr]


# -- Trees ----------------------------------------------------------------------------------------------------


@workflow()
async def asks_for_the_child() -> str:
    """Says what became of its child."""
    try:
        return f"{await child(100)}"
    except RunCancelledError as error:
        return str(error)


def test_a_child_can_be_cancelled_alone() -> None:
    """Its parent hears of it as an error, and goes on."""
    life = live(
        asks_for_the_child,
        code=Code(asks_for_the_child, child),
        inject={2: [cancel("no need", run=1)]},
        crash_at=range(99),
    )

    assert life.result == "run r~1 was cancelled: no need"
    assert "1:clean_up" in life.steps_run
    assert_replays(life)


@workflow()
async def leaves_its_child(seconds: float) -> str:
    """Returns while its child is running, or before it exists."""
    await start(child, 100)
    if seconds:
        await asyncio.sleep(seconds)
    return "gone"


@pytest.mark.parametrize("seconds", [0, 5])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_child_ends_with_its_parent_at_the_latest(seed: int | None, seconds: float) -> None:
    """The end of the parent is the last event of the journal; its child was cancelled before."""
    life = live(leaves_its_child, seconds, code=Code(leaves_its_child, child), seed=seed, crash_at=range(99))

    assert life.result == "gone"
    assert life.kinds[-2:] == ["RunCancelled", "RunSucceeded"]
    assert life.books[-1].waits == ()
    assert_replays(life)


@pytest.mark.parametrize("how", ["leaves_its_child", "parent_that_gives_up"])
def test_the_end_of_a_child_that_is_not_waited_for_is_not_logged(how: str, caplog: pytest.LogCaptureFixture) -> None:
    """It is in the child's own row; asyncio would complain of an exception that was never retrieved."""
    if how == "leaves_its_child":
        live(leaves_its_child, 5, code=Code(leaves_its_child, child))
    else:
        live(parent_that_gives_up, code=Code(parent_that_gives_up, child))
    gc.collect()

    assert caplog.text == ""


@workflow()
async def grandparent() -> int:
    """A child with a child."""
    return await middle()


@workflow()
async def middle() -> int:
    """The child in the middle."""
    try:
        return await child(100)
    finally:
        await clean_up("middle")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_cancel_goes_down_the_whole_tree(seed: int | None) -> None:
    """Everybody cleans up, children before their parents end."""
    life = live(
        grandparent, code=Code(grandparent, middle, child), seed=seed, inject={3: [cancel()]}, crash_at=range(99)
    )

    assert life.status == "cancelled"
    assert [event.run for event in life.journal if type(event).__name__ == "RunCancelled"] == [2, 1, 0]
    assert set(life.steps_run) == {"2:clean_up", "1:clean_up"}
    assert_replays(life)


# -- Time -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_that_takes_too_long_times_out(seed: int | None) -> None:
    """It is cancelled from inside, may clean up, and ends as timed out."""
    life = live(busy, code=CODE, seed=seed, timeout=6, crash_at=range(99))

    assert life.status == "timedout"
    assert "clean_up" in life.steps_run
    assert life.books[-1].waits == ()
    assert_replays(life)


@workflow(timeout=10)
async def slow_child() -> None:
    """Sleeps longer than it may."""
    await asyncio.sleep(100)


@workflow()
async def patient_parent() -> str:
    """Says what became of its child."""
    try:
        await slow_child()
    except RunTimedOutError as error:
        return str(error)
    return "in time"


def test_a_child_that_takes_too_long_is_an_error_of_its_parent() -> None:
    """The timeout of the definition counts from the start of the child."""
    life = live(patient_parent, code=Code(patient_parent, slow_child), crash_at=range(99))

    assert life.result == "run r~1 did not end within its timeout"
    assert_replays(life)


def test_the_timer_of_a_timeout_is_gone_when_the_run_ends_in_time() -> None:
    """A run that has ended waits for nothing."""
    life = live(busy, code=CODE, timeout=1000, messages=[signal("go")])

    assert life.status == "succeeded"
    assert life.books[-2].wake_at is None


# -- What a workflow leaves behind ----------------------------------------------------------------------------


async def in_the_background(name: str) -> None:
    """Runs until it is cancelled, and cleans up then."""
    try:
        while True:
            await asyncio.sleep(10)
            await work(1)
    finally:
        await clean_up(name)


@workflow()
async def leaves_tasks(fails: bool) -> str:  # noqa: FBT001
    """Returns or raises while two tasks are running."""
    asyncio.create_task(in_the_background("a"))  # noqa: RUF006
    asyncio.create_task(in_the_background("b"))  # noqa: RUF006
    await asyncio.sleep(25)
    if fails:
        raise ValueError("failed")
    return "done"


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_tasks_left_behind_are_cancelled_and_clean_up_before_the_run_ends(seed: int | None, *, fails: bool) -> None:
    """Tasks that a workflow leaves behind are cancelled and clean up before the run ends, and its outcome stays the
    same."""
    life = live(leaves_tasks, fails, seed=seed, crash_at=range(99))

    assert life.status == ("failed" if fails else "succeeded")
    assert {"1/clean_up", "2/clean_up"} <= set(life.steps_run[-4:])
    assert_replays(life)


@workflow()
async def leaves_a_task_that_makes_a_task() -> str:
    """What is left behind leaves something behind itself."""

    async def last_words() -> None:
        await work(1)
        await clean_up("last words")

    async def left() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            asyncio.create_task(last_words())  # noqa: RUF006

    asyncio.create_task(left())  # noqa: RUF006
    await asyncio.sleep(1)
    return "done"


@pytest.mark.parametrize("seed", SEEDS)
def test_tasks_made_while_winding_up_are_waited_for(seed: int | None) -> None:
    """A run does not end, and does not hang, while something of it is running."""
    life = live(leaves_a_task_that_makes_a_task, seed=seed, crash_at=range(99))

    assert life.result == "done"
    assert life.steps_run == ["1.1/work", "1.1/clean_up"]
    assert_replays(life)


@workflow()
async def leaves_a_callback(how: str) -> str:
    """Plans a callback for later and returns."""
    loop = asyncio.get_running_loop()

    def make_task() -> None:
        asyncio.ensure_future(work(1))  # noqa: RUF006

    if how == "later":
        loop.call_later(10, make_task)
    else:
        loop.call_soon(loop.call_soon, loop.call_soon, make_task)
    return "done"


@workflow()
async def waits_for_who_leaves_a_callback() -> str:
    """Goes on after its child has ended."""
    result = await leaves_a_callback("later")
    await asyncio.sleep(100)
    return result


def test_a_timer_of_a_run_ends_with_it() -> None:
    """Nothing of a child runs after its end: what it had planned for later is off."""
    life = live(waits_for_who_leaves_a_callback, code=Code(waits_for_who_leaves_a_callback, leaves_a_callback))

    assert life.result == "done"
    assert life.steps_run == []
    assert life.kinds.count("TimerFired") == 1
    assert_replays(life)


def test_nothing_is_asked_after_the_end_of_a_run() -> None:
    """The end is asked for when the loop is at rest, not before."""
    life = live(leaves_a_callback, "soon")

    assert life.result == "done"
    assert life.steps_run == ["1/work"]
    assert life.all_asked[-1][:2] == ("end", 0)
    assert_replays(life)


@workflow()
async def leaves_an_error() -> str:
    """A task fails, and its workflow never looks at it."""

    async def fails() -> None:
        raise ValueError("unseen")

    tasks: list[Any] = [asyncio.create_task(fails())]
    await work(1)
    return str(len(tasks))


def test_an_error_that_was_not_looked_at_does_not_change_the_outcome(caplog: pytest.LogCaptureFixture) -> None:
    """The error of a task that the workflow never awaits is logged at once, and the outcome stays the same."""
    life = live(leaves_an_error)

    assert life.result == "1"
    assert "ValueError: unseen" in caplog.text
