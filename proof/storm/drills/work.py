"""The work of a drill, and one worker process.

    python -m proof.storm.drills.work URL LEASE_SECONDS NAME RUNS KIND

It starts RUNS runs, which makes them its own, says when all of them are under way, and works until asked to stop.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import outlive
from outlive.testing.child_process import say, until_asked_to_stop
from outlive.types import WorkerOptions
from proof.storm.effects import effect
from proof.storm.insistence import insist

HOLD_SECONDS = 3600.0
STARTS_AT_ONCE = 100
LIMITS = outlive.limits.Limits(runs_active_max=50_000, steps_running_max=50_000, attempts_max=1_000)


@outlive.step(name="drill.stay")
async def stay() -> None:
    """Last for as long as is measured."""
    with effect(0):
        await asyncio.sleep(HOLD_SECONDS)


@outlive.step(name="drill.stay_once")
async def stay_once() -> int:
    """The same for the first owner of a run; the next one is done with it at once."""
    with effect(0):
        epoch = outlive.current_step().epoch
        await asyncio.sleep(HOLD_SECONDS if epoch == 1 else 0)
    return epoch


@outlive.step(name="drill.touch")
async def touch() -> None:
    """Take no time."""


@outlive.workflow(name="drill.held")
async def held() -> None:
    """A run that is under way all the time."""
    await stay()


@outlive.workflow(name="drill.orphan")
async def orphan() -> int:
    """A run that is under way until its owner dies."""
    return await stay_once()


@outlive.workflow(name="drill.quick")
async def quick() -> None:
    """New work."""
    await touch()


KINDS: dict[str, outlive.types.Workflow[[], Any]] = {"held": held, "orphan": orphan}


async def work(url: str, *, lease_seconds: float, name: str, runs: int, kind: str) -> None:
    """Own so many runs, and go on until asked to stop."""
    asking = asyncio.create_task(until_asked_to_stop())
    limits = LIMITS if runs or kind == "held" else outlive.limits.Limits(attempts_max=1_000)
    async with outlive.Engine(
        url, worker=WorkerOptions(lease_seconds=lease_seconds, grace_seconds=0), limits=limits
    ) as engine:
        for first in range(0, runs, STARTS_AT_ONCE):
            numbers = range(first, min(first + STARTS_AT_ONCE, runs))
            await asyncio.gather(*(_start(engine, kind, f"{name}-{number}") for number in numbers))
        while engine.counters.steps_started < runs:  # noqa: ASYNC110 (counters announce nothing)
            await asyncio.sleep(0.01)
        say("under way")
        await asking


async def _start(engine: outlive.Engine, kind: str, run_id: str) -> None:
    await insist(lambda: engine.start(KINDS[kind], id=run_id))


if __name__ == "__main__":
    _, _url, _lease_seconds, _name, _runs, _kind = sys.argv
    asyncio.run(work(_url, lease_seconds=float(_lease_seconds), name=_name, runs=int(_runs), kind=_kind))
