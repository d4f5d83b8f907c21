"""The clock that counts is the server's.

Leases and due-ness are judged by `clock_timestamp()` in the statements themselves. `now` is for everything that an
engine stamps: its own clock, moved by what it was last seen to differ from the server's. A test gives a clock of its
own, which then is the only one.
"""

from __future__ import annotations

from collections.abc import Callable

from outlive._kernel.store.postgres.connection import Session

MEASURE_EVERY_MICROSECONDS = 10_000_000
ROUND_TRIP_MAX_MICROSECONDS = 200_000
"""An answer that took longer says little about when it was given; it counts only if answers always take that long."""


class StoreTime:
    """The store's clock, as seen from here."""

    def __init__(self, local: Callable[[], int], *, is_given: bool) -> None:
        self._local = local
        self._is_given = is_given
        self._offset = 0
        self._asked_at: int | None = None
        self._round_trip = 0
        """How long the last answer that counted took."""

    def given(self) -> int | None:
        """The instant that statements judge by; None: the server's clock."""
        return self._local() if self._is_given else None

    def now(self) -> int:
        """The server's time."""
        return self._local() + self._offset

    async def measure(self, session: Session) -> None:
        """Compare the clocks, if that has not been done for a while."""
        if self._is_given:
            return
        sent_at = self._local()
        if self._asked_at is not None and 0 <= sent_at - self._asked_at < MEASURE_EVERY_MICROSECONDS:
            return
        ((server_at,),) = await session.fetch("read_clock")
        heard_at = self._local()
        round_trip = heard_at - sent_at
        usual = max(ROUND_TRIP_MAX_MICROSECONDS, 2 * self._round_trip)
        if self._asked_at is None or 0 <= round_trip <= usual:
            self._offset = server_at - (sent_at + heard_at) // 2
            self._round_trip = round_trip
        self._asked_at = heard_at
