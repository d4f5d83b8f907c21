"""One worker process of a trial: `python -m outlive.testing.kill.worker URL LEASE_SECONDS`."""

from __future__ import annotations

import asyncio
import sys

from outlive.testing.kill.effects import mark_ready
from outlive.testing.kill.insistence import entered
from outlive.testing.kill.process import until_asked_to_stop
from outlive.testing.kill.program import program, relay

WORKFLOWS = [program, relay]
"""A worker runs the workflows that its process has imported."""


async def work(url: str, *, lease_seconds: float) -> None:
    """Run whatever is due until told to stop, or killed."""
    async with entered(url, lease_seconds=lease_seconds):
        mark_ready()
        await until_asked_to_stop()


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], lease_seconds=float(sys.argv[2])))
