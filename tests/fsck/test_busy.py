"""A store may be checked while others write: what moves is looked at again, and nothing is reported that is not so."""

from __future__ import annotations

import asyncio

import outlive
from outlive._features.fsck.checker import Checker
from outlive._kernel.store.contract import WorkerInfo
from tests.engine.support import Place, in_time

RUNS = 40
STEPS = 10


@outlive.step
async def busy_step(number: int) -> int:
    return number


@outlive.workflow
async def busy(number: int) -> int:
    return sum([await busy_step(number) for _ in range(STEPS)])


EVENTS: dict[str, asyncio.Event] = {}


@outlive.step
async def busy_hold() -> None:
    """Takes as long as the test wants."""
    EVENTS["begun"].set()
    await EVENTS["open"].wait()


@outlive.workflow
async def busy_waiting() -> None:
    """In one step."""
    await busy_hold()


async def test_a_store_in_use_is_checked_without_a_false_alarm(place: Place) -> None:
    """Runs are created, move and end while every tree is looked at, again and again."""
    looked = 0
    async with place.engine(grace_seconds=5) as engine:
        store = place.store()
        await store.open()
        runs = [await engine.start(busy, number, id=f"run-{number}") for number in range(RUNS)]
        ends = asyncio.gather(*(run.result() for run in runs))
        while not ends.done() or not looked:
            checker = Checker(store, repair=True)
            assert [] == [problem async for problem in checker.problems()]
            looked += checker.trees
            await asyncio.sleep(0)  # A store in memory never waits, and the runs have to move.
            await asyncio.sleep(0)  # A store in memory never waits, and so no other task would have a turn.
        assert [STEPS * number for number in range(RUNS)] == await in_time(ends)
        await store.close()
    assert looked


async def test_a_worker_that_began_after_the_list_is_known(place: Place) -> None:
    """A checker that meets a run of a worker that began after its list of workers reads the list again."""
    EVENTS.update(begun=asyncio.Event(), open=asyncio.Event())
    async with place.engine() as engine:
        await engine.start(busy_waiting, id="held")
        await in_time(EVENTS["begun"].wait())
        store = place.store()
        await store.open()
        lists = [[], await store.list_workers()]

        async def listed() -> list[WorkerInfo]:
            return lists.pop(0)

        store.list_workers = listed  # type: ignore[method-assign,assignment]
        found = [problem async for problem in Checker(store).problems()]
        await store.close()
        EVENTS["open"].set()

    assert (found, lists) == ([], [])


async def test_a_long_journal_is_read_in_pages(place: Place) -> None:
    """However long it is, only a page of it is in memory."""
    from outlive._features.fsck import checker as module

    asked: list[int | None] = []
    async with place.engine() as engine:
        await (await engine.start(busy, 1, id="long")).result()
    store = place.store()
    await store.open()
    read = store.read_journal

    async def reading(journal: int, *, after: int = -1, limit: int | None = None) -> object:
        asked.append(limit)
        return await read(journal, after=after, limit=limit)

    store.read_journal = reading  # type: ignore[method-assign,assignment]
    before, module.ROWS_MAX = module.ROWS_MAX, 4
    try:
        checker = module.Checker(store)
        assert [] == [problem async for problem in checker.problems()]
    finally:
        module.ROWS_MAX = before
        await store.close()
    assert (1, 1) == (checker.trees, checker.runs)
    assert [4] * len(asked) == asked
    assert len(asked) >= STEPS // 4
