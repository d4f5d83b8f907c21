"""The time of the event loop of a test, which the test moves on: for limits that callers have."""

from __future__ import annotations

import asyncio

import pytest


class LoopTime:
    """Real time, and jumps that the test makes: a limit of minutes passes when the test says so, and else never."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._real = loop.time
        self._skipped = 0.0

    def __call__(self) -> float:
        """The time, with all jumps."""
        return self._real() + self._skipped

    def skip(self, *, seconds: float) -> None:
        """Jump forward. Timers that are due by then fire in the next turn of the loop."""
        self._skipped += seconds


@pytest.fixture
async def loop_time(monkeypatch: pytest.MonkeyPatch) -> LoopTime:
    """The time of the loop of this test."""
    loop = asyncio.get_running_loop()
    time = LoopTime(loop)
    monkeypatch.setattr(loop, "time", time)
    return time
