"""One of several workers is lost: when does each of its runs go on elsewhere?

Three ways to lose one. `kill` is -9; those who share its machine can see that its process is gone. `freeze` is a
machine that is gone: no neighbour sees anything, and its lease has to run out. `term` is an orderly stop.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from proof.storm.drills.fleet import fleet
from proof.storm.drills.measure import percentile, spread

PATIENCE_SECONDS = 60.0
OVER_LEASE_SECONDS_MAX = 2.0
STOP_SECONDS_MAX = 1.0
LOOK_SECONDS = 0.1


def failover(*, runs: int, workers: int, lease_seconds: float, how: str) -> Iterator[str]:
    """Lose the first worker; the lines to print."""
    with fleet(lease_seconds) as it:
        for number in range(workers):
            it.add(f"w{number}", runs=runs)
        victim = it.workers["w0"]
        lost_at = time.time()
        {"kill": victim.kill, "freeze": victim.freeze, "term": victim.terminate}[how]()
        deadline = time.monotonic() + lease_seconds + PATIENCE_SECONDS
        while len(found := it.begun_elsewhere("w0")) < runs and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)
        if how == "freeze":
            victim.thaw()
        waits = [at - lost_at for at in found.values()]
        wanted = STOP_SECONDS_MAX if how == "term" else lease_seconds + OVER_LEASE_SECONDS_MAX
        yield f"{workers} workers with {runs:,} runs each, lease {lease_seconds:g} s; one is lost: {how}"
        yield f"  its runs that go on elsewhere  {len(found):,} of {runs:,}"
        yield f"  until they do                  {spread(waits)}"
        is_kept = len(found) == runs and percentile(waits, 0.99) <= wanted
        yield f"  wanted: p99 within {wanted:g} s      {'kept' if is_kept else 'NOT KEPT'}"
