"""Runs the services of one worker, each in a task of its own.

A service that raises is logged and counted, waits, and tries again: at first soon, then less and less often. The others
and the worker itself do not notice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from outlive._kernel.runtime.clock import Clock
from outlive._kernel.runtime.services.service import Service
from outlive._kernel.runtime.wakeup import Wakeup
from outlive._tasks import cancel_all, own_task
from outlive.errors import StoreUnavailableError
from outlive.telemetry import Counters, log

PAUSE_SECONDS_MIN = 0.001
RETRY_SECONDS = 0.5
RETRY_SECONDS_MAX = 60.0
STOP_SECONDS = 1.0
"""How long a service may take to end what it does when the engine stops."""


class Services:
    """The services of one worker."""

    def __init__(self, services: Iterable[Service], *, clock: Clock, counters: Counters) -> None:
        self._loops = {service.name: ServiceLoop(service, clock=clock, counters=counters) for service in services}

    def start(self) -> None:
        """Begin with all of them."""
        for loop in self._loops.values():
            loop.start()

    def ring(self, name: str | None = None) -> None:
        """Let a service, or all of them, look soon; one that has failed waits on."""
        for each, loop in self._loops.items():
            if name in (None, each):
                loop.wakeup.ring()

    @property
    def is_resting(self) -> bool:
        """Whether all of them sleep."""
        return all(loop.is_resting for loop in self._loops.values())

    def begin_nothing(self) -> None:
        """Let each of them end when it has done what it does now."""
        for loop in self._loops.values():
            loop.stop()

    async def stop(self) -> None:
        """End all of them: what one does now may take a moment, then it is cancelled."""
        tasks = [task for loop in self._loops.values() if (task := loop.stop()) is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=STOP_SECONDS)
            await cancel_all(tasks)

    def abandon(self) -> None:
        """Stop as a killed process does."""
        for loop in self._loops.values():
            if (task := loop.stop()) is not None:
                task.cancel()


class ServiceLoop:
    """Runs one service again and again."""

    def __init__(self, service: Service, *, clock: Clock, counters: Counters) -> None:
        self._service = service
        self._clock = clock
        self._counters = counters
        self.wakeup = Wakeup()
        self._task: asyncio.Task[None] | None = None
        self._failures = 0
        """How often it has failed since it last succeeded."""
        self._is_stopping = False

    def start(self) -> None:
        """Begin."""
        self._task = own_task(self._run(), name=f"outlive-{self._service.name}")

    def stop(self) -> asyncio.Task[None] | None:
        """Begin nothing more; the task that is about to end, if there is one."""
        self._is_stopping = True
        self.wakeup.ring()
        return self._task

    @property
    def is_resting(self) -> bool:
        """Whether it sleeps, or has ended."""
        return self._task is None or self._task.done() or self.wakeup.has_sleeper

    async def _run(self) -> None:
        while not self._is_stopping:
            try:
                seconds = await self._service.run_once()
                self._failures = 0
            except StoreUnavailableError as error:
                if not self._failures:
                    log.error("%s; the %s goes on when it is back", error, self._service.name)
                await self._back_off()
            except Exception:
                log.exception("the %s failed; it is tried again", self._service.name)
                self._counters.service_failures += 1
                await self._back_off()
            else:
                # Never without a pause: one that has always more to do must not stop the event loop.
                await self.wakeup.sleep(max(seconds, PAUSE_SECONDS_MIN))

    async def _back_off(self) -> None:
        """Sleep, however often it is rung: what rings it may be what makes it fail."""
        pause = min(RETRY_SECONDS_MAX, RETRY_SECONDS * 2 ** min(self._failures, 10))
        self._failures += 1
        # Spread, so that the workers of a fleet do not try again in step.
        ends_at = self._clock.monotonic() + pause * (0.75 + self._clock.random() / 2)
        while not self._is_stopping and (left := ends_at - self._clock.monotonic()) > 0:
            await self.wakeup.sleep(left)
