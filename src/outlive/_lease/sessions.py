"""Leases kept by the store: the default, and what the other kinds are built on.

A session is a row with an expiry by the store's clock. That alone would do; but a killed process is seen at once by
those who share its machine (`process`), so a crash and a restart cost a moment and not a lease.

To own one tree is to append to its journal, with the same compare-and-swap as everything else. Two who want the same
tree at once read the same end of its journal, and one of them is refused and looks again.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from outlive._journal.claiming import claim_of, root_after
from outlive._journal.codec import salt_of, seal
from outlive._journal.event import AnyEvent, RunReleased
from outlive._lease.contract import OwnedBy
from outlive._lease.process import is_gone
from outlive._model import Run, RunStatus
from outlive._store.contract import Beat, Change, Claim, Outcome, Store, WorkerInfo
from outlive.errors import NotOwnerError, RunNotFoundError
from outlive.telemetry import log


class StoreLeases:
    """Sessions and ownership as the store has them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def open(self) -> None:
        """See `Leases`."""

    async def close(self) -> None:
        """See `Leases`."""

    # -- Sessions --------------------------------------------------------------------------------------------

    async def register(self, worker: WorkerInfo, *, lease_seconds: float) -> None:
        """See `Leases`."""
        await self._store.register_worker(worker, lease_seconds=lease_seconds)

    def open_beat(self, worker_id: str) -> Beat:
        """See `Leases`."""
        return self._store.open_beat(worker_id)

    async def release_all(self, worker_id: str) -> None:
        """See `Leases`."""
        await self._store.retire_worker(worker_id)

    async def list_workers(self) -> list[WorkerInfo]:
        """See `Leases`."""
        return await self._store.list_workers()

    async def find_lost(self, worker_id: str) -> list[WorkerInfo]:
        """See `Leases`."""
        workers = await self._store.list_workers(with_runs=False)
        return [worker for worker in workers if worker.id != worker_id and is_gone(worker.process)]

    def watch(self, ring: Callable[[], None]) -> None:
        """See `Leases`. The store itself tells of sessions that end (`Store.watch`)."""

    # -- Ownership -------------------------------------------------------------------------------------------

    async def get(self, run_id: str) -> OwnedBy | None:
        """See `Leases`."""
        run = await self._store.find_run(run_id)
        return None if run is None else await self._owner_of(run)

    async def acquire(self, run_id: str, worker_id: str) -> Claim | OwnedBy | None:
        """See `Leases`."""
        if not await self._is_live(worker_id):
            return None
        while (found := await self._look_at(run_id)) is not None:
            run, seq = found
            if not _can_be_owned(run):
                break
            owned = await self._owner_of(run)
            if owned is not None and owned.owner != worker_id:
                return owned
            if owned is not None:
                return Claim(run, seq)
            event, claimed = claim_of(run, worker_id=worker_id, at=self._store.now())
            if await self._append(run, seq, event):
                return Claim(claimed, seq + 1, interrupted=event.interrupted)
        return None

    async def release(self, run_id: str, worker_id: str) -> None:
        """See `Leases`."""
        while (found := await self._look_at(run_id)) is not None:
            run, seq = found
            if run.owner != worker_id or not _can_be_owned(run):
                raise NotOwnerError(run_id, worker_id, run.owner)
            if await self._append(run, seq, RunReleased(at=self._store.now())):
                return
        raise RunNotFoundError(run_id)

    async def _append(self, run: Run, seq: int, event: AnyEvent) -> bool:
        """Write one fact behind the end of a journal; False if somebody was first."""
        row = seal(event, salt=salt_of(run.nonce), seq=seq + 1)
        change = Change(journal=run.journal, after=seq, rows=[row], runs=[root_after(run, event)])
        ((outcome, _),) = await self._store.commit([change])
        return outcome is Outcome.COMMITTED

    async def _look_at(self, run_id: str) -> tuple[Run, int] | None:
        """A run and the end of its journal.

        The end is read before the row: if anything is written between the two, what is appended behind that end is
        refused, and never built on an older row than it comes after.
        """
        while (run := await self._store.find_run(run_id)) is not None:
            rows = await self._store.read_journal(run.journal)
            again = await self._store.find_run(run_id)
            if rows and again is not None and again.journal == run.journal:
                return again, rows[-1][0]
        return None

    async def _owner_of(self, run: Run) -> OwnedBy | None:
        live = {worker.id: worker for worker in await self._store.list_workers(with_runs=False)}
        owner = live.get(run.owner) if _can_be_owned(run) else None
        return None if owner is None else OwnedBy(owner.id, owner.expires_at)

    async def _is_live(self, worker_id: str) -> bool:
        return any(worker.id == worker_id for worker in await self._store.list_workers(with_runs=False))


class NoLeases(StoreLeases):
    """One process and nobody else: what it owns is its own for ever, and whoever was there before has died.

    If there are two all the same, the later one goes on. They must not end each other: then nobody would.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._is_told = False

    async def register(self, worker: WorkerInfo, *, lease_seconds: float) -> None:
        """See `Leases`."""
        await super().register(msgspec.structs.replace(worker, lease="none"), lease_seconds=ENDLESS_SECONDS)

    def open_beat(self, worker_id: str) -> Beat:
        """See `Leases`."""
        return _Still()

    async def find_lost(self, worker_id: str) -> list[WorkerInfo]:
        """See `Leases`."""
        live = await self._store.list_workers(with_runs=False)
        own = next((_age(worker) for worker in live if worker.id == worker_id), None)
        if own is not None:
            # A clock that was set back makes the dead younger than us.
            return [it for it in live if it.id != worker_id and (_age(it) < own or is_gone(it.process))]
        if not self._is_told:
            self._is_told = True
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


class _Still:
    """A beat for a lease that needs none."""

    def renew(self, *, lease_seconds: float) -> bool:
        """See `Beat`."""
        del lease_seconds
        return True

    def close(self) -> None:
        """See `Beat`."""


def _can_be_owned(run: Run) -> bool:
    """Whether somebody may move it: a root that has neither ended nor stopped for a person to look at it."""
    return run.number == 0 and not run.status.is_terminal and run.status is not RunStatus.PARKED
