"""The timers of one tree, and which of them is next."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import islice

from outlive._replay.loop import Timer


class Timers:
    """Timers by run and name, and a heap for the earliest; cancelled ones leave the heap when they reach its top."""

    __slots__ = ("_by_run", "_heap", "_made")

    def __init__(self) -> None:
        self._by_run: dict[int, dict[str, Timer]] = {}
        self._heap: list[Timer] = []
        self._made = 0

    def __bool__(self) -> bool:
        return bool(self._by_run)

    def __iter__(self) -> Iterator[Timer]:
        return (timer for timers in self._by_run.values() for timer in timers.values())

    def add(self, timer: Timer, run: int, name: str) -> None:
        """Begin to wait for a timer; timers of one instant fire in the order in which they were made."""
        self._made += 1
        timer.run, timer.name, timer.order = run, name, self._made
        self._by_run.setdefault(run, {})[name] = timer
        heapq.heappush(self._heap, timer)

    def take(self, run: int, name: str) -> Timer | None:
        """Stop waiting for a timer; None if nobody waits for it."""
        timers = self._by_run.get(run)
        timer = timers.pop(name, None) if timers else None
        if timer is not None:
            timer.is_cancelled = True
        if timers is not None and not timers:
            del self._by_run[run]
        return timer

    def take_all(self, run: int) -> None:
        """Stop waiting for every timer of a run."""
        for timer in self._by_run.pop(run, {}).values():
            timer.is_cancelled = True

    def names(self, run: int, most: int) -> list[str]:
        """The newest timers of a run by name."""
        return list(islice(reversed(self._by_run.get(run, {})), most))

    def next(self) -> Timer | None:
        """The timer that is due first."""
        heap = self._heap
        while heap and heap[0].is_cancelled:
            heapq.heappop(heap)
        return heap[0] if heap else None
