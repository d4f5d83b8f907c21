"""Alarms: when to look again at a run that waits hot."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable

from outlive._runtime.clock import MICROSECONDS, Clock
from outlive._runtime.live import LiveRun


class Alarms:
    """Calls back when a run's next timer or retry is due; one timer of the event loop serves all of them."""

    def __init__(self, clock: Clock, ring: Callable[[LiveRun], None]) -> None:
        self._clock = clock
        self._ring = ring
        self._loop = asyncio.get_running_loop()
        self._heap: list[tuple[int, int, LiveRun]] = []
        self._order = 0
        self._handle: asyncio.TimerHandle | None = None
        self._armed_at = 0

    def set(self, live: LiveRun, at: int) -> None:
        """Ring for a run at an instant; alarms that came to nothing do no harm."""
        self._order += 1
        heapq.heappush(self._heap, (at, self._order, live))
        if self._handle is None or at < self._armed_at:
            self._arm(at)

    def close(self) -> None:
        """Ring no more."""
        if self._handle is not None:
            self._handle.cancel()
        self._heap.clear()

    def _arm(self, at: int) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._armed_at = at
        seconds = max(0.0, (at - self._clock.now()) / MICROSECONDS)
        self._handle = self._loop.call_later(seconds, self._go_off)

    def _go_off(self) -> None:
        self._handle = None
        now_at = self._clock.now()
        while self._heap and self._heap[0][0] <= now_at:
            self._ring(heapq.heappop(self._heap)[2])
        if self._heap:
            self._arm(self._heap[0][0])
