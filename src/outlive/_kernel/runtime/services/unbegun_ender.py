"""Fails runs that no worker has begun in time, in every worker: also in one that does not have their code.

A run says with `begin_within` until when it must be begun. One index has such runs by that instant, so a look costs
nothing while there are none. A worker that claims one too late fails it too, before any code of it runs.
"""

from __future__ import annotations

from outlive._kernel.client.closing import end_unbegun
from outlive._kernel.define.middleware import RunTracer
from outlive._kernel.model import RunFilter
from outlive._kernel.store.contract import Store
from outlive.telemetry import Counters

LOOK_SECONDS = 5.0
"""Between two looks: a run fails so much later at most."""
RUNS_AT_ONCE = 100


class UnbegunEnder:
    """Fails what was not begun in time. Safe in every worker of a store at once."""

    name = "unbegun ender"

    def __init__(self, store: Store, *, counters: Counters, tracer: RunTracer | None) -> None:
        self._store, self._counters, self._tracer = store, counters, tracer

    async def run_once(self) -> float:
        """Fail what is overdue; seconds until the next look."""
        wanted = RunFilter(overdue_at=self._store.now(), roots_only=True)
        runs = await self._store.list_runs(wanted, limit=RUNS_AT_ONCE, oldest_first=True)
        if runs:
            self._counters.runs_ended += len(await end_unbegun(self._store, runs, self._tracer))
        return 0.0 if len(runs) == RUNS_AT_ONCE else LOOK_SECONDS
