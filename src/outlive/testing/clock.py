"""A clock that stands still until a test moves it."""

from __future__ import annotations

from outlive._kernel.model.instant import MICROSECONDS

EPOCH = 1_750_000_000_000_000
"""Where a manual clock begins: a whole second in June 2025, so that instants in a failing test are easy to read."""


class ManualClock:
    """Microseconds since 1970 UTC, as a store or an engine asks for them: `clock()` and `clock.now()` are one."""

    def __init__(self, start: int = EPOCH) -> None:
        self._now = start

    def now(self) -> int:
        """The instant at which the clock stands."""
        return self._now

    def __call__(self) -> int:
        """The instant at which the clock stands."""
        return self._now

    def advance(self, *, seconds: float) -> None:
        """Move the clock; fractions down to a microsecond count."""
        assert seconds >= 0, "time does not go back"
        self._now += round(seconds * MICROSECONDS)
