"""A bell: somebody sleeps until it rings or until enough time has passed."""

from __future__ import annotations

import asyncio


class Wakeup:
    """Wakes one sleeper. A ring while nobody sleeps is kept for the next one."""

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
        """Whether somebody sleeps and nothing has woken them."""
        return self._sleeper is not None and not self._sleeper.done()

    async def sleep(self, seconds: float | None) -> None:
        """Return when the bell rings, or after `seconds`."""
        assert self._sleeper is None, "a bell wakes one sleeper: a second one would be awake for both"
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
