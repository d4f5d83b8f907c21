"""What became of a commit that was never answered: only reading can tell.

The rows of a change are compared with those that stand in their place. Nobody else writes equal ones: a row is sealed
with the nonce of its tree, and says who made it and when. A change that forgets leaves only its rows from the snapshot
on.
"""

from __future__ import annotations

from outlive._runtime.generation import name_of_generation
from outlive._store.contract import Change, Outcome, Store


async def find_outcome(store: Store, change: Change) -> tuple[Outcome, int] | None:
    """What became of a change whose commit was never answered: its outcome, or None if it was not written."""
    journal = change.journal
    if journal == 0:
        root = change.runs[0]
        run = await store.find_run(root.id)
        if run is None:
            return None
        if run.nonce != root.nonce:
            # Somebody else's; or ours, if it has gone on as a new one meanwhile.
            run = await store.find_run(name_of_generation(root.id, 1))
            if run is None or run.nonce != root.nonce:
                return Outcome.CONFLICT, 0
        journal = run.journal
    kept = [row for row in change.rows if change.forgets is None or row[0] >= change.forgets.before]
    rows = await store.read_journal(journal, after=change.after, limit=len(kept))
    if not rows:
        return None
    if change.journal == 0 and rows[0][0] > kept[0][0]:
        # It has gone on since, and has forgotten how it began. That it is there says enough.
        return Outcome.COMMITTED, journal
    return (Outcome.COMMITTED if rows == kept else Outcome.CONFLICT), journal
