"""Dropping: a run leaves memory without a trace, whatever stands in its `finally` blocks, and comes back by replay."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import sys
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from typing import Any

import pytest

from outlive import start, wait_for_signal
from outlive._kernel.journal.event import AnyEvent
from outlive._kernel.replay import closing
from outlive._kernel.replay.feeding import feed
from outlive.events import TimerFired
from outlive.types import Workflow
from tests.replay.define import START_AT, Code, created, signal, step, workflow
from tests.replay.driver import live
from tests.replay.life import describe, fed

EFFECTS: list[str] = []
"""What the bodies of steps have done: nothing of a dropped run may stand here."""
SEEN: list[str] = []
"""What blocks of dropped runs saw."""


@step()
async def effect(what: str) -> str:
    """A step whose body leaves a trace."""
    EFFECTS.append(what)
    return what


@workflow()
async def child() -> str:
    """A run inside the tree."""
    try:
        return await effect("child")
    finally:
        await effect("child's finally")


# -- Workflows that do not go quietly; each is dropped while it waits for the step "wait" ------------------------


@workflow()
async def in_finally() -> str:
    """A step in a finally block, in a finally block."""
    try:
        try:
            return await effect("wait")
        finally:
            await effect("inner finally")
    finally:
        await effect("outer finally")


@workflow()
async def in_except() -> str:
    """Catches everything, and works on."""
    try:
        return await effect("wait")
    except BaseException:
        await effect("except")
        raise


@workflow()
async def sleeps_in_finally() -> str:
    """Waits for time in its clean-up, or for nothing at all."""
    try:
        return await effect("wait")
    finally:
        await asyncio.sleep(0)
        await asyncio.sleep(5)
        await effect("after the sleep")


@workflow()
async def sleeps_deep_inside() -> str:
    """The same further down: the chain of awaits must not be cut in the middle."""

    async def deepest() -> str:
        try:
            return await sleeps_in_finally.fn()
        finally:
            await asyncio.sleep(0)
            await effect("deep")

    try:
        return await deepest()
    finally:
        await asyncio.sleep(0)
        await effect("less deep")


@workflow()
async def waits_in_finally() -> str:
    """Hands coroutines to functions of asyncio in its clean-up."""
    try:
        return await effect("wait")
    finally:
        try:
            await asyncio.wait_for(effect("a"), 5)
        finally:
            async with asyncio.timeout(5):
                await asyncio.shield(effect("b"))


@workflow()
async def everything_in_finally() -> str:
    """All kinds of calls in the clean-up."""
    try:
        return await effect("wait")
    finally:
        try:
            await child()
        finally:
            try:
                await start(child, detached=True, id="x")
            finally:
                try:
                    await wait_for_signal("go")
                finally:
                    asyncio.get_running_loop().call_later(5, EFFECTS.append, "timer")


@workflow()
async def gathers_in_finally() -> str:
    """New tasks in the clean-up."""
    try:
        return await effect("wait")
    finally:
        await asyncio.gather(effect("a"), effect("b"), asyncio.sleep(1))


@workflow()
async def groups_in_finally() -> str:
    """A new group in the clean-up."""
    try:
        return await effect("wait")
    finally:
        async with asyncio.TaskGroup() as group:
            group.create_task(effect("a"))
            group.create_task(effect("b"))


@workflow()
async def in_group() -> str:
    """Waits in the body of a group with open tasks: leaving the group waits for them."""
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(effect("branch"))
            group.create_task(in_a_task())
            return await effect("wait")
    finally:
        await effect("after the group")


async def in_a_task() -> str:
    """A branch with a clean-up of its own."""
    try:
        return await effect("task")
    finally:
        await effect("task's finally")


@workflow()
async def in_gather() -> Any:
    """Branches with clean-ups."""
    try:
        return await asyncio.gather(effect("wait"), in_a_task(), in_a_task())
    finally:
        await effect("after the gather")


@workflow()
async def in_timeout() -> str:
    """Timeouts, nested."""
    async with asyncio.timeout(5):
        try:
            async with asyncio.timeout(3):
                return await effect("wait")
        finally:
            await effect("after the timeout")


@workflow()
async def in_lock() -> str:
    """Others wait for a lock that the dropped task holds."""
    lock, event = asyncio.Lock(), asyncio.Event()

    async def second() -> None:
        async with lock:
            await effect("second")

    async def third() -> None:
        try:
            await event.wait()
        finally:
            await effect("third")

    tasks = [asyncio.create_task(second()), asyncio.create_task(third())]
    async with lock:
        result = await effect("wait")
    event.set()
    await asyncio.gather(*tasks)
    return result


@asynccontextmanager
async def resource(name: str) -> AsyncIterator[str]:
    """Something that is given back with a step."""
    try:
        yield name
    finally:
        await effect(f"release {name}")


@workflow()
async def in_context_managers() -> str:
    """Entered twice, left never."""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(resource("a"))
        async with resource("b"):
            return await effect("wait")


async def generator() -> AsyncGenerator[str, None]:
    """A generator with a clean-up."""
    try:
        yield await effect("wait")
        yield await effect("more")
    finally:
        try:
            await effect("generator's finally")
        finally:
            await effect("generator's very last")


@workflow()
async def in_generator() -> list[str]:
    """Waits inside an async generator."""
    return [item async for item in generator()]


@workflow()
async def closing_generator() -> str:
    """Waits for the clean-up of a generator that it has let go of, or closes itself."""
    forgotten = ""
    async for item in generator():
        forgotten += item
        break
    async with aclosing(generator()) as some:
        async for item in some:
            return item + forgotten
    return "nothing"


@workflow()
async def between_items() -> list[str]:
    """Waits while a generator is half read, and held in a circle."""
    some = generator()
    circle: list[Any] = [some]
    circle.append(circle)
    await effect("wait")
    return [item async for item in some]


@workflow()
async def unawaited() -> list[str]:
    """Has called steps and not awaited them yet."""
    later = [effect("one"), effect("two")]
    result = [await effect("wait")]
    for call in (effect("three"), *later):
        result.append(await call)  # noqa: PERF401
    return result


@workflow()
async def unawaited_in_loop() -> list[str]:
    """The same, held by nothing but the loop."""
    return [await call for call in [effect("wait"), effect("four"), effect("five")]]


@workflow()
async def unstarted() -> str:
    """Has made tasks that have not had their first turn: the drain stops before."""
    tasks = [asyncio.create_task(effect("wait")), asyncio.create_task(in_a_task())]
    return str(await asyncio.gather(*tasks))


@workflow()
async def with_child() -> str:
    """Waits for a child."""
    try:
        other = await start(child)
        return await effect("wait") + await other.result()
    finally:
        await effect("parent's finally")


@workflow()
async def shielded() -> str:
    """A shield, and a future of its own."""
    future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    future.add_done_callback(lambda _: EFFECTS.append("callback"))
    try:
        result = await asyncio.shield(asyncio.create_task(effect("wait")))
    except BaseException:
        future.cancel()
        raise
    future.set_result(result)
    return await future


WHO: contextvars.ContextVar[str] = contextvars.ContextVar("who")


@workflow()
async def in_context() -> str:
    """Looks at a variable of its own context when it is closed."""
    token = WHO.set("the workflow")
    try:
        return await effect("wait")
    finally:
        SEEN.append(WHO.get())
        WHO.reset(token)


@workflow()
async def raises_in_finally() -> str:
    """Its clean-up fails."""
    try:
        return await effect("wait")
    finally:
        raise ValueError("the clean-up failed")


WORKFLOWS: list[Workflow[..., Any]] = [
    in_finally,
    in_except,
    sleeps_in_finally,
    sleeps_deep_inside,
    waits_in_finally,
    everything_in_finally,
    gathers_in_finally,
    groups_in_finally,
    in_group,
    in_gather,
    in_timeout,
    in_lock,
    in_context_managers,
    in_generator,
    closing_generator,
    between_items,
    unawaited,
    unawaited_in_loop,
    unstarted,
    with_child,
    shielded,
    in_context,
    raises_in_finally,
]


@pytest.fixture(scope="module", autouse=True)
def little_garbage() -> None:
    """Collecting garbage looks at what these tests make, and not at the whole process, nor do the tests that follow."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def no_effects() -> None:
    """Every test begins with a clean slate."""
    EFFECTS.clear()
    SEEN.clear()


def prefixes(of: Workflow[..., Any]) -> list[list[AnyEvent]]:
    """Every state in which a run of this workflow can be suspended."""
    life = live(of, code=Code(of, child), messages=[signal("go")])
    return [life.journal[:length] for length in range(1, len(life.journal) + 1)]


def drop_quietly(of: Workflow[..., Any], journal: list[AnyEvent]) -> None:
    """Bring a run into memory, drop it, and collect the garbage."""
    execution = Code(of, child).execution()
    for event in journal:
        feed(execution, event)
    EFFECTS.clear()
    execution.drop()
    assert execution.outstanding() == []
    assert execution.waits() == ()
    del execution
    gc.collect()


@pytest.mark.parametrize("of", WORKFLOWS, ids=lambda of: of.name)
def test_dropping_leaves_no_trace(of: Workflow[..., Any], capfd: pytest.CaptureFixture[str]) -> None:
    """No body of a step runs, nothing is printed, nothing warns, now or when the garbage is collected."""
    for journal in prefixes(of):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            drop_quietly(of, journal)
        assert EFFECTS == []
        assert [str(warning.message) for warning in caught] == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("of", WORKFLOWS, ids=lambda of: of.name)
def test_a_dropped_run_goes_on_after_a_replay(of: Workflow[..., Any]) -> None:
    """Dropped before every event, it lives as it would have lived undisturbed."""
    code = Code(of, child)
    calm = live(of, code=code, messages=[signal("go")])
    disturbed = live(of, code=code, messages=[signal("go")], crash_at=range(1000))

    assert disturbed.asked == calm.asked
    assert disturbed.status == calm.status


def test_dropping_asks_for_nothing() -> None:
    """A run that is dropped asks for nothing, whatever its `finally` blocks would call."""
    execution = Code(gathers_in_finally).execution()
    feed(execution, created(gathers_in_finally))
    commands = execution.commands

    execution.drop()

    assert commands == execution.commands == []


def test_a_block_of_a_dropped_run_sees_its_own_context() -> None:
    """Variables of the run's context are there, as they are when the block runs in earnest."""
    drop_quietly(in_context, [created(in_context)])

    assert SEEN == ["the workflow"]


@workflow()
async def swallows_everything() -> None:
    """Cannot be stopped by any exception."""
    while SEEN != ["the end"]:
        try:
            await effect("wait")
        except BaseException:
            continue


@workflow()
async def swallows_and_sleeps() -> None:
    """The same, but it answers every exception with a wait."""
    while SEEN != ["the end"]:
        with suppress(BaseException):
            await asyncio.sleep(0)
            await effect("wait")
        with suppress(BaseException):
            await asyncio.Event().wait()


@workflow()
async def swallows_with_child() -> None:
    """The same with a child."""
    while SEEN != ["the end"]:
        with suppress(BaseException):
            await child()


@pytest.fixture
def an_end() -> Iterator[None]:
    """What cannot be closed would stay until the process exits, and is let go here."""
    yield
    SEEN[:] = ["the end"]
    while closing._UNCLOSABLE:
        closing._UNCLOSABLE.pop().close()


@pytest.mark.usefixtures("an_end")
@pytest.mark.parametrize("of", [swallows_everything, swallows_and_sleeps, swallows_with_child], ids=lambda of: of.name)
def test_a_workflow_that_swallows_everything_can_be_dropped(
    of: Workflow[..., Any], capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Dropping comes to an end, runs no step, and says in the log what stays in memory. [TS-R25]"""
    drop_quietly(of, [created(of)])

    assert EFFECTS == []
    assert "swallows every exception" in caplog.text
    assert capfd.readouterr().err == ""


def test_a_parked_run_can_be_dropped(capfd: pytest.CaptureFixture[str]) -> None:
    """A parked run is dropped without an effect and without a message."""
    execution = Code(in_finally).execution()
    feed(execution, created(in_finally))
    feed(execution, TimerFired(at=START_AT, call="@timer"))
    assert execution.is_parked

    execution.drop()
    gc.collect()

    assert EFFECTS == []
    assert capfd.readouterr() == ("", "")


async def test_dropping_while_the_workers_loop_runs() -> None:
    """Neither the running loop nor its hooks for async generators are touched, and its tasks go on."""
    here = asyncio.get_running_loop()
    ticks = []

    async def own_generator() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            ticks.append("closed by the worker's loop")

    async def ticker() -> None:
        async for _ in own_generator():
            break
        await asyncio.sleep(0)
        ticks.append("tick")

    def drop_all() -> None:
        for of in WORKFLOWS:
            for journal in prefixes(of):
                drop_quietly(of, journal)
        assert asyncio.get_running_loop() is here

    task = asyncio.create_task(ticker())
    here.call_soon(drop_all)
    await task

    assert EFFECTS == []
    assert "tick" in ticks
    assert "closed by the worker's loop" in ticks


@pytest.mark.parametrize("collect_after", range(4))
def test_garbage_of_a_run_in_memory_is_collected_without_a_trace(collect_after: int) -> None:
    """An async generator in a circle is found by the garbage collector at some moment: no moment may show."""
    life = live(forgets_a_generator)
    assert len(life.journal) == 5

    with fed(life.code, []) as execution:
        for seq, event in enumerate(life.journal):
            assert [describe(command) for command in feed(execution, event)] == life.asked[seq]
            if seq == collect_after:
                gc.collect()


@workflow()
async def forgets_a_generator() -> str:
    """Leaves a half read generator in a circle that only the garbage collector finds."""

    async def half_read() -> None:
        some = generator()
        circle: list[Any] = [some]
        circle.append(circle)
        await anext(some)

    await half_read()
    result = await effect("next")
    return result + await effect("last")


@workflow()
async def collects_garbage(collects: bool) -> str:  # noqa: FBT001
    """The same, and the garbage collector may come in the middle of the workflow."""

    async def half_read() -> None:
        some = generator()
        circle: list[Any] = [some]
        circle.append(circle)
        await anext(some)

    await half_read()
    if collects:
        gc.collect()
    return await asyncio.create_task(effect("next"))


def test_the_garbage_collector_starts_nothing_in_a_workflow() -> None:
    """It comes when it likes; a generator that it finds is forgotten, not closed with steps and a task of its own."""
    with_collection = live(collects_garbage, True)
    without = live(collects_garbage, False)

    assert with_collection.calls == without.calls == ["effect", "1/effect"]


def test_the_thread_is_left_as_it_was() -> None:
    """Neither the running loop nor the hooks for async generators stay behind, also when a workflow runs away."""
    before = sys.get_asyncgen_hooks()
    drop_quietly(in_generator, [created(in_generator)])
    with fed(Code(in_generator), [created(in_generator)], turns_max=1) as execution:
        assert execution.is_parked

    assert sys.get_asyncgen_hooks() == before
    assert asyncio._get_running_loop() is None
