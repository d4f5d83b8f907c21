"""The parts of a worker beside the trees that it runs: what features do in it, and its services."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module

from outlive._features import FEATURES
from outlive._kernel.cells import KERNEL_CELLS
from outlive._kernel.client.client import Client
from outlive._kernel.client.placing import warn_of_unknown
from outlive._kernel.define.own import declare_own
from outlive._kernel.in_engine import InEngine, InWorker, WorkerParts
from outlive._kernel.model.cells import declare_cells
from outlive._kernel.model.worker import queues_of
from outlive._kernel.runtime.services.service import Service
from outlive._kernel.runtime.services.supervisor import Services
from outlive._kernel.runtime.services.unbegun_ender import UnbegunEnder
from outlive._kernel.runtime.session.sessions import WorkerSessions
from outlive._kernel.store.contract import Store
from outlive.errors.store import StoreWentBackError
from outlive.telemetry import Counters, log


@cache
def load_features() -> Sequence[InEngine]:
    """The parts of the features that every engine has; what they bring is declared once."""
    declare_cells(*KERNEL_CELLS)
    found: list[InEngine] = [import_module(it.in_engine).IN_ENGINE for it in FEATURES if it.in_engine]
    for part in found:
        declare_own(*part.own)
        declare_cells(*part.cells)
    return found


def watch_store(store: Store, counters: Counters, sessions: Callable[[], WorkerSessions | None]) -> None:
    """Begin a new session when a connection shows that the store is another one, or went back: what is in memory may
    follow what the store has forgotten."""

    def changed(change: StoreWentBackError) -> None:
        counters.store_changes += 1
        if (worker := sessions()) is None:
            log.error("%s", change)
        else:
            worker.end_session(str(change))

    store.watch_incarnation(changed)


class FeaturesInWorker:
    """The parts of all features in one worker."""

    def __init__(self, parts: WorkerParts) -> None:
        self._parts = parts
        self._all: list[InWorker] = [part.in_worker(parts) for part in load_features()]

    async def before_claims(self) -> None:
        """Let each prepare for the runs that were interrupted here."""
        for each in self._all:
            await each.before_claims()

    async def declare(self) -> None:
        """Let the store know what the code of this worker declares; a queue that the store does not know is logged."""
        store, environment, options, *_ = self._parts
        if (queues := queues_of(options)) is not None:
            await warn_of_unknown(store, queues, environment.registry.workflows())
        for each in self._all:
            await each.declare()

    def start_services(self, client: Client) -> Services:
        """Begin what this worker does now and then for the whole store; its client rings for what cannot wait."""
        environment = self._parts.environment
        clock, counters = environment.clock, environment.counters
        found: list[Service] = [UnbegunEnder(self._parts.store, counters=counters, tracer=environment.tracer)]
        for each in self._all:
            found += each.services(client)
        services = Services(found, clock=clock, counters=counters)
        client.ring_service = services.ring
        services.start()
        return services
