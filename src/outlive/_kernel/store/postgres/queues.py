"""Claiming from queues: what has a slot goes on, and others come out of the line.

Looking locks nothing, and is all that happens when there is nothing to do. Claims of one queue come one after the
other: each has the cell of the queue locked while it counts slots and gives some. Runs and lines that others have
locked are passed over, so a claim waits for nothing but another claim of its queue, and starts that make the same line.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import asyncpg

from outlive._kernel.model.queue import QueueRecord, queue_cell, queue_in
from outlive._kernel.model.run import HELD
from outlive._kernel.store.contract import KEY_RUNS_MAX, WAITING_KEYS_MAX, Claim, Claims, QueueMeasure, WaitingKey
from outlive._kernel.store.postgres.batch import columns_of
from outlive._kernel.store.postgres.commit import Writing
from outlive._kernel.store.postgres.connection import HURRIED, Session
from outlive._kernel.store.postgres.rows import from_text, to_run, to_text
from outlive._kernel.store.postgres.take_over import lock_due, take_over
from outlive._kernel.store.tables.claiming import ClaimRequest, WakeUp, joined, not_declined, pick
from outlive._kernel.store.tables.queueing import HOLDERS_MAX, MOVED_MAX, HeldSlots, LineHead, Serving, beyond_worker

SPARE = 100
"""How many more runs are looked at than are asked for."""


async def claim_queue(session: Session, name: str, request: ClaimRequest, writing: Writing) -> Claims:
    """Take over what is due in one queue.

    Raises:
        Conflict: another process wrote between our looking and our locking; nothing was claimed.
    """
    queue, cell = to_text(name), to_text(queue_cell(name))
    names = sorted({to_text(definition) for definition in request.definitions})
    more = SPARE + len(request.declined)
    most = min(request.limit, request.orphans_max) + more if request.orphans_max else 0
    rows = await session.fetch(
        "look_at_queue",
        writing.time(),
        request.worker_id,
        names,
        queue,
        request.limit + more,
        most,
        request.stale_microseconds,
        cell,
    )
    now = rows[0]["now"]
    found = [row for row in rows if row["key"] is not None]
    free = [(row["wake_at"], row["key"]) for row in found if not row["is_orphan"] and row["slot"] == HELD]
    orphans = [(row["wake_at"], row["key"]) for row in found if row["is_orphan"]]
    outside = [row for row in found if row["slot"] != HELD]
    later = Claims([], min((row["wake_at"] for row in found if row["wake_at"] > now), default=None))
    slots_of = {row["key"]: row["slots"] for row in found}
    due_outside = [row["key"] for row in outside if row["wake_at"] <= now][:MOVED_MAX]
    free, orphans = not_declined(free, request.declined), not_declined(orphans, request.declined)
    is_paused = queue_in(rows[0]["cell"]).paused is not None
    has_due = bool(due_outside) or any(at <= now for at, _ in chain(free, orphans))
    if not has_due and (is_paused or not rows[0]["has_line"]):
        return later
    claim = QueueClaim(session, name, request, writing, names=names, now=now)
    while True:
        async with session.transaction(begin=HURRIED):
            cells = await session.fetch("lock_cells", writing.time(), [cell])
            if cells:
                return joined(later, await claim.run(cells[0]["data"], due_outside, free, orphans, slots_of))
        session.is_doubtful = False
        await session.fetch("create_cells", [cell])


class QueueClaim:
    """One claim of one queue, in a transaction that has the cell of the queue locked."""

    def __init__(
        self, session: Session, name: str, request: ClaimRequest, writing: Writing, *, names: list[str], now: int
    ) -> None:
        self._session, self._writing, self._request = session, writing, request
        self._name, self._queue, self._names, self._now = name, to_text(name), names, now

    async def run(
        self,
        data: bytes | None,
        due_outside: list[int],
        free: list[WakeUp],
        orphans: list[WakeUp],
        slots_of: dict[int, int],
    ) -> Claims:
        """Let due runs get in line, take over runs with a slot, and then the first runs in line."""
        session, record = self._session, self._request.record_of(self._name, data)
        if due_outside:
            moved = await session.fetch("move_into_line", due_outside, self._now)
            if lines := sorted({tuple(row) for row in moved}):
                await session.fetch("put_lines", *columns_of(lines, 3))
        held = await self._count_held(record)
        claims = await self._claim_held(record, held, free, orphans, slots_of)
        held = held._replace(by_worker=held.by_worker + sum(claim.run.slots for claim in claims))
        serving = Serving(self._name, record, held, limit=self._request.limit - len(claims), now_at=self._now)
        claims += await self._serve(serving)
        if serving.turns:
            keys = [to_text(key) for key in serving.turns]
            await session.fetch("set_turns", self._queue, keys, list(serving.turns.values()))
        if serving.empty:
            await self._forget_lines(serving)
        if (after := serving.data(data)) is not None:
            await session.fetch("put_cells", [to_text(queue_cell(self._name))], [after])
        return joined(Claims(claims, None), serving.rest())

    async def _count_held(self, record: QueueRecord) -> HeldSlots:
        limits, in_all, by_worker = record.limits, 0, 0
        if limits.concurrency is not None or limits.per_worker is not None:
            ((in_all, by_worker),) = await self._session.fetch(
                "count_slots", self._queue, self._request.worker_id, limits.concurrency or 0, limits.per_worker or 0
            )
        if limits.per_key is None:
            return HeldSlots(in_all, by_worker)
        rows = await self._session.fetch("count_slots_by_key", self._queue)
        return HeldSlots(in_all, by_worker, {from_text(key): count for key, count in rows})

    async def _claim_held(
        self,
        record: QueueRecord,
        held: HeldSlots,
        free: list[WakeUp],
        orphans: list[WakeUp],
        slots_of: dict[int, int],
    ) -> list[Claim]:
        request, damaged = self._request, set[int]()
        while True:
            skipped = damaged | beyond_worker(
                record.limits, held, request, free, orphans, slots_of, now_at=self._now, damaged=damaged
            )
            picked = pick(
                free, orphans, now=self._now, limit=request.limit, orphans_max=request.orphans_max, skipped=skipped
            )
            if not picked.keys:
                return []
            sides = [(free, len(picked.free), False), (orphans, len(picked.orphans), True)]
            locked = await lock_due(self._session, request, self._names, sides, now_at=self._now, skipped=skipped)
            claims = await self._take_over(locked)
            if claims or not locked:
                return claims
            damaged |= {row["key"] for row in locked}

    async def _serve(self, serving: Serving) -> list[Claim]:
        session, claims, skipped = self._session, list[Claim](), set[int]()
        while lines_wanted := serving.lines_wanted:
            passed_over = [to_text(key) for key in serving.passed_over]
            rows = await session.fetch("find_lines", self._queue, self._names, passed_over, lines_wanted)
            plan = serving.plan([(from_text(key), turn) for key, turn in rows])
            if not plan:
                serving.is_drained = True
                break
            picked = serving.pick(await self._find_heads(plan, skipped, serving.slots_max))
            rows = await session.fetch("lock_heads", picked, self._request.worker_id, self._now) if picked else []
            locked = {row["key"]: row for row in rows}
            taken = await self._take_over([locked[key] for key in picked if key in locked])
            serving.took(claim.run.journal for claim in taken)
            # Runs that others have locked are theirs in this moment; the rest is damaged, and must not stand in the
            # way.
            serving.has_more |= len(locked) < len(picked)
            skipped.update(set(picked) - {claim.run.journal for claim in taken})
            claims += taken
        return claims

    async def _find_heads(self, plan: dict[str, int], skipped: set[int], slots_max: int) -> dict[str, list[LineHead]]:
        """The first runs of each line, of all definitions together."""
        keys, counts = [to_text(key) for key in plan], list(plan.values())
        rows = await self._session.fetch("find_heads", self._queue, self._names, keys, counts, len(skipped), slots_max)
        heads: dict[str, list[LineHead]] = {}
        for text, run, slots in rows:
            key = from_text(text)
            if run not in skipped and len(heads.setdefault(key, [])) < plan[key]:
                heads[key].append(LineHead(run, slots))
        return heads

    async def _take_over(self, rows: Sequence[asyncpg.Record]) -> list[Claim]:
        return await take_over(
            self._session, rows, worker_id=self._request.worker_id, now=self._now, writing=self._writing
        )

    async def _forget_lines(self, serving: Serving) -> None:
        keys = [to_text(key) for key in sorted(serving.empty)]
        locked = await self._session.fetch("lock_lines", self._queue, keys, self._names)
        # In a statement of its own: it sees the runs of all starts that had these lines before.
        await self._session.fetch(
            "delete_lines", self._queue, [row["queue_key"] for row in locked], [row["definition"] for row in locked]
        )


async def measure_queue(session: Session, name: str, limit: int, run_id: str) -> QueueMeasure:
    """How full a queue is."""
    (found,) = await session.fetch("measure_queue", to_text(name), limit, min(limit, HOLDERS_MAX))
    holders = await session.fetch("get_runs", found["holders"]) if found["holders"] else []
    most = min(limit, WAITING_KEYS_MAX), min(limit, KEY_RUNS_MAX)
    rows = await session.fetch("find_waiting_keys", to_text(name), limit, *most)
    keys = sorted(WaitingKey(at, from_text(key), count) for at, key, count in rows)
    ((ahead,),) = await session.fetch("count_ahead", to_text(run_id), limit) if run_id else [(0,)]
    return QueueMeasure(
        in_line=found["in_line"],
        held=found["held"],
        slots=found["slots"],
        later=found["later"],
        oldest_at=keys[0].oldest_at if keys else None,
        holders=tuple(to_run(tuple(row)) for row in holders),
        keys=tuple(keys),
        ahead=ahead,
    )
