"""Runs leave no circles of objects behind: Python's garbage collector would walk through all of them in one go.

A burst of a hundred thousand starts left two million objects in circles, and the collector stopped everything else in
the process for most of a second to find them.
"""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

import outlive
from outlive import Engine

MANY = 200


@outlive.step
async def leave_step(number: int) -> int:
    """The shortest step there is."""
    return number


@outlive.workflow
async def leave_run(number: int) -> int:
    """Makes one step."""
    return await leave_step(number)


@outlive.workflow
async def leave_children(count: int) -> int:
    """Has many children at once."""
    return sum(await asyncio.gather(*(leave_run(number) for number in range(count))))


@outlive.workflow
async def leave_steps(count: int) -> int:
    """Has many steps at once."""
    return sum(await asyncio.gather(*(leave_step(number) for number in range(count))))


@outlive.workflow
async def leave_signals(count: int) -> int:
    """Takes so many signals."""
    return sum([await outlive.wait_for_signal("number", int) for _ in range(count)])


async def start_later(engine: Engine) -> None:
    """Many runs that begin another day."""
    await asyncio.gather(*(engine.start(leave_run, number, delay="1d") for number in range(MANY)))


async def start_now(engine: Engine) -> None:
    """Many runs that end."""
    runs = await asyncio.gather(*(engine.start(leave_run, number) for number in range(MANY)))
    await asyncio.gather(*(run.result() for run in runs))


async def have_children(engine: Engine) -> None:
    """One run with many children."""
    await (await engine.start(leave_children, MANY)).result()


async def have_steps(engine: Engine) -> None:
    """One run with many steps."""
    await (await engine.start(leave_steps, MANY)).result()


async def send_signals(engine: Engine) -> None:
    """One run that is sent many signals."""
    run = await engine.start(leave_signals, MANY)
    await asyncio.gather(*(run.signal("number", number) for number in range(MANY)))
    await run.result()


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    """An engine that looks for nothing by itself, in a process in which garbage is collected only by the test."""
    async with Engine("memory:", poll_seconds=600) as engine:
        gc.disable()
        try:
            yield engine
        finally:
            gc.enable()


@pytest.mark.parametrize("burst", [start_later, start_now, have_children, have_steps, send_signals])
async def test_a_burst_leaves_nothing_to_the_garbage_collector(
    burst: Callable[[Engine], Coroutine[Any, Any, None]], engine: Engine
) -> None:
    """Starts, runs, steps and signals leave less than one object each in circles."""
    await burst(engine)  # What happens once in a process does not count.
    gc.collect()
    await burst(engine)

    assert gc.collect() < MANY
