"""Workers: who lives, who owns what, and who takes over.

A worker lives while its lease has not run out by the store's clock and, if it holds a lock (`lock`), while the
kernel says that it still does.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from outlive._journal.codec import salt_of, seal
from outlive._journal.event import RunClaimed
from outlive._journal.fold import Fold
from outlive._model import Run
from outlive._store.contract import Change, Claim, Claims, WorkerInfo
from outlive._store.sqlite.batch import Batch
from outlive._store.sqlite.connection import Session
from outlive._store.sqlite.lock import WorkerLocks
from outlive._store.sqlite.rows import (
    Lease,
    WorkerRow,
    decode_leases,
    decode_pairs,
    decode_sound_runs,
    decode_streams,
    decode_workers,
)
from outlive._store.sqlite.writer import WriteVerb
from outlive._store.tables.rows import to_json

SESSION_KEPT_MICROSECONDS = 24 * 3600 * 1_000_000
"""For how long an expired session is remembered: its worker may only be asleep, and come back."""

Claiming = tuple[str, Sequence[str], int]
"""Worker, definitions, and how many runs to take at most."""


class Workers:
    """The verbs that know the locks."""

    def __init__(self, locks: WorkerLocks) -> None:
        self._locks = locks
        self.claim_runs = WriteVerb(self._claim_runs)
        self.register = WriteVerb(self._register)
        self.retire = WriteVerb(self._retire)
        self.forget_locks = WriteVerb(self._forget_locks)

    # -- Claiming ------------------------------------------------------------------------------------------

    def _claim_runs(self, session: Session, claimings: list[Claiming], *, careful: bool) -> list[Claims]:
        del careful  # Nobody else writes in this transaction, and everything is read in it.
        return [self._claim_some(session, *claiming) for claiming in claimings]

    def _claim_some(self, session: Session, worker_id: str, definitions: Sequence[str], limit: int) -> Claims:
        now = session.clock()
        owners = decode_leases(session.fetch_json("find_owners", worker_id))
        dead = {owner.id for owner in owners if not self._is_live(owner, now)}
        if worker_id in dead:
            return Claims([], None)
        owned_by, names = to_json(["", *dead]), to_json(sorted(set(definitions)))
        spare = 0
        while True:
            found = sorted(
                chain.from_iterable(decode_streams(session.fetch_json("find_due", owned_by, names, now, limit + spare)))
            )
            due = [key for wake_at, key in found if wake_at <= now][spare : spare + limit]
            claims = take_over(session, due, worker_id=worker_id, now=now) if due else []
            if claims or len(due) < limit or not limit:
                later = found[spare + len(due) :]
                return Claims(claims, later[0][0] if later else None)
            # All of them are damaged; there may be others behind them.
            spare += limit

    def _is_live(self, worker: Lease | WorkerRow, now: int) -> bool:
        if worker.expires_at is None or worker.expires_at <= now or worker.is_retired:
            return False
        # A lock in a file that is not ours tells us nothing.
        if worker.lock_file is None or worker.lock_file != self._locks.inode:
            return True
        return self._locks.is_held(worker.id)

    # -- Sessions ------------------------------------------------------------------------------------------

    def _register(self, session: Session, hirings: list[tuple[WorkerInfo, float]], *, careful: bool) -> list[None]:
        del careful
        now = session.clock()
        for worker, lease_seconds in hirings:
            session.execute(
                "register_worker",
                worker.id,
                worker.name,
                to_json(worker.definitions),
                worker.started_at,
                expiry(now, lease_seconds),
                self._locks.take(worker.id),
            )
        session.execute("prune_workers", now - SESSION_KEPT_MICROSECONDS)
        return [None] * len(hirings)

    def _retire(self, session: Session, worker_ids: list[str], *, careful: bool) -> list[None]:
        del careful
        for worker_id in worker_ids:
            session.execute("retire_worker", worker_id)
            self._locks.drop(worker_id)
        return [None] * len(worker_ids)

    def _forget_locks(self, session: Session, calls: list[None], *, careful: bool) -> list[None]:
        """Before the locks go with a store that is closed: its sessions live as long as their leases, as promised."""
        del careful
        session.execute("forget_locks", to_json(sorted(self._locks.held)))
        return calls

    def list_workers(self, session: Session, _: None) -> list[WorkerInfo]:
        """All sessions that live or own runs."""
        now = session.clock()
        rows = decode_workers(session.fetch_json("list_workers"))
        workers = [row.to_worker(is_live=self._is_live(row, now)) for row in rows]
        return [worker for worker in workers if worker.is_live or worker.runs]


def expiry(now: int, lease_seconds: float) -> int:
    """When a lease that is taken now runs out."""
    return now + round(lease_seconds * 1_000_000)


def take_over(session: Session, keys: list[int], *, worker_id: str, now: int) -> list[Claim]:
    """Make these trees the worker's, in this order; a tree that is damaged is left out."""
    roots = dict(decode_sound_runs(session.fetch_json("get_runs", to_json(keys), "[]")))
    tails = dict(decode_pairs(session.fetch_json("find_tails", to_json(keys))))
    claims, changes = [], []
    for key in keys:
        if key not in tails or key not in roots:
            continue
        seq = tails[key] + 1
        event, run = _claim(roots[key], worker_id=worker_id, now=now)
        rows = [seal(event, salt=salt_of(run.nonce), seq=seq)]
        changes.append(Change(journal=key, after=seq - 1, rows=rows, runs=[run]))
        claims.append(Claim(run, seq))
    batch = Batch(session)
    batch.add(changes)
    batch.write()
    return claims


def _claim(root: Run, *, worker_id: str, now: int) -> tuple[RunClaimed, Run]:
    """The event of the claim, and the root row as everybody folds it."""
    event = RunClaimed(at=now, worker=worker_id, epoch=root.epoch + 1, interrupted=bool(root.owner))
    fold = Fold(root.root_id)
    fold.runs[0] = root
    fold.apply(event)
    return event, fold.root
