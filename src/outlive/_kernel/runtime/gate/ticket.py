"""The ticket of an attempt at the gate: its state there, and then its permit."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable

from outlive._kernel.model.breaker import Permit
from outlive._kernel.model.guard import Guard
from outlive._kernel.runtime.clock import Alarm, Clock


class AttemptEnd(enum.Enum):
    """How an attempt ended, as a breaker counts it."""

    GOOD = "good"
    BAD = "bad"
    UNKNOWN = "unknown"
    """It says nothing about the service that it calls."""


class Ticket:
    """The ticket of one attempt, from when the gate is asked until the attempt has ended."""

    __slots__ = (
        "_over",
        "_room_freed",
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
        self,
        guard: Guard,
        permit_id: str,
        *,
        room_freed: Callable[[], None],
        over: Callable[[Ticket, AttemptEnd], None],
    ) -> None:
        self.guard = guard
        self.permit_id = permit_id
        self.permit: Permit | None = None
        """From the breaker."""
        self.passed_at = 0
        """When it passed the gate; 0 until then."""
        self.has_slept = False
        """Whether it had to wait, and so gave its room away."""
        self.is_over = False
        self.alarm: Alarm | None = None
        self._room_freed: Callable[[], None] | None = room_freed
        self._over = over
        self._sleeper: asyncio.Future[None] | None = None

    def has_ended(self) -> bool:
        """Whether it is over; asked again after every wait."""
        return self.is_over

    def end(self, end: AttemptEnd) -> None:
        """The attempt has ended; the first end counts."""
        if self.is_over:
            return
        self.is_over = True
        if self.alarm is not None:
            self.alarm.cancel()
        self._wake()
        self._over(self, end)

    def free_room(self) -> None:
        """It needs no room for the gate any more; calls `room_freed` once."""
        room_freed, self._room_freed = self._room_freed, None
        if room_freed is not None:
            room_freed()

    async def sleep(self, clock: Clock, seconds: float) -> None:
        """Return after some time, or when it is over."""
        if seconds <= 0 or self.is_over:
            return
        self.has_slept = True
        self.free_room()
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
