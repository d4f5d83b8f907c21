"""Making trees a worker's: `RunClaimed` in their journals, and their rows, in the writer's transaction."""

from __future__ import annotations

from typing import Any

from outlive._kernel.journal.claiming import has_other_nonce
from outlive._kernel.journal.codec import is_sealed
from outlive._kernel.model import RunStatus
from outlive._kernel.store.contract import Claim
from outlive._kernel.store.sqlite.batch import Batch
from outlive._kernel.store.sqlite.connection import Session
from outlive._kernel.store.sqlite.rows import decode_events, decode_runs
from outlive._kernel.store.tables.claiming import claim_change
from outlive._kernel.store.tables.rows import to_json


def take_over(session: Session, keys: list[int], *, worker_id: str, now: int) -> list[Claim]:
    """Make these trees the worker's, in this order; a tree that is damaged is left out."""
    found = decode_runs(session.fetch_json("get_runs", to_json(keys), "[]"))
    roots = {key: run for key, run in found if run.status is not RunStatus.DAMAGED}
    ((numbers, bodies),) = session.execute("find_tails", to_json(keys))
    tails = dict(decode_events(numbers, bodies))
    claims, changes = [], []
    for key in keys:
        if key not in tails or key not in roots:
            continue
        if not is_sealed(tails[key], nonce=roots[key].nonce):
            first: Any = session.fetch("read_rows", key, -1, 1)
            if has_other_nonce(roots[key], first):
                continue
        change, claim = claim_change(roots[key], tails[key], worker_id=worker_id, now=now)
        changes.append(change)
        claims.append(claim)
    batch = Batch(session)
    batch.add(changes)
    batch.write()
    return claims
