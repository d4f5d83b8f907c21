"""Hears of sessions whose key goes away, on a thread of its own, over whichever endpoint answers.

What happens while no connection listens is not asked for later: the callback looks at everything anyway, so it is
enough to ring once more when listening has begun again. A member that stands still looks like one that has nothing to
say; so after some silence another one is asked.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress

from outlive._kernel.lease.etcd.gateway import AwayError, Gateway, LeaseGoneError, RefusedError
from outlive._kernel.lease.etcd.keys import watch_request
from outlive._kernel.lease.etcd.wire import WatchAnswer
from outlive.telemetry import log

CONNECT_SECONDS = 3.0
SILENCE_SECONDS = 20.0
PAUSE_SECONDS_MIN = 0.1
PAUSE_SECONDS_MAX = 5.0


class EtcdWatch:
    """Rings until it is closed."""

    def __init__(
        self,
        gateway: Gateway,
        ring: Callable[[], None],
        *,
        random: Callable[[], float],
        silence_seconds: float = SILENCE_SECONDS,
    ) -> None:
        self.ring = ring
        """Called when a worker has died. A worker that begins a new session sets another function."""
        self._gateway = gateway
        self._random = random
        self._silence = silence_seconds
        self._loop = asyncio.get_running_loop()
        self._stop = threading.Event()
        self._pause = PAUSE_SECONDS_MIN
        self._is_away = False

    def run(self) -> None:
        """Listen; for a thread of its own."""
        while not self._stop.is_set():
            try:
                self._listen()
            except (AwayError, LeaseGoneError, RefusedError) as error:
                if not self._is_away and not self._stop.is_set():
                    self._is_away = True
                    log.warning("%s is not heard (%s); dead workers are noticed later", self._gateway.address, error)
                # A refusal may mean that our token is not known any more.
                self._gateway.forget_token()
                # Not all at once, when a cluster comes back.
                self._stop.wait(self._pause * (0.5 + self._random()))
                self._pause = min(self._pause * 2, PAUSE_SECONDS_MAX)
            except Exception:
                log.exception("the watch on %s failed; it is tried again", self._gateway.address)
                self._stop.wait(PAUSE_SECONDS_MAX)
            self._gateway.move_on()

    def close(self) -> None:
        """Listen no more; from any thread."""
        self._stop.set()
        self._gateway.interrupt()

    def _listen(self) -> None:
        lines = self._gateway.listen(
            "watch", watch_request(self._gateway), WatchAnswer, seconds=CONNECT_SECONDS, silence=self._silence
        )
        for line in lines:
            if line.result.canceled:
                raise AwayError(line.result.cancel_reason or "the watch was cancelled")
            if line.result.created:
                self._pause = PAUSE_SECONDS_MIN
                if self._is_away:
                    self._is_away = False
                    log.warning("%s is heard again", self._gateway.address)
            if line.result.created or line.result.events:
                with suppress(RuntimeError):  # The event loop is closed: the process is on its way out.
                    self._loop.call_soon_threadsafe(self.ring)
