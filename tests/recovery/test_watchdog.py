"""An event loop that stands still is noticed, named in the log, and given up before anybody waits for it for long."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import outlive
from outlive._kernel.model import Run
from outlive._kernel.model.stalls import Stall, stalls_in, stalls_of, with_stall
from outlive._kernel.runtime.session.stalls import stall_on
from outlive._kernel.runtime.session.watchdog import MARK_SECONDS, STALL_SECONDS, Watchdog
from outlive.telemetry import Counters
from outlive.types import WorkerOptions
from tests.engine.hand_clock import HandClock
from tests.engine.support import in_time, stage

ROOT = Path(__file__).parents[2]
STALL_SECONDS_MAX = 5.0


@pytest.fixture
async def clock() -> HandClock:
    """The time of one test."""
    return HandClock()


@pytest.fixture
async def given_up(clock: HandClock, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long the loop had not turned when the watchdog ended the session, if it did. It leaves no mark again."""
    reasons: list[float] = []
    watchdog = Watchdog(
        clock=clock, counters=Counters(), stall_seconds_max=STALL_SECONDS_MAX, end_session=reasons.append
    )
    with monkeypatch.context() as patch:
        loop = asyncio.get_running_loop()
        patch.setattr(loop, "call_later", partial(_call_never, loop.call_later))
        watchdog.start()
    return reasons


def _call_never(call_later: Callable[..., asyncio.TimerHandle], *args: Any, **kwargs: Any) -> asyncio.TimerHandle:
    timer = call_later(*args, **kwargs)
    timer.cancel()
    return timer


async def test_stall_is_reported_once_with_the_stack(
    clock: HandClock, given_up: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    """The log names the line that blocks, and nothing else is said until the loop has turned."""
    with caplog.at_level(logging.ERROR, logger="outlive"):
        for _ in range(round(2 * STALL_SECONDS / MARK_SECONDS)):
            assert clock.tick()

    (record,) = caplog.records
    assert "has not turned" in record.getMessage()
    assert "test_stall_is_reported_once_with_the_stack" in record.getMessage()
    assert given_up == []


async def test_session_is_given_up_after_a_lease(clock: HandClock, given_up: list[float]) -> None:
    """Not earlier, and only once."""
    looks = 0
    while clock.tick():
        looks += 1

    assert looks * MARK_SECONDS == STALL_SECONDS_MAX - MARK_SECONDS
    assert len(given_up) == 1


async def test_loop_that_turned_in_time_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    """A moment before the limit nothing is said; at the limit it is said and counted, once."""
    clock, counters, reasons = HandClock(), Counters(), list[float]()
    watchdog = Watchdog(clock=clock, counters=counters, stall_seconds_max=STALL_SECONDS_MAX, end_session=reasons.append)
    watchdog.start()
    for _ in range(round(STALL_SECONDS / MARK_SECONDS) - 1):
        assert clock.tick()
    assert counters.stalls == 0
    assert clock.tick()
    assert clock.tick()
    assert counters.stalls == 1
    watchdog.stop()
    assert 1 == sum("has not turned for 1.0 s" in record.getMessage() for record in caplog.records)
    assert reasons == []


async def test_look_that_came_a_little_late_says_what_it_sees(clock: HandClock, given_up: list[float]) -> None:
    """Only one that came a whole limit late was stopped itself, and gives the loop its time."""
    assert clock.tick(after=STALL_SECONDS)
    for _ in range(round((STALL_SECONDS_MAX - MARK_SECONDS) / MARK_SECONDS)):
        assert clock.tick()
    assert given_up == []
    assert not clock.tick()
    assert len(given_up) == 1


async def test_process_that_was_stopped_as_a_whole_is_not_stalled(
    clock: HandClock, given_up: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    """The watchdog was stopped too, so nothing can be said about the loop."""
    assert clock.tick(after=3600)
    assert clock.tick()

    assert caplog.records == []
    assert given_up == []


@outlive.step
async def watched_blocks(seconds: float) -> str:
    stage.call("blocks")
    if stage.count("blocks") == 1:
        time.sleep(seconds)  # noqa: ASYNC251 (the very thing)
    return "done"


@outlive.workflow
async def watched(seconds: float) -> str:
    return await watched_blocks(seconds)


async def test_worker_begins_a_new_session_when_its_loop_turns_again(caplog: pytest.LogCaptureFixture) -> None:
    """The step that blocked is called again, because its session was over; the log says which line it was."""
    async with outlive.Engine(
        "memory:", worker=WorkerOptions(lease_seconds=1.0, tune=False), poll_seconds=0.01
    ) as engine:
        with caplog.at_level(logging.ERROR, logger="outlive"):
            run = await engine.start(watched, 2.0)
            assert "done" == await in_time(run.result())

    assert engine.counters.stalls >= 1, "a busy machine may stall it once more"
    assert "time.sleep(seconds)" in caplog.text
    assert "has lost its lease (the event loop has not turned" in caplog.text


async def test_an_engine_without_a_worker_says_where_its_loop_is_blocked(caplog: pytest.LogCaptureFixture) -> None:
    """It is what a web application has whose workers are processes of their own. It goes on, and so does its engine."""
    async with outlive.Engine("memory:", worker=False) as engine:
        with caplog.at_level(logging.ERROR, logger="outlive"):
            time.sleep(STALL_SECONDS + 3 * MARK_SECONDS)  # noqa: ASYNC251 (the very thing)
        assert [] == await engine.list()

    assert engine.counters.stalls == 1
    assert "time.sleep(STALL_SECONDS" in caplog.text


async def test_without_a_session_to_end_a_long_stall_is_reported_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """However long it lasts, and the watchdog goes on watching."""
    clock, counters = HandClock(), Counters()
    watchdog = Watchdog(clock=clock, counters=counters)
    watchdog.start()
    for _ in range(round(100 * STALL_SECONDS / MARK_SECONDS)):
        assert clock.tick()
    watchdog.stop()

    assert counters.stalls == 1


def test_worker_process_ends_itself(tmp_path: Path) -> None:
    """With a code that says why, so that its supervisor starts it again."""
    program = (
        "import asyncio, outlive\n"
        "from tests.recovery.test_watchdog import watched\n"
        "async def main():\n"
        f"    engine = outlive.Engine('sqlite:{tmp_path / 'a.db'}', worker=outlive.types.WorkerOptions("
        f"lease_seconds=1.0, exit_when_stalled=True))\n"
        "    async with engine:\n"
        "        await (await engine.start(watched, 30.0, id='run-1')).result()\n"
        "asyncio.run(main())\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    ended = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=20)

    assert ended.returncode == 70, ended.stderr
    assert "time.sleep(seconds)" in ended.stderr


seen: list[Stall | None] = []


@outlive.step
async def looking_step() -> None:
    seen.append(stall_on(sys._getframe(), seconds=12.0))


@outlive.workflow
async def looking() -> None:
    seen.append(stall_on(sys._getframe(), seconds=11.0))
    await looking_step()


async def test_stack_says_which_run_blocks_the_loop_and_where(engine: outlive.Engine) -> None:
    """A stack of something else is not the stack of a run."""
    seen.clear()
    run = await engine.start(looking, id="run-1")
    await in_time(run.result())

    # Where the workflow looked, the run was not stored yet: it would not exist if the process ended there.
    in_workflow, in_step = seen
    assert in_workflow is None
    assert in_step is not None
    assert (in_step.run_id, in_step.seconds) == ("run-1", 12.0)
    assert in_step.where.startswith("looking_step (test_watchdog.py:")
    assert stall_on(sys._getframe(), seconds=11.0) is None


@pytest.mark.parametrize(("attempts", "counted"), [(3, 2), (1, 1), (0, 0)])
def test_stalls_count_until_the_run_makes_progress(attempts: int, counted: int) -> None:
    """The row says how many interruptions in a row this was; stalls of another run of the id do not count."""
    run = Run(id="run-1", root_id="run-1", workflow="w", version=1, nonce=7, epoch=6, attempts=attempts)
    stalls = [Stall("run-1", nonce, epoch, 10.0, "f") for nonce, epoch in [(7, 2), (7, 3), (7, 5), (8, 5), (7, 6)]]

    data: bytes | None = None
    for stall in stalls:
        data = with_stall(data, stall)

    assert len(stalls_of(run, stalls_in(data))) == counted
    assert stalls_in(b"[nonsense") == []
