"""The parts of a worker beside the trees that it runs: its declarations to the store when it starts, and its
services."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from outlive._model.retention import Keep, KeepAudit
from outlive._runtime.environment import Environment
from outlive._runtime.services.audit_pruner import AuditPruner
from outlive._runtime.services.audit_sealer import AuditSealer
from outlive._runtime.services.blob_collector import BlobCollector
from outlive._runtime.services.cell_collector import CellCollector
from outlive._runtime.services.flow_loader import FlowLoader, Redefine
from outlive._runtime.services.pruner import Pruner
from outlive._runtime.services.scheduler import Scheduler
from outlive._runtime.services.service import Service
from outlive._runtime.services.supervisor import Services
from outlive._runtime.services.unbegun_ender import UnbegunEnder
from outlive._runtime.session.sessions import WorkerSessions
from outlive._store.contract import Store
from outlive.client.client import Client
from outlive.client.events.triggers import declare as declare_triggers
from outlive.client.placing import warn_of_unknown
from outlive.client.schedules.declaring import declare as declare_schedules
from outlive.errors.store import StoreWentBackError
from outlive.telemetry import Counters, log


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


async def load_flows(store: Store, environment: Environment, *, redefine: Redefine, schedules: bool) -> FlowLoader:
    """Load the flows of the library before the worker claims, so that runs of them that were interrupted here go on at
    once; and what loads them again when they change."""
    nonce = environment.clock.nonce if schedules else None
    loader = FlowLoader(store, environment.registry, redefine=redefine, nonce=nonce)
    await loader.look()
    return loader


async def declare_code(
    store: Store, environment: Environment, *, queues: Sequence[str] | None, schedules: bool
) -> None:
    """Let the store know the triggers and the schedules that the code of this worker declares.

    Args:
        queues: the queues that the worker takes runs from; a name that the store does not know is logged.
        schedules: whether its schedules are declared.
    """
    registry = environment.registry
    if queues is not None:
        await warn_of_unknown(store, queues, registry.workflows())
    if registry.triggers():
        await declare_triggers(registry, store, began_at=store.now())
    if schedules and registry.has_schedules():
        await declare_schedules(registry, store, began_at=store.now(), nonce=environment.clock.nonce)


def start_services(
    client: Client,
    environment: Environment,
    *,
    retention: Sequence[Keep | KeepAudit],
    schedules: bool,
    flow_loader: FlowLoader | None,
) -> Services:
    """Begin what this worker does now and then for the whole store; its client rings for what cannot wait."""
    store, clock, counters = client.access.own_store, environment.clock, environment.counters
    found: list[Service] = []
    if flow_loader is not None:
        found.append(flow_loader)
    if schedules:
        has_own = bool(environment.registry.schedules())
        found.append(Scheduler(client, clock=clock, counters=counters, looks_at_once=has_own))
    found.append(UnbegunEnder(store, counters=counters, tracer=environment.tracer))
    if keep := next((keep for keep in retention if isinstance(keep, KeepAudit)), None):
        if keep.span is not None:
            found.append(AuditPruner(store, keep))
        if keep.key is not None:
            found.append(AuditSealer(store, keep.key))
    if rules := [keep for keep in retention if isinstance(keep, Keep)]:
        rate = environment.limits.deletes_per_second_max
        found.append(Pruner(store, rules, clock=clock, counters=counters, deletes_per_second_max=rate))
        found.append(BlobCollector(store, packer=environment.packer, counters=counters))
        found.append(CellCollector(store, counters=counters))
    services = Services(found, clock=clock, counters=counters)
    client.ring_schedules = lambda: services.ring(Scheduler.name)
    client.ring_flows = lambda: services.ring(FlowLoader.name)
    services.start()
    return services
