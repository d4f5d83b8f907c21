"""An event loop on which waiting takes no time: it jumps to the next timer when nothing else is to be done.

For what is measured in seconds and happens on the loop alone. Whatever another thread does takes its own time, and may
find that the time of the loop has gone on far.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

from tests.engine.support import SkippingClock

T = TypeVar("T")

ENDLESS_SECONDS = 600.0
"""Longer than anything that these tests wait for."""


class _Jumping(selectors.DefaultSelector):
    """Looks, and does not wait."""

    jumped = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """See `BaseSelector`. Only for what no timer announces it really waits."""
        ready = super().select(0)
        if ready or not timeout:
            return ready if ready or timeout is not None else super().select(None)
        self.jumped += timeout
        return ready


class JumpingLoop(asyncio.SelectorEventLoop):
    """Its time is real, and jumps."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        """See `AbstractEventLoop`."""
        return super().time() + self._jumping.jumped


class LoopClock(SkippingClock):
    """Judges by the time of a loop how long something takes."""

    def __init__(self) -> None:
        super().__init__()
        self.monotonic = asyncio.get_running_loop().time  # type: ignore[method-assign]


def run_jumping(main: Coroutine[Any, Any, T]) -> T:
    """Run something on such a loop; what never ends is given up, and that takes no time either."""
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(asyncio.wait_for(main, ENDLESS_SECONDS))
