"""A worker with very many runs dies: how fast do the others take them over, and what does new work notice of it?"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator

import outlive
from proof.storm.drills.fleet import Fleet, fleet
from proof.storm.drills.measure import spread
from proof.storm.drills.work import quick

BEFORE_SECONDS = 5.0
PAUSE_SECONDS = 0.05
PATIENCE_SECONDS = 300.0


def orphans(*, runs: int, workers: int, lease_seconds: float) -> Iterator[str]:
    """Kill a worker with so many runs; the lines to print."""
    with fleet(lease_seconds) as it:
        it.add("w0", runs=runs, kind="orphan")
        for number in range(1, workers):
            it.add(f"w{number}", runs=0, kind="orphan")
        calm, busy = asyncio.run(_measure(it, runs))
        taken = sorted(it.begun_elsewhere("w0").values())
        yield f"{workers - 1} workers take over {runs:,} runs of one that was killed, lease {lease_seconds:g} s"
        yield f"  taken over                    {len(taken):,}"
        if len(taken) > 1:
            seconds = taken[-1] - taken[0]
            each = Counter(int(at - taken[0]) for at in taken)
            yield f"  claim rate                    {len(taken) / seconds:,.0f} runs/s over {seconds:.1f} s"
            yield f"  most in one second            {max(each.values()):,} runs"
        yield f"  new work, start to end before    {spread(calm)} ({len(calm)} runs)"
        yield f"  new work, start to end meanwhile {spread(busy)} ({len(busy)} runs)"


async def _measure(it: Fleet, runs: int) -> tuple[list[float], list[float]]:
    """Latencies of new work before the kill, and from the first take-over to the last."""
    found: list[tuple[float, float]] = []
    async with outlive.Engine(it.url, worker=False, poll_seconds=0.01) as engine:
        driving = asyncio.create_task(_drive(engine, found))
        await asyncio.sleep(BEFORE_SECONDS)
        killed_at = time.time()
        it.workers["w0"].kill()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(taken := it.begun_elsewhere("w0")) < runs and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.5)
        driving.cancel()
        await asyncio.wait([driving])
    first, last = min(taken.values(), default=0.0), max(taken.values(), default=0.0)
    calm = [seconds for at, seconds in found if at < killed_at]
    return calm, [seconds for at, seconds in found if first <= at + seconds and at <= last]


async def _drive(engine: outlive.Engine, found: list[tuple[float, float]]) -> None:
    async def one() -> None:
        at, began = time.time(), time.monotonic()
        await (await engine.start(quick)).result()
        found.append((at, time.monotonic() - began))

    async with asyncio.TaskGroup() as group:
        while True:
            group.create_task(one())
            await asyncio.sleep(PAUSE_SECONDS)
