"""What became of a commit that was never answered: only reading can tell.

The rows of a change are compared with those that stand in their place. Nobody else writes equal ones: a row is sealed
with the nonce of its tree, and says who made it and when.
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
    rows = await store.read_journal(journal, after=change.after, limit=len(change.rows))
    if not rows:
        return None
    return (Outcome.COMMITTED if rows == change.rows else Outcome.CONFLICT), journal
