"""Random workflows as data: one interpreter, a strategy that makes programs for it, and a prediction in plain Python.

A program is JSON: `["gather", ["step", 1], ["sleep", 5]]`. The interpreter is an ordinary workflow, so everything that
it does goes through the public surface: steps, children, signals, asyncio.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from hypothesis import strategies as st

from outlive import Retry, now, random, start, uuid4, wait_for_signal
from tests.replay.define import Code, step, workflow

Program = list[Any]


@step()
async def work(n: int) -> int:
    """Work that succeeds."""
    return n + 1


@step(retry=Retry(attempts=2, first=3))
async def fail(n: int) -> int:
    """Work that fails twice, for good."""
    raise ValueError(f"planned {n}")


@workflow(name="interpret")
async def interpret(program: Any) -> Any:
    """Run a program."""
    return await run(program)


CODE = Code(interpret)


async def run(program: Program) -> Any:
    """Run one node of a program."""
    kind, *parts = program
    return await KINDS[kind](*parts)


async def run_sleep(seconds: int) -> None:
    """Wait for time, or for one turn of the loop."""
    await asyncio.sleep(seconds)


async def run_sequence(*parts: Program) -> list[Any]:
    """One after the other."""
    return [await run(part) for part in parts]


async def run_loop(count: int, body: Program) -> list[Any]:
    """The same again and again."""
    return [await run(body) for _ in range(count)]


async def run_gather(*parts: Program) -> list[Any]:
    """Side by side."""
    return list(await asyncio.gather(*(run(part) for part in parts)))


async def run_group(*parts: Program) -> list[Any]:
    """Side by side; one failure cancels the others."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run(part)) for part in parts]
    return [task.result() for task in tasks]


async def run_lock(*parts: Program) -> list[Any]:
    """Side by side, but never more than one."""
    lock = asyncio.Lock()

    async def inside(part: Program) -> Any:
        async with lock:
            return await run(part)

    return list(await asyncio.gather(*(inside(part) for part in parts)))


async def run_items(*parts: Program) -> list[Any]:
    """One after the other, out of an async generator."""

    async def items() -> AsyncIterator[Any]:
        try:
            for part in parts:
                yield await run(part)
        finally:
            await work(0)

    return [item async for item in items()]


async def run_race(*parts: Program) -> list[int]:
    """The first wins, the others are cancelled; a step hears of every winner, in the order of the set."""
    tasks = [asyncio.create_task(run(part)) for part in parts]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    return [await work(tasks.index(task)) for task in done if task.exception() is None]


async def run_timeout(seconds: int, body: Program) -> Any:
    """A limit on the time that something may take."""
    try:
        async with asyncio.timeout(seconds):
            return await run(body)
    except TimeoutError:
        return "timeout"


async def run_wait_for(seconds: int, body: Program) -> Any:
    """The older way to say the same."""
    try:
        return await asyncio.wait_for(run(body), seconds)
    except TimeoutError:
        return "timeout"


async def run_signal(name: str, seconds: int) -> Any:
    """A message of the world, or none."""
    try:
        async with asyncio.timeout(seconds):
            return await wait_for_signal(name)
    except TimeoutError:
        return "no signal"


async def run_child(body: Program) -> Any:
    """A run in this tree."""
    return await interpret(body)


async def run_left_child(body: Program) -> str:
    """A run in this tree that its parent does not wait for."""
    await start(interpret, body)
    return "left"


async def run_try(body: Program, handler: Program) -> Any:
    """A failure that is handled."""
    try:
        return await run(body)
    except Exception:
        return await run(handler)


async def run_finally(body: Program, last: Program) -> Any:
    """A clean-up."""
    try:
        return await run(body)
    finally:
        await run(last)


async def run_cancel(turns: int, body: Program) -> Any:
    """Something that is given up after some turns of the loop, or after a step."""
    task = asyncio.create_task(run(body))
    if turns < 3:
        for _ in range(turns):
            await asyncio.sleep(0)
    else:
        await work(turns)
    task.cancel()
    with suppress(asyncio.CancelledError):
        return await task
    return "cancelled"


async def run_shield(seconds: int, body: Program) -> Any:
    """Something that goes on although its first waiter gave up."""
    task = asyncio.create_task(run(body))
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            return await asyncio.shield(task)
    return await task


async def run_background(body: Program) -> str:
    """A task that the workflow does not wait for."""
    BACKGROUND.add(task := asyncio.create_task(run(body)))
    task.add_done_callback(_forget)
    return "left"


async def run_chance() -> Any:
    """Time, randomness and ids, as arguments of a step."""
    value = int(now().timestamp()) + int(random() * 1_000_000) + uuid4().int % 1_000_000
    return await work(value) - value


def _forget(task: asyncio.Task[Any]) -> None:
    BACKGROUND.discard(task)
    if not task.cancelled():
        task.exception()


BACKGROUND: set[asyncio.Task[Any]] = set()

KINDS: dict[str, Any] = {
    "step": work,
    "fail": fail,
    "sleep": run_sleep,
    "sequence": run_sequence,
    "loop": run_loop,
    "gather": run_gather,
    "group": run_group,
    "lock": run_lock,
    "items": run_items,
    "race": run_race,
    "timeout": run_timeout,
    "wait_for": run_wait_for,
    "signal": run_signal,
    "child": run_child,
    "left_child": run_left_child,
    "try": run_try,
    "finally": run_finally,
    "cancel": run_cancel,
    "shield": run_shield,
    "background": run_background,
    "chance": run_chance,
}

# -- Programs by chance ---------------------------------------------------------------------------------------

SECONDS = st.integers(0, 6)
NAMES = st.sampled_from(["x", "y"])

LEAVES = st.one_of(
    st.tuples(st.just("step"), st.integers(0, 3)),
    st.tuples(st.just("fail"), st.integers(0, 1)),
    st.tuples(st.just("sleep"), SECONDS),
    st.tuples(st.just("signal"), NAMES, st.integers(1, 20)),
    st.tuples(st.just("chance")),
)


def nodes(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Nodes with parts."""
    several = st.lists(inner, min_size=1, max_size=4)
    many = st.sampled_from(["sequence", "gather", "group", "lock", "items", "race"])
    one = st.sampled_from(["child", "left_child", "background"])
    return st.one_of(
        st.builds(lambda kind, parts: (kind, *parts), many, several),
        st.tuples(one, inner),
        st.tuples(st.sampled_from(["timeout", "wait_for", "shield"]), SECONDS, inner),
        st.tuples(st.just("loop"), st.integers(0, 3), inner),
        st.tuples(st.sampled_from(["try", "finally"]), inner, inner),
        st.tuples(st.just("cancel"), st.integers(0, 4), inner),
    )


def as_json(tree: Any) -> Any:
    """Tuples are lists in JSON."""
    return [as_json(part) for part in tree] if isinstance(tree, tuple) else tree


PROGRAMS: st.SearchStrategy[Any] = st.recursive(LEAVES, nodes, max_leaves=10).map(as_json)

# -- What must come out ---------------------------------------------------------------------------------------


class Failed(Exception):
    """The program fails."""


class Unpredictable(Exception):
    """It depends on the order in which things happen."""


def predict(program: Program) -> Any:
    """What a program returns in whatever order things happen, by plain Python.

    Raises:
        Failed: it raises, in whatever order.
        Unpredictable: that depends.
    """
    kind, *parts = program
    match kind:
        case "step":
            return parts[0] + 1
        case "chance":
            return 1
        case "sleep":
            return None
        case "fail":
            raise Failed
        case "sequence" | "items":
            return [predict(part) for part in parts]
        case "loop":
            return [predict(parts[1]) for _ in range(parts[0])]
        case "gather" | "group" | "lock":
            return predict_all(parts)
        case "child":
            return predict(parts[0])
        case "left_child" | "background":
            return "left"
        case "try":
            try:
                return predict(parts[0])
            except Failed:
                return predict(parts[1])
        case "finally":
            try:
                return predict(parts[0])
            finally:
                predict(parts[1])
        case _:
            raise Unpredictable


def predict_all(parts: list[Program]) -> list[Any]:
    """What parallel branches return: one failure is enough."""
    values, is_known = [], True
    for part in parts:
        try:
            values.append(predict(part))
        except Unpredictable:
            is_known = False
    if not is_known:
        raise Unpredictable
    return values


CALM = {"step", "sleep", "chance", "sequence", "loop", "gather", "group", "lock", "items", "child", "finally"}


def is_calm(program: Any) -> bool:
    """Whether nothing in a program depends on what comes first."""
    if not isinstance(program, list):
        return True
    return program[0] in CALM and all(is_calm(part) for part in program[1:])
