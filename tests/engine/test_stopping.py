"""An engine that stops lets go of everything at once, however much it owns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import outlive
from outlive._journal.event import RunReleased
from outlive._store.contract import Change, Outcome
from tests.engine.support import Place, events_of, hold, stage

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
