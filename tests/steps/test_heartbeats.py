"""`heartbeat_timeout`: a step that has fallen silent has failed, and is tried again."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

import outlive
from outlive import Retry
from outlive._kernel.runtime.steps.process_child import ChildBeat, ChildJob, JobStep, Progressed
from outlive.errors import DefinitionError
from outlive.errors.step import HeartbeatTimeoutError
from outlive.events import AttemptFailed
from outlive.limits import Limits
from outlive.testing import TestEngine
from outlive.types import WorkerOptions
from tests.engine.inside import row_of
from tests.engine.support import events_of, gone, in_time, reaches, stage, written

SILENT_SECONDS = 30
AGAIN = Retry(attempts=2, first=0, jitter=0)
QUICK: dict[str, Any] = {"patience_seconds": 0.01}


@outlive.step(heartbeat_timeout=SILENT_SECONDS, retry=AGAIN)
async def beats_on_the_loop() -> int:
    stage.values["me"] = outlive.current_step()
    await stage.gate("beats").pass_through()
    return outlive.current_step().attempt


@outlive.step(heartbeat_timeout=SILENT_SECONDS, retry=AGAIN)
def beats_on_a_thread() -> int:
    me = stage.values["me"] = outlive.current_step()
    stage.gate("beats").pass_on_thread()
    return me.attempt


@outlive.workflow
async def beating(kind: str) -> int:
    return await (beats_on_the_loop() if kind == "loop" else beats_on_a_thread())


@pytest.mark.parametrize("kind", ["loop", "thread"])
async def test_a_silent_attempt_fails_and_is_tried_again(kind: str) -> None:
    """The time counts from the call, and from each heartbeat, by the clock of the engine."""
    async with TestEngine(**QUICK) as engine:
        run = await engine.start(beating, kind)
        await stage.gate("beats").reached()
        for _ in range(3):
            await engine.skip(seconds=SILENT_SECONDS - 10)
            stage.values["me"].heartbeat()
        assert [] == await events_of(run, AttemptFailed)
        last = stage.values["me"]
        await engine.skip(seconds=SILENT_SECONDS)
        await stage.gate("beats").reached()
        (failed,) = await events_of(run, AttemptFailed)
        assert failed.failure.type.endswith("HeartbeatTimeoutError")
        begun_at = (await row_of(run)).created_at
        assert (3 * (SILENT_SECONDS - 10) + SILENT_SECONDS) * 1_000_000 == failed.at - begun_at
        if kind == "thread":
            assert last.is_cancelled
        stage.gate("beats").open()
        await reaches(run, "succeeded")  # Without skipping: a thread may need longer than the patience.
        assert 2 == await run.result()


@outlive.step(heartbeat_timeout=SILENT_SECONDS, retry=AGAIN)
async def beats_by_emitting() -> int:
    while (item := await stage.values["items"].get()) is not None:
        await outlive.emit("tokens", item)
    return outlive.current_step().attempt


@outlive.workflow
async def beating_by_emitting() -> int:
    return await beats_by_emitting()


async def test_a_step_that_emits_is_not_silent() -> None:
    """Its readers see that it is alive."""
    items = stage.values["items"] = asyncio.Queue[str | None]()
    async with TestEngine(**QUICK) as engine:
        run = await engine.start(beating_by_emitting)
        for _ in range(3):
            await engine.skip(seconds=SILENT_SECONDS - 10)
            items.put_nowait("a")
        await engine.skip(seconds=SILENT_SECONDS - 10)
        assert [] == await events_of(run, AttemptFailed)
        await engine.skip(seconds=SILENT_SECONDS)
        items.put_nowait(None)
        assert 2 == await run.result()
        assert 1 == len(await events_of(run, AttemptFailed))


async def test_a_step_that_waits_for_a_thread_is_not_silent() -> None:
    """Its time begins when its function is called."""
    async with TestEngine(**QUICK, limits=Limits(threads_max=1)) as engine:
        await engine.start(holding_the_thread)
        await stage.gate("held").reached()
        run = await engine.start(beating, "thread")
        await engine.skip(seconds=3 * SILENT_SECONDS)
        assert [] == await events_of(run, AttemptFailed)
        stage.gate("held").open()
        stage.gate("beats").open()
        await reaches(run, "succeeded")
        assert 1 == await run.result()


@outlive.step
def hold_the_thread() -> None:
    stage.gate("held").pass_on_thread()


@outlive.workflow
async def holding_the_thread() -> None:
    await hold_the_thread()


@outlive.step
async def silent_by_option() -> None:
    await asyncio.Event().wait()


@outlive.step(once=True, heartbeat_timeout=0.02, timeout=60)
async def silent_and_once() -> None:
    await asyncio.Event().wait()


@outlive.workflow
async def falling_silent(kind: str) -> str:
    try:
        if kind == "option":
            await silent_by_option.options(heartbeat_timeout=0.02)()
        elif kind == "once":
            await silent_and_once()
        else:
            await outlive.run_step(asyncio.Event().wait, name="event", heartbeat_timeout=0.02)
    except (HeartbeatTimeoutError, outlive.errors.StepInterruptedError) as error:
        return f"{type(error).__name__}: {error}"
    return "went on"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("option", "HeartbeatTimeoutError: step silent_by_option has not called heartbeat() for 0.02 s"),
        ("once", "StepInterruptedError: step silent_and_once was begun and has not called heartbeat() for 0.02 s"),
        ("run_step", "HeartbeatTimeoutError: step event has not called heartbeat() for 0.02 s"),
    ],
)
async def test_the_workflow_gets_a_timeout(kind: str, text: str) -> None:
    """In real time too; a step that is called once may have had its effect."""
    async with outlive.Engine("memory:", worker=WorkerOptions(tune=False)) as engine:
        result = await in_time((await engine.start(falling_silent, kind)).result())
    assert result.startswith(text)


@outlive.step(process=True, heartbeat_timeout=SILENT_SECONDS)
def silent_in_a_process(file: str) -> None:
    outlive.current_step().heartbeat()
    Path(f"{file}.new").write_text(str(os.getpid()))
    Path(f"{file}.new").rename(file)
    signal.pause()


@outlive.workflow
async def falling_silent_in_a_process(file: str) -> str:
    try:
        await silent_in_a_process(file)
    except TimeoutError as error:
        return type(error).__name__
    return "went on"


async def test_a_step_in_a_process_falls_silent(tmp_path: Path) -> None:
    """Its process is killed: it would wait for ever."""
    file = tmp_path / "pid"
    async with TestEngine(patience_seconds=0.1) as engine:
        run = await engine.start(falling_silent_in_a_process, str(file))
        process_ids = await written(file)
        assert "HeartbeatTimeoutError" == await in_time(run.result())
        await gone(process_ids)


@pytest.mark.parametrize(
    ("must_beat", "sent"), [(True, [ChildBeat(), Progressed(b"5"), ChildBeat()]), (False, [Progressed(b"5")])]
)
def test_a_process_says_that_it_is_alive_only_if_it_must(*, must_beat: bool, sent: list[Any]) -> None:
    """A heartbeat without progress costs a message only where a timeout waits for it."""
    job = ChildJob("s", "m", "c", b"[]", "r", "w", 1, 1, "k", None, 1000, must_beat)
    wire = _Wire()
    step = JobStep(job, wire)  # type: ignore[arg-type]
    for progress in (None, 5, None):
        step.heartbeat(progress)
    step.is_over = True
    step.heartbeat(None)
    assert sent == wire.sent


class _Wire:
    def __init__(self) -> None:
        self.sent: list[Any] = []

    def send(self, message: Any) -> None:
        self.sent.append(message)


def test_a_heartbeat_timeout_that_cannot_work_is_refused() -> None:
    """A heartbeat timeout of 0 is refused where the step gets it."""
    with pytest.raises(DefinitionError, match="silent_by_option: heartbeat_timeout=0"):
        silent_by_option.options(heartbeat_timeout=0)
