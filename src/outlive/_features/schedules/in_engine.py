"""Schedules in an engine."""

from __future__ import annotations

from collections.abc import Iterable

from outlive._features.schedules.declaring import declare
from outlive._features.schedules.in_code import OPTION, declared_in
from outlive._features.schedules.service import Scheduler
from outlive._kernel.client.client import Client
from outlive._kernel.in_engine import InEngine, InWorker
from outlive._kernel.runtime.services.service import Service


class SchedulesInWorker(InWorker):
    """Declares the schedules of the code, and starts the runs of all that are due."""

    async def declare(self) -> None:
        """Let the store know the schedules that the code declares."""
        store, environment, options, *_ = self.parts
        if options.schedules and environment.registry.declares(OPTION):
            await declare(environment.registry, store, began_at=store.now(), nonce=environment.clock.nonce)

    def services(self, client: Client) -> Iterable[Service]:
        """The scheduler, unless the worker leaves schedules to others."""
        environment = self.parts.environment
        if self.parts.options.schedules:
            has_own = bool(declared_in(environment.registry))
            yield Scheduler(client, clock=environment.clock, counters=environment.counters, looks_at_once=has_own)


IN_ENGINE = InEngine(in_worker=SchedulesInWorker)
