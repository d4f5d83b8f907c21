"""Claiming from queues, in the writer's transaction: what has a slot goes on, and others come out of the line."""

from __future__ import annotations

from itertools import chain

import msgspec

from outlive._kernel.model.queue import QueueRecord, queue_cell
from outlive._kernel.model.run import HELD
from outlive._kernel.store.contract import KEY_RUNS_MAX, WAITING_KEYS_MAX, Claim, Claims, QueueMeasure, WaitingKey
from outlive._kernel.store.sqlite.cells import read_cell
from outlive._kernel.store.sqlite.connection import Session
from outlive._kernel.store.sqlite.rows import decode_runs
from outlive._kernel.store.sqlite.take_over import take_over
from outlive._kernel.store.tables.claiming import ClaimRequest, WakeUp, joined, not_declined, pick
from outlive._kernel.store.tables.queueing import HOLDERS_MAX, MOVED_MAX, HeldSlots, LineHead, Serving, beyond_worker
from outlive._kernel.store.tables.rows import to_json

_decode_due = msgspec.json.Decoder(list[list[tuple[int, int, int, int]]]).decode
_decode_lines = msgspec.json.Decoder(list[list[tuple[str, float]]]).decode
_decode_heads = msgspec.json.Decoder(list[list[tuple[str, int, int, int]]]).decode
_decode_counts = msgspec.json.Decoder(list[tuple[str, int]]).decode
_decode_names = msgspec.json.Decoder(list[str]).decode
_decode_keys = msgspec.json.Decoder(list[WaitingKey]).decode


def find_queues(session: Session, owners: list[str]) -> list[str]:
    """The queues in which these owners, or lines, have something."""
    return _decode_names(session.fetch_json("find_queues", to_json(owners)))


def claim_queue(session: Session, *, name: str, request: ClaimRequest, lost: list[str], now: int) -> Claims:
    """Take over what is due in one queue."""
    names = to_json(sorted(set(request.definitions)))
    cell = read_cell(session, queue_cell(name))
    record = request.record_of(name, cell)
    claims, later_at, held = _claim_held(session, name, request, lost, record, now=now)
    serving = Serving(name, record, held, limit=request.limit - len(claims), now_at=now)
    skipped: set[int] = set()
    while lines_wanted := serving.lines_wanted:
        passed_over = to_json(serving.passed_over)
        found = _decode_lines(session.fetch_json("find_lines", name, names, passed_over, lines_wanted))
        plan = serving.plan(sorted(chain.from_iterable(found), key=lambda line: line[1]))
        if not plan:
            serving.is_drained = True
            break
        picked = serving.pick(_find_heads(session, name, names, plan, skipped, serving.slots_max))
        taken = take_over(session, picked, worker_id=request.worker_id, now=now) if picked else []
        serving.took(claim.run.journal for claim in taken)
        # The others are damaged, and must not stand in the way.
        skipped.update(set(picked) - {claim.run.journal for claim in taken})
        claims += taken
    if serving.turns:
        session.execute("set_turns", name, to_json(list(serving.turns.items())))
    if serving.empty:
        session.execute("delete_lines", name, to_json(sorted(serving.empty)), names)
    if (data := serving.data(cell)) is not None:
        session.execute("put_cell", queue_cell(name), data)
    return joined(Claims(claims, later_at), serving.rest())


def _claim_held(
    session: Session,
    name: str,
    request: ClaimRequest,
    lost: list[str],
    record: QueueRecord,
    *,
    now: int,
) -> tuple[list[Claim], int | None, HeldSlots]:
    """Take over what has a slot and is due, and let those get in line that have none. Also the next wake-up, and the
    slots that are held."""
    names, damaged = to_json(sorted(set(request.definitions))), set[int]()
    limit, orphans_max, more = request.limit, request.orphans_max, len(request.declined)
    slots_of: dict[int, int] = {}
    free, moved = _find_due(session, name, names, [""], limit + more, now, slots_of)
    if moved:
        session.execute("move_into_line", to_json(moved))
        session.execute("put_lines", to_json(moved))
    orphans, _ = _find_due(session, name, names, lost if orphans_max else [], orphans_max + more, now, slots_of)
    held = _count_held(session, name, request.worker_id, record)
    free, orphans = not_declined(free, request.declined), not_declined(orphans, request.declined)
    later_at = min((at for at, _ in chain(free, orphans) if at > now), default=None)
    while True:
        beyond = beyond_worker(record.limits, held, request, free, orphans, slots_of, now_at=now, damaged=damaged)
        picked = pick(free, orphans, now=now, limit=limit, orphans_max=orphans_max, skipped=damaged | beyond)
        claims = take_over(session, picked.keys, worker_id=request.worker_id, now=now) if picked.keys else []
        if claims or not picked.keys:
            by_worker = held.by_worker + sum(claim.run.slots for claim in claims)
            return claims, later_at, held._replace(by_worker=by_worker)
        damaged |= set(picked.keys)


def _find_due(
    session: Session, name: str, names: str, owners: list[str], limit: int, now: int, slots_of: dict[int, int]
) -> tuple[list[WakeUp], list[int]]:
    """The runs of these owners in a queue that have a slot or a wake-up to come; and the keys of the runs that are due
    without a slot. How many slots each takes is put into `slots_of`."""
    if not owners:
        return [], []
    found = _decode_due(session.fetch_json("find_queued_due", to_json(owners), names, now, limit, name))
    due = sorted(chain.from_iterable(found))
    slots_of.update((key, slots) for _, key, _, slots in due)
    moved = [key for wake_at, key, slot, _ in due if slot != HELD and wake_at <= now]
    return [(wake_at, key) for wake_at, key, slot, _ in due if slot == HELD or wake_at > now], moved[:MOVED_MAX]


def _count_held(session: Session, name: str, worker_id: str, record: QueueRecord) -> HeldSlots:
    limits = record.limits
    in_all = by_worker = 0
    if limits.concurrency is not None or limits.per_worker is not None:
        counted = session.fetch("count_slots", name, worker_id, limits.concurrency or 0, limits.per_worker or 0)
        assert counted is not None
        in_all, by_worker = counted
    if limits.per_key is None:
        return HeldSlots(in_all, by_worker)
    return HeldSlots(in_all, by_worker, dict(_decode_counts(session.fetch_json("count_slots_by_key", name))))


def _find_heads(
    session: Session, name: str, names: str, plan: dict[str, int], skipped: set[int], slots_max: int
) -> dict[str, list[LineHead]]:
    """The first runs of each line, of all definitions together."""
    most = max(plan.values()) + len(skipped)
    found = _decode_heads(session.fetch_json("find_heads", name, names, to_json(list(plan)), most, slots_max))
    heads: dict[str, list[LineHead]] = {}
    for key, _, run, slots in sorted(chain.from_iterable(found), key=lambda head: head[1:]):
        if run not in skipped and len(heads.setdefault(key, [])) < plan[key]:
            heads[key].append(LineHead(run, slots))
    return heads


def measure_queue(session: Session, question: tuple[str, int, str]) -> QueueMeasure:
    """How full a queue is."""
    name, limit, run_id = question
    with session.snapshot():
        found = session.fetch("measure_queue", name, limit, min(limit, HOLDERS_MAX))
        assert found is not None
        in_line, held, slots, later, held_by = found
        runs = decode_runs(session.fetch_json("get_runs", str(held_by), "[]"))
        most = min(limit, WAITING_KEYS_MAX), min(limit, KEY_RUNS_MAX)
        keys = sorted(_decode_keys(session.fetch_json("find_waiting_keys", name, limit, *most)))
        ((ahead,),) = session.execute("count_ahead", run_id, limit) if run_id else ((0,),)
    return QueueMeasure(
        in_line=int(in_line or 0),
        held=int(held or 0),
        slots=int(slots or 0),
        later=int(later or 0),
        oldest_at=keys[0].oldest_at if keys else None,
        holders=tuple(run for _, run in runs),
        keys=tuple(keys),
        ahead=int(ahead or 0),
    )
