"""What people use of asyncio is durable in a workflow: it crashes anywhere, replays, and goes on in the same way."""

from __future__ import annotations

import asyncio
import contextvars
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pytest

from outlive import wait_for_signal
from outlive._kernel.journal.event import AnyEvent
from outlive.types import Workflow
from tests.replay.define import Code, signal, step, workflow
from tests.replay.driver import live
from tests.replay.life import assert_replays

SEEDS = [None, 1, 2, 3, 4, 5]


@step()
async def double(n: int) -> int:
    """Pure work."""
    return 2 * n


@step()
async def fail(why: str) -> int:
    """Work that fails for good."""
    raise ValueError(why)


@step()
async def note(text: str) -> None:
    """Work that leaves a trace in the journal."""


# -- Many at once ---------------------------------------------------------------------------------------------


@workflow()
async def gather() -> list[int]:
    """Results in the order of the arguments."""
    return list(await asyncio.gather(double(1), double(2), double(3)))


@workflow()
async def gather_nested() -> Any:
    """A gather in a gather."""
    return await asyncio.gather(asyncio.gather(double(1), double(2)), asyncio.gather(double(3), asyncio.sleep(5, 8)))


@workflow()
async def gather_with_exceptions() -> list[str]:
    """Failures as values."""
    results = await asyncio.gather(double(1), fail("a"), fail("b"), return_exceptions=True)
    return [str(result) for result in results]


@workflow()
async def gather_that_fails() -> str:
    """The first failure is raised; the other branches go on."""
    other = asyncio.create_task(double(21))
    try:
        await asyncio.gather(other, fail("boom"))
    except ValueError as error:
        return f"{error} {await other}"
    return "no error"


@workflow()
async def task_group() -> int:
    """The sum of a group's results."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(double(n)) for n in range(4)]
    return sum(task.result() for task in tasks)


@workflow()
async def task_group_that_fails() -> list[str]:
    """One failure cancels the siblings, which may clean up; `except*` sees the group."""
    seen = []

    async def sibling() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            await note("cleaned up")

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(sibling())
            group.create_task(sibling())
            group.create_task(fail("boom"))
    except* ValueError as errors:
        seen += [str(error) for error in errors.exceptions]
    return seen


@workflow()
async def exception_group() -> list[str]:
    """Two failures at once, taken apart by kind."""
    kinds = []
    try:
        raise ExceptionGroup("both", [ValueError("v"), ExceptionGroup("inner", [KeyError("k"), ValueError("w")])])
    except* KeyError as keys:
        kinds.append(str(await double(len(keys.exceptions))))
    except* ValueError as values:
        kinds.append(f"{len(values.exceptions)} {await double(5)}")
    return kinds


@workflow()
async def wait_for_all() -> list[int]:
    """`done` is a set: also its order is the same in every replay."""
    tasks = [asyncio.create_task(double(n)) for n in range(8)]
    done, pending = await asyncio.wait(tasks)
    assert not pending
    return sorted([await double(task.result()) for task in done])


@workflow()
async def wait_for_first() -> int:
    """The loser of a race is cancelled."""
    slow = asyncio.create_task(asyncio.sleep(1000, 1))
    fast = asyncio.create_task(double(4))
    done, pending = await asyncio.wait({slow, fast}, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    return sum(task.result() for task in done)


@workflow()
async def wait_for_first_exception() -> str:
    """An exception ends the wait early."""
    tasks = [asyncio.create_task(asyncio.sleep(1000, 0)), asyncio.create_task(fail("x"))]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    for task in pending:
        task.cancel()
    return ",".join(str(task.exception()) for task in done if not task.cancelled())


@workflow()
async def wait_with_timeout() -> tuple[int, int]:
    """What is not done in time is pending."""
    tasks = [asyncio.create_task(asyncio.sleep(seconds)) for seconds in (1, 2, 30)]
    done, pending = await asyncio.wait(tasks, timeout=10)
    for task in pending:
        task.cancel()
    return len(done), len(pending)


@workflow()
async def as_completed() -> list[int]:
    """Results as they come."""
    tasks = [asyncio.create_task(asyncio.sleep(10 - n, n)) for n in range(5)]
    return [await next_one for next_one in asyncio.as_completed(tasks)]


@workflow()
async def as_completed_too_late() -> list[Any]:
    """The results that come in time, and then an error."""
    tasks = [asyncio.create_task(asyncio.sleep(10 * n, n)) for n in range(1, 4)]
    seen: list[Any] = []
    try:
        for next_one in asyncio.as_completed(tasks, timeout=25):
            seen.append(await next_one)  # noqa: PERF401
    except TimeoutError:
        seen.append(await double(4))
    return seen


if sys.version_info >= (3, 13):

    @workflow()
    async def as_completed_by_task() -> list[int]:
        """From 3.13 on it also gives the tasks themselves."""
        tasks = [asyncio.create_task(asyncio.sleep(10 - n, n)) for n in range(5)]
        return [tasks.index(task) async for task in asyncio.as_completed(tasks)]


if sys.version_info >= (3, 14):

    @workflow()
    async def eager_tasks() -> list[Any]:
        """From 3.14 on a task may begin at once; what it asks for is asked for in the order of the calls."""
        order: list[Any] = []

        async def begin(n: int) -> int:
            order.append(n)
            return n if n % 2 else await double(n)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(begin(n), eager_start=n < 3) for n in range(4)]
            order.append("made")
        last = asyncio.create_task(begin(4), eager_start=True)
        order.append("made")
        return [*order, *[task.result() for task in tasks], await last]


# -- Time -----------------------------------------------------------------------------------------------------


@workflow()
async def sleep() -> str:
    """Sleeping gives the value back."""
    await asyncio.sleep(0)
    return await asyncio.sleep(3600, "slept")


@workflow()
async def timeout_in_time() -> int:
    """A timeout that is not needed leaves no trace."""
    async with asyncio.timeout(1000):
        return await double(1)


@workflow()
async def timeout_too_late() -> list[str]:
    """Nested timeouts: the inner one is over first."""
    seen = []
    try:
        async with asyncio.timeout(10):
            try:
                async with asyncio.timeout(5):
                    await asyncio.sleep(100)
            except TimeoutError:
                seen.append("inner")
            await asyncio.sleep(100)
    except TimeoutError:
        seen.append("outer")
    return seen


@workflow()
async def timeout_at_instant() -> float:
    """An absolute deadline on the run's own clock, moved once."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        async with asyncio.timeout_at(began + 5) as deadline:
            deadline.reschedule(began + 7)
            await asyncio.sleep(100)
    except TimeoutError:
        pass
    return loop.time() - began


@workflow()
async def wait_for_in_time() -> int:
    """wait_for gives the result."""
    return await asyncio.wait_for(double(3), timeout=1000)


@workflow()
async def wait_for_too_late() -> str:
    """wait_for cancels what it waited for, which may clean up durably."""

    async def slow() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            await note("cleaned up")

    with suppress(TimeoutError):
        await asyncio.wait_for(slow(), timeout=1)
        return "in time"
    return "too late"


@workflow()
async def call_later() -> list[str]:
    """Callbacks come when they are due, unless they are taken back."""
    loop = asyncio.get_running_loop()
    seen: list[str] = []
    done = loop.create_future()
    loop.call_soon(seen.append, "soon")
    loop.call_later(2, seen.append, "two")
    loop.call_at(loop.time() + 1, seen.append, "one")
    loop.call_later(1.5, seen.append, "never").cancel()
    loop.call_later(3, done.set_result, None)
    await done
    return seen


# -- Synchronisation ------------------------------------------------------------------------------------------


@workflow()
async def event() -> list[int]:
    """Every task that waits goes on when another sets the event."""
    go = asyncio.Event()

    async def waiter(n: int) -> int:
        await go.wait()
        return await double(n)

    async with asyncio.TaskGroup() as group:
        waiters = [group.create_task(waiter(n)) for n in range(3)]
        await double(0)
        go.set()
    return [task.result() for task in waiters]


@workflow()
async def lock() -> list[int]:
    """Critical sections with steps in them do not overlap."""
    mutex = asyncio.Lock()
    trace: list[int] = []

    async def section(n: int) -> None:
        async with mutex:
            trace.append(n)
            await double(n)
            trace.append(n)

    await asyncio.gather(*(section(n) for n in range(4)))
    return trace


@workflow()
async def semaphore() -> int:
    """Never more than two at once."""
    slots = asyncio.Semaphore(2)
    inside = peak = 0

    async def section(n: int) -> None:
        nonlocal inside, peak
        async with slots:
            inside += 1
            peak = max(peak, inside)
            await double(n)
            inside -= 1

    await asyncio.gather(*(section(n) for n in range(6)))
    return peak


@workflow()
async def condition() -> list[str]:
    """Consumers wait until there is something to consume."""
    ready = asyncio.Condition()
    stock: list[int] = []
    trace: list[str] = []

    async def consumer(name: str) -> None:
        async with ready:
            await ready.wait_for(lambda: bool(stock))
            stock.pop()
            trace.append(name)

    async with asyncio.TaskGroup() as group:
        for name in "ab":
            group.create_task(consumer(name))
        for n in range(2):
            item = await double(n)
            async with ready:
                stock.append(item)
                ready.notify()
    return trace


@workflow()
async def queue() -> list[int]:
    """Producers and consumers through a bounded queue."""
    items: asyncio.Queue[int] = asyncio.Queue(maxsize=2)
    out: list[int] = []

    async def consumer() -> None:
        while True:
            out.append(await double(await items.get()))
            items.task_done()

    workers = [asyncio.create_task(consumer()) for _ in range(2)]
    for n in range(6):
        await items.put(n)
    await items.join()
    for worker in workers:
        worker.cancel()
    return sorted(out)


@workflow()
async def barrier() -> list[int]:
    """No task passes before all are there."""
    gate = asyncio.Barrier(3)
    arrived: list[int] = []
    passed: list[int] = []

    async def runner(n: int) -> None:
        await double(n)
        arrived.append(n)
        await gate.wait()
        passed.append(len(arrived))

    await asyncio.gather(*(runner(n) for n in range(3)))
    return passed


@workflow()
async def shield() -> int:
    """What is shielded goes on when its waiter has given up."""
    inner = asyncio.create_task(asyncio.sleep(100, 7))
    try:
        async with asyncio.timeout(1):
            await asyncio.shield(inner)
    except TimeoutError:
        return await inner
    return 0


# -- Python around it -----------------------------------------------------------------------------------------


async def numbers(count: int) -> AsyncGenerator[int, None]:
    """Numbers, each of them from a step, with a step at the end."""
    try:
        for n in range(count):
            yield await double(n)
    finally:
        await note("generator closed")


@workflow()
async def async_generator() -> list[int]:
    """A generator that is read to its end."""
    return [n async for n in numbers(3)]


@workflow()
async def async_generator_left_early() -> int:
    """A generator that is closed by who used it."""
    async with aclosing(numbers(10)) as some:
        async for n in some:
            if n >= 2:
                return n
    return -1


@workflow()
async def async_generator_forgotten() -> int:
    """A generator that the workflow does not close: Python does, in a task of its own."""
    async for n in numbers(10):
        if n >= 2:
            break
    return await double(100)


@asynccontextmanager
async def reserved(what: str) -> AsyncIterator[str]:
    """Something that must be given back."""
    await note(f"reserve {what}")
    try:
        yield what
    finally:
        await note(f"release {what}")


@workflow()
async def context_managers() -> str:
    """What was entered is left, newest first."""
    async with AsyncExitStack() as stack:
        a = await stack.enter_async_context(reserved("a"))
        b = await stack.enter_async_context(reserved("b"))
        return a + b


WHO: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="unset")


@workflow()
async def context_variables() -> list[str]:
    """A task sees what its maker had set, and changes only its own copy."""
    seen = [WHO.get()]
    WHO.set("workflow")

    async def branch(name: str) -> str:
        before = WHO.get()
        WHO.set(name)
        await double(1)
        return f"{before}>{WHO.get()}"

    seen += await asyncio.gather(branch("a"), branch("b"))
    return [*seen, WHO.get()]


@workflow()
async def signal_or_timeout() -> list[Any]:
    """The first wait is answered, the second one is not."""
    seen: list[Any] = []
    for _ in range(2):
        try:
            async with asyncio.timeout(60):
                seen.append(await wait_for_signal("go"))
        except TimeoutError:
            seen.append("timeout")
    return seen


@workflow()
async def inner(n: int) -> int:
    """A child run."""
    await asyncio.sleep(n)
    return await double(n)


@workflow()
async def children() -> list[int]:
    """Children side by side, and one that is too slow."""
    results = await asyncio.gather(*(inner(n) for n in range(3)))
    with suppress(TimeoutError):
        async with asyncio.timeout(5):
            await inner(1000)
    return results


@dataclass(frozen=True)
class Case:
    """A workflow, and what it returns in whatever order things happen (None: that depends)."""

    workflow: Workflow[..., Any]
    result: Any = None
    messages: tuple[AnyEvent, ...] = ()


CASES = [
    Case(gather, [2, 4, 6]),
    Case(gather_nested, [[2, 4], [6, 8]]),
    Case(gather_with_exceptions, ["2", "a", "b"]),
    Case(gather_that_fails, "boom 42"),
    Case(task_group, 12),
    Case(task_group_that_fails, ["boom"]),
    Case(exception_group, ["2", "2 10"]),
    Case(wait_for_all, [4 * n for n in range(8)]),
    Case(wait_for_first),
    Case(wait_for_first_exception),
    Case(wait_with_timeout, (2, 1)),
    Case(as_completed, [4, 3, 2, 1, 0]),
    Case(as_completed_too_late, [1, 2, 8]),
    Case(sleep, "slept"),
    Case(timeout_in_time),
    Case(timeout_too_late, ["inner", "outer"]),
    Case(timeout_at_instant, 7.0),
    Case(wait_for_in_time),
    Case(wait_for_too_late, "too late"),
    Case(call_later, ["soon", "one", "two"]),
    Case(event, [0, 2, 4]),
    Case(lock, [0, 0, 1, 1, 2, 2, 3, 3]),
    Case(semaphore, 2),
    Case(condition, ["a", "b"]),
    Case(queue, [0, 2, 4, 6, 8, 10]),
    Case(barrier, [3, 3, 3]),
    Case(shield, 7),
    Case(async_generator, [0, 2, 4]),
    Case(async_generator_left_early, 2),
    Case(async_generator_forgotten, 200),
    Case(context_managers, "ab"),
    Case(context_variables, ["unset", "workflow>a", "workflow>b", "workflow"]),
    Case(signal_or_timeout, None, (signal("go", 1),)),
    Case(children, [0, 2, 4]),
]
if sys.version_info >= (3, 13):
    CASES.append(Case(as_completed_by_task, [4, 3, 2, 1, 0]))
if sys.version_info >= (3, 14):
    CASES.append(Case(eager_tasks, [0, 1, 2, "made", 3, 4, "made", 0, 1, 4, 3, 8]))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.workflow.name)
@pytest.mark.parametrize("seed", SEEDS)
def test_asyncio_in_a_workflow_is_durable(case: Case, seed: int | None) -> None:
    """It comes to its result, with a crash before every event, and replays from every prefix of its journal."""
    code = Code(case.workflow, inner)
    life = live(case.workflow, code=code, seed=seed, messages=case.messages, crash_at=range(1000))

    assert life.status in ("succeeded", "failed"), life.park
    if case.result is not None:
        assert life.result == case.result
    assert_replays(life)
