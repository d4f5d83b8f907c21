"""`Parts`: what an engine consists of while it runs, from the time it is entered until it has stopped.

They are made in one order and stopped in the other: claim nothing more, let running steps finish for a moment, release
every run in motion so that others go on at once, end the session, write what is waiting, close the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from outlive._kernel.client.client import Client
from outlive._kernel.client.definitions import Describer
from outlive._kernel.client.waiters import Waiters
from outlive._kernel.define.live_resources import LiveResources
from outlive._kernel.lease.contract import Leases
from outlive._kernel.model.cells import cells_of
from outlive._kernel.runtime.commit.committer import Committer
from outlive._kernel.runtime.services.supervisor import Services
from outlive._kernel.runtime.session.sessions import STORE_SECONDS, WorkerSessions
from outlive._kernel.runtime.session.watchdog import Watchdog
from outlive._kernel.runtime.wakeup import Wakeup
from outlive._kernel.store.contract import Store
from outlive.engine.services import FeaturesInWorker, watch_store
from outlive.telemetry import Counters


@dataclass(slots=True)
class Parts:
    """The parts of an engine; None for a part that it does not have yet, or not any more."""

    client: Client | None = None
    stopping: Client | None = None
    """While the engine stops: steps that finish may still use its verbs."""
    committer: Committer | None = None
    waiters: Waiters | None = None
    leases: Leases | None = None
    sessions: WorkerSessions | None = None
    services: Services | None = None
    describer: Describer | None = None
    features: FeaturesInWorker | None = None
    watchdog: Watchdog | None = None
    """Without a worker; the sessions of a worker have their own."""
    loop: asyncio.AbstractEventLoop | None = None
    """The event loop that entered the engine."""

    async def open(
        self, store: Store, *, counters: Counters, commit_batch_max: int, overlaps: bool, poll_seconds: float
    ) -> None:
        """Open the store, with what every engine has: the committer and the waiters.

        Args:
            overlaps: whether one transaction may be on its way while the next is made.
        """
        await store.open()
        watch_store(store, counters, lambda: self.sessions)
        self.committer = Committer(store, counters=counters, batch_max=commit_batch_max, overlaps=overlaps)
        self.waiters = Waiters(store, pause=lambda: Wakeup().sleep(poll_seconds), pause_seconds=poll_seconds)

    def ring(self, cell: str) -> None:
        """Another process has made something due, or changed this cell."""
        changed = cells_of(cell)
        if changed is not None and changed.service and self.services is not None:
            self.services.ring(changed.service)
        elif self.sessions is not None:
            self.sessions.ring(cell)

    async def stop(
        self,
        store: Store,
        resources: LiveResources,
        *,
        grace_seconds: float,
        released: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Stop and close everything; steps that run have the grace to finish, if there is a worker.

        Args:
            released: called when everything is released, before the store is closed.
        """
        self.loop = None
        if self.describer is not None:
            self.describer.close()
            self.describer = None
        services, self.services = self.services, None
        if services is not None:
            services.begin_nothing()
        self.stopping, self.client = self.client, None
        loop = asyncio.get_running_loop()
        grace_seconds = 0.0 if self.sessions is None else grace_seconds  # A client runs no steps.
        ends_at = loop.time() + grace_seconds + STORE_SECONDS
        try:
            if self.sessions is not None:
                await self.sessions.stop(grace_seconds=grace_seconds)
            if services is not None:
                await services.stop()
            if self.waiters is not None:
                self.waiters.close()
            if self.committer is not None:
                await self.committer.drain(outage_seconds_max=0, silence_seconds=ends_at - loop.time())
            if released is not None:
                await released()
        except (Exception, asyncio.CancelledError):
            # A part that is left open would go on by itself, and nothing could end it.
            if services is not None:
                services.abandon()
            await self._close(store, resources)
            raise
        await self._close(store, resources)

    async def _close(self, store: Store, resources: LiveResources) -> None:
        if self.watchdog is not None:
            self.watchdog.stop()
        if self.sessions is not None:
            self.sessions = None
            await resources.close()
        if self.waiters is not None:
            self.waiters.close()
        if self.committer is not None:
            self.committer.abandon()
            self.committer = None
        if self.leases is not None:
            await self.leases.close()
            self.leases = None
        client, self.stopping = self.stopping, None
        await store.close()
        if client is not None:
            client.close()

    def abandon(self) -> None:
        """End as a killed process does: nothing is released, nothing more is written, and no waiter hears of it."""
        if self.services is not None:
            self.services.abandon()
        if self.committer is not None:
            self.committer.abandon()
        if self.sessions is not None:
            self.sessions.abandon()
        if self.describer is not None:
            self.describer.close()
        if self.waiters is not None:
            self.waiters.close()
        if self.client is not None:
            self.client.close()
        self.client = self.sessions = self.committer = self.services = self.describer = None
