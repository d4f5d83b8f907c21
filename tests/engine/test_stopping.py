"""An engine that stops lets go of everything at once, however much it owns."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import outlive
from outlive._journal.event import RunReleased
from outlive._store.contract import Change, Outcome
from tests.engine.faults import FaultyStore, faulty
from tests.engine.support import Place, events_of, hold, in_time, stage

RUNS = 120


@outlive.workflow
async def stops(name: str) -> str:
    return await hold(name)


async def test_everything_is_released_in_one_commit(place: Place) -> None:
    """A hundred runs in the middle of a step are a hundred rows of one transaction, not a hundred transactions."""
    engine = place.engine()
    commits: list[int] = []

    async with engine:
        runs = [await engine.start(stops, "all", id=f"run-{number}") for number in range(RUNS)]
        for _ in runs:
            await stage.gate("all").reached()
        commit = engine._store.commit

        async def counted(changes: Sequence[Change]) -> list[tuple[Outcome, int]]:
            commits.append(len(changes))
            return await commit(changes)

        store: Any = engine._store
        store.commit = counted

    assert [RUNS] == commits
    async with place.engine(worker=False) as client:
        assert all([len(await events_of(client.get(run.id), RunReleased)) == 1 for run in runs])


async def test_session_that_was_given_up_is_ended_though_no_other_could_begin(place: Place) -> None:
    """Stopped between two sessions; its lease has not run out, and nobody is to wait for that."""
    stores: list[FaultyStore] = []
    engine = await place.engine(wrap=faulty(stores)).__aenter__()
    await engine.start(stops, "given up", id="run-1")
    await stage.gate("given up").reached()
    station = engine._station
    assert station is not None
    assert station._keeper is not None
    stores[0].gates["retire_worker"] = asyncio.Event()
    station._keeper.give_up("a test says so")
    await in_time(stores[0].waiting["retire_worker"].wait())
    renewal = station._renewal
    assert renewal is not None

    stopping = asyncio.ensure_future(engine.__aexit__(None, None, None))
    await in_time(asyncio.wait([renewal]))
    stores[0].gates["retire_worker"].set()
    await in_time(stopping)

    async with place.engine():
        await stage.gate("given up").reached()
