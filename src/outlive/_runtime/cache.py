"""Suspended trees kept in memory: waking one of them needs no replay.

A cache, nothing more: whatever is in it can be rebuilt from its journal, and is thrown away first when memory is short.
"""

from __future__ import annotations

from collections import OrderedDict

from outlive._runtime.live import LiveRun
from outlive.telemetry import Counters


class RunCache:
    """The most recently suspended trees, by journal."""

    def __init__(self, runs_max: int, counters: Counters) -> None:
        self._runs_max = runs_max
        self._counters = counters
        self._runs: OrderedDict[int, LiveRun] = OrderedDict()

    def __len__(self) -> int:
        return len(self._runs)

    def put(self, live: LiveRun) -> None:
        """Keep a tree that has just been suspended; the one that was not used for longest may have to go."""
        self._runs[live.journal] = live
        if len(self._runs) > self._runs_max:
            _, oldest = self._runs.popitem(last=False)
            oldest.execution.drop()
            self._counters.runs_evicted += 1

    def peek(self, journal: int) -> LiveRun | None:
        """A tree that may be taken."""
        return self._runs.get(journal)

    def take(self, journal: int) -> LiveRun | None:
        """Take a tree out."""
        return self._runs.pop(journal, None)

    def clear(self) -> None:
        """Forget everything."""
        while self._runs:
            self._runs.popitem()[1].execution.drop()
