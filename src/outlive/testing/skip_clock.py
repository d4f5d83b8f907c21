"""A clock that stands still, and is moved to the next thing that is due.

Nothing in it is real but `monotonic`, by which a worker judges its own lease and how long it waits when it stops. It
begins at the same instant, gives the same ids and the same nonces every time, and its chance has no spread: a retry
with jitter comes exactly after its back-off. So a test that passes once passes always.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.runtime.clock import SystemClock
from outlive.testing.clock import EPOCH


class Member(Protocol):
    """A member that lives by the clock, which may move on only when all members rest."""

    @property
    def is_resting(self) -> bool:
        """Whether nothing moves there by itself, apart from steps that run."""

    @property
    def attempts(self) -> tuple[int, int]:
        """How many steps run there, and how many were begun so far."""

    @property
    def writes(self) -> int:
        """How often something was written there."""

    @property
    def wake_at(self) -> int | None:
        """When the store has something due next, as far as the last look said."""

    def look(self) -> None:
        """See what is due now."""


class SkipAlarm:
    """Something that the clock will call."""

    __slots__ = ("callback", "loop")

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback
        self.loop = asyncio.get_running_loop()

    def cancel(self) -> None:
        """Not any more."""
        self.callback = None

    def go_off(self) -> None:
        """Call it from a plain callback, as an event loop does."""
        if not self.loop.is_closed():
            self.loop.call_soon(self._call)

    def _call(self) -> None:
        if self.callback is not None:
            self.callback()


class SkipClock(SystemClock):
    """Time for tests. Engines that share a store share a clock: `TestEngine(url, clock=other.clock)`.

    Args:
        start_at: microseconds since 1970 UTC at which it begins.
        seed: other ids and nonces, and so other numbers from `outlive.random()`.
    """

    def __init__(self, *, start_at: int = EPOCH, seed: int = 0) -> None:
        super().__init__()
        self._now_at = start_at
        self._seed = seed
        self._ids = random.Random(f"ids of {seed}")
        self._nonces = 0
        self._alarms: list[tuple[int, int, SkipAlarm]] = []
        self._order = 0
        self.members: list[Member] = []

    def now(self) -> int:
        """See `Clock`."""
        return self._now_at

    def today(self) -> datetime:
        """The time for people."""
        seconds, microseconds = divmod(self._now_at, MICROSECONDS)
        return datetime.fromtimestamp(seconds, UTC).replace(microsecond=microseconds)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> SkipAlarm:
        """See `Clock`."""
        alarm = SkipAlarm(callback)
        at = self._now_at + round(seconds * MICROSECONDS)
        if at <= self._now_at:
            alarm.go_off()
        else:
            self._order += 1
            heapq.heappush(self._alarms, (at, self._order, alarm))
        return alarm

    def skip_to(self, at: int) -> None:
        """Move on to an instant; all alarms until then go off in order. The past is not a place to go."""
        self._now_at = max(self._now_at, at)
        while self._alarms and self._alarms[0][0] <= self._now_at:
            heapq.heappop(self._alarms)[2].go_off()

    def random(self) -> float:
        """The middle: no spread."""
        return 0.5

    def nonce(self) -> int:
        """The next number of a fixed row."""
        self._nonces += 1
        return random.Random(f"nonce {self._nonces} of {self._seed}").getrandbits(63)

    def new_id(self) -> str:
        """An id that says when it was made, and that is made once by this clock."""
        return f"{self._now_at:014x}{self._ids.getrandbits(72):018x}"


def next_alarm_at(clock: SkipClock) -> int | None:
    """When the next alarm goes off."""
    while clock._alarms and clock._alarms[0][2].callback is None:
        heapq.heappop(clock._alarms)
    return clock._alarms[0][0] if clock._alarms else None


def begin_nonces_after(clock: SkipClock, trees: int) -> None:
    """Go on as if this many trees had been created: one that was lost with a crash gets its nonce again."""
    clock._nonces = trees
