"""What a worker finds when it looks for work: everything that others left behind, once, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import outlive
from outlive._kernel.store.contract import Beat, Store
from outlive.events import RunClaimed, RunCreated
from tests.engine.dying import DyingStore
from tests.engine.faults import FaultyStore, faulty, unavailable
from tests.engine.inside import claimer_of, crash, has_stopped, journal_of, ring, row_of, store_of
from tests.engine.support import DAY, Place, events_of, hold, in_time, note, stage, until, waits


@outlive.workflow
async def swept(name: str) -> list[str]:
    return [await note(f"{name} before"), await hold(name)]


@outlive.workflow
async def swept_at_once(name: str) -> str:
    return await note(name)


@outlive.workflow
async def swept_sleeper() -> str:
    await asyncio.sleep(DAY)
    return await note("slept")


async def look(engine: outlive.Engine) -> int:
    """Let a worker look for work once more; how much it took."""
    return await claimer_of(engine).run_once()


async def test_nothing_is_found_where_nothing_was_left(place: Place) -> None:
    """An empty store, and then one with a run that has ended and one that sleeps. [SF-U1]"""
    async with place.engine() as first:
        assert 0 == await look(first)
        await in_time((await first.start(swept_at_once, "a")).result())
        await waits(await first.start(swept_sleeper))

    async with place.engine() as second:
        assert 0 == await look(second)
        assert (0, 0) == (second.counters.runs_claimed, second.counters.runs_replayed)
    assert ["a"] == stage.calls


async def test_an_orphan_is_claimed_once(place: Place) -> None:
    """An orphan is claimed by one of two workers, and their next look claims nothing. [TS-R18 SF-U7]"""
    first = await place.engine().__aenter__()
    await first.start(swept, "a", id="run-1")
    await stage.gate("a").reached()
    await crash(first)

    async with place.engine() as second, place.engine() as third:
        await stage.gate("a").reached()
        assert [0, 0] == [await look(second), await look(third)]
        assert 1 == second.counters.runs_claimed + third.counters.runs_claimed
        stage.gate("a").open()
        assert ["a before", "a"] == await in_time(second.get("run-1").result())
    assert ["a before", "a", "a"] == [call for call in stage.calls if call != "a cancelled"]


async def test_runs_that_are_taken_over_are_counted(place: Place) -> None:
    """A worker that takes over three runs in motion counts three claims, replays and ends; ended and sleeping runs are
    not counted. [SF-U6]"""
    first = await place.engine().__aenter__()
    await in_time((await first.start(swept_at_once, "ended")).result())
    await waits(await first.start(swept_sleeper))
    for name in "abc":
        await first.start(swept, name, id=name)
        await stage.gate(name).reached()
    await crash(first)

    async with place.engine() as second:
        for name in "abc":
            await stage.gate(name).reached()
            stage.gate(name).open()
            await in_time(second.get(name).result())
        counters = second.counters
        assert (3, 3, 3) == (counters.runs_claimed, counters.runs_replayed, counters.runs_ended)


async def test_end_whose_commit_was_not_answered_is_an_end(place: Place) -> None:
    """The worker dies when the end of its run is durable and before it knows: there is nothing to do again.
    [SF-U5 SF-U21 FB-R13 FE-P12]
    """
    stores: list[DyingStore] = []

    def wrap(inner: Store) -> Any:
        stores.append(DyingStore(inner, last=2, is_done=True))
        return stores[-1]

    first = await place.engine(wrap=wrap).__aenter__()
    await first.start(swept_at_once, "a", id="run-1")
    await in_time(stores[0].dead.wait())
    await crash(first)

    async with place.engine() as second:
        run = second.get("run-1")
        assert await run.status() == "succeeded"
        assert "a" == await in_time(run.result())
        assert "a" == await in_time((await second.start(swept_at_once, "b", id="run-1")).result())
        assert (0, 0) == (second.counters.runs_claimed, second.counters.steps_started)
    assert ["a"] == stage.calls


async def test_run_that_was_taken_and_never_moved_begins_at_its_beginning(place: Place) -> None:
    """Its journal says that it was created and claimed, and not a word of what it did. [TS-R19]"""
    async with place.engine(worker=False) as client:
        run = await client.start(swept_alone, "a", id="run-1")
        first = await place.engine().__aenter__()
        await stage.gate("a").reached()
        assert [RunCreated, RunClaimed] == [type(event) for event in await journal_of(run)]
        await crash(first)

        stage.gate("a").open()
        async with place.engine():
            assert "a" == await in_time(run.result())
            assert [1, 2] == [claim.epoch for claim in await events_of(run, RunClaimed)]


@outlive.workflow
async def swept_then_sleeper() -> str:
    await note("before")
    await asyncio.sleep(DAY)
    return await note("slept")


@outlive.workflow
async def swept_alone(name: str) -> str:
    return await hold(name)


async def test_run_that_sleeps_is_left_alone_until_its_time(place: Place) -> None:
    """No worker gets it, and a start with its id does not wake it; when it is due it goes on.
    [TS-R21 TS-R22 TS-R28]"""
    async with place.engine(poll_seconds=60) as engine:
        run = await engine.start(swept_sleeper, id="run-1")
        await waits(run)
        assert 0 == await look(engine)
        again = await engine.start(swept_sleeper, id="run-1")
        info = await again.info()
        assert ("waiting", "") == (info.status, info.worker)
        assert 0 == await look(engine)

        place.clock.skip(seconds=DAY)
        ring(engine)
        assert "slept" == await in_time(run.result())
    assert ["slept"] == stage.calls


async def test_run_that_cannot_be_laid_to_rest_at_once_is_so_later(place: Place) -> None:
    """That it waits and that it has no owner any more is one commit; refused, it is tried again as a whole. [TS-R23]"""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores)) as engine:
        stores[0].skip["commit"] = 1
        stores[0].before["commit"].extend([unavailable(), unavailable()])
        run = await engine.start(swept_then_sleeper)
        await waits(run)
        assert "" == (await row_of(run)).owner
        assert not stores[0].before["commit"]
        place.clock.skip(seconds=DAY)
        assert "slept" == await in_time(run.result())
    assert ["before", "slept"] == stage.calls


async def test_worker_that_stops_takes_nothing_new(place: Place) -> None:
    """While it lets its last step finish, what is started meanwhile is left to others. [TS-R30]"""
    engine = await place.engine(grace_seconds=20).__aenter__()
    await engine.start(swept_alone, "last")
    await stage.gate("last").reached()
    claimer = claimer_of(engine)
    stopping = asyncio.create_task(engine.__aexit__(None, None, None))

    async def looks_no_more() -> bool:
        return has_stopped(claimer)

    await until(looks_no_more)
    async with place.engine(worker=False) as client:
        late = await client.start(swept_at_once, "late")
        stage.gate("last").open()
        await in_time(stopping)
        assert await late.status() == "pending"
        assert ["last"] == stage.calls
        async with place.engine():
            assert "late" == await in_time(late.result())


class CountingBeat:
    """A beat that says how often it has beaten, and whether it is over."""

    def __init__(self, inner: Beat) -> None:
        self._inner = inner
        self.beats, self.is_closed = 0, False

    def renew(self, *, lease_seconds: float) -> bool:
        """Renew, and count."""
        self.beats += 1
        return self._inner.renew(lease_seconds=lease_seconds)

    def close(self) -> None:
        """End it."""
        self.is_closed = True
        self._inner.close()


@pytest.mark.usefixtures("quick_beats")
async def test_lease_is_renewed_while_a_step_takes_long_and_not_after_the_end(place: Place) -> None:
    """By a beat of its own, whatever the steps do; a worker that stops ends its beat and its session. [TS-R17 FB-R6]"""
    beats: list[CountingBeat] = []

    def wrap(store: Store) -> Store:
        open_beat: Callable[[str], Beat] = store.open_beat

        def open_counted(worker_id: str) -> Beat:
            beats.append(CountingBeat(open_beat(worker_id)))
            return beats[-1]

        vars(store)["open_beat"] = open_counted
        return store

    async with place.engine(wrap=wrap) as engine:
        run = await engine.start(swept_alone, "a")
        await stage.gate("a").reached()

        async def has_beaten() -> bool:
            return beats[0].beats >= 2

        await until(has_beaten)
        stage.gate("a").open()
        assert "a" == await in_time(run.result())

    async def is_over() -> bool:
        return all(beat.is_closed for beat in beats)

    await until(is_over)
    async with place.engine(worker=False) as client:
        assert [] == [worker for worker in await store_of(client).list_workers() if worker.is_live]
