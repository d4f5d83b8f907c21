"""The report of a checker."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Kind(enum.Enum):
    """The subject of a problem, and whether it can be made from the journal again."""

    DATABASE = "database"
    """The files of the database, or rows that hang on nothing."""
    EVENT = "event"
    """An event is damaged, missing, or cannot stand where it stands."""
    ORPHAN = "orphan"
    """Rows without a journal, or a journal without a row of its root."""
    ROW = "row"
    """A run row is not what the journal tells; `--repair` writes it again."""
    WAKE = "wake"
    """Something is there for a run, and no worker will look; `--repair` makes it due."""
    OWNER = "owner"
    """The owner of a run is not a worker that the store knows; the next worker that has its workflow takes it over."""
    BLOB = "blob"
    ITEM = "item"
    MAIL = "mail"
    STREAM = "stream"
    """Items that a run has emitted are damaged or missing."""
    CHECKPOINT = "checkpoint"
    """A row of a program that keeps its own state is damaged."""
    SCHEDULE = "schedule"
    """A schedule is damaged: it does not tick."""


REPAIRABLE = frozenset({Kind.ROW, Kind.WAKE})


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is not as it must be."""

    run_id: str
    """Empty if it is not known."""
    what: str
    seq: int | None = None
    """The journal row, where there is one to blame."""
    kind: Kind = Kind.ROW
    journal: int = 0
    """The handle that it hangs on; 0 for the database as a whole."""
    is_repaired: bool = False

    def __str__(self) -> str:
        subject = f"run {self.run_id}" if self.run_id else f"journal {self.journal}" if self.journal else "the database"
        place = "" if self.seq is None else f" at event {self.seq}"
        return f"{subject}{place}: {self.what}"
