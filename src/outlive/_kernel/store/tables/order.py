"""Whether changes that are written at once come out as if they were written one after the other.

A batch writes the parts of all changes together: what is consumed is gone before the store looks whether a released
tree has inbox, renames come before new runs, and messages come last. That is as good as one change after the other,
unless

* a change reopens a tree that has ended, which is rare;
* a change consumes messages that were still there when an earlier change released the same tree, and so woke it up;
* a change renames runs or inherits messages, and another one may touch the same. A tree that ends and goes on as the
  next generation is the usual case, and a busy engine does it all the time: it matters only to others that name a run
  of this id. Every other rename is rare, and is written alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from outlive._kernel.store.contract import Change


def can_write_at_once(changes: Sequence[Change]) -> bool:
    """Whether these changes may be written together."""
    if _consumes_late(changes) or any(change.reopens for change in changes):
        return False
    movers = [change for change in all_of(changes) if change.renames or change.successor_of]
    if not movers or (len(changes) == 1 and changes[0] is movers[0] and not changes[0].starts):
        return True
    successors = [
        (place, start) for place, change in enumerate(changes) for start in change.starts if _goes_on(change, start)
    ]
    if len(successors) < len(movers):
        return False
    ids = [run.id for _, successor in successors for run in successor.renames]
    if len({*ids} - names_in(changes)) < len(ids):
        return False
    named: dict[str, set[int]] = {}
    for place, change in enumerate(changes):
        for name in names_in([change]):
            named.setdefault(_root_of(name), set()).add(place)
    return all(named[_root_of(successor.runs[0].id)] == {place} for place, successor in successors)


def _consumes_late(changes: Sequence[Change]) -> bool:
    released: set[int] = set()
    for change in changes:
        if change.consumed and change.journal in released:
            return True
        if change.journal and any(run.number == 0 and not run.owner for run in change.runs):
            released.add(change.journal)
    return False


def _goes_on(change: Change, start: Change) -> bool:
    """Whether a change ends its tree, and starts the next generation of it."""
    return (
        start.successor_of == change.journal != 0
        and all(run.journal == change.journal for run in start.renames)
        and any(run.number == 0 and run.status.is_terminal for run in change.runs)
    )


def _root_of(run_id: str) -> str:
    """The prefix of the ids of a tree and of all its generations."""
    return run_id.partition("~")[0]


def names_in(changes: Sequence[Change]) -> set[str]:
    """The ids of the runs that these changes create as roots or send messages to."""
    names: set[str] = set()
    for change in all_of(changes):
        names.update(message.run_id for message in change.messages)
        if not change.journal:
            names.update(run.id for run in change.runs)
    return names


def all_of(changes: Sequence[Change]) -> list[Change]:
    """These changes and the starts in them."""
    found = list(changes)
    for change in found:
        found += change.starts
    return found
