"""Hosts that end: a function, a timer of systemd and a line of cron, each with what is in the repository for it.

Each is killed at its deadline. By then it has released everything, so that another worker has gone on.
"""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import outlive
from outlive.events import RunReleased
from tests.cli import shop
from tests.cli.conftest import OUTLIVE, Command, Ledger, command, environment, ledger, url
from tests.deploy import function_host
from tests.engine.inside import journal_of

__all__ = ["command", "ledger", "url"]
DEPLOY = Path(__file__).parents[2] / "deploy"
SECONDS = 4.0
"""How long the hosts of these tests last, in the place of the 50 seconds of the files."""


def words_of_the_timer() -> list[str]:
    """The command of the unit that the timer begins."""
    assert (DEPLOY / "systemd" / "outlive-sweep.timer").is_file()
    unit = (DEPLOY / "systemd" / "outlive-sweep.service").read_text("utf-8")
    (line,) = re.findall(r"^ExecStart=(.*)$", unit, flags=re.MULTILINE)
    return shlex.split(line)


def words_of_cron() -> list[str]:
    """The worker in the line of cron."""
    (line,) = re.findall(r"^\* .*$", (DEPLOY / "cron" / "outlive").read_text("utf-8"), flags=re.MULTILINE)
    words = shlex.split(line)
    return words[words.index(".venv/bin/outlive") :]


def brief(words: list[str]) -> list[str]:
    """The arguments of such a command with the program and the seconds of these tests."""
    assert words[0].endswith("/outlive")
    assert "50s" in words
    return [{"app.py": str(Path(shop.__file__)), "50s": f"{SECONDS:g}s"}.get(word, word) for word in words[1:]]


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(words_of_the_timer(), id="systemd"),
        pytest.param(words_of_cron(), id="cron", marks=pytest.mark.slow),
    ],
)
async def test_a_worker_of_a_timer_has_released_everything_when_it_is_killed_at_its_deadline(
    words: list[str], url: str, command: Callable[..., Command], ledger: Ledger
) -> None:
    """Its step never ends. Another worker goes on with the run before the deadline."""
    async with outlive.Engine(url, worker=False) as client:
        run = await client.start(shop.order, "a", id="a")
        host = command(*brief(words), "--store", url)
        host.ready()
        kill_at = time.time() + SECONDS
        ledger.hears("begin a-1")
        command("worker", str(Path(shop.__file__)), "--store", url).ready()

        again_at = ledger.hears("begin a-1", times=2)
        await asyncio.sleep(max(0.0, kill_at - time.time()))
        host.signal(signal.SIGKILL)

        assert again_at <= kill_at
        assert [True] == [event.interrupted for event in await journal_of(run) if isinstance(event, RunReleased)]
        ledger.open_gate()
        assert "a-1 a-2" == await run.result(timeout=20)


async def test_a_function_has_released_everything_when_it_is_killed_at_its_deadline(tmp_path: Path, url: str) -> None:
    """Called twice: the first order is shipped, and the second takes longer than the function may live."""
    program = [sys.executable, "-m", "tests.deploy.function_host", f"{SECONDS:g}"]
    events = [json.dumps({"order": "o-1"}), json.dumps({})]
    own = environment(tmp_path) | {"OUTLIVE_STORE": url}
    quick = subprocess.run([*program, *events], capture_output=True, text=True, env=own, timeout=60, check=True)
    first, second = [json.loads(line) for line in quick.stdout.splitlines() if line != "called"]

    assert "idle" == first["done"].split()[0]
    assert "1 run taken, 1 succeeded" in first["done"]
    assert "0 runs taken" in second["done"]

    slow = [*program, json.dumps({"order": "o-2"})]
    with subprocess.Popen(slow, stdout=subprocess.PIPE, text=True, env=own | {"DRIVE_SECONDS": "600"}) as host:
        assert host.stdout is not None
        assert "called\n" == host.stdout.readline()
        kill_at = time.time() + SECONDS
        answer = json.loads(host.stdout.readline())
        answered_at = time.time()
        await asyncio.sleep(max(0.0, kill_at - time.time()))
        host.kill()

    assert answered_at <= kill_at
    assert "deadline" == answer["done"].split()[0]
    assert "1 released at the end" in answer["done"]
    assert answer["has_more"]
    function_host.load()
    async with outlive.Engine(url) as engine:
        assert "label of o-2" == await engine.get("o-2").result(timeout=20)


def test_a_worker_that_never_reaches_its_store_says_so_when_its_time_is_over(tmp_path: Path) -> None:
    """So that cron and systemd report it."""
    words = ["worker", str(Path(shop.__file__)), "--store", "postgresql://shop@127.0.0.1:9/x", "--for", "1.5s"]

    ended = subprocess.run([*OUTLIVE, *words], capture_output=True, text=True, env=environment(tmp_path), check=False)

    assert 1 == ended.returncode
    assert "the time of this worker is over, and it has not reached its store" in ended.stderr
