"""When to look again at a tree that is in motion and has timers or retries ahead."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.runtime.clock import Alarm, Clock
from outlive._kernel.runtime.tree.live import LiveTree

LOOK_AGAIN_SECONDS = 30.0
"""A tree is looked at after this long even if its timer is far: a far alarm would keep an ended tree in memory."""


class Alarms:
    """Calls back when a run's next timer or retry is due; one alarm of the clock serves all of them."""

    def __init__(self, clock: Clock, ring: Callable[[LiveTree], None]) -> None:
        self._clock = clock
        self._ring = ring
        self._heap: list[tuple[int, int, LiveTree]] = []
        self._next: dict[LiveTree, int] = {}
        """The earliest alarm of each run."""
        self._order = count()
        self._handle: Alarm | None = None
        self._armed_at = 0

    def set(self, live: LiveTree, at: int) -> None:
        """Ring for a tree at an instant, or earlier; an alarm that finds nothing due does no harm."""
        known_at = self._next.get(live)
        if known_at is not None and known_at <= at:
            return
        at = min(at, self._clock.now() + round(LOOK_AGAIN_SECONDS * MICROSECONDS))
        if known_at is not None and known_at <= at:
            return
        self._next[live] = at
        heapq.heappush(self._heap, (at, next(self._order), live))
        if self._handle is None or at < self._armed_at:
            self._arm(at)

    def forget(self, live: LiveTree) -> None:
        """Ring no more for a tree."""
        if self._next.pop(live, None) is None:
            return
        while self._heap and self._next.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        if self._heap and self._heap[0][0] != self._armed_at:
            self._arm(self._heap[0][0])
        elif not self._heap and self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def close(self) -> None:
        """Ring no more."""
        if self._handle is not None:
            self._handle.cancel()
        self._heap.clear()
        self._next.clear()

    def _arm(self, at: int) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._armed_at = at
        seconds = max(0.0, (at - self._clock.now()) / MICROSECONDS)
        self._handle = self._clock.call_later(seconds, self._go_off)

    def _go_off(self) -> None:
        self._handle = None
        now_at = self._clock.now()
        while self._heap and self._heap[0][0] <= now_at:
            at, _, live = heapq.heappop(self._heap)
            if self._next.get(live) == at:
                del self._next[live]
                self._ring(live)
        if self._heap:
            self._arm(self._heap[0][0])
