"""One worker process of the demo: `python -m outlive.demo.worker sqlite:/tmp/demo.db`."""

from __future__ import annotations

import asyncio
import sys

import outlive
from outlive.demo.orders import checkout, delivery
from outlive.testing.child_process import say, until_asked_to_stop

WORKFLOWS = [checkout, delivery]
"""A worker runs the workflows that its process has imported."""
LEASE_SECONDS = 2.0


async def work(url: str) -> None:
    """Run whatever is due until asked to stop, or killed."""
    async with outlive.Engine(url, worker=outlive.types.WorkerOptions(lease_seconds=LEASE_SECONDS)):
        say("ready")
        await until_asked_to_stop()


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1]))
