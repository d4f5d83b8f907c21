"""The SQLite file is deleted or moved under a running engine: no verb says yes, and the worker lets go of its runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import outlive
from outlive.errors.store import StoreMovedError
from outlive.types import WorkerOptions
from tests.engine.support import in_time, note, stage, until

SAID = "deleted, moved or replaced"


@outlive.step
async def wait_for_test(name: str) -> str:
    stage.call(f"{name} begins")
    try:
        await stage.gate(name).pass_through()
    except asyncio.CancelledError:
        stage.call(f"{name} is cancelled")
        raise
    return name


@outlive.workflow(name="moved.steps")
async def two_steps(name: str) -> str:
    await wait_for_test(name)
    return await note("after")


@outlive.workflow(name="moved.signal")
async def until_signal() -> Any:
    return await outlive.wait_for_signal("go")


VERBS: dict[str, Callable[[outlive.Engine], Awaitable[Any]]] = {
    "start": lambda engine: engine.start(two_steps, "new"),
    "start by id": lambda engine: engine.start(until_signal, id="waits"),
    "signal": lambda engine: engine.signal("waits", "go", 1),
    "cancel": lambda engine: engine.cancel("waits"),
    "status": lambda engine: engine.get("waits").status(),
    "why": lambda engine: engine.get("waits").why(),
    "history": lambda engine: engine.history("waits"),
    "list": lambda engine: engine.list(),
    "result": lambda engine: engine.get("waits").result(),
    "checkpoint": lambda engine: engine.checkpoints.load_run("x"),
}


@pytest.mark.parametrize("has_worker", [True, False])
async def test_every_verb_is_refused(tmp_path: Path, *, has_worker: bool) -> None:
    """Whatever would be acknowledged, or read, from a file that is gone."""
    path = tmp_path / "a.db"
    async with outlive.Engine(
        f"sqlite:{path}", worker=has_worker and WorkerOptions(tune=False), poll_seconds=0.01
    ) as engine:
        await engine.start(until_signal, id="waits")
        path.unlink()
        for verb in VERBS.values():
            with pytest.raises(StoreMovedError, match="start it again"):
                await in_time(verb(engine))


async def test_the_worker_gives_up_its_session_and_says_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its steps are cancelled; when the same file is back, it goes on where it was."""
    path, aside = tmp_path / "a.db", tmp_path / "aside.db"
    async with outlive.Engine(f"sqlite:{path}", poll_seconds=0.01, worker=WorkerOptions(tune=False)) as engine:
        await engine.start(two_steps, "a", id="a")
        await until(lambda: _has("a begins"))
        with caplog.at_level(logging.WARNING, "outlive"):
            path.rename(aside)
            await until(lambda: _has("a is cancelled"))
            with pytest.raises(StoreMovedError):
                await in_time(engine.start(two_steps, "b"))
        lost = [record for record in caplog.records if record.getMessage().startswith("this worker has lost its lease")]
        assert 1 == len(lost)
        assert SAID in lost[0].getMessage()
        stage.gate("a").open()
        aside.rename(path)
        assert "after" == await in_time(engine.get("a").result())
    assert stage.calls.count("after") == 1


async def _has(call: str) -> bool:
    return call in stage.calls
