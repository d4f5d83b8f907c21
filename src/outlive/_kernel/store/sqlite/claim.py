"""Workers: who lives, who owns what, and who takes over.

A worker lives while its lease has not run out by the store's clock and, if it holds a lock (`lock`), while the
kernel says that it still does.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain

from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.store.contract import Claims, WorkerInfo
from outlive._kernel.store.sqlite.connection import Session
from outlive._kernel.store.sqlite.lock import WorkerLocks
from outlive._kernel.store.sqlite.queues import claim_queue, find_queues
from outlive._kernel.store.sqlite.rows import (
    Lease,
    WorkerRow,
    decode_leases,
    decode_names,
    decode_streams,
    decode_workers,
)
from outlive._kernel.store.sqlite.take_over import take_over
from outlive._kernel.store.sqlite.writer import each
from outlive._kernel.store.tables.claiming import (
    SESSION_KEPT_MICROSECONDS,
    ClaimRequest,
    WakeUp,
    joined,
    not_declined,
    pick,
)
from outlive._kernel.store.tables.queueing import sources
from outlive._kernel.store.tables.rows import to_json

DEFINITIONS_FEW = 32
"""So many definitions are looked for one by one."""


class ClaimVerbs:
    """The verbs that know the locks."""

    def __init__(self, locks: WorkerLocks) -> None:
        self._locks = locks
        self._claims = 0
        self.claim_runs = each(self._claim_runs)
        self.register = each(self._register)
        self.redefine = each(self._redefine)
        self.retire = each(self._retire)
        self.forget_locks = each(self._forget_locks)

    # -- ClaimRequest ------------------------------------------------------------------------------------------

    def _claim_runs(self, session: Session, request: ClaimRequest) -> Claims:
        now = session.clock()
        owners, has_queues = decode_leases(session.fetch_json("find_owners", request.worker_id))
        dead = [owner for owner in owners if not self._is_live(owner, now)]
        if any(owner.id == request.worker_id for owner in dead):
            return Claims([], None)
        lost = [owner.id for owner in dead if _is_stale(owner, now, request.stale_seconds)]
        if not has_queues and (request.queues is None or "" in request.queues):
            return _claim_unqueued(session, request=request, lost=lost, now=now)
        self._claims += 1
        claims = Claims([], None)
        for name in sources(request.queues, find_queues(session, ["", *lost]), claim_number=self._claims):
            rest = request.without(claims)
            if rest.limit > 0:
                claim = partial(claim_queue, name=name) if name else _claim_unqueued
                claims = joined(claims, claim(session, request=rest, lost=lost, now=now))
        return claims

    def _is_live(self, worker: Lease | WorkerRow, now: int) -> bool:
        if worker.expires_at is None or worker.expires_at <= now or worker.is_retired:
            return False
        # A lock in a file that is not ours tells us nothing.
        if worker.lock_file is None or worker.lock_file != self._locks.inode:
            return True
        return self._locks.is_held(worker.id)

    # -- Sessions ------------------------------------------------------------------------------------------

    def _register(self, session: Session, call: tuple[WorkerInfo, float]) -> None:
        worker, lease_seconds = call
        now = session.clock()
        session.execute(
            "register_worker",
            worker.id,
            worker.name,
            to_json(worker.definitions),
            worker.started_at,
            expiry(now, lease_seconds),
            self._locks.take(worker.id),
            worker.process,
            worker.lease,
        )
        session.execute("prune_workers", now - SESSION_KEPT_MICROSECONDS)

    def _redefine(self, session: Session, call: tuple[str, Sequence[str]]) -> None:
        worker_id, definitions = call
        session.execute("redefine_worker", worker_id, to_json(definitions))

    def _retire(self, session: Session, worker_id: str) -> None:
        session.execute("end_session", worker_id, session.clock())
        session.made_due = True
        self._locks.drop(worker_id)

    def _forget_locks(self, session: Session, _: None) -> None:
        """Before the locks go with a store that is closed: its sessions live as long as their leases, as promised."""
        session.execute("forget_locks", to_json(sorted(self._locks.held)))

    def list_workers(self, session: Session, _: None, *, with_runs: bool) -> list[WorkerInfo]:
        """All sessions that live or own runs."""
        now = session.clock()
        rows = decode_workers(session.fetch_json("list_workers", int(with_runs)))
        workers = [row.to_worker(is_live=self._is_live(row, now)) for row in rows]
        return [worker for worker in workers if worker.is_live or worker.runs]


def _claim_unqueued(session: Session, *, request: ClaimRequest, lost: list[str], now: int) -> Claims:
    """Take over what is due and has no queue."""
    names = to_json(_names(session, request.definitions, ["", *lost]))
    orphans_max = min(request.orphans_max, request.limit)
    damaged: set[int] = set()
    while True:
        more = len(damaged) + len(request.declined)
        free = not_declined(_find_due(session, [""], names, now, request.limit + more), request.declined)
        orphans = _find_due(session, lost, names, now, orphans_max + more) if orphans_max else []
        orphans = not_declined(orphans, request.declined)
        limits = {"limit": request.limit, "orphans_max": request.orphans_max}
        picked = pick(free, orphans, now=now, skipped=damaged, **limits)
        claims = take_over(session, picked.keys, worker_id=request.worker_id, now=now) if picked.keys else []
        if claims or not picked.keys:
            return Claims(claims, picked.later_at)
        # All of them are damaged; there may be others behind them.
        damaged |= set(picked.keys)


def _is_stale(owner: Lease, now: int, stale_seconds: float) -> bool:
    """Whether the lease of an owner that is not alive ended long enough ago."""
    return not stale_seconds or owner.expires_at is None or expiry(owner.expires_at, stale_seconds) <= now


def _names(session: Session, definitions: Sequence[str], owners: list[str]) -> list[str]:
    """The definitions to look for: those of the worker or, if they are many, those among them that have runs at all."""
    names = set(definitions)
    if len(names) > DEFINITIONS_FEW:
        names &= set(decode_names(session.fetch_json("find_definitions", to_json(owners))))
    return sorted(names)


def _find_due(session: Session, owners: list[str], names: str, now: int, limit: int) -> list[WakeUp]:
    """The due runs of these owners, and the next one after them."""
    if not owners:
        return []
    streams = decode_streams(session.fetch_json("find_due", to_json(owners), names, now, limit))
    return sorted(chain.from_iterable(streams))


def expiry(now: int, lease_seconds: float) -> int:
    """When a lease that is taken now runs out."""
    return now + round(lease_seconds * MICROSECONDS)
