"""A sleep that can be ended early."""

from __future__ import annotations

import asyncio


class Wakeup:
    """Wakes one sleeping task. A ring while none sleeps ends the next sleep at once."""

    def __init__(self) -> None:
        self._sleeper: asyncio.Future[None] | None = None
        self._rung = False

    def ring(self) -> None:
        """Wake the sleeper; call it on the event loop."""
        self._rung = True
        if self._sleeper is not None and not self._sleeper.done():
            self._sleeper.set_result(None)

    @property
    def has_sleeper(self) -> bool:
        """Whether a task sleeps and was not woken yet."""
        return self._sleeper is not None and not self._sleeper.done()

    async def sleep(self, seconds: float | None) -> None:
        """Return when `ring` is called, or after `seconds`."""
        assert self._sleeper is None, "only one task may sleep at a time: a ring wakes one"
        loop = asyncio.get_running_loop()
        if not self._rung and (seconds is None or seconds > 0):
            self._sleeper = loop.create_future()
            timer = None if seconds is None else loop.call_later(seconds, self._stop_sleeping)
            try:
                await self._sleeper
            finally:
                self._sleeper = None
                if timer is not None:
                    timer.cancel()
        self._rung = False

    def _stop_sleeping(self) -> None:
        if self._sleeper is not None and not self._sleeper.done():
            self._sleeper.set_result(None)
