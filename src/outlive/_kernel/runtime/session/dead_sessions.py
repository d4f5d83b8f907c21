"""Ends the sessions of workers that have died, so that their runs are due now and not when a lease has run out.

A session ends in the store when its worker ends it, or when its lease has run out. A killed process ends nothing, but
often another one can see that it has died: a worker on the same machine, an etcd, or the worker itself when it starts
again under the same name. That one ends the session, and its runs are claimed like any others that are due. If it was
wrong, the other worker loses its session and no journal is harmed.
"""

from __future__ import annotations

from collections.abc import Callable

from outlive._kernel.lease.contract import Leases
from outlive._kernel.runtime.clock import Clock
from outlive._kernel.store.contract import WorkerInfo
from outlive.errors import StoreUnavailableError
from outlive.errors.store import StoreMovedError
from outlive.telemetry import Counters, log

LOOK_SECONDS = 1.0


class DeadSessionEnder:
    """Looks for dead workers of a store, for one worker."""

    def __init__(self, leases: Leases, worker: WorkerInfo, *, clock: Clock, counters: Counters, is_named: bool) -> None:
        self._leases = leases
        self._worker = worker
        self._clock = clock
        self._counters = counters
        self._is_named = is_named
        """Whether no other worker has the name, so that an older session of the name is its own earlier one."""
        self._look_at = clock.monotonic()
        self.looks = 0
        """How often it has looked and the store has answered."""
        self._trouble = False

    def watch(self, ring: Callable[[], None]) -> None:
        """Look at once when a worker may have died; `ring` wakes the caller of `look_when_due`."""

        def look_now() -> None:
            self.be_due()
            ring()

        self._leases.watch(look_now)

    def be_due(self) -> None:
        """Look the next time it is asked to, however short ago it has looked."""
        self._look_at = self._clock.monotonic()

    async def look_when_due(self) -> None:
        """End the sessions of workers that have died, if it is time to look for them."""
        if self._clock.monotonic() < self._look_at:
            return
        # A little spread, so that the workers of a fleet do not look in step.
        self._look_at = self._clock.monotonic() + LOOK_SECONDS * (0.75 + self._clock.random() / 2)
        try:
            lost = await self._leases.find_lost(self._worker.id)
            if self._is_named and not self.looks:
                lost += await self._find_former()
            for worker in lost:
                log.info("worker %s (%s) has died; its runs are taken over", worker.name, worker.id)
                await self._leases.end_session(worker.id)
                self._counters.sessions_ended += 1
        except StoreMovedError:
            raise  # The claimer ends the session for it.
        except StoreUnavailableError as error:
            if not self._trouble:
                log.error("%s; workers that have died are not noticed before it is back", error)
            self._trouble = True
        else:
            self.looks, self._trouble = self.looks + 1, False

    async def _find_former(self) -> list[WorkerInfo]:
        """The sessions of earlier processes of this worker."""
        return [
            worker
            for worker in await self._leases.list_workers()
            if worker.is_live and worker.name == self._worker.name and worker.started_at <= self._worker.started_at
            if worker.id != self._worker.id
        ]
