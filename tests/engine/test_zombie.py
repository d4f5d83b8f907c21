"""A worker that has lost a tree without knowing writes nothing more, however much it has to say."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import outlive
from outlive._journal.event import RunClaimed, StepSucceeded
from tests.engine.faults import FaultyStore, faulty
from tests.engine.support import Place, _go_silent, hold, in_time, stage, until


@outlive.workflow
async def holding_three() -> list[str]:
    return list(await asyncio.gather(hold("a"), hold("b"), hold("c")))


@pytest.mark.parametrize("batched", [False, True], ids=["one after the other", "in one batch"])
async def test_nothing_is_appended_behind_the_claim_of_another(place: Place, *, batched: bool) -> None:
    """The first of its changes is refused; the second one would fit behind the claim that took its place."""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores), grace_seconds=0) as first:
        committer, station = first._committer, first._station
        assert committer is not None
        assert station is not None
        assert station._worker is not None
        run = await first.start(holding_three, id="run-1")
        for name in "abc":
            await stage.gate(name).reached()
        blocked = stores[0].gates["commit"] = asyncio.Event()
        other: asyncio.Task[Any] | None = None
        if batched:
            # Something of another run keeps the committer busy while two changes of this one come together.
            other = asyncio.create_task(first.start(holding_three, id="run-2"))
            await in_time(stores[0].waiting["commit"].wait())
        for number, name in enumerate("ab", start=batched):
            stage.gate(name).open()

            async def is_queued(wanted: int = number) -> bool:
                return len(committer._queue) >= wanted and stores[0].waiting["commit"].is_set()

            await until(is_queued)

        await _go_silent(stores[0], station._worker.id)
        async with place.engine(wrap=faulty(stores)) as second:
            stores[1].gates["commit"] = asyncio.Event()

            async def is_claimed() -> bool:
                return isinstance((await second.history(run.id))[-1], RunClaimed)

            await until(is_claimed)
            del stores[0].gates["commit"]
            blocked.set()
            assert await committer.drain(patience_seconds=1)
            appended = [event for event in await second.history(run.id) if isinstance(event, StepSucceeded)]
            stores[1].gates.pop("commit").set()
            stage.gate("c").open()
            assert [] == appended
            assert ["a", "b", "c"] == await in_time(second.get(run.id).result())
            if other is not None:
                await in_time(other)
