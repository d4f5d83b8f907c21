"""Many starts that become one run: debounced and throttled."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

import outlive
from outlive import Queue
from outlive._kernel.model.burst import Burst, bursts_cell, bursts_data
from outlive.errors import ArgumentTypeError, InvalidArgumentError
from outlive.events import RunCreated
from outlive.limits import Debounce, Throttle
from outlive.testing import TestEngine
from tests.engine.faults import FaultyStore, faulty
from tests.engine.inside import journal_of
from tests.engine.support import Place, in_time, stage

pytestmark = pytest.mark.any_store

LONG = 3_600
single_burst = Queue("single burst", concurrency=1)


@outlive.step
async def reindex_step(text: str) -> str:
    stage.call(text)
    return text


@outlive.workflow
async def reindexed(text: str) -> str:
    return await reindex_step(text)


@outlive.workflow
async def held_reindex(text: str) -> str:
    await outlive.wait_for_signal("go")
    return text


async def test_burst_is_one_run_with_the_last_arguments() -> None:
    """It begins when the starts have stopped for a while, and that of another key is another run. [DB-D1 DB-D3]"""
    async with TestEngine() as engine:
        begun = engine.now()
        runs = []
        for text in ("one", "two", "three"):
            runs.append(await engine.start(reindexed, text, debounce=Debounce(key="shop", quiet=30)))
            await engine.skip(seconds=20)
        other = await engine.start(reindexed, "other", debounce=Debounce(key="zoo", quiet=1))

        assert len({run.id for run in runs}) == 1
        assert [await runs[0].result(), await other.result()] == ["three", "other"]
        assert engine.now() == begun + timedelta(seconds=70)


async def test_burst_that_does_not_stop_begins_all_the_same() -> None:
    """At `most` seconds after its first start; the next start begins another burst. [DB-D2]"""
    async with TestEngine() as engine:
        ids = []
        for number in range(6):
            how = Debounce(key="shop", quiet=30, most=timedelta(seconds=50))
            ids.append((await engine.start(reindexed, f"{number}", debounce=how)).id)
            await engine.skip(seconds=20)
        results = [await engine.get(run_id).result() for run_id in dict.fromkeys(ids)]

    assert results == ["2", "5"]
    assert [ids.count(run_id) for run_id in dict.fromkeys(ids)] == [3, 3]


@pytest.mark.every_store
async def test_started_again_until_it_begins(place: Place) -> None:
    """Its journal has one first event however often that is, large arguments among them; then it is another run."""
    how = Debounce(key="shop", quiet=0.000001)
    async with place.engine(queues=["elsewhere"]) as engine:
        runs = [
            await engine.start(held_reindex, text, debounce=how) for text in ("one", "x" * 100_000, "three" * 50_000)
        ]
        assert len({run.id for run in runs}) == 1
        assert [type(event) for event in await journal_of(runs[0])] == [RunCreated]
    async with place.engine() as engine:
        await engine.signal(runs[0].id, "go")
        assert await in_time(engine.get(runs[0].id).result()) == "three" * 50_000
        again = await engine.start(held_reindex, "four", debounce=how)
        assert again.id != runs[0].id
        await engine.signal(again.id, "go")
        assert await in_time(again.result()) == "four"


async def test_burst_gets_in_the_line_of_its_queue() -> None:
    """When it begins."""
    async with TestEngine() as engine:
        holder = await engine.start(held_reindex, "holder", queue=single_burst)
        await engine.settle()
        how = Debounce(key="shop", quiet=5)
        first = await engine.start(reindexed, "one", queue=single_burst, debounce=how)
        await engine.skip(seconds=10)
        second = await engine.start(reindexed, "two", queue=single_burst, debounce=how)
        await engine.skip(seconds=10)
        assert ((await first.info()).status, first.id) == ("pending", second.id)
        await engine.signal(holder.id, "go")

        assert await first.result() == "two"


async def test_throttled_starts_are_the_first_run() -> None:
    """For a while, and after that there is a next one."""
    async with TestEngine() as engine:
        how = Throttle(key="shop", every=60)
        first = await engine.start(reindexed, "one", throttle=how)
        second = await engine.start(reindexed, "two", throttle=how)
        other = await engine.start(reindexed, "other", throttle=Throttle(key="zoo", every=60))
        await engine.skip(seconds=61)
        third = await engine.start(reindexed, "three", throttle=how)

        assert [await run.result() for run in (first, second, other, third)] == ["one", "one", "other", "three"]
    assert stage.calls == ["one", "other", "three"]


@pytest.mark.parametrize("how", [{"debounce": Debounce("shop", 30)}, {"throttle": Throttle("shop", 30)}], ids=str)
async def test_start_that_died_half_way_is_taken_up_by_the_next(how: dict[str, Any], place: Place) -> None:
    """Its id was remembered, and its run was never created."""
    store = place.store()
    await store.open()
    burst = bursts_data({"shop": Burst("lost", store.now(), store.now() + 1_000_000)})
    await store.change_cell(bursts_cell("reindexed", "shop"), lambda data, now_at: (burst, None))
    await store.close()
    async with place.engine() as engine:
        run = await engine.start(reindexed, "found", **how)

        assert run.id == "lost"
        assert (await run.info()).status is not None


async def test_timeout_counts_from_the_beginning() -> None:
    """The timeout of a delayed or debounced run counts from the time for which it waits, and not from its start."""
    async with TestEngine() as engine:
        runs = [
            await engine.start(reindexed, "late", delay=60, timeout=10),
            await engine.start(reindexed, "burst", debounce=Debounce(key="a", quiet=60), timeout=10),
            await engine.start(reindexed, "burst", debounce=Debounce(key="a", quiet=90), timeout=10),
        ]
        assert [await run.result() for run in runs] == ["late", "burst", "burst"]
        infos = [await run.info() for run in runs[1:]]
        assert infos[0].timeout_at == infos[1].timeout_at == infos[0].created_at + timedelta(seconds=100)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"debounce": Debounce("a", 1), "throttle": Throttle("a", 1)}, InvalidArgumentError, "not both"),
        ({"debounce": 30}, ArgumentTypeError, "outlive.limits.Debounce"),
        ({"throttle": "a"}, ArgumentTypeError, "outlive.limits.Throttle"),
        ({"debounce": Debounce("a", 1), "id": "a"}, InvalidArgumentError, "the key says"),
        ({"throttle": Throttle("a", 1), "on_conflict": "replace"}, InvalidArgumentError, "the key says"),
        ({"debounce": Debounce("a", 1), "delay": 5}, InvalidArgumentError, "the key says"),
    ],
    ids=str,
)
async def test_bad_burst_is_refused(options: dict[str, Any], error: type[Exception], text: str) -> None:
    """With what is wrong, and what to do; nothing is started. [DB-D10]"""
    async with TestEngine() as engine:
        with pytest.raises(error, match=text):
            await engine.start(reindexed, "a", **options)
        assert await engine.count() == 0


@pytest.mark.parametrize(
    ("kind", "given"),
    [(Debounce, ("", 1)), (Debounce, ("a", 0)), (Debounce, ("a", 5, 4)), (Debounce, (7, 1)), (Throttle, ("a", -1))],
    ids=str,
)
def test_bad_way_to_gather_is_refused(kind: Any, given: tuple[Any, ...]) -> None:
    """Where it is written. [DB-D7]"""
    with pytest.raises((InvalidArgumentError, ArgumentTypeError)):
        kind(*given)


async def test_late_start_of_a_burst_that_has_begun_joins_the_next_burst(place: Place) -> None:
    """Two programs find that a burst has begun. The first begins another one; the second, which was slow, does not take
    that one apart."""
    how = Debounce(key="shop", quiet=0.000001)
    stores: list[FaultyStore] = []
    async with place.engine() as engine, place.engine(worker=False, wrap=faulty(stores)) as slow:
        begun = await engine.start(held_reindex, "first", debounce=how)
        await in_time(begun.until("waiting"))
        later = Debounce(key="shop", quiet=LONG)
        (store,) = stores
        store.gates["find_run"] = asyncio.Event()
        late = asyncio.create_task(slow.start(held_reindex, "late", debounce=later))
        await in_time(store.waiting["find_run"].wait())
        second = await engine.start(held_reindex, "second", debounce=later)
        store.gates.pop("find_run").set()

        assert (await in_time(late)).id == second.id != begun.id
