"""`on_conflict="attach_open"`: an id may be used again when its run has ended, by one run at a time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import outlive
from outlive.errors import RunExistsError, RunFailedError
from outlive.testing import TestEngine
from outlive.testing.fsck import check_store
from tests.engine.inside import store_of


@outlive.step
async def again_double(number: int) -> int:
    """Fails for zero."""
    if not number:
        raise ValueError("nothing to double")
    return 2 * number


@outlive.workflow
async def again_sync(number: int) -> int:
    """Waits, and doubles."""
    await outlive.wait_for_signal("go", int)
    return await again_double(number)


@outlive.workflow
async def again_other() -> None:
    """Something else."""


@pytest.mark.every_store
@pytest.mark.parametrize("store", ["memory", "sqlite", "postgres"])
async def test_id_is_used_again(store: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """A start with the id of an open run gets that run. A run that has ended makes room, and keeps its history."""
    urls = {"memory": "memory:", "sqlite": f"sqlite:{tmp_path}/runs.db"}
    url = urls[store] if store in urls else request.getfixturevalue("postgres_url")
    async with TestEngine(url) as engine:
        for number in (1, 2, 3):
            runs = [
                await engine.start(again_sync, number + more, id="sync", on_conflict="attach_open") for more in range(2)
            ]
            assert (await runs[1].info()).created_at == (await runs[0].info()).created_at
            await runs[0].signal("go", 1)
            assert await runs[1].result() == 2 * number
        assert [await engine.get(f"sync~old{number}").result() for number in (1, 2)] == [2, 4]
        assert await check_store(store_of(engine)) == []


async def test_many_starts_at_once_are_one_run() -> None:
    """After an end, too."""
    async with TestEngine() as engine:
        await (await engine.start(again_sync, 0, id="s")).signal("go", 1)
        with pytest.raises(RunFailedError):
            await engine.get("s").result()
        await asyncio.gather(
            *(engine.start(again_sync, number, id="s", on_conflict="attach_open") for number in range(1, 6))
        )
        assert sorted(run.id for run in await engine.list()) == ["s", "s~old1"]


async def test_run_that_was_retried_is_open() -> None:
    """It has the id."""
    async with TestEngine() as engine:
        run = await engine.start(again_sync, 0, id="s")
        await run.cancel()
        with pytest.raises(RunFailedError):
            await run.result()
        await run.retry()
        await engine.start(again_sync, 7, id="s", on_conflict="attach_open")
        assert [each.id for each in await engine.list()] == ["s"]
        with pytest.raises(RunExistsError, match="a run of workflow again_sync"):
            await engine.start(again_other, id="s", on_conflict="attach_open")
        assert await run.status() != "cancelled"
