"""A clock that a test winds by hand: for what runs beside the event loop, such as the keeper and the watchdog."""

from __future__ import annotations

from collections.abc import Callable, Generator

from outlive._kernel.runtime.clock import SystemClock


class HandClock(SystemClock):
    """Time passes, and what waits for it goes on, when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.at = 100.0
        self._beats: Generator[float, None, None] | None = None

    def monotonic(self) -> float:
        """The time that the test has made."""
        return self.at

    def pulse(self, beats: Generator[float, None, None], *, name: str) -> Callable[[], None]:
        """Kept for the test, up to its first pause."""
        del name
        self._beats = beats
        self.pause = next(beats, None)
        return beats.close

    def tick(self, *, after: float | None = None) -> bool:
        """Let the pause pass that was asked for, or so many seconds; whether another one is asked for."""
        assert self._beats is not None
        assert self.pause is not None
        self.at += self.pause if after is None else after
        self.pause = next(self._beats, None)
        return self.pause is not None
