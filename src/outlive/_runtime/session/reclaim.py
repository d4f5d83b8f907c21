"""Taking up a tree again that is ours in the store and nowhere in memory: a claim like any other.

It happens after a claim whose answer was lost, and after a tree was given up because the store took a transaction of it
away. What began under the old claim may still be running on a thread. So the epoch rises: whoever is shown two epochs
by two attempts of a step knows which of them is the later one.

If the claim whose answer was lost took an orphan over, the tree is one still: nobody has asked whether it may go on.
"""

from __future__ import annotations

from outlive._journal.claiming import root_after
from outlive._journal.codec import Row, open_row, salt_of, seal
from outlive._journal.event import RunClaimed
from outlive._model import Run
from outlive._store.contract import Change, Claim
from outlive.errors import OutliveError


def reclaiming(run: Run, rows: list[Row], *, worker_id: str, at: int) -> tuple[Change, Claim]:
    """The change that claims a tree with this journal, and what the claim is once it has committed."""
    # Nobody was interrupted by the run itself: this does not count towards its quarantine.
    event = RunClaimed(at=at, worker=worker_id, epoch=run.epoch + 1)
    root = root_after(run, event)
    seq = rows[-1][0] + 1
    row = seal(event, salt=salt_of(run.nonce), seq=seq)
    claim = Claim(root, seq, interrupted=_was_orphan(run, rows))
    return Change(journal=run.journal, after=seq - 1, rows=[row], runs=[root]), claim


def _was_orphan(run: Run, rows: list[Row]) -> bool:
    """Whether the tree was taken over from a lost worker and has said nothing since: nobody may have judged that."""
    try:
        for row in reversed(rows):
            event = open_row(row, salt=salt_of(run.nonce), run_id=run.id)
            if not isinstance(event, RunClaimed):
                return False
            if event.interrupted:
                return True
    except OutliveError:
        """Damaged: whoever rebuilds it will say so."""
    return False
