"""Ending a tree from outside: one that is cancelled while parked or before it began, or replaced by a new run.

The change is written like every other one, by compare-and-swap on the journal's end. Another writer that moves the tree
first wins, and a worker that still owns it finds its next seq taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import msgspec

from outlive._kernel.client.message_key import key_of_end
from outlive._kernel.client.why import is_paused
from outlive._kernel.define.middleware import RunTracer
from outlive._kernel.journal.claiming import root_after
from outlive._kernel.journal.codec import Row, creation_in, open_row, salt_of, seal
from outlive._kernel.journal.event import RunCancelled, RunFailed, RunRetried, SnapshotTaken
from outlive._kernel.journal.failure import failure_of
from outlive._kernel.journal.fold import Fold
from outlive._kernel.model import Run, RunStatus, child_id
from outlive._kernel.model.instant import instant_of
from outlive._kernel.store.contract import Change, Ended, Message, MessageKind, Outcome, Store
from outlive.errors import OutliveError
from outlive.errors.run import NotBegunError
from outlive.errors.step import UNDO_FAILED


def is_at_rest(root: Run) -> bool:
    """Whether a tree can be ended from outside: it is parked, and not just paused, so that its code cannot clean up, or
    was never claimed,
    so that there is nothing to clean up. Code that has not begun must not begin only to be stopped: a saga waits for
    the steps it has asked for and undoes them.
    """
    is_parked = root.status is RunStatus.PARKED and not (is_paused(root) and root.epoch)
    return is_parked or is_unbegun(root)


def is_unbegun(root: Run) -> bool:
    """Whether a run was never claimed."""
    return root.status is RunStatus.PENDING and root.epoch == 0 and not root.owner


def closing_change(tree: dict[int, Run], rows: Sequence[Row], *, reason: str, at: int) -> Change:
    """Cancel every open run of a tree, given by number; the root last, as it ends the journal."""
    root = tree[0]
    if root.status is RunStatus.PARKED:
        # Its code cannot undo what it has done, and that must not look like a clean end.
        is_undoing = root.reason.startswith(UNDO_FAILED)
        left = "its roll-back was not finished" if is_undoing else "it was parked, and nothing was undone"
        reason = f"{reason or 'no reason given'}; {left}: {root.reason}"
    fold = Fold(root.id)
    fold.runs = dict(tree)
    salt = salt_of(root.nonce)
    after = rows[-1][0] if rows else -1
    prior = rows[-1][2] if rows else None
    change = Change(journal=root.journal, after=after, prior=prior, rows=[], runs=[], rings=root.id)
    for number in sorted(fold.runs, reverse=True):
        if not fold.runs[number].status.is_terminal:
            event = RunCancelled(at=at, run=number, reason=reason)
            ended = fold.apply(event)
            assert ended is not None
            change.rows.append(seal(event, salt=salt, seq=after + 1 + len(change.rows)))
            change.runs.append(ended)
    if root.parent_id is not None:
        change.messages.append(end_message(root, rows, Ended(run_id=root.id, status=RunStatus.CANCELLED), at=at))
    return change


async def end_unbegun(store: Store, runs: Sequence[Run], tracer: RunTracer | None) -> list[Run]:
    """Fail runs that no worker has begun in time, and return the runs that this call ended. No code of them has run.

    Every worker may do so at once, also while another one claims them: the first change counts.
    """
    journals = await store.read_journals([run.journal for run in runs])
    changes = [_unbegun_change(run, journals[run.journal], at=store.now()) for run in runs if journals[run.journal]]
    outcomes = await store.commit(changes)
    ended = [change for change, (outcome, _) in zip(changes, outcomes, strict=True) if outcome is Outcome.COMMITTED]
    for change in ended:
        trace_ends(tracer, change, journals[change.journal])
    return [change.runs[-1] for change in ended]


def _unbegun_change(root: Run, rows: Sequence[Row], *, at: int) -> Change:
    assert root.begin_by is not None
    failure = failure_of(NotBegunError(instant_of(root.begin_by).isoformat(timespec="seconds")))
    event = RunFailed(at=at, failure=failure)
    after, _, prior, _ = rows[-1]
    change = Change(
        journal=root.journal,
        after=after,
        prior=prior,
        rows=[seal(event, salt=salt_of(root.nonce), seq=after + 1)],
        runs=[root_after(root, event)],
        rings=root.id,
    )
    if root.parent_id is not None:
        ended = Ended(run_id=root.id, status=RunStatus.FAILED, failure=failure)
        change.messages.append(end_message(root, rows, ended, at=at))
    return change


def trace_ends(tracer: RunTracer | None, change: Change, rows: Sequence[Row]) -> None:
    """A change that ends a tree from outside is durable: no worker has recorded it, so that none traces it."""
    if tracer is None:
        return
    root = change.runs[-1]
    headers: dict[str, str] = {}
    with suppress(OutliveError):  # Damaged: its runs are traced by what their rows say.
        headers = creation_in(rows[0], nonce=root.nonce, run_id=root.id).headers
    for run in change.runs:
        tracer.ended(run, headers, retried=_retried_at(rows, root))


def end_message(root: Run, rows: Sequence[Row], end: Ended, *, at: int) -> Message:
    """To the run that started this tree detached, and may wait for its end."""
    assert root.parent_id is not None
    key = key_of_end(root.id, root.nonce, retried=_retried_at(rows, root))
    return Message(run_id=root.parent_id, kind=MessageKind.ENDED, at=at, key=key, ended=end)


def _retried_at(rows: Sequence[Row], root: Run) -> int:
    """The seq of the event that last brought the run back after its end; 0 if none did."""
    try:
        for row in reversed(rows):
            event = open_row(row, salt=salt_of(root.nonce), run_id=root.id)
            if isinstance(event, RunRetried) and event.run == 0:
                return row[0]
            if isinstance(event, SnapshotTaken):
                return event.retried
    except OutliveError:
        """Damaged, and perhaps parked for that: it can be ended all the same."""
    return 0


def renamed(tree: dict[int, Run], *, name: str) -> list[Run]:
    """The rows of an ended tree under another name."""
    return [
        msgspec.structs.replace(
            run, id=child_id(name, run.number), root_id=name, parent_id=_renamed_parent(run, run.root_id, name)
        )
        for run in tree.values()
    ]


def _renamed_parent(run: Run, old: str, new: str) -> str | None:
    if run.number == 0 or run.parent_id is None:
        return run.parent_id
    return new + run.parent_id.removeprefix(old)
