"""What an attempt holds at the gate: its state there, and then its permit."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable

from outlive._model.breaker import Permit
from outlive._model.guard import Guard
from outlive._runtime.clock import Alarm, Clock


class End(enum.Enum):
    """How an attempt ended, as a breaker counts it."""

    GOOD = "good"
    BAD = "bad"
    UNKNOWN = "unknown"
    """It says nothing about the service that it calls."""


class Ticket:
    """The ticket of one attempt, from when the gate is asked until the attempt has ended."""

    __slots__ = (
        "_over",
        "_rested",
        "_sleeper",
        "alarm",
        "guard",
        "has_slept",
        "is_over",
        "passed_at",
        "permit",
        "permit_id",
    )

    def __init__(
        self, guard: Guard, permit_id: str, *, rested: Callable[[], None], over: Callable[[Ticket, End], None]
    ) -> None:
        self.guard = guard
        self.permit_id = permit_id
        self.permit: Permit | None = None
        """From the breaker."""
        self.passed_at = 0
        """When it passed the gate; 0 until then."""
        self.has_slept = False
        """Whether it had to wait, and so gave its slot away."""
        self.is_over = False
        self.alarm: Alarm | None = None
        self._rested: Callable[[], None] | None = rested
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

    def rest(self) -> None:
        """It needs no slot for the gate any more; calls `rested` once."""
        rested, self._rested = self._rested, None
        if rested is not None:
            rested()

    async def sleep(self, clock: Clock, seconds: float) -> None:
        """Return after some time, or when it is over."""
        if seconds <= 0 or self.is_over:
            return
        self.has_slept = True
        self.rest()
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
