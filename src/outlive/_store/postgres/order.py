"""Whether changes that are written at once would come out as if they were written one after the other.

The statement writes the parts of all changes together: first all root rows, then all renames, then all births. That is
as good as one change after the other, unless one of them renames or inherits something that another one of them
touches: an id that one gives up and another one wants, a tree that ends in a later change, or mail that a later one
consumes. Such a batch is rare, and is written change by change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from outlive._model import Run
from outlive._store.contract import Change
from outlive._store.postgres.connection import Session
from outlive._store.tables.order import consumes_late

Ids = Mapping[tuple[int, int], str]
"""The ids that runs have now, by journal and number."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A change, or a start in it."""

    change: Change
    makers: tuple[Part, ...] = ()
    """The change that starts it, and so on: they are written before it, and their messages after it, in any case."""

    @property
    def births(self) -> set[str]:
        """The ids that it takes."""
        return set() if self.change.journal else {run.id for run in self.change.runs}

    @property
    def letters(self) -> set[str]:
        """The ids that it sends to."""
        return {message.run_id for message in self.change.messages}

    @property
    def is_mover(self) -> bool:
        """Whether it renames runs or inherits."""
        return bool(self.change.renames or self.change.heir_of)

    def moved_trees(self) -> set[int]:
        """The trees that it renames runs of, or inherits from."""
        return {run.journal for run in self.change.renames} | {self.change.heir_of} - {0}

    def moved_ids(self, ids: Ids) -> set[str]:
        """The ids that runs give up for it, and those that they take."""
        renames = self.change.renames
        return {run.id for run in renames} | {ids.get((run.journal, run.number), run.id) for run in renames}


async def is_order_indifferent(session: Session, changes: Sequence[Change]) -> bool:
    """Whether these changes may be written at once."""
    if consumes_late(changes):
        return False
    if not any(change.renames or change.heir_of or change.starts for change in changes):
        return True
    parts = [part for change in changes for part in _parts_of(change, ())]
    movers = [part for part in parts if part.is_mover]
    ids: Ids = {}
    if any(_has_names_beside(mover, parts) for mover in movers):
        ids = await _find_ids(session, [run for mover in movers for run in mover.change.renames])
    return all(_is_alone(mover, parts, ids) for mover in movers)


def _parts_of(change: Change, makers: tuple[Part, ...]) -> Iterator[Part]:
    part = Part(change, makers)
    yield part
    for start in change.starts:
        yield from _parts_of(start, (*makers, part))


def _has_names_beside(mover: Part, parts: Sequence[Part]) -> bool:
    """Whether another part takes an id or sends to one, so that it matters which ids are given up."""
    return any(other.births or other.letters or other.is_mover for other in parts if other is not mover)


def _is_alone(mover: Part, parts: Sequence[Part], ids: Ids) -> bool:
    """Whether no other part touches what this one moves."""
    trees, names = mover.moved_trees(), mover.moved_ids(ids)
    for other in parts:
        if other is mover:
            continue
        if other.births & names or other.moved_trees() & trees or other.moved_ids(ids) & names:
            return False
        if other not in mover.makers and (other.change.journal in trees or other.letters & names):
            return False
    return True


async def _find_ids(session: Session, runs: Sequence[Run]) -> Ids:
    """The ids that these runs have now."""
    rows = await session.fetch("find_ids", [run.journal for run in runs], [run.number for run in runs]) if runs else []
    return {(journal, number): id for journal, number, id in rows}
