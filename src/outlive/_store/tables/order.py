"""Whether changes that are written at once would come out as if they were written one after the other.

A batch writes the parts of all changes together: what is consumed is gone before anybody looks whether a tree that was
let go of has mail. That is as good as one change after the other, unless a later change of the same tree consumes mail
that was still there when the tree was let go of, and so woke it up.
"""

from __future__ import annotations

from collections.abc import Sequence

from outlive._store.contract import Change


def consumes_late(changes: Sequence[Change]) -> bool:
    """Whether a change consumes mail that was still there when an earlier one let go of the same tree."""
    let_go: set[int] = set()
    for change in changes:
        if change.consumed and change.journal in let_go:
            return True
        if change.journal and any(run.number == 0 and not run.owner for run in change.runs):
            let_go.add(change.journal)
    return False
