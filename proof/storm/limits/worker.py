"""One worker process of a storm over queues: `python -m proof.storm.limits.worker URL LEASE_SECONDS`."""

from __future__ import annotations

import asyncio
import sys

from outlive.testing.child_process import log_to_stderr
from proof.storm.limits.guests import guest
from proof.storm.worker import work

WORKFLOWS = [guest]
"""A worker runs the workflows that its process has imported."""

if __name__ == "__main__":
    log_to_stderr()
    asyncio.run(work(sys.argv[1], lease_seconds=float(sys.argv[2])))
