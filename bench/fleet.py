"""From enqueueing to the first step when the worker is another process: what a fleet adds to a start.

The measuring process only talks to the store; a second process has the worker, which is idle. A step there says when it
began, on the clock that all processes of a machine share. Starts come one at a time, each after the one before has
ended, so that every one of them finds the worker asleep.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time

import outlive
from bench.meter import Figures, Order

READY = "ready"
PROGRAM = "import asyncio, sys; from bench import fleet; asyncio.run(fleet.work(sys.argv[1]))"


@outlive.step
async def say_when() -> float:
    return time.monotonic()


@outlive.workflow
async def enqueued() -> float:
    return await say_when()


async def work(url: str) -> None:
    """Be the worker until the pipe is closed."""
    async with outlive.Engine(url):
        sys.stdout.write(f"{READY}\n")
        sys.stdout.flush()
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


def enqueue(order: Order) -> Figures:
    """Start runs that the other process has to find."""
    worker = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, order.database], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with worker:
        assert worker.stdout is not None
        assert worker.stdin is not None
        assert worker.stdout.readline().strip() == READY
        seconds = asyncio.run(_start_all(order))
        worker.stdin.close()
    return {
        "p50_ms": statistics.median(seconds) * 1000,
        "p99_ms": statistics.quantiles(seconds, n=100)[98] * 1000,
    }


async def _start_all(order: Order) -> list[float]:
    async with outlive.Engine(order.database, worker=False, poll_seconds=0.01) as engine:
        return [await _start_one(engine) for _ in range(order.n)]


async def _start_one(engine: outlive.Engine) -> float:
    started_at = time.monotonic()
    run = await engine.start(enqueued)
    return await run.result() - started_at
