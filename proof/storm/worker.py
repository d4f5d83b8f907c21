"""One worker process of a trial: `python -m proof.storm.worker URL LEASE_SECONDS`."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress

from outlive.testing.child_process import log_to_stderr, until_asked_to_stop
from outlive.types import WorkerOptions
from proof.storm.effects import mark_ready
from proof.storm.insistence import entered
from proof.storm.program import program, relay
from proof.storm.tally import keep_tally

WORKFLOWS = [program, relay]
"""A worker runs the workflows that its process has imported."""


async def work(url: str, *, lease_seconds: float) -> None:
    """Run whatever is due until asked to stop, or killed. One whose store is away stops while it waits for it."""
    asking = asyncio.create_task(until_asked_to_stop())
    is_ready = asyncio.Event()
    working = asyncio.create_task(_work(url, lease_seconds, is_ready, asking))
    await asyncio.wait([asking, working], return_when=asyncio.FIRST_COMPLETED)
    if not is_ready.is_set():
        working.cancel()
    with suppress(asyncio.CancelledError):
        await working


async def _work(url: str, lease_seconds: float, is_ready: asyncio.Event, asking: asyncio.Task[None]) -> None:
    async with entered(url, worker=WorkerOptions(lease_seconds=lease_seconds)) as engine:
        is_ready.set()
        mark_ready()
        telling = asyncio.create_task(keep_tally(engine.counters))
        await asking
        telling.cancel()


if __name__ == "__main__":
    log_to_stderr()
    asyncio.run(work(sys.argv[1], lease_seconds=float(sys.argv[2])))
