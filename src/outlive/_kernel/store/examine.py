"""The questions of a checker to a store: everything that lies in it, as it lies there. Not stable, as the contract
itself.

The verbs of `Store` answer callers that trust it. A checker does not: it wants to see rows that no other verb would
find or could read, and it wants the rows of a tree from one moment, because only then can they be compared with the
journal. Journals only grow, so a journal that is read later, up to the event with which it ended at that moment,
belongs to those rows.

Every sentence of a docstring is checked by `outlive_conformance.suite.examine` on every backend.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol

import msgspec

from outlive._kernel.model import Run, RunStatus
from outlive._kernel.model.run import IN_LINE
from outlive._kernel.store.change import Watch

HANDLE_MIN = -(2**63)
"""No handle is smaller, whatever happened to it."""


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """The row of a run as it lies in the store."""

    key: int
    journal: int
    number: int
    id: str
    root_id: str
    run: Run | None = None
    """The run in the row; None if the row cannot be read."""
    fault: str = ""
    """Why it cannot be read."""
    untagged: tuple[str, ...] = ()
    """Names of tags of the run by which it is not found."""
    is_unlined: bool = False
    """Whether it is in the line of its queue, and no claim would find that line."""


def row_of(run: Run, **columns: Any) -> RunRow:
    """The row of a run, as it was read."""
    if run.status is RunStatus.DAMAGED:
        return RunRow(fault=run.reason, **columns)
    return RunRow(run=run, **columns)


def fault_of_wait(key: int, name: str, *, is_stray: bool) -> str:
    """A fault of the index of waits, in words."""
    if is_stray:
        return f"run row {key} is found by waiting for {name!r}, which it does not"
    return f"run row {key} waits for {name!r}, and is not found by it"


class InboxRow(msgspec.Struct, frozen=True, kw_only=True):
    """A message that waits, without what it says."""

    id: int
    run: int
    kind: str
    key: str
    is_remembered: bool
    """Whether its key, if it has one, is among the keys that the tree has seen."""


class ItemRows(msgspec.Struct, frozen=True, kw_only=True):
    """The outcomes of items of one run, without what they say."""

    run: int
    count: int
    first: int
    last: int


class StreamRows(msgspec.Struct, frozen=True, kw_only=True):
    """A stream of one run, without its items."""

    run: int
    name: str
    position: int
    """The position of its last item, as its row says."""
    number: int
    """The number of the last line of a workflow; 0 if there is none."""
    items: int
    """How many its chunks have."""
    gaps: int
    """Chunks that do not begin where the one before them ends."""


class TreeRows(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that hangs on one handle at one moment, but for the events themselves."""

    journal: int
    runs: tuple[RunRow, ...] = ()
    """The root's row, if it is there, then those of the children."""
    tail: int = -1
    """The seq of the last event; -1 if there is none."""
    count: int = 0
    """How many events there are."""
    lasts: tuple[tuple[int, int], ...] = ()
    """Each event that is marked as the one with which the tree ended: its seq, and the mark."""
    inbox: tuple[InboxRow, ...] = ()
    items: tuple[ItemRows, ...] = ()
    streams: tuple[StreamRows, ...] = ()
    keys: tuple[str, ...] = ()
    """Keys of messages that the tree has seen."""
    answered: tuple[str, ...] = ()
    """The keys of messages that have an answer."""


class Repair(msgspec.Struct, frozen=True, kw_only=True):
    """Run rows of one tree as its journal tells them."""

    journal: int
    after: int
    """The seq of the last event that they follow from."""
    runs: tuple[tuple[int | None, Run], ...]
    """Rows that are to be written, each with its key; None for one that is not there."""
    removed: tuple[int, ...] = ()
    """Keys of rows that the journal knows nothing of."""
    wake: bool = False
    """Whether the tree is to be due at once: something is there for it, and it does not know."""


class Examiner(Protocol):
    """The eyes of a checker."""

    async def check_database(self) -> list[str]:
        """Faults that the database itself finds in its files, and rows that hang on nothing; empty if all is well."""

    async def list_journals(self, *, after: int = HANDLE_MIN, limit: int) -> list[int]:
        """Handles greater than `after`, ascending, at most `limit`: of each root row, and of everything that names a
        journal, be there a root row or not."""

    async def examine(self, journals: Sequence[int]) -> list[TreeRows]:
        """Everything that hangs on these handles, in their order, all of it from one moment.

        A row that cannot be read is given with its fault, and does not keep the caller from reading the others.
        """

    async def list_watches(self, *, after: tuple[str, str] = ("", ""), limit: int) -> list[Watch]:
        """Watches by `(run_id, watcher)` greater than `after`, ascending, at most `limit`."""

    async def list_checkpoints(self, *, after: bytes = b"", limit: int) -> list[bytes]:
        """The ids of runs that have checkpoints, greater than `after`, ascending, at most `limit`. As bytes: what
        happened to one may have made it no text any more."""

    async def list_cells(self, *, after: str | None = None, limit: int) -> list[str]:
        """The names of cells that were written, greater than `after`, ascending, at most `limit`."""

    async def repair(self, repair: Repair) -> bool:
        """Write run rows again, if the journal still ends at `after`; False if it does not, or if the id of a row is
        taken by another tree: nothing was written then.

        No event is touched. A run can be found by its tags again. Messages that wait make the tree due as `commit`
        says.
        """


class TreeBuilder:
    """Collects what a store finds of one tree."""

    def __init__(self, journal: int) -> None:
        self.journal = journal
        self.tail, self.count = -1, 0
        self.lasts: list[tuple[int, int]] = []
        self.runs: list[RunRow] = []
        self.inbox: list[InboxRow] = []
        self.items: list[ItemRows] = []
        self.streams: list[StreamRows] = []
        self.keys: list[str] = []
        self.answered: list[str] = []

    def list_tags(self) -> list[tuple[int, int, str, str]]:
        """By which tags its runs must be found: key, created_at, name and value."""
        sound = [(row.key, row.run) for row in self.runs if row.run is not None]
        return [(key, run.created_at, name, value) for key, run in sound for name, value in run.tags.items()]

    def list_lined(self) -> list[int]:
        """The keys of its runs that are in line."""
        return [row.key for row in self.runs if row.run is not None and row.run.slot == IN_LINE]

    def build(self, tags: Collection[tuple[int, str]], lined: Collection[int]) -> TreeRows:
        """All of it, given the tags that were found, as key and name, and the runs whose lines were found."""
        unlined = set(self.list_lined()).difference(lined)
        missing: dict[int, list[str]] = {}
        for key, _, name, _ in self.list_tags():
            if (key, name) not in tags:
                missing.setdefault(key, []).append(name)
        return TreeRows(
            journal=self.journal,
            runs=tuple(
                msgspec.structs.replace(row, untagged=tuple(missing.get(row.key, ())), is_unlined=row.key in unlined)
                for row in self.runs
            ),
            tail=self.tail,
            count=self.count,
            lasts=tuple(self.lasts),
            inbox=tuple(self.inbox),
            items=tuple(self.items),
            streams=tuple(self.streams),
            keys=tuple(sorted(self.keys)),
            answered=tuple(sorted(self.answered)),
        )
