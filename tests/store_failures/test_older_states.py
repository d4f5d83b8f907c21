"""A store that goes back to an earlier state under live engines: a replica that was late, a restored backup."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import outlive
from outlive.errors import RunNotFoundError
from outlive.types import RunHandle
from tests.engine.support import Place, in_time, stage, turns_of_the_loop, until, waits
from tests.store_failures.test_damaged_rows import change

pytestmark = pytest.mark.every_store


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Where rows can be taken away."""
    if request.param == "sqlite":
        return Place(tmp_path / "engine.db")
    return Place(None, server_url=request.getfixturevalue("postgres_url"))


@outlive.step
async def held(name: str) -> str:
    stage.call(name)
    await stage.gate(name).pass_through()
    return name


@outlive.workflow
async def holding(name: str) -> str:
    return await held(name)


@outlive.workflow
async def signalled() -> str:
    return await outlive.wait_for_signal("go", str)


def forget(place: Place) -> None:
    """Take the store back to before there were runs."""
    deleted = "DELETE FROM t_runs; DELETE FROM t_events"
    change(place, deleted if place.server_url else f"BEGIN IMMEDIATE; {deleted}; COMMIT")


async def test_result_of_a_run_that_moves_here_and_is_forgotten(place: Place) -> None:
    """Its caller has started it in this process and never looked at the store; the ghost commits nothing."""
    async with place.engine() as engine:
        run = await engine.start(holding, "a", id="run-1")
        waiting = asyncio.create_task(run.result())
        await stage.gate("a").reached()

        forget(place)
        stage.gate("a").open()

        with pytest.raises(RunNotFoundError, match="run-1"):
            await in_time(waiting)
        assert await engine.list() == []


async def every(items: AsyncIterator[Any]) -> list[Any]:
    """All there is to read."""
    return [item async for item in items]


WAYS: dict[str, Callable[[RunHandle[Any]], Awaitable[Any]]] = {
    "result": lambda run: run.result(),
    "result in time": lambda run: run.result(timeout=60),
    "follow": lambda run: every(run.follow()),
    "stream": lambda run: every(run.stream("words")),
    "watch": lambda run: every(run.watch()),
    "ask": lambda run: run.ask("question", timeout=60),
}


@pytest.mark.parametrize("with_worker", [True, False], ids=["worker", "client"])
async def test_every_caller_that_waits_for_a_forgotten_run_gets_an_error(place: Place, *, with_worker: bool) -> None:
    """In the process that moved it, and in any other one."""
    async with place.engine() as worker, place.engine(worker=False) as client:
        run = await worker.start(signalled, id="run-1")
        await waits(run)
        asked = (worker if with_worker else client).get("run-1")
        waiting = {way: asyncio.ensure_future(wait(asked)) for way, wait in WAYS.items()}
        await turns_of_the_loop(100)

        forget(place)

        for way, caller in waiting.items():
            with pytest.raises(RunNotFoundError, match="run-1"):
                await in_time(caller)
            assert caller.done(), way


async def test_worker_whose_renewal_was_forgotten_discards_its_runs_and_goes_on(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """It says what has happened, counts it, and runs what the store says in a new session."""
    async with place.engine(lease_seconds=1) as engine:
        run = await engine.start(holding, "a", id="run-1")
        await stage.gate("a").reached()

        async def has_beaten() -> bool:
            change(place, "UPDATE t_workers SET expires_at = expires_at - 60000000")
            return engine.counters.store_changes > 0

        with caplog.at_level(logging.ERROR, "outlive"):
            await until(has_beaten)
        await stage.gate("a").reached()
        stage.gate("a").open()

        assert await in_time(run.result()) == "a"
        assert stage.count("a") >= 2
        assert "is not the store that it was: it has forgotten that the lease" in caplog.text
        assert "nothing was lost" not in caplog.text
