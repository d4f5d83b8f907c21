"""Notices that a step has fallen silent: `heartbeat_timeout`.

A heartbeat only writes down the time, so a step may give thousands of them. One alarm of the injected clock looks
whether the last one is too old, and is set again for the moment at which it would be.
"""

from __future__ import annotations

import asyncio

from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.runtime.clock import Clock
from outlive._kernel.runtime.tree.attempt import Attempt


class HeartbeatWatch:
    """Lets the timeout of one attempt expire when its step has been silent for too long."""

    def __init__(self, clock: Clock, attempt: Attempt, timeout: asyncio.Timeout, seconds: float) -> None:
        self._clock = clock
        self._attempt = attempt
        self._timeout = timeout
        self._seconds = seconds
        self.was_silent = False
        self._alarm = clock.call_later(seconds, self._look)

    def stop(self) -> None:
        """The attempt has ended."""
        self._alarm.cancel()

    def _look(self) -> None:
        # A function that was not called yet, because it waits for a thread, is not silent.
        since_at = self._attempt.beat_at or self._clock.now()
        left = self._seconds - (self._clock.now() - since_at) / MICROSECONDS
        if left > 0:
            self._alarm = self._clock.call_later(left, self._look)
        elif not self._timeout.expired():
            self.was_silent = True
            self._timeout.reschedule(asyncio.get_running_loop().time())
