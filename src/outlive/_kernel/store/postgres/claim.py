"""Workers: who lives, who owns what, and who takes over.

A worker lives while its lease has not run out by the server's clock and its session was not ended. The clock only
decides who tries to claim: what fences a former owner is the next seq of the journal.
"""

from __future__ import annotations

from collections.abc import Sequence

import asyncpg

from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.store.contract import Claim, Claims, WorkerInfo
from outlive._kernel.store.postgres.commit import Writing, start_requested
from outlive._kernel.store.postgres.connection import HURRIED, Session
from outlive._kernel.store.postgres.queues import SPARE, claim_queue
from outlive._kernel.store.postgres.rows import from_text, to_text, to_worker
from outlive._kernel.store.postgres.take_over import lock_due, take_over
from outlive._kernel.store.tables.claiming import (
    SESSION_KEPT_MICROSECONDS,
    ClaimRequest,
    WakeUp,
    joined,
    not_declined,
    pick,
)
from outlive._kernel.store.tables.journal_rows import Conflict
from outlive._kernel.store.tables.queueing import sources
from outlive._kernel.store.tables.rows import to_json

CLAIM_TRIES_MAX = 3


async def claim_runs(session: Session, request: ClaimRequest, writing: Writing, *, claim_number: int) -> Claims:
    """Take over trees that are due, of one queue after the other; each is the first in another claim.

    Looking locks nothing and is all that happens when nothing is due. What is due is locked, skipping what others have
    locked, so that of many who look at once each takes something else.
    """
    rows = await _look(session, request, writing)
    claims = Claims([], None)
    for name in sources(request.queues, [from_text(queue) for queue in rows[0]["queues"]], claim_number=claim_number):
        rest = request.without(claims)
        if rest.limit <= 0:
            break
        try:
            if name:
                claims = joined(claims, await _claim_queue(session, name, rest, writing))
            else:
                claims = joined(claims, await _claim_unqueued(session, rest, writing, rows))
        except BaseException:
            # A tree that was claimed before is the worker's all the same: it must look for it.
            session.is_doubtful |= bool(claims.claims)
            raise
    return claims


async def _look(session: Session, request: ClaimRequest, writing: Writing, *, damaged: int = 0) -> list[asyncpg.Record]:
    """The rows that could be claimed; runs that users have asked for are created first."""
    names = sorted({to_text(name) for name in request.definitions})
    more = SPARE + damaged + len(request.declined)
    most = min(request.limit, request.orphans_max) + more if request.orphans_max else 0
    while True:
        rows = await session.fetch(
            "find_due", writing.time(), request.worker_id, names, request.limit + more, most, request.stale_microseconds
        )
        if not rows[0]["has_requests"]:
            return rows
        # Looked again also if there is none any more: another verb of this process may have made a run of it since, and
        # a process does not ring for itself.
        await start_requested(session, writing)


async def _claim_queue(session: Session, name: str, request: ClaimRequest, writing: Writing) -> Claims:
    for _ in range(CLAIM_TRIES_MAX):
        try:
            return await claim_queue(session, name, request, writing)
        except Conflict:
            continue  # Another process wrote between our looking and our locking.
    return Claims([], None)


async def _claim_unqueued(
    session: Session, request: ClaimRequest, writing: Writing, rows: list[asyncpg.Record] | None
) -> Claims:
    """Take over what is due and has no queue; `rows` is what the first look found."""
    damaged: set[int] = set()
    limit, orphans_max = request.limit, request.orphans_max
    names = sorted({to_text(name) for name in request.definitions})
    tries = 0
    while tries < CLAIM_TRIES_MAX:
        rows = rows or await _look(session, request, writing, damaged=len(damaged))
        now_at = rows[0]["now"]
        free = [(row["wake_at"], row["key"]) for row in rows if row["key"] is not None and not row["is_orphan"]]
        orphans = [(row["wake_at"], row["key"]) for row in rows if row["key"] is not None and row["is_orphan"]]
        rows = None
        free, orphans = not_declined(free, request.declined), not_declined(orphans, request.declined)
        picked = pick(free, orphans, now=now_at, limit=limit, orphans_max=orphans_max, skipped=damaged)
        claims: list[Claim] = []
        if picked.keys:
            sides = [(free, len(picked.free), False), (orphans, len(picked.orphans), True)]
            try:
                async with session.transaction(begin=HURRIED):
                    locked = await lock_due(session, request, names, sides, now_at=now_at, skipped=damaged)
                    claims = await take_over(session, locked, worker_id=request.worker_id, now=now_at, writing=writing)
            except Conflict:
                tries += 1
                continue  # Another process wrote between our looking and our locking.
            if locked and not claims:
                damaged |= {row["key"] for row in locked}
                continue  # They were the first in the line, and there may be others behind them.
        return Claims(claims, _next_wake_at(free, orphans, claims, request, now_at=now_at))
    return Claims([], None)


def _next_wake_at(
    free: list[WakeUp], orphans: list[WakeUp], claims: list[Claim], request: ClaimRequest, *, now_at: int
) -> int | None:
    taken = {claim.run.journal for claim in claims}
    has_orphans = sum(claim.interrupted for claim in claims) < request.orphans_max
    left = [*free, *orphans] if has_orphans else free
    # When not all that was wanted could be had, the rest of what is due is being taken by others.
    is_full = len(claims) >= request.limit
    return min((wake_at for wake_at, key in left if key not in taken and (is_full or wake_at > now_at)), default=None)


# -- Sessions ------------------------------------------------------------------------------------------------


def microseconds(seconds: float) -> int:
    """A span of time as the store counts it."""
    return round(seconds * MICROSECONDS)


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


async def redefine_worker(session: Session, worker_id: str, definitions: Sequence[str]) -> None:
    """Write what a session can run by now."""
    await session.fetch("redefine_worker", worker_id, to_json(definitions))


async def end_session(session: Session, worker_id: str, writing: Writing) -> None:
    """End a session."""
    await session.fetch("end_session", worker_id, writing.channel, writing.time())


async def list_workers(session: Session, now: int | None, *, with_runs: bool) -> list[WorkerInfo]:
    """All sessions that live or own runs."""
    workers = [to_worker(tuple(row)) for row in await session.fetch("list_workers", now, with_runs)]
    return [worker for worker in workers if worker.is_live or worker.runs]
