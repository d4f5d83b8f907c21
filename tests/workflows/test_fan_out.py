"""A run that asks for much at once gives way: it is recorded in several turns of the event loop, with a draft each."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import outlive
from outlive._features.fsck.checker import check_store
from outlive._kernel.runtime.tree import live
from outlive._kernel.store.contract import Store
from outlive.testing import crash_everywhere
from tests.engine.faults import FaultyStore
from tests.engine.inside import store_of, trees_of
from tests.engine.support import Place, hold, in_time, note, reaches, stage, until

pytestmark = pytest.mark.any_store

MANY = 1_000


@outlive.workflow(name="fanned.child")
async def child(number: int) -> int:
    """Ends at once."""
    return number


@outlive.workflow(name="fanned.out")
async def fanned_out(count: int) -> int:
    """Has many children."""
    return sum(await asyncio.gather(*(child(number) for number in range(count))))


@outlive.step
async def quickly(number: int) -> int:
    """Ends at once."""
    return number


@outlive.workflow(name="fanned.steps")
async def fanned_steps(count: int) -> int:
    """Has many steps at once."""
    return sum(await asyncio.gather(*(quickly(number) for number in range(count))))


class Measuring(FaultyStore):
    """A store that notes how many events each batch has."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.rows: list[int] = []

    async def _do(self, name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "commit":
            self.rows.append(sum(len(change.rows) for change in args[0]))
        return await super()._do(name, *args, **kwargs)


@outlive.workflow(name="fanned.busy")
async def busy(name: str) -> str:
    """A child that does more than to end."""
    await asyncio.sleep(0.001)
    return await note(name)


@outlive.workflow(name="fanned.all")
async def all_kinds(count: int) -> list[Any]:
    """Has children, and something else goes on beside them."""
    beside = asyncio.create_task(hold("beside"))
    word = await outlive.wait_for_signal("word", str)
    names = await asyncio.gather(*(busy(f"{word} {number}") for number in range(count)))
    outlive.set_tags(names=str(len(names)))
    return [*names, await outlive.wait_for_signal("last", str), await beside]


async def test_many_children_are_recorded_in_turns(place: Place) -> None:
    """Between two of them other runs move."""
    async with place.engine() as engine:
        starting = asyncio.create_task(engine.start(fanned_out, MANY, id="parent"))
        in_each_turn, recorded = [], 0
        while recorded < 2 * MANY:
            await asyncio.sleep(0)
            now = max((tree.seq + 1 for tree in trees_of(engine)), default=0)
            in_each_turn.append(now - recorded)
            recorded = now

        assert max(in_each_turn) <= MANY / 2
        assert await in_time((await starting).result()) == sum(range(MANY))
        assert [] == await check_store(store_of(engine))


async def test_many_steps_begin_and_end_in_turns(place: Place) -> None:
    """No turn of the event loop begins thousands of steps, and no transaction has all of their outcomes."""
    stores: list[Measuring] = []

    def wrap(inner: Store) -> Any:
        stores.append(Measuring(inner))
        return stores[-1]

    async with place.engine(wrap=wrap) as engine:
        run = await engine.start(fanned_steps, 4 * MANY)
        in_each_turn, begun = [], 0
        while begun < 4 * MANY and trees_of(engine):
            now = engine.counters.steps_started + sum(len(tree.attempts) for tree in trees_of(engine))
            in_each_turn.append(now - begun)
            begun = max(now, begun)
            await asyncio.sleep(0)

        assert max(in_each_turn) <= MANY
        assert await in_time(run.result()) == sum(range(4 * MANY))
        # The outcomes of two changes, and what the code makes of them.
        assert max(stores[0].rows) <= MANY
        assert [] == await check_store(store_of(engine))


async def test_messages_and_ends_come_between_the_events_of_a_burst(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Signals, timers and ends of steps come between two events of a burst, and none is lost."""
    monkeypatch.setattr(live, "EVENTS_AT_ONCE", 1)
    async with place.engine() as engine:
        run = await engine.start(all_kinds, 8, id="parent")
        await stage.gate("beside").reached()
        await run.signal("word", "a")

        async def is_behind() -> bool:
            return any(tree.todo for tree in trees_of(engine)) or bool(stage.calls)

        await until(is_behind)
        stage.gate("beside").open()
        await run.signal("last", "end")

        assert await in_time(run.result()) == [*(f"a {number}" for number in range(8)), "end", "beside"]
        assert [] == await check_store(store_of(engine))


async def test_run_that_is_cancelled_in_a_burst_ends(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is cancelled in the middle of a burst ends as cancelled, and its store is sound."""
    monkeypatch.setattr(live, "EVENTS_AT_ONCE", 1)
    async with place.engine() as engine:
        run = await engine.start(all_kinds, 50, id="parent")
        await stage.gate("beside").reached()
        await run.signal("word", "a")
        await run.cancel()
        stage.gate("beside").open()

        await reaches(run, "cancelled")
        assert [] == await check_store(store_of(engine))


async def test_worker_that_stops_in_a_burst_leaves_the_rest_to_another(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A journal may end in the middle of what one event has brought."""
    monkeypatch.setattr(live, "EVENTS_AT_ONCE", 1)
    async with place.engine() as engine:
        run = await engine.start(fanned_out, 200, id="parent")
        assert trees_of(engine)[0].todo, "it is in the middle"
    async with place.engine() as engine:
        run = engine.get("parent")
        assert await in_time(run.result()) == sum(range(200))
        assert [] == await check_store(store_of(engine))


@outlive.workflow(name="fanned.crashed")
async def crashed() -> int:
    """Everything at once."""
    return sum(map(len, await asyncio.gather(*(busy(f"{number}") for number in range(4)))))


async def test_burst_survives_a_crash_between_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """After each of its changes."""
    monkeypatch.setattr(live, "EVENTS_AT_ONCE", 1)
    report = await crash_everywhere(crashed, max_points=12)
    assert report.result == 4
