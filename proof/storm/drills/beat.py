"""A worker with very many runs: what does it write to keep them?

Counted by the server itself, row by row, over a time in which nothing else happens. Sessions of the server tell of what
they wrote a second later, or ten if they have nothing to do, so the count of beats may be wrong by one at either end.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib import resources

from outlive._kernel.runtime.session.keeper import BEATS_PER_LEASE
from proof.storm.drills.fleet import Fleet, fleet

CALM_SECONDS = 13.0
"""Until the server has counted everything that was written to start the runs: an idle session tells after ten."""
BEATS = 12


def beat(*, runs: int, lease_seconds: float) -> Iterator[str]:
    """Let a worker keep so many runs for some beats; the lines to print."""
    with fleet(lease_seconds) as it:
        it.add("w0", runs=runs)
        time.sleep(CALM_SECONDS)
        before, began = _writes(it), time.monotonic()
        time.sleep(lease_seconds / BEATS_PER_LEASE * BEATS)
        after, seconds = _writes(it), time.monotonic() - began
        beats = seconds / (lease_seconds / BEATS_PER_LEASE)
        written = {table: count - before.get(table, 0) for table, count in after.items() if count != before.get(table)}
        leases = written.pop("workers", 0)
        yield f"a worker with {runs:,} runs, lease {lease_seconds:g} s, for {seconds:.1f} s: {beats:.1f} beats"
        yield f"  rows written to keep its lease  {leases} ({leases / beats:.2f} for each beat)"
        yield f"  rows written elsewhere          {written or 'none'}"
        is_kept = abs(leases - beats) <= 2 and not written
        yield f"  wanted: one for each beat       {'kept' if is_kept else 'NOT KEPT'}"


def _writes(it: Fleet) -> dict[str, int]:
    sql = resources.files(__package__).joinpath("sql", "read_writes.sql").read_text("utf-8")
    return {table: int(count) for table, count in it.server.execute(sql)}
