"""Changes of one tree that lie in one batch become one change.

A change proves by the next seq that it may be written. That proof is worth something only for the first of several: if
another worker has taken the tree over, its claim stands where the first change would have stood, and the second one
would fit behind it. So they stand or fall together.
"""

from __future__ import annotations

from collections.abc import Sequence

from outlive._store.contract import Change


def merged(changes: Sequence[Change]) -> tuple[list[Change], list[int]]:
    """The changes with at most one for each journal that exists, and for each given change where it went."""
    places: dict[int, int] = {}
    whole: list[Change] = []
    where: list[int] = []
    for change in changes:
        place = places.get(change.journal) if change.journal else None
        if place is None:
            place = len(whole)
            places[change.journal] = place
            whole.append(change)
        else:
            whole[place] = _joined(whole[place], change)
        where.append(place)
    return whole, where


def _joined(first: Change, second: Change) -> Change:
    assert second.after == first.after + len(first.rows), "a change of a tree builds on the one before"
    runs = {run.number: run for run in (*first.runs, *second.runs)}
    return Change(
        journal=first.journal,
        after=first.after,
        rows=first.rows + second.rows,
        runs=list(runs.values()),
        renames=first.renames + second.renames,
        consumed=first.consumed + second.consumed,
        blobs=first.blobs + second.blobs,
        items=first.items + second.items,
        starts=first.starts + second.starts,
        messages=first.messages + second.messages,
    )
