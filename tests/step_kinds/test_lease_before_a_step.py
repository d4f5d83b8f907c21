"""A step that had to wait for a thread, a process or a transaction begins only if the lease is still held then."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

import outlive
from outlive._kernel.runtime.steps.processes import StepProcess
from outlive.limits import Limits
from tests.engine.faults import FaultyStore, faulty
from tests.engine.inside import executor_of, lease_of
from tests.engine.ledger import ledger_credit, open_ledger
from tests.engine.support import Place, hold, in_time, stage, until

pytestmark = pytest.mark.any_store


@outlive.step
def trusted_block_thread(name: str) -> str:
    stage.call(name)
    stage.gate(name).pass_on_thread()
    return name


@outlive.workflow
async def trusting_threads(name: str) -> str:
    return await trusted_block_thread(name)


@outlive.step(process=True)
def trusted_touch(begun: str, awaited: str) -> None:
    Path(begun).touch()
    while not Path(awaited).exists():
        time.sleep(0.01)


@outlive.workflow
async def trusting_processes(begun: str, awaited: str) -> None:
    await trusted_touch(begun, awaited)


@outlive.workflow
async def trusting_transactions() -> int:
    await open_ledger()
    await hold("ready")
    return await ledger_credit("ann", 5)


async def test_a_step_that_waited_for_a_thread_looks_at_the_lease_again(place: Place) -> None:
    """It was allowed to begin when it was queued, and the lease has run out since."""
    async with place.engine(limits=Limits(threads_max=1)) as engine:
        executor, lease = executor_of(engine), lease_of(engine)
        first = await engine.start(trusting_threads, "a", id="run-1")
        await stage.gate("a").reached()
        second = await engine.start(trusting_threads, "b", id="run-2")

        async def is_queued() -> bool:
            return executor.caller.threads.busy == 2

        await until(is_queued)
        until_then, lease.until = lease.until, 0.0
        stage.gate("a").open()
        stage.gate("b").open()
        await in_time(first.result())
        begun = list(stage.calls)
        lease.until = until_then
        assert "b" == await in_time(second.result())
    assert ["a"] == begun
    assert ["a", "b"] == stage.calls


async def test_a_step_that_waited_for_a_process_looks_at_the_lease_again(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was allowed to begin when it asked for a process, and the lease has run out since."""
    go = tmp_path / "go"
    given: list[bool] = []
    run_job = StepProcess.run
    async with place.engine(limits=Limits(processes_max=1)) as engine:
        executor, lease = executor_of(engine), lease_of(engine)

        async def run(self: StepProcess, *job: Any) -> bytes:
            given.append(lease.until > 0)
            return await run_job(self, *job)

        monkeypatch.setattr(StepProcess, "run", run)
        first = await engine.start(trusting_processes, str(tmp_path / "first"), str(go), id="run-1")

        async def has_begun() -> bool:
            return (tmp_path / "first").exists()

        await until(has_begun)
        second = await engine.start(trusting_processes, str(tmp_path / "second"), str(go), id="run-2")

        async def is_queued() -> bool:
            return executor.running == 2

        await until(is_queued)
        until_then, lease.until = lease.until, 0.0
        go.touch()
        await in_time(first.result())

        async def has_a_process() -> bool:
            return executor.running == 1 and executor.caller.processes.is_busy

        await until(has_a_process)
        lease.until = until_then
        await in_time(second.result())
    assert [True, True] == given


async def test_a_step_that_waited_for_a_transaction_looks_at_the_lease_again(place: Place) -> None:
    """It was allowed to begin when it asked for one, and the lease has run out since. None waits for its lock."""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores)) as engine:
        lease = lease_of(engine)
        run = await engine.start(trusting_transactions, id="run-1")
        await stage.gate("ready").reached()
        gate = stores[0].gates["begin"] = asyncio.Event()
        stage.gate("ready").open()
        await in_time(stores[0].waiting["begin"].wait())
        until_then, lease.until = lease.until, 0.0
        gate.set()

        async def is_over() -> bool:
            return stores[0].calls["rollback"] == 1 or stores[0].calls["end"] == 2

        await until(is_over)
        begun = list(stage.calls)
        lease.until = until_then
        assert 5 == await in_time(run.result())
    assert [] == [each for each in begun if each != "ready"]
    assert 1 == stage.count("ann 5")
