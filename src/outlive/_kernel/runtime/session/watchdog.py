"""Notices that the event loop is blocked, logs where, and ends the session when that lasts as long as a lease.

A sync call in an async step, or a workflow that computes for minutes, stops everything that this worker does, while the
keeper goes on renewing the lease: no other worker may take its runs, and no log says why. So the loop writes a mark
four times a second, and a thread reads it. When the mark is old, the thread logs the stacks of all threads; the line
that blocks is among them. When the mark is as old as a lease, the thread ends the session: other workers take the runs
over, and a worker process that has nothing else to do ends itself. An engine without a worker has no session to end:
there the log is all, and it is what a web application needs that was frozen by one of its handlers.

If the whole process was stopped (SIGSTOP, a laptop that slept), the thread was stopped too and reads the mark late.
Then the lease decides, and the loop gets the time to write its next mark.
"""

from __future__ import annotations

import asyncio
import math
import sys
import threading
import traceback
from collections.abc import Callable, Generator
from contextvars import Context
from typing import Self

from outlive._kernel.runtime.clock import Clock
from outlive.telemetry import Counters, log

MARK_SECONDS = 0.25
STALL_SECONDS = 1.0
"""Stacks are logged when the loop is blocked for longer."""
FRAMES_MAX = 30


class Watchdog:
    """Watches one event loop."""

    def __init__(
        self,
        *,
        clock: Clock,
        counters: Counters,
        stall_seconds_max: float = math.inf,
        end_session: Callable[[float], None] | None = None,
    ) -> None:
        self._clock = clock
        self._counters = counters
        self._stall_seconds_max = stall_seconds_max
        self._end_session = end_session
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._marked_at = clock.monotonic()
        self._mark: asyncio.TimerHandle | None = None
        self._stop: Callable[[], None] | None = None

    def start(self) -> Self:
        """Begin to watch."""
        self._leave_mark()
        self._stop = self._clock.pulse(self._looks(), name="outlive-watchdog")
        return self

    def stop(self) -> None:
        """Watch no more."""
        if self._stop is not None:
            self._stop()
        if self._mark is not None:
            self._mark.cancel()

    def _leave_mark(self) -> None:
        self._marked_at = self._clock.monotonic()
        # In an empty context: it sets itself again for as long as the engine runs.
        self._mark = self._loop.call_later(MARK_SECONDS, self._leave_mark, context=Context())

    def _looks(self) -> Generator[float, None, None]:
        """How long to wait before each look at the mark."""
        reported_at, looked_at = -1.0, self._clock.monotonic()
        while True:
            yield MARK_SECONDS
            marked_at = self._marked_at
            before_at, looked_at = looked_at, self._clock.monotonic()
            if looked_at - before_at >= STALL_SECONDS:
                self._marked_at = looked_at
                continue
            lag = looked_at - marked_at
            if lag < STALL_SECONDS:
                continue
            if reported_at != marked_at:
                reported_at = marked_at
                self._counters.stalls += 1
                log.error("the event loop has not turned for %.1f s; it stands here:\n%s", lag, self._stacks())
            if self._end_session is not None and lag >= self._stall_seconds_max:
                self._end_session(lag)
                return

    def _stacks(self) -> str:
        """Where every thread stands; the one of the event loop first."""
        frames = sys._current_frames()
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        order = sorted(frames, key=lambda ident: ident != self._thread)
        return "\n".join(
            f"thread {names.get(ident, ident)}:\n{''.join(traceback.format_stack(frames[ident])[-FRAMES_MAX:])}"
            for ident in order
        )
