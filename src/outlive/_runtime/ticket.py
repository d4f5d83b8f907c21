"""What an attempt holds that came to a gate: its place there, and then its permit."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable

from outlive._model.breaker import Permit
from outlive._model.guard import Guard
from outlive._runtime.clock import Alarm, Clock


class End(enum.Enum):
    """How an attempt ended, in the eyes of a breaker."""

    GOOD = "good"
    BAD = "bad"
    UNTOLD = "untold"
    """That says nothing about what it calls."""


class Ticket:
    """Of one attempt, from when it comes to the gate until it has ended."""

    __slots__ = ("_over", "_sleeper", "alarm", "guard", "is_begun", "is_over", "is_passed", "permit", "permit_id")

    def __init__(self, guard: Guard, permit_id: str, *, over: Callable[[Ticket, End], None]) -> None:
        self.guard = guard
        self.permit_id = permit_id
        self.permit: Permit | None = None
        """From the breaker."""
        self.is_passed = False
        self.is_begun = False
        """Whether the step was called."""
        self.is_over = False
        self.alarm: Alarm | None = None
        self._over = over
        self._sleeper: asyncio.Future[None] | None = None

    def has_ended(self) -> bool:
        """Whether it is over; asked again after every wait."""
        return self.is_over

    def end(self, end: End) -> None:
        """The attempt has ended; the first end counts."""
        if self.is_over:
            return
        self.is_over = True
        if self.alarm is not None:
            self.alarm.cancel()
        self._wake()
        self._over(self, end)

    def cancel(self) -> None:
        """Its run wants it no longer: that is a failure if it was called, for who is cancelled was too slow."""
        self.end(End.BAD if self.is_begun else End.UNTOLD)

    async def sleep(self, clock: Clock, seconds: float) -> None:
        """Return after some time, or when it is over."""
        if seconds <= 0 or self.is_over:
            return
        self._sleeper = asyncio.get_running_loop().create_future()
        alarm = clock.call_later(seconds, self._wake)
        try:
            await self._sleeper
        finally:
            self._sleeper = None
            alarm.cancel()

    def _wake(self) -> None:
        if self._sleeper is not None and not self._sleeper.done():
            self._sleeper.set_result(None)
