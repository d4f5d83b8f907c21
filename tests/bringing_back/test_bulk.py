"""`retry`, `cancel`, `pause` and `resume` of many runs, by filter, with a preview and a limit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

import outlive
from outlive._kernel.client.bulk import AT_ONCE, side_by_side
from outlive.errors import InvalidArgumentError, RunFailedError
from outlive.testing import TestEngine

broken = {1, 2, 3, 4}


@pytest.fixture
async def engine() -> AsyncIterator[TestEngine]:
    """An engine on which four of six runs have failed; the third of them was rolled back."""
    broken.update((1, 2, 3, 4))
    async with TestEngine() as engine:
        for number in range(6):
            run = await engine.start(bulk_order, number, id=f"o-{number}", tags={"odd": str(number % 2)})
            if number in broken:
                with pytest.raises(RunFailedError):
                    await run.result()
            else:
                await run.result()
        yield engine


@outlive.step
async def bulk_ship(number: int) -> int:
    """Fails for some."""
    if number in broken:
        raise ValueError("no truck")
    return number


@outlive.step
async def bulk_release(number: int) -> None:
    """Undo."""


@outlive.step(undo=bulk_release)
async def bulk_hold(number: int) -> int:
    """Undone when the third fails."""
    return number


@outlive.workflow
async def bulk_order(number: int) -> int:
    """Has something to undo if it is the third."""
    async with outlive.saga():
        if number == 3:
            await bulk_hold(number)
        return await bulk_ship(number)


@outlive.workflow
async def bulk_waiter() -> str:
    """Waits."""
    return await outlive.wait_for_signal("go", str)


async def test_retry_of_all_that_fit(engine: TestEngine) -> None:
    """A preview changes nothing; a limit takes the oldest; one that refuses does not stop the others."""
    preview = await engine.retry(workflow="bulk_order", status="failed", dry_run=True)
    assert [(each.id, each.status, each.done) for each in preview] == [
        (f"o-{number}", "failed", False) for number in (1, 2, 3, 4)
    ]
    assert await engine.count(status="failed") == 4
    broken.clear()
    first = await engine.retry(workflow="bulk_order", limit=1)
    assert [(each.id, each.done) for each in first] == [("o-1", True)]
    assert await engine.get("o-1").result() == 1
    rest = await engine.retry(workflow="bulk_order", error="ValueError", reason="there is a truck")
    assert [(each.id, each.done) for each in rest] == [("o-2", True), ("o-3", False), ("o-4", True)]
    assert rest[1].error == "RunNotRetriableError"
    assert [await engine.get(f"o-{number}").result() for number in (2, 4)] == [2, 4]
    assert await engine.retry(tags={"odd": "0"}) == []


async def test_pause_resume_and_cancel_of_all_that_fit(engine: TestEngine) -> None:
    """Only root runs that are in the right state, unless a status is given."""
    for number in range(3):
        await engine.start(bulk_waiter, id=f"w-{number}", tags={"team": "a" if number else "b"})
    await engine.settle()
    paused = await engine.pause(workflow="bulk_waiter", tags={"team": "a"}, by="ann")
    assert [(each.id, each.done) for each in paused] == [("w-1", True), ("w-2", True)]
    assert (await engine.get("w-1").why()).startswith("it is paused by ann")
    preview = await engine.resume(id_prefix="w-", dry_run=True)
    resumed = await engine.resume(id_prefix="w-", limit=1)
    assert [[each.id for each in found] for found in (preview, resumed)] == [["w-1", "w-2"], ["w-1"]]
    cancelled = await engine.cancel(workflow="bulk_waiter", reason="enough")
    assert [(each.id, each.done) for each in cancelled] == [("w-0", True), ("w-1", True), ("w-2", True)]
    await engine.settle()
    assert {run.status for run in await engine.list(workflow="bulk_waiter")} == {"cancelled"}
    refused = await engine.cancel(workflow="bulk_order", status="succeeded")
    assert [(each.id, each.done) for each in refused] == [("o-0", False), ("o-5", False)]


async def test_everything_by_mistake_is_refused(engine: TestEngine) -> None:
    """Without a filter, with an id beside one, or with one that is none."""
    for verb in (engine.retry, engine.cancel):
        with pytest.raises(InvalidArgumentError, match="say by a filter which runs"):
            await verb()
        with pytest.raises(InvalidArgumentError, match="say by a filter which runs"):
            await verb(limit=5)
        with pytest.raises(InvalidArgumentError, match="not both"):
            await verb("o-1", workflow="bulk_order")
        with pytest.raises(TypeError, match="no filter 'worfklow'"):
            await verb(worfklow="bulk_order")  # type: ignore[call-arg]
    with pytest.raises(InvalidArgumentError, match="say by a filter which runs"):
        await engine.pause(limit=1)


@outlive.workflow
async def bulk_leaf() -> None:
    """Waits."""
    await outlive.wait_for_signal("go")


@outlive.workflow
async def bulk_tree() -> str:
    """Two children, one of which may be cancelled alone."""
    ended = await asyncio.gather(bulk_leaf(), bulk_leaf(), return_exceptions=True)
    return " ".join(type(each).__name__ for each in ended)


async def test_child_runs_are_acted_on_as_they_are_listed() -> None:
    """With `roots_only=False`; a child whose root fits too is reached there, and not twice."""
    async with TestEngine() as engine:
        await engine.start(bulk_tree, id="t")
        await engine.settle()
        listed = [run.id for run in await engine.list(workflow="bulk_leaf", order="created_at")]
        roots = await engine.cancel(workflow="bulk_leaf", dry_run=True)
        shown = await engine.cancel(workflow="bulk_leaf", dry_run=True, roots_only=False)
        tree = await engine.cancel(id_prefix="t", dry_run=True, roots_only=False)
        await engine.cancel(workflow="bulk_leaf", roots_only=False)

        assert ([], listed, ["t"]) == tuple([it.id for it in found] for found in (roots, shown, tree))
        assert await engine.get("t").result() == "RunCancelledError RunCancelledError"
        # Of a verb that is for the whole tree, one run of each.
        again = await engine.retry(workflow="bulk_leaf", dry_run=True, roots_only=False)
        assert [it.id for it in again] == listed[:1]


async def test_a_verb_is_under_way_for_many_runs_at_once() -> None:
    """None of them has to wait for the end of the one before; their answers come in their order."""
    begun: list[int] = []
    all_begun = asyncio.Event()

    async def act(number: int) -> int:
        begun.append(number)
        if len(begun) == AT_ONCE:
            all_begun.set()
        await asyncio.wait_for(all_begun.wait(), 5)
        return number

    assert [number async for number in side_by_side(range(AT_ONCE), act)] == list(range(AT_ONCE))
