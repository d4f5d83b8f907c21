"""Workers: who lives, who owns what, and who takes over.

A worker lives while its lease has not run out by the server's clock and its session was not ended. The clock only
decides who tries to claim: what fences a former owner is the next seq of the journal.
"""

from __future__ import annotations

from collections.abc import Sequence

import asyncpg

from outlive._journal.claiming import has_other_nonce
from outlive._journal.codec import is_sealed
from outlive._model import RunStatus
from outlive._store.contract import Claim, Claims, WorkerInfo
from outlive._store.postgres.batch import Batch
from outlive._store.postgres.commit import Writing, start_requested
from outlive._store.postgres.connection import Session
from outlive._store.postgres.rows import to_run, to_text, to_worker
from outlive._store.tables.claiming import ClaimRequest, WakeUp, claim_change, pick, wanted_of
from outlive._store.tables.journal_rows import Conflict
from outlive._store.tables.rows import to_json

SESSION_KEPT_MICROSECONDS = 24 * 3600 * 1_000_000
"""For how long an expired session is remembered: its worker may only be asleep, and come back."""
CLAIM_TRIES_MAX = 3
SPARE = 100
"""How many more runs are looked at than are wanted: others may be taking the first ones at this moment."""


async def claim_runs(session: Session, wanted: ClaimRequest, writing: Writing) -> Claims:
    """Take over trees that are due.

    Looking locks nothing and is all that happens when nothing is due. What is due is locked, skipping what others have
    locked, so that of many who look at once each takes something else.
    """
    damaged: set[int] = set()
    limit, orphans_max = wanted.limit, wanted.orphans_max
    names = sorted({to_text(name) for name in wanted.definitions})
    tries = 0
    while tries < CLAIM_TRIES_MAX:
        more = SPARE + len(damaged) + len(wanted.declined)
        most = min(limit, orphans_max) + more if orphans_max else 0
        rows = await session.fetch(
            "find_due", writing.time(), wanted.worker_id, names, limit + more, most, wanted.stale_microseconds
        )
        if rows[0]["has_requests"] and await start_requested(session, writing):
            continue
        now_at = rows[0]["now"]
        free = [(row["wake_at"], row["key"]) for row in rows if row["key"] is not None and not row["is_orphan"]]
        orphans = [(row["wake_at"], row["key"]) for row in rows if row["key"] is not None and row["is_orphan"]]
        free, orphans = wanted_of(free, wanted.declined), wanted_of(orphans, wanted.declined)
        picked = pick(free, orphans, now=now_at, limit=limit, orphans_max=orphans_max, skipped=damaged)
        claims: list[Claim] = []
        if picked.keys:
            sides = [(free, len(picked.free), False), (orphans, len(picked.orphans), True)]
            try:
                async with session.transaction():
                    locked = await _lock(session, wanted, names, sides, now_at=now_at, skipped=damaged)
                    claims = await _take_over(session, locked, worker_id=wanted.worker_id, now=now_at, writing=writing)
            except Conflict:
                tries += 1
                continue  # Another process wrote between our looking and our locking.
            if locked and not claims:
                damaged |= {row["key"] for row in locked}
                continue  # They were the first in the line, and there may be others behind them.
        return Claims(claims, _next_wake_at(free, orphans, claims, wanted, now_at=now_at))
    return Claims([], None)


async def _lock(
    session: Session,
    wanted: ClaimRequest,
    names: list[str],
    sides: list[tuple[list[WakeUp], int, bool]],
    *,
    now_at: int,
    skipped: set[int],
) -> list[asyncpg.Record]:
    """Lock so many of each side, the oldest that no other worker has locked."""
    locked: list[asyncpg.Record] = []
    for wake_ups, count, is_orphan in sides:
        if count:
            keys = [key for wake_at, key in wake_ups if wake_at <= now_at and key not in skipped]
            locked += await session.fetch(
                "lock_due", now_at, wanted.worker_id, names, keys, count, is_orphan, wanted.stale_microseconds
            )
    return sorted(locked, key=lambda row: (row["wake_at"], row["key"]))


def _next_wake_at(
    free: list[WakeUp], orphans: list[WakeUp], claims: list[Claim], wanted: ClaimRequest, *, now_at: int
) -> int | None:
    taken = {claim.run.journal for claim in claims}
    has_orphans = sum(claim.interrupted for claim in claims) < wanted.orphans_max
    left = [*free, *orphans] if has_orphans else free
    # When not all that was wanted could be had, the rest of what is due is being taken by others.
    is_full = len(claims) >= wanted.limit
    return min((wake_at for wake_at, key in left if key not in taken and (is_full or wake_at > now_at)), default=None)


async def _take_over(
    session: Session, rows: Sequence[asyncpg.Record], *, worker_id: str, now: int, writing: Writing
) -> list[Claim]:
    """Make these trees the worker's, in this order; a tree that is damaged is left out."""
    batch = Batch(())
    claims = []
    for row in rows:
        root = to_run(tuple(row))
        if root.status is RunStatus.DAMAGED or row["tail"] is None:
            continue  # It must not keep the others from being claimed.
        tail = tuple(row["tail"])
        if not is_sealed(tail, nonce=root.nonce):
            (first,) = await session.fetch("read_rows", root.journal, -1, 1)
            if has_other_nonce(root, tuple(first)):
                continue
        change, claim = claim_change(root, tail[0], worker_id=worker_id, now=now)
        batch.add(change)
        claims.append(claim)
    if claims:
        await session.put("commit_changes", *batch.values(now=writing.time(), channel=None))
    return claims


# -- Sessions ------------------------------------------------------------------------------------------------


def microseconds(seconds: float) -> int:
    """A span of time as the store counts it."""
    return round(seconds * 1_000_000)


async def register_worker(session: Session, worker: WorkerInfo, lease_seconds: float, writing: Writing) -> None:
    """Begin a session."""
    await session.fetch(
        "register_worker",
        writing.time(),
        worker.id,
        to_text(worker.name),
        to_json(worker.definitions),
        worker.started_at,
        microseconds(lease_seconds),
        SESSION_KEPT_MICROSECONDS,
        to_text(worker.process),
        to_text(worker.lease),
    )


async def retire_worker(session: Session, worker_id: str, writing: Writing) -> None:
    """End a session."""
    await session.fetch("retire_worker", worker_id, writing.channel, writing.time())


async def list_workers(session: Session, now: int | None, *, with_runs: bool) -> list[WorkerInfo]:
    """All sessions that live or own runs."""
    workers = [to_worker(tuple(row)) for row in await session.fetch("list_workers", now, with_runs)]
    return [worker for worker in workers if worker.is_live or worker.runs]
