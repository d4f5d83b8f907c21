"""Until when a worker may assume that it holds its lease.

The keeper's thread moves it forward with every renewal; the event loop reads it before it begins a step. It is one
number, so that reading it needs no lock.
"""

from __future__ import annotations

from collections.abc import Callable

from outlive._kernel.runtime.wakeup import Wakeup

LOOK_AGAIN_SECONDS = 0.05


class LeaseDeadline:
    """The instant, on the clock that only goes forward, from which on the lease may be gone."""

    __slots__ = ("_monotonic", "until")

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self.until = 0.0

    @property
    def is_held(self) -> bool:
        """Whether no other worker can have taken the runs over."""
        return self._monotonic() < self.until

    async def until_held(self) -> None:
        """Return when the lease is certainly held; a worker that loses it cancels the attempts that wait for this."""
        while not self.is_held:
            await Wakeup().sleep(LOOK_AGAIN_SECONDS)
