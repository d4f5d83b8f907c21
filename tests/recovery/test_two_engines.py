"""Two engines on one store: each run runs once, the dead are replaced, and zombies are harmless."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

import outlive
from outlive.events import RunClaimed, StepSucceeded
from tests.engine.faults import FaultyStore, faulty
from tests.engine.inside import claimer_of, crash, journal_of, store_of, worker_of
from tests.engine.support import Place, events_of, hold, in_time, note, stage, until, until_calls, waits

pytestmark = pytest.mark.every_store

LEASE = 10


@outlive.workflow
async def shared(name: str) -> str:
    await note(name)
    await outlive.wait_for_signal("go")
    return await note(f"{name} again")


@outlive.workflow
async def shared_hold(name: str) -> str:
    return await hold(name)


@outlive.step
async def hold_epoch() -> int:
    epoch = outlive.current_step().epoch
    gate = stage.gate(f"epoch {epoch}")
    try:
        await gate.pass_through()
    except asyncio.CancelledError:
        stage.call(f"epoch {epoch} cancelled")
        raise
    stage.call(f"epoch {epoch} done")
    return epoch


@outlive.workflow
async def contested() -> list[int]:
    """Two steps side by side."""
    first, second = await asyncio.gather(hold_epoch(), hold_epoch())
    await note("after")
    return [first, second]


@outlive.workflow
async def contested_alone() -> int:
    epoch = await hold_epoch()
    await note("after")
    return epoch


async def test_each_run_runs_once(place: Place) -> None:
    """Runs that both engines start, signal and wake are moved by one of them at a time."""
    async with place.engine() as first, place.engine() as second:
        runs = [await (first, second)[number % 2].start(shared, f"run {number}") for number in range(30)]
        for number, run in enumerate(runs):
            await (second, first)[number % 2].signal(run.id, "go")

        results = [await in_time(first.get(run.id).result()) for run in runs]
        assert [f"run {number} again" for number in range(30)] == results
    assert {1} == set(Counter(stage.calls).values())


async def test_a_client_sees_the_runs_of_a_worker(place: Place) -> None:
    """Status, reason and history are the same from every engine."""
    async with place.engine() as worker, place.engine(worker=False) as client:
        run = await worker.start(shared, "a", id="run-1")
        await waits(run)

        assert await client.get("run-1").status() == "waiting"
        assert await run.why() == await client.get("run-1").why()
        assert await journal_of(run) == await journal_of(client, "run-1")


async def test_orphans_are_taken_over(place: Place) -> None:
    """The runs of an engine that dies go on in one that lives. [AK-X1]"""
    first = await place.engine().__aenter__()
    for name in "abc":
        await first.start(shared_hold, name, id=name)
        await stage.gate(name).reached()
    async with place.engine() as second:
        await crash(first)
        for name in "abc":
            await stage.gate(name).reached()
            stage.gate(name).open()
        assert ["a", "b", "c"] == [await in_time(second.get(name).result()) for name in "abc"]
        claims = [await events_of(second.get(name), RunClaimed) for name in "abc"]
    assert [True] * 3 == [claim.interrupted for (claim,) in claims]


async def test_a_live_worker_keeps_its_runs(place: Place) -> None:
    """No worker takes over what is only slow. [TS-R20]"""
    async with place.engine() as first, place.engine() as second:
        run = await first.start(shared_hold, "a", id="run-1")
        await stage.gate("a").reached()
        for _ in range(20):
            assert 0 == await claimer_of(second).run_once()
        stage.gate("a").open()
        assert "a" == await in_time(run.result())
    assert ["a"] == stage.calls


async def test_a_zombie_commits_nothing(place: Place) -> None:
    """An engine whose lease ran out and whose run was taken over finds its result refused and stops its steps."""
    async with place.engine(lease_seconds=LEASE) as zombie:
        await zombie.start(contested, id="run-1")
        await stage.gate("epoch 1").reached()
        await stage.gate("epoch 1").reached()
        place.clock.skip(seconds=2 * LEASE)

        async with place.engine(lease_seconds=LEASE) as successor:
            await stage.gate("epoch 2").reached()
            await stage.gate("epoch 2").reached()
            zombie_run = stage.gate("epoch 1")
            zombie_run.open()
            await until_conflict(zombie)
            stage.gate("epoch 2").open()

            run = successor.get("run-1")
            assert [2, 2] == await in_time(run.result())
            assert 3 == len(await events_of(run, StepSucceeded))
            assert 0 == zombie.counters.runs_ended
    assert 1 == stage.count("after")


async def test_a_zombie_cancels_what_it_has_running(place: Place) -> None:
    """The first refused commit is enough: the other steps of the run are cancelled at once. [AK-X4]"""
    async with place.engine(lease_seconds=LEASE) as zombie:
        await zombie.start(contested_beside_progress, id="run-1")
        await stage.gate("epoch 1").reached()
        await stage.gate("beat").reached()
        place.clock.skip(seconds=2 * LEASE)

        async with place.engine(lease_seconds=LEASE) as successor:
            await stage.gate("epoch 2").reached()
            stage.gate("beat").open()
            await until_calls("epoch 1 cancelled")
            stage.gate("epoch 2").open()
            assert 2 == await in_time(successor.get("run-1").result())


@outlive.step
async def pass_gate(name: str) -> None:
    await stage.gate(name).pass_through()


@outlive.workflow
async def contested_beside_progress() -> int:
    epoch: int = (await asyncio.gather(hold_epoch(), pass_gate("beat")))[0]
    return epoch


async def until_conflict(engine: outlive.Engine) -> None:
    """Return when a commit of an engine was refused."""

    async def is_so() -> bool:
        return engine.counters.conflicts > 0

    await until(is_so)


@pytest.mark.usefixtures("quick_beats")
async def test_a_worker_whose_session_was_ended_begins_a_new_one(place: Place) -> None:
    """Its keeper notices, its steps are cancelled, its runs go on elsewhere, and it works again. [AK-X4]"""
    async with place.engine() as fenced:
        await fenced.start(contested_alone, id="run-1")
        await stage.gate("epoch 1").reached()
        async with place.engine() as other:
            session = worker_of(fenced).id
            await store_of(other).end_session(session)
            await stage.gate("epoch 2").reached()
            await until_calls("epoch 1 cancelled")
            stage.gate("epoch 2").open()
            assert 2 == await in_time(other.get("run-1").result())
        assert "again" == await in_time((await fenced.start(shared_note, "again")).result())
        assert session != worker_of(fenced).id


@outlive.workflow
async def shared_note(name: str) -> str:
    return await note(name)


async def test_a_worker_that_cannot_reach_its_store_fences_itself(place: Place) -> None:
    """Before its lease runs out it stops its steps; when the store is back it goes on, and nothing is lost."""
    stores: list[FaultyStore] = []
    async with place.engine(lease_seconds=2, wrap=faulty(stores)) as engine:
        run = await engine.start(contested_alone, id="run-1")
        await stage.gate("epoch 1").reached()
        stores[0].is_down = True
        await until_calls("epoch 1 cancelled")
        stores[0].is_down = False

        await stage.gate("epoch 2").reached()
        stage.gate("epoch 2").open()
        assert 2 == await in_time(run.result())


@pytest.mark.parametrize("engines", [3])
async def test_many_engines_share_the_work_of_one(place: Place, engines: int) -> None:
    """Runs started by a client without a worker are spread and all of them end."""
    async with place.engine(worker=False) as client:
        runs = [await client.start(shared_note, f"{number}") for number in range(40)]
        workers = [await place.engine().__aenter__() for _ in range(engines)]
        assert [f"{number}" for number in range(40)] == [await in_time(run.result()) for run in runs]
        for worker in workers:
            await worker.__aexit__(None, None, None)
    assert 40 == len(set(stage.calls)) == len(stage.calls)
