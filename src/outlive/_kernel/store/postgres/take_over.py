"""Making trees a worker's: they are locked, passing over trees that others have locked, and `RunClaimed` is written."""

from __future__ import annotations

from collections.abc import Sequence

import asyncpg

from outlive._kernel.journal.claiming import has_other_nonce
from outlive._kernel.journal.codec import is_sealed
from outlive._kernel.model import RunStatus
from outlive._kernel.store.contract import Claim
from outlive._kernel.store.postgres.batch import Batch
from outlive._kernel.store.postgres.commit import Writing
from outlive._kernel.store.postgres.connection import Session
from outlive._kernel.store.postgres.rows import to_run
from outlive._kernel.store.tables.claiming import ClaimRequest, WakeUp, claim_change


async def lock_due(
    session: Session,
    request: ClaimRequest,
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
                "lock_due", now_at, request.worker_id, names, keys, count, is_orphan, request.stale_microseconds
            )
    return sorted(locked, key=lambda row: (row["wake_at"], row["key"]))


async def take_over(
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
        change, claim = claim_change(root, tail, worker_id=worker_id, now=now)
        batch.add(change)
        claims.append(claim)
    if claims:
        await session.put("commit_changes", *batch.values(now=writing.time(), channel=None))
    return claims
