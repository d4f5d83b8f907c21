"""Where an execution can be fed: anywhere, on every version of Python.

The run's loop makes itself the running loop of the thread while it drains, and its tasks become the current task in
turn. Up to Python 3.13 asyncio keeps the current task of each loop apart. From 3.14 on there is one current task for
each thread, and entering a task while another one is running raises `RuntimeError: Cannot enter into task`. So the
run's loop leaves the current task of the thread first. The worker feeds from plain callbacks all the same (it asserts
that): no run moves while code of the worker is half way through something.
"""

from __future__ import annotations

import asyncio
import contextvars
import sys
from typing import Any

import pytest

from outlive._kernel.replay.command import Command
from outlive._kernel.replay.feeding import feed
from outlive.types import Step
from tests.replay.define import Code, created, step, workflow
from tests.replay.driver import live
from tests.replay.life import describe, fed

WHO: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="unset")


@step()
async def double(n: int) -> int:
    """Pure work."""
    return 2 * n


@workflow()
async def busy() -> dict[str, Any]:
    """Looks around while it runs, with tasks and a generator."""
    results = await asyncio.gather(double(1), asyncio.create_task(double(2)))
    task = asyncio.current_task()
    assert task is not None
    return {
        "sum": sum(results),
        "tasks": len(asyncio.all_tasks()),
        "loop": type(asyncio.get_running_loop()).__name__,
        "who": WHO.get(),
    }


EXPECTED = {"sum": 6, "tasks": 1, "loop": "RunLoop", "who": "unset"}


async def test_feeding_works_in_a_plain_callback_of_a_running_loop() -> None:
    """A whole life inside one callback: the worker's loop, its tasks and its context are as before."""
    here = asyncio.get_running_loop()
    done: asyncio.Future[Any] = here.create_future()
    hooks = sys.get_asyncgen_hooks()

    def worker() -> None:
        assert asyncio.current_task() is None, "this is the point: a callback is not a task"
        try:
            WHO.set("the worker")
            result = live(busy, crash_at=range(10)).result
            assert WHO.get() == "the worker"
            assert asyncio.get_running_loop() is here
            assert asyncio.current_task() is None
            done.set_result(result)
        except BaseException as error:
            done.set_exception(error)

    here.call_soon(worker)

    assert await done == EXPECTED
    assert sys.get_asyncgen_hooks() == hooks


async def test_feeding_works_in_the_callback_of_a_future() -> None:
    """An execution can be fed in the callback of a task that is done, as a worker does it."""
    with fed(Code(busy), [created(busy)]) as execution:
        asked: list[Command] = execution.outstanding()
        journal = live(busy).journal
        fed_events: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()

        def on_done(task: asyncio.Task[None]) -> None:
            assert asyncio.current_task() is None
            fed_events.set_result([describe(each) for event in journal[1:3] for each in feed(execution, event)])

        async def step_in_the_worker() -> None:
            await asyncio.sleep(0)

        task = asyncio.create_task(step_in_the_worker())
        task.add_done_callback(on_done)

        assert len(asked) == 2
        assert [command[0] for command in await fed_events] == ["end"]


async def test_feeding_works_inside_a_task() -> None:
    """An execution can be fed inside a task, which is the current one again afterwards and goes on."""
    here = asyncio.current_task()
    assert here is not None

    assert live(busy, crash_at=range(10)).result == EXPECTED

    assert asyncio.current_task() is here
    async with asyncio.timeout(60):
        await asyncio.sleep(0)


def test_feeding_works_without_any_loop() -> None:
    """In a thread that has no loop at all, as in a checker or a test."""
    assert live(busy).result == EXPECTED
    with pytest.raises(RuntimeError, match="no running event loop"):
        asyncio.get_running_loop()


async def test_two_runs_can_be_fed_in_turns() -> None:
    """Each run has its own loop, context and current task; feeding one does not touch the other."""
    life = live(busy)
    with fed(Code(busy), []) as one, fed(Code(busy), []) as two:
        for seq, event in enumerate(life.journal):
            for execution in (one, two):
                assert [describe(command) for command in feed(execution, event)] == life.asked[seq]


async def test_a_step_called_outside_a_run_is_the_plain_function() -> None:
    """While a worker's loop runs, a step is the function itself unless a run is being fed."""
    assert isinstance(double, Step)
    assert await double(4) == 8
