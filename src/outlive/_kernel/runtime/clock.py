"""The one source of time, chance, ids and threads. Nothing else in the engine may take them from the standard library.

The same worker code then runs in production, in users' tests with a clock that skips, and in a simulation from a seed.
"""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
from collections.abc import Callable, Generator
from contextlib import closing
from typing import Protocol
from weakref import WeakSet

from outlive._platform import after_fork


class Alarm(Protocol):
    """Something that will be called."""

    def cancel(self) -> None:
        """Do not call it any more; may be called twice."""


class Clock(Protocol):
    """Where the engine takes time and chance from."""

    def now(self) -> int:
        """Microseconds since 1970 UTC."""

    def monotonic(self) -> float:
        """Seconds that only go forward, also while the machine sleeps; for the worker's own lease."""

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Alarm:
        """Call something from a plain callback of the running event loop, when `now()` has moved on by this much."""

    def random(self) -> float:
        """A number in [0, 1)."""

    def nonce(self) -> int:
        """63 random bits."""

    def new_id(self) -> str:
        """A unique id of a run or a worker."""

    def spawn(self, target: Callable[[], None], *, name: str) -> None:
        """Run something on a thread of its own that never keeps the process alive."""

    def pulse(self, beats: Generator[float, None, None], *, name: str) -> Callable[[], None]:
        """Drive a generator that yields how many seconds to wait before it goes on, independently of the event loop;
        the returned function, which any thread may call, closes it."""


_clocks: WeakSet[SystemClock] = WeakSet()


class SystemClock:
    """The time, chance and threads of the machine."""

    def __init__(self) -> None:
        self._random = random.Random(os.urandom(32))
        _clocks.add(self)
        # Where the system has a clock that counts suspended time, a laptop lid cannot fool a lease.
        self._monotonic_id = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))

    def reseed(self) -> None:
        """Continue with other random numbers."""
        self._random.seed(os.urandom(32))

    def now(self) -> int:
        """See `Clock`."""
        return time.time_ns() // 1_000

    def monotonic(self) -> float:
        """See `Clock`."""
        return time.monotonic() if self._monotonic_id is None else time.clock_gettime(self._monotonic_id)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Alarm:
        """See `Clock`."""
        return asyncio.get_running_loop().call_later(seconds, callback)

    def random(self) -> float:
        """See `Clock`."""
        return self._random.random()

    def nonce(self) -> int:
        """See `Clock`."""
        return self._random.getrandbits(63)

    def new_id(self) -> str:
        """See `Clock`."""
        # Ordered by time, so that new runs lie side by side in an index. Not uuid7: random bits from the system cost
        # as much as the rest of starting a run.
        return f"{self.now():014x}{self._random.getrandbits(72):018x}"

    def spawn(self, target: Callable[[], None], *, name: str) -> None:
        """See `Clock`."""
        threading.Thread(target=target, name=name, daemon=True).start()

    def pulse(self, beats: Generator[float, None, None], *, name: str) -> Callable[[], None]:
        """See `Clock`: on a thread of its own."""
        stop = threading.Event()

        def run() -> None:
            with closing(beats):
                for pause_seconds in beats:
                    if stop.wait(pause_seconds):
                        return

        self.spawn(run, name=name)
        return stop.set


class StoreClock(SystemClock):
    """A clock that tells the time of the store, which all machines of a fleet share."""

    def __init__(self, now: Callable[[], int]) -> None:
        super().__init__()
        self._now = now

    def now(self) -> int:
        """See `Clock`."""
        return self._now()


def _reseed_clocks() -> None:
    # A forked child would otherwise go on with the same numbers, and so with the same ids, as its parent.
    for clock in list(_clocks):
        clock.reseed()


after_fork(_reseed_clocks)
