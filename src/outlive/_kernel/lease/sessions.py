"""Leases kept by the store: the default, and what the other kinds are built on.

A session is a row with an expiry by the store's clock. That alone would do; but a killed process is seen at once by the
processes that share its machine (`process`), so a crash and a restart cost a moment and not a lease.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from outlive._kernel.lease.process import is_gone
from outlive._kernel.store.contract import Beat, Store, WorkerInfo
from outlive.telemetry import log


class StoreLeases:
    """Sessions as the store has them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def open(self) -> None:
        """See `Leases`."""

    async def close(self) -> None:
        """See `Leases`."""

    async def register(self, worker: WorkerInfo, *, lease_seconds: float) -> None:
        """See `Leases`."""
        await self._store.register_worker(worker, lease_seconds=lease_seconds)

    def open_beat(self, worker_id: str) -> Beat:
        """See `Leases`."""
        return self._store.open_beat(worker_id)

    async def end_session(self, worker_id: str) -> None:
        """See `Leases`."""
        await self._store.end_session(worker_id)

    async def list_workers(self) -> list[WorkerInfo]:
        """See `Leases`."""
        return await self._store.list_workers()

    async def find_lost(self, worker_id: str) -> list[WorkerInfo]:
        """See `Leases`."""
        workers = await self._store.list_workers(with_runs=False)
        return [worker for worker in workers if worker.id != worker_id and is_gone(worker.process)]

    def watch(self, ring: Callable[[], None]) -> None:
        """See `Leases`. The store itself tells of sessions that end (`Store.watch`)."""


class NoLeases(StoreLeases):
    """One process alone: what it owns is its own for ever, and any earlier process has died.

    If there are two all the same, the later one goes on. They must not end each other: then neither would.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._is_logged = False

    async def register(self, worker: WorkerInfo, *, lease_seconds: float) -> None:
        """See `Leases`."""
        await super().register(msgspec.structs.replace(worker, lease="none"), lease_seconds=ENDLESS_SECONDS)

    def open_beat(self, worker_id: str) -> Beat:
        """See `Leases`."""
        return _NoBeat()

    async def find_lost(self, worker_id: str) -> list[WorkerInfo]:
        """See `Leases`."""
        live = await self._store.list_workers(with_runs=False)
        own = next((_age(worker) for worker in live if worker.id == worker_id), None)
        if own is not None:
            # A clock that was set back makes the dead younger than us.
            return [it for it in live if it.id != worker_id and (_age(it) < own or is_gone(it.process))]
        if not self._is_logged:
            self._is_logged = True
            log.error(
                "a worker that began later has ended session %s, which claims nothing more: with lease='none' there "
                "can be one only; give all of them lease='store'",
                worker_id,
            )
        return []


def _age(worker: WorkerInfo) -> tuple[int, str]:
    """Which of two began first; ids are made in the order of time."""
    return worker.started_at, worker.id


ENDLESS_SECONDS = 100 * 365 * 86_400.0


class _NoBeat:
    """A beat for a lease that needs none."""

    def renew(self, *, lease_seconds: float) -> bool:
        """See `Beat`."""
        del lease_seconds
        return True

    def close(self) -> None:
        """See `Beat`."""
