"""Whether changes that are written at once would come out as if they were written one after the other.

The statement writes the parts of all changes together: first all root rows, then all renames, then all births. That is
as good as one change after the other, unless one of them renames or inherits something that another one of them
touches: an id that one gives up and another one wants, a tree that ends in a later change, or mail that a later one
consumes. Such a batch is rare, and is written change by change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from outlive._model import Run
from outlive._store.contract import Change
from outlive._store.postgres.batch import all_of
from outlive._store.postgres.connection import Session


async def is_order_indifferent(session: Session, changes: Sequence[Change]) -> bool:
    """Whether these changes may be written at once."""
    if len(changes) == 1:
        return True
    if _consumes_late(changes):
        return False
    parts = [all_of([change]) for change in changes]
    if not any(part.renames or part.heir_of for each in parts for part in each):
        return True
    ids = await _find_ids(session, [run for each in parts for part in each for run in part.renames])
    users: dict[object, set[int]] = {}
    moved: set[object] = set()
    for place, each in enumerate(parts):
        mine = _moved(each, ids)
        moved |= mine
        for name in mine | _touched(each):
            users.setdefault(name, set()).add(place)
    return all(len(users[name]) == 1 for name in moved)


def _consumes_late(changes: Sequence[Change]) -> bool:
    """Whether a change consumes mail that was still there when an earlier one let go of the same tree."""
    let_go: set[int] = set()
    for change in changes:
        if change.consumed and change.journal in let_go:
            return True
        if change.journal and any(run.number == 0 and not run.owner for run in change.runs):
            let_go.add(change.journal)
    return False


async def _find_ids(session: Session, runs: Sequence[Run]) -> dict[tuple[int, int], str]:
    """The ids that these runs have now."""
    rows = await session.fetch("find_ids", [run.journal for run in runs], [run.number for run in runs]) if runs else []
    return {(journal, number): id for journal, number, id in rows}


def _touched(parts: Sequence[Change]) -> set[object]:
    """The trees that a change writes to, and the ids that it takes and sends to."""
    ids: set[object] = {run.id for part in parts if not part.journal for run in part.runs}
    ids |= {message.run_id for part in parts for message in part.messages}
    return ids | {part.journal for part in parts if part.journal}


def _moved(parts: Sequence[Change], ids: Mapping[tuple[int, int], str]) -> set[object]:
    """The trees that are renamed or inherited from, the ids that their runs give up, and those that they take."""
    found: set[object] = {part.heir_of for part in parts if part.heir_of}
    for part in parts:
        for run in part.renames:
            found |= {run.journal, run.id, ids.get((run.journal, run.number), run.id)}
    return found
