"""Changes of one tree that lie in one batch become one change.

A change proves by the next seq that it may be written. That proof is worth something only for the first of several: if
another worker has taken the tree over, its claim stands where the first change would have stood, and the second one
would fit behind it. So they stand or fall together.
"""

from __future__ import annotations

from outlive._store.contract import Change


def merged(changes: list[Change]) -> tuple[list[Change], list[int]]:
    """The changes, those that build on one another as one, and where each given one went if any were merged."""
    if len({change.journal for change in changes}) == len(changes):
        return changes, []
    places: dict[int, int] = {}
    groups: list[list[Change]] = []
    where: list[int] = []
    for change in changes:
        place = places.get(change.journal) if change.journal else None
        if place is None or not _builds_on(groups[place][-1], change):
            place = places[change.journal] = len(groups)
            groups.append([])
        groups[place].append(change)
        where.append(place)
    return [group[0] if len(group) == 1 else _joined(group) for group in groups], where


def _builds_on(first: Change, second: Change) -> bool:
    """Not so if this worker has lost the tree and got it back between them."""
    return second.after == first.after + len(first.rows)


def _joined(group: list[Change]) -> Change:
    runs = {run.number: run for change in group for run in change.runs}
    return Change(
        journal=group[0].journal,
        after=group[0].after,
        rows=[row for change in group for row in change.rows],
        runs=list(runs.values()),
        renames=[run for change in group for run in change.renames],
        consumed=[message for change in group for message in change.consumed],
        blobs=[blob for change in group for blob in change.blobs],
        items=[item for change in group for item in change.items],
        starts=[start for change in group for start in change.starts],
        messages=[message for change in group for message in change.messages],
        forgets=next((change.forgets for change in reversed(group) if change.forgets is not None), None),
        is_guarded=group[0].is_guarded,
    )
