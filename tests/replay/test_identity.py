"""The identity of a durable call: scope, name, occurrence. It never depends on how far other branches have come."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from outlive import start
from tests.replay.define import Code, step, workflow
from tests.replay.driver import live
from tests.replay.life import Asked, assert_replays

SEEDS = range(20)


@step()
async def double(n: int) -> int:
    """Pure work."""
    return 2 * n


@step()
async def other(n: int) -> int:
    """Other work."""
    return n


@workflow()
async def twice() -> tuple[int, int]:
    """The same call two times."""
    return await double(1), await double(1)


def test_two_identical_calls_are_two_calls() -> None:
    """The second call of the same step with the same arguments runs, and is answered, on its own."""
    life = live(twice, outcomes={"double": [10], "double#2": [20]})

    assert life.calls == life.steps_run == ["double", "double#2"]
    assert life.result == (10, 20)


@workflow()
async def loop(count: int) -> int:
    """A loop with two steps in it."""
    total = 0
    for n in range(count):
        total += await double(n)
        await other(n)
    return total


def test_a_loop_is_the_occurrences_of_its_calls() -> None:
    """Each name is counted on its own."""
    assert live(loop, 3).calls == ["double", "other", "double#2", "other#2", "double#3", "other#3"]


async def helper(n: int) -> int:
    """A plain coroutine adds nothing to the identity of what it calls."""
    return await double(n) + await double(n)


@workflow()
async def through_helpers() -> int:
    """Calls through helpers, awaited in the workflow's own task."""
    return await helper(1) + await helper(2)


def test_a_helper_that_is_awaited_shares_the_scope_of_its_caller() -> None:
    """Only tasks have scopes: pulling code out into a coroutine changes nothing for runs under way."""
    assert live(through_helpers).calls == ["double", "double#2", "double#3", "double#4"]


@workflow()
async def branches() -> list[Any]:
    """Branches of different length, with branches in them."""

    async def chain(length: int) -> int:
        return sum([await double(n) for n in range(length)])

    async def nested() -> list[int]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(chain(2)) for _ in range(2)]
        await asyncio.sleep(1)
        return [task.result() for task in tasks]

    first = await asyncio.gather(chain(3), nested(), child(5), other(1))
    return [*first, await double(100), await asyncio.gather(double(7), double(8))]


@workflow()
async def child(n: int) -> int:
    """A run inside the tree, with branches of its own."""
    return sum(await asyncio.gather(double(n), double(n + 1)))


BRANCHES = [
    "1/double",
    "1/double#2",
    "1/double#3",
    "1:1/double",
    "1:2/double",
    "2.1/double",
    "2.1/double#2",
    "2.2/double",
    "2.2/double#2",
    "3/child",
    "4/other",
    "5/double",
    "6/double",
    "double",
]


@pytest.mark.parametrize("seed", [None, *SEEDS])
def test_the_order_of_completion_does_not_change_identities(seed: int | None) -> None:
    """Calls in branches have the same identities and arguments, whichever branch is faster. [TS-R7]"""
    life = live(branches, code=Code(branches, child), seed=seed)

    assert sorted(life.calls) == BRANCHES
    assert life.result == [6, [2, 2], 22, 1, 200, [14, 16]]
    assert_replays(life)


def test_the_arguments_belong_to_the_identity_in_every_order() -> None:
    """Not only the names are the same in every order, but what is asked with them."""
    seen = {frozenset(_steps(live(branches, code=Code(branches, child), seed=seed).all_asked)) for seed in SEEDS}

    assert len(seen) == 1


def _steps(asked: list[Asked]) -> list[Asked]:
    return [command[1:6] for command in asked if command[0] == "step"]


@workflow()
async def scopes() -> list[int]:
    """Tasks that are made at different times by different tasks."""

    async def maker(n: int) -> int:
        await double(n)
        return await asyncio.create_task(double(n))

    first = asyncio.create_task(maker(1))
    await other(0)
    second = asyncio.create_task(maker(2))
    return [await first, await second]


@pytest.mark.parametrize("seed", SEEDS)
def test_tasks_are_numbered_by_the_task_that_made_them(seed: int) -> None:
    """A task inside a task has a number below that of its maker, so makers do not compete for numbers."""
    life = live(scopes, seed=seed)

    assert sorted(life.calls) == ["1.1/double", "1/double", "2.1/double", "2/double", "other"]


@workflow()
async def own_context() -> int:
    """A task in a context that the workflow has made itself."""
    import contextvars

    return await asyncio.create_task(double(1), context=contextvars.Context())


def test_a_task_in_a_foreign_context_belongs_to_its_maker() -> None:
    """`create_task(..., context=...)` works, and the scope comes from who makes the task."""
    life = live(own_context)

    assert life.calls == ["1/double"]
    assert life.result == 2


@workflow()
async def handles() -> list[int]:
    """Children by handle: started first, awaited later, in another order."""
    first, second = await start(child, 1), await start(child, 2)
    return [await second.result(), await first.result()]


@pytest.mark.parametrize("seed", [None, *SEEDS])
def test_children_are_calls_too(seed: int | None) -> None:
    """A child has an identity in its parent and a number in its tree; both come from the order of starting."""
    life = live(handles, code=Code(handles, child), seed=seed)

    assert [call for call in life.calls if "double" not in call] == ["child", "child#2"]
    assert life.result == [10, 6]
    assert_replays(life)


@workflow()
async def timers() -> None:
    """Timers have names like any other call."""
    await asyncio.sleep(1)
    await asyncio.gather(asyncio.sleep(1), asyncio.sleep(2))
    async with asyncio.timeout(5):
        await asyncio.sleep(1)


def test_timers_have_identities() -> None:
    """A timer is found again by scope and occurrence."""
    life = live(timers)

    waits = sorted({wait.name for books in life.books for wait in books.waits})
    assert waits == ["1/@timer", "2/@timer", "@timer", "@timer#2", "@timer#3"]
