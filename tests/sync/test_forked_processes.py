"""Forks: the child of a process with an engine has no part in it, and may have one of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest

from tests.engine.support import in_time
from tests.sync import forks

ROOT = Path(__file__).parents[2]
PROGRAM = (sys.executable, "-W", "ignore", "-m", "tests.sync.forks")
Run = Callable[..., Coroutine[Any, Any, asyncio.subprocess.Process]]


@pytest.fixture
async def run() -> AsyncIterator[Run]:
    """Start a job of `tests.sync.forks`; it does not outlive the test."""
    started: list[asyncio.subprocess.Process] = []

    async def start(job: str, url: str) -> asyncio.subprocess.Process:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
        process = await asyncio.create_subprocess_exec(*PROGRAM, job, url, stdout=PIPE, env=environment)
        started.append(process)
        return process

    yield start
    for process in started:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def lines_of(process: asyncio.subprocess.Process) -> list[str]:
    """Everything that it said until it ended."""
    assert process.stdout is not None
    said = await in_time(process.stdout.read())
    assert await in_time(process.wait()) == 0, said.decode()
    return said.decode().splitlines()


@pytest.mark.parametrize("store", ["memory", "sqlite"])
async def test_a_forked_child_gets_an_error_at_once_and_does_not_harm_its_parent(
    run: Run, tmp_path: Path, store: str
) -> None:
    """Every verb, every handle and `sync` raise instead of hanging; the child ends cleanly, and the parent goes on."""
    process = await run("misuse", "memory:" if store == "memory" else f"sqlite:{tmp_path}/fork.db")

    lines = await lines_of(process)

    child = [line for line in lines if line.startswith("child")]
    assert len(child) == 14
    for line in child:
        assert line.startswith("child EngineForkedError this engine belongs to process"), line
        assert "make and enter an engine in the child" in line
    assert [line for line in lines if line.startswith("parent")] == ["parent 0 kept", "parent later"]


async def test_an_engine_that_is_made_before_a_fork_can_be_entered_after_it(run: Run, tmp_path: Path) -> None:
    """Each child of a process that made an engine before the fork enters its own engine and draws other numbers."""
    lines = await lines_of(await run("preload", f"sqlite:{tmp_path}/fork.db"))

    (*first, one), parent, (*second, other) = sorted(line.split() for line in lines)
    assert (first, parent, second) == (["first", "first"], ["parent", "0", "0"], ["second", "second"])
    assert one != other


async def test_an_engine_that_was_left_before_a_fork_can_be_entered_after_it(run: Run, tmp_path: Path) -> None:
    """The engine that opened the file has closed it."""
    lines = await lines_of(await run("prepare_then_fork", f"sqlite:{tmp_path}/fork.db"))

    assert lines == ["parent before", "child before after", "parent 0"]


async def test_a_child_that_lives_on_does_not_keep_its_parent_alive(tmp_path: Path) -> None:
    """The parent is killed, its child is not: others take its runs over at once, not when its lease runs out."""
    url = f"sqlite:{tmp_path}/fork.db"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]), "OUTLIVE_HOLD": "yes"}
    # Not asyncio's: that one waits for the end of the output, which the child has too.
    with Popen([*PROGRAM, "orphan", url], stdout=PIPE, env=environment) as process:
        assert process.stdout is not None
        said = {(await in_time(asyncio.to_thread(process.stdout.readline))).decode().strip() for _ in range(2)}
        process.kill()
        await in_time(asyncio.to_thread(process.wait))
    assert "working" in said
    (child,) = (int(line.split()[1]) for line in said if line.startswith("child"))
    try:
        async with forks.new_engine(url) as engine:
            assert await in_time(engine.get("run-1").result()) == "orphan"
        os.kill(child, 0)  # It is still there.
    finally:
        os.kill(child, signal.SIGKILL)
