"""`engine.list_stuck()`: the runs that do not move, and why; nothing that is as it should be."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

import outlive
from outlive._kernel.client.recovery import find_incomplete
from outlive._kernel.model import Run
from outlive._kernel.store.contract import Store
from outlive.errors import ConfigurationError
from outlive.limits import Limits
from outlive.types import Incomplete
from outlive_conformance.suite.builders import begin, hire
from tests.engine.inside import claimer_of, crash
from tests.engine.support import DAY, Place, hold, note, parks, registry_of, stage, waits

pytestmark = pytest.mark.any_store


@outlive.workflow
async def reported(name: str) -> str:
    return await hold(name)


@outlive.workflow
async def reported_long() -> list[str]:
    return [await note(f"step {number}") for number in range(3)]


@outlive.workflow
async def reported_sleep() -> None:
    await asyncio.sleep(DAY)


@outlive.workflow
async def unreported() -> None:
    return None


async def test_runs_that_move_or_wait_are_not_reported(engine: outlive.Engine) -> None:
    """A run that moves, waits or has ended is not in the recovery report."""
    await engine.start(reported, "held", id="moving")
    await stage.gate("held").reached()
    await waits(await engine.start(reported_sleep, id="asleep"))
    await (await engine.start(unreported, id="over")).result()

    assert [] == await engine.list_stuck()


async def test_a_parked_run_is_reported_with_its_reason(place: Place) -> None:
    """The reason of the report is the reason of the parking."""
    async with place.engine(limits=Limits(history_events_max=1)) as engine:
        run = await engine.start(reported_long, id="run-1")
        reason = await parks(run)

        (report,) = await engine.list_stuck()

        assert ("parked", "run-1") == (report.kind, report.run.id)
        assert reason in report.reason


async def test_an_orphan_is_reported_until_a_worker_takes_it(place: Place) -> None:
    """Its worker is gone, and a worker that could take it is there but does not claim any more."""
    first = await place.engine(name="first").__aenter__()
    await first.start(reported, "held", id="run-1")
    await stage.gate("held").reached()
    async with place.engine(poll_seconds=1_000) as second:
        await claimer_of(second).stop()
        await crash(first)

        (report,) = await second.list_stuck()

    assert report.kind == "interrupted"
    assert "its worker first is gone; another one" in report.reason


@pytest.mark.parametrize("is_orphan", [False, True])
async def test_a_run_that_no_worker_has_the_code_of_is_reported(place: Place, *, is_orphan: bool) -> None:
    """New or left behind: what it needs is named."""
    if is_orphan:
        first = await place.engine().__aenter__()
        await first.start(reported, "held", id="run-1")
        await stage.gate("held").reached()
        await crash(first)
    async with place.engine(registry=registry_of(unreported)) as stranger:
        if not is_orphan:
            await stranger.start(reported, "held", id="run-1")

        (report,) = await stranger.list_stuck()

    assert report.kind == "undefined"
    assert f"no live worker has {reported.name}@1" in report.reason


async def test_a_report_comes_in_pages(place: Place) -> None:
    """Each run is in exactly one page, newest first, and the last page is empty."""
    async with place.engine(worker=False) as client:
        for number in range(5):
            await client.start(reported, "held", id=f"run-{number}")
        pages: list[list[Incomplete]] = [await client.list_stuck(limit=2)]
        while pages[-1]:
            pages.append(await client.list_stuck(limit=2, before=pages[-1][-1].run.id))

    assert [2, 2, 1, 0] == [len(page) for page in pages]
    assert [f"run-{number}" for number in (4, 3, 2, 1, 0)] == [each.run.id for page in pages for each in page]


@pytest.mark.parametrize("limit", [0, 1_001])
async def test_a_page_of_no_possible_size_is_refused(engine: outlive.Engine, limit: int) -> None:
    """The message says what is possible."""
    with pytest.raises(ConfigurationError, match="a whole number from 1 to 1,000"):
        await engine.list_stuck(limit=limit)


async def test_sync_code_can_ask_for_the_recovery_report(place: Place) -> None:
    """The sync engine lists the runs that do not move."""
    async with place.engine(worker=False) as client:
        await client.start(reported, "held", id="run-1")

        (report,) = await asyncio.to_thread(client.sync.list_stuck)

    assert "run-1" == report.run.id


class GrowingStore:
    """A store that a worker joins, and takes a run of, just before the runs are listed."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.has_grown = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def list_runs(self, *args: Any, **kwargs: Any) -> list[Run]:
        """With the run of the newcomer."""
        if not self.has_grown:
            self.has_grown = True
            await hire(self.inner, "newcomer")
            await begin(self.inner, "run-1", worker="newcomer")
        return await self.inner.list_runs(*args, **kwargs)


async def as_it_is(run: Run) -> Run:
    """Hides nothing."""
    return run


async def test_a_worker_that_has_just_begun_is_not_taken_for_gone(place: Place) -> None:
    """A report that takes long sees runs of workers that began after it did."""
    store = GrowingStore(place.store())
    await store.open()
    try:
        assert [] == await find_incomplete(cast("Store", store), limit=10, before=None, shown=as_it_is)
    finally:
        await store.close()
