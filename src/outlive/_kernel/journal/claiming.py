"""How a claim is written: one event, and the root row that results from folding it.

Every store writes claims, and so does a worker that takes up what is its own. They must not differ in a single field: a
row that is not the fold of its journal is damage.
"""

from __future__ import annotations

from outlive._kernel.journal.codec import Row, is_sealed, nonce_in
from outlive._kernel.journal.event import AnyEvent, RunClaimed
from outlive._kernel.journal.fold import Fold
from outlive._kernel.model import Run
from outlive.telemetry import damaged_rows


def claim_of(root: Run, *, worker_id: str, at: int) -> tuple[RunClaimed, Run]:
    """The claim of a tree by a worker, and the root as it is then; a worker that owns it now was interrupted."""
    event = RunClaimed(
        at=at, worker=worker_id, epoch=root.epoch + 1, interrupted=bool(root.owner), begins=root.epoch == 0
    )
    return event, root_after(root, event)


def root_after(root: Run, event: AnyEvent) -> Run:
    """The root row of a tree after one more event of the root."""
    fold = Fold(root.root_id)
    fold.runs[0] = root
    fold.apply(event)
    return fold.root


def has_other_nonce(run: Run, first: Row) -> bool:
    """Whether the row of a run has another nonce than its journal, which begins with `first`: what is sealed with it
    would damage the journal."""
    own = nonce_in(first)
    if own is None or own == run.nonce or not is_sealed(first, nonce=own):
        return False
    damaged_rows.add("run", run.id, f"its nonce is {run.nonce}, and that of its journal {own}")
    return True
