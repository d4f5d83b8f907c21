"""How many orphans a worker may take now.

When a machine dies its runs should go on soon, but not at the cost of all others. So orphans come at a bounded rate and
leave room: a tenth of every claim is for other runs, if any are due, and a tenth of what the worker can hold is never
filled with orphans. A worker that starts has nothing else to do yet and takes more of them at once.
"""

from __future__ import annotations

from outlive._kernel.model.recovery import Recovery
from outlive._kernel.runtime.clock import Clock

SHARE_OF_OTHERS = 10
"""One place in this many is not for orphans."""


class OrphanPace:
    """The allowance of one session."""

    def __init__(self, recovery: Recovery, *, clock: Clock, room_max: int) -> None:
        self._recovery = recovery
        self._clock = clock
        self._reserve = room_max // SHARE_OF_OTHERS
        self._is_starting = True
        self._left = recovery.orphans_at_start_max
        self._next_at: float | None = None
        """When the next allowance comes; None while nothing of this one was used."""

    def allowance(self, *, limit: int, room: int) -> int:
        """How many orphans a claim of `limit` runs may take, when there is room for `room` runs."""
        if not self._recovery.enabled:
            return 0
        if self._next_at is not None and self._clock.monotonic() >= self._next_at:
            self._next_at, self._left = None, self._recovery.orphans_per_check_max
        return max(0, min(self._left, room - self._reserve, limit - limit // SHARE_OF_OTHERS))

    def took(self, orphans: int, *, asked: int) -> None:
        """A claim that could take `asked` orphans took `orphans`."""
        self._left -= orphans
        if self._is_starting and (orphans < asked or not self._left):
            self._is_starting = False
            taken = self._recovery.orphans_at_start_max - self._left
            self._left = max(0, self._recovery.orphans_per_check_max - taken)
        # It is used even if this claim took none: orphans that the first claims of a session took count too.
        is_used = self._left < self._recovery.orphans_per_check_max
        if is_used and self._next_at is None and not self._is_starting:
            spread = 0.75 + self._clock.random() / 2
            self._next_at = self._clock.monotonic() + self._recovery.check_seconds * spread

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left of the allowance."""
        return self._left <= 0

    def wait_seconds(self) -> float | None:
        """How long until there is an allowance again; None if there is one, or never will be."""
        if not self.is_spent or self._next_at is None:
            return None
        seconds = self._next_at - self._clock.monotonic()
        return seconds if seconds > 0 else None
