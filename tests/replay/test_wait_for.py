"""`asyncio.wait_for` is the same in a workflow on every version of Python, so that a run can be moved to the next one.

From Python 3.12 on it is `asyncio.timeout` around an `await`. On 3.11 it makes a task of its own for what it waits for.
Every test here lives a run twice, with `asyncio.wait_for` and with the later form of it, and compares all they ask for.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlive import random, wait_for_signal
from outlive._kernel.journal.event import AnyEvent
from outlive.types import Workflow
from tests.replay.define import Code, cancel, signal, step, workflow
from tests.replay.driver import live
from tests.replay.life import Life, assert_replays
from tests.replay.programs import CODE, PROGRAMS, Program, interpret
from tests.replay.test_programs import MESSAGES, QUICK, SEEDS

OF_THIS_PYTHON = asyncio.wait_for


async def of_python_3_12(awaited: Any, timeout: float | None) -> Any:
    """What `asyncio.wait_for` does since 3.12."""
    if timeout is not None and timeout <= 0:
        return await OF_THIS_PYTHON(awaited, timeout)
    async with asyncio.timeout(timeout):
        return await awaited


@step()
async def double(n: int) -> int:
    """Pure work."""
    return 2 * n


@step()
async def note(text: str) -> None:
    """Work that leaves a trace in the journal."""


@workflow()
async def inner(n: int) -> int:
    """A child; its number is that of its beginning in the whole tree."""
    return await double(n)


async def slow(text: str) -> str:
    """Cleans up durably when it is cancelled."""
    try:
        await asyncio.sleep(100)
    finally:
        await note(f"{text} cleans up")
    return text


async def stubborn() -> str:
    """Returns all the same when it is cancelled."""
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(100)
    return "stubborn"


@workflow()
async def a_step() -> int:
    """The calls before, inside and after are calls of one task."""
    return await double(1) + await asyncio.wait_for(double(2), 5) + await double(3)


@workflow()
async def then_tasks() -> list[Any]:
    """Tasks made later have the numbers that they would have without it, and the same order in a set."""
    await asyncio.wait_for(asyncio.gather(double(1), double(2)), 5)
    done, _ = await asyncio.wait({asyncio.create_task(double(n)) for n in range(8)})
    return [await double(task.result()) for task in done]


@workflow()
async def a_task() -> list[int]:
    """Of a task, of a shield, of a future that a callback resolves."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[int] = loop.create_future()
    loop.call_later(2, future.set_result, 3)
    task = asyncio.create_task(double(1))
    return [
        await asyncio.wait_for(task, 5),
        await asyncio.wait_for(asyncio.shield(double(2)), 5),
        await asyncio.wait_for(future, 5),
        await asyncio.wait_for(future, 5),
    ]


@workflow()
async def nested() -> str:
    """One in another one, and the inner one is the longer."""
    try:
        return await asyncio.wait_for(asyncio.wait_for(slow("inner"), 50), 5)
    except TimeoutError:
        return f"too late {await double(1)}"


@workflow()
async def too_late() -> list[Any]:
    """What is cancelled cleans up before the timeout is raised; who swallows it returns its value."""
    seen: list[Any] = []
    makers: tuple[Callable[[], Any], ...] = (
        lambda: slow("coroutine"),
        lambda: asyncio.create_task(slow("task")),
        lambda: asyncio.gather(slow("a"), slow("b")),
    )
    for make in makers:
        try:
            seen.append(await asyncio.wait_for(make(), 1))
        except TimeoutError:
            seen.append(await double(len(seen)))
    return [*seen, await asyncio.wait_for(stubborn(), 1), await asyncio.wait_for(asyncio.create_task(stubborn()), 1)]


@workflow()
async def cancelled() -> list[Any]:
    """The caller is cancelled while it waits, once and then again in its clean-up."""
    seen: list[Any] = []
    for make in (lambda: slow("coroutine"), lambda: asyncio.create_task(slow("task")), stubborn):
        waiting = asyncio.create_task(asyncio.wait_for(make(), 50))
        await asyncio.sleep(1)
        waiting.cancel("enough")
        await asyncio.sleep(0)
        waiting.cancel()
        try:
            seen.append(await waiting)
        except asyncio.CancelledError as error:
            seen.append(str(error))
    return [*seen, await double(1)]


@workflow()
async def fails() -> list[str]:
    """An error of its argument is an error, also if it is a TimeoutError of its own or a cancelling."""

    async def break_off(error: BaseException) -> None:
        await double(1)
        raise error

    seen = []
    for error in (ValueError("a"), TimeoutError("b"), asyncio.CancelledError("c")):
        try:
            await asyncio.wait_for(break_off(error), 5)
        except (ValueError, TimeoutError, asyncio.CancelledError) as caught:
            seen.append(f"{type(caught).__name__} {caught} {caught is error or str(caught) == str(error)}")
    return [*seen, str(await double(2))]


@workflow()
async def in_branches() -> list[int]:
    """Children are numbered in the order in which they begin, over all branches: no branch begins a turn later."""
    return list(await asyncio.gather(asyncio.wait_for(inner(1), 5), inner(2), asyncio.wait_for(inner(3), 5)))


@workflow()
async def woken_together() -> list[str]:
    """Tasks that one thing wakes go on in the order in which they waited."""
    event = asyncio.Event()
    order: list[str] = []

    async def wait(name: str, seconds: float | None) -> None:
        await (asyncio.wait_for(event.wait(), seconds) if seconds else event.wait())
        order.append(f"{name} {await inner(len(order))}")

    async with asyncio.TaskGroup() as group:
        for name, seconds in (("a", 50), ("b", None), ("c", 50)):
            group.create_task(wait(name, seconds))
        await double(1)
        event.set()
    return order


WHO: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="unset")


@workflow()
async def in_its_context() -> list[Any]:
    """The task, the context and the chances of the caller."""
    caller = asyncio.current_task()

    async def look() -> list[Any]:
        WHO.set("set inside")
        return [asyncio.current_task() is caller, random()]

    return [*await asyncio.wait_for(look(), 5), WHO.get(), random()]


class Awaitable:
    """Something awaitable that is neither a coroutine nor a future."""

    def __await__(self) -> Generator[Any, None, int]:
        return double(4).__await__()


@workflow()
async def odd_arguments() -> list[Any]:
    """No time, no limit, an awaitable, and something that cannot be awaited."""
    seen: list[Any] = [await asyncio.wait_for(double(1), None), await asyncio.wait_for(Awaitable(), 5)]
    for timeout in (0, -1):
        try:
            seen.append(await asyncio.wait_for(double(2), timeout))
        except TimeoutError:
            seen.append("no time")
    try:
        await asyncio.wait_for(3, 5)  # type: ignore[arg-type]
    except TypeError:
        seen.append("not awaitable")
    return [*seen, await double(3)]


@workflow()
async def a_signal() -> Any:
    """A message of the world, or none."""
    try:
        return await asyncio.wait_for(wait_for_signal("go"), 5)
    except TimeoutError:
        return f"none {await double(1)}"


WORKFLOWS: list[Workflow[..., Any]] = [
    a_step,
    then_tasks,
    a_task,
    nested,
    too_late,
    cancelled,
    fails,
    in_branches,
    woken_together,
    in_its_context,
    odd_arguments,
    a_signal,
]


def both(play: Callable[[], Life]) -> tuple[Life, Life]:
    """Live with `asyncio.wait_for`, and with the form of it that later versions have."""
    here = play()
    with mock.patch.object(asyncio, "wait_for", of_python_3_12):
        return here, play()


@pytest.mark.parametrize("messages", [[], [signal("go", 1)], [cancel()]], ids=["calm", "signal", "cancel"])
@pytest.mark.parametrize("of", WORKFLOWS, ids=lambda of: of.name)
def test_a_run_asks_for_the_same_on_every_version(of: Workflow[..., Any], messages: list[AnyEvent]) -> None:
    """A run with `asyncio.wait_for` has the same calls, the same journal and the same end on every version of
    Python."""
    here, later = both(lambda: live(of, code=Code(of, inner), messages=messages))

    assert here.status in ("succeeded", "cancelled"), here.park
    assert here.asked == later.asked
    assert here.journal == later.journal
    assert_replays(here)


@settings(QUICK, max_examples=50)
@given(waited=PROGRAMS, beside=PROGRAMS, seconds=st.integers(1, 6), seed=SEEDS, messages=MESSAGES)
def test_a_random_program_asks_for_the_same_on_every_version(
    waited: Program, beside: Program, seconds: int, seed: int, messages: list[AnyEvent]
) -> None:
    """Whatever stands in it and beside it, and in whatever order things happen."""
    program = ["gather", ["wait_for", seconds, waited], beside]
    here, later = both(lambda: live(interpret, program, code=CODE, seed=seed, messages=list(messages)))

    assert here.asked == later.asked


@settings(QUICK, max_examples=50)
@given(seconds=st.floats(1e-7, 1e7))
def test_its_timer_is_due_at_the_same_instant(seconds: float) -> None:
    """To the microsecond, whatever the number."""
    here, later = both(lambda: live(times_out, seconds))

    assert here.journal == later.journal


@workflow()
async def times_out(seconds: float) -> str:
    """Waits too long."""
    with suppress(TimeoutError):
        await asyncio.wait_for(asyncio.sleep(seconds * 2), seconds)
    return "done"
