"""From enqueueing to the first step when the worker is another process: what a fleet adds to a start.

The measuring process only talks to the store; a second process has the worker, which is idle. A step there says when it
began, on the clock that all processes of a machine share. Starts come one at a time, each after the one before has
ended and after a pause of another length, so that every one of them finds the worker asleep, at any point of its poll.
How a system starts a run and how its worker is started is said by its side.
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator

from bench.meter import Figures, Order

READY = "ready"
StartAll = Callable[[Order, Iterator[float]], Awaitable[list[float]]]
"""Is given the pauses to make, in seconds, and says how long each start took."""
PAUSE_STEP_SECONDS = 0.007
PAUSES = 9


async def serve() -> None:
    """In the process of the worker: say that it is there, and return when the pipe is closed."""
    sys.stdout.write(f"{READY}\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


def enqueue(order: Order, *, side: str, start_all: StartAll) -> Figures:
    """Start runs that the worker in another process has to find; `side` is the module whose `work` is that worker."""
    program = f"import asyncio, sys; from bench import {side}; asyncio.run({side}.work(sys.argv[1]))"
    pipe = subprocess.PIPE
    worker = subprocess.Popen([sys.executable, "-c", program, order.database], stdin=pipe, stdout=pipe, text=True)
    with worker:
        assert worker.stdout is not None
        assert worker.stdin is not None
        assert worker.stdout.readline().strip() == READY
        pauses = (PAUSE_STEP_SECONDS * number for number in itertools.cycle(range(PAUSES)))
        seconds = asyncio.run(_all(start_all(order, pauses)))
        worker.stdin.close()
    parts = statistics.quantiles(seconds, n=100)
    return {"p50_ms": statistics.median(seconds) * 1000, "p95_ms": parts[94] * 1000, "p99_ms": parts[98] * 1000}


async def _all(started: Awaitable[list[float]]) -> list[float]:
    return await started
