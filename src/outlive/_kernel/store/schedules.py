"""The part of a store's contract that is about schedules.

A store keeps a schedule as some bytes, and does not know what they mean; it knows when a worker should look at it next.
A change of a schedule states the revision that it was made from, and brings the runs that it starts: both happen, or
neither does. So a tick is started once, whatever number of workers wants to start it, and none that was paused
meanwhile starts anything.

Every sentence of a docstring is checked by `outlive_conformance.suite.schedules` on every backend.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from outlive._kernel.store.audit import Action
from outlive._kernel.store.change import Change, Outcome


class ScheduleRow(msgspec.Struct, frozen=True):
    """A schedule as a store keeps it."""

    name: str
    next_at: int | None
    """When a worker should look at it; None: never."""
    revision: int
    data: bytes


class DueSchedules(msgspec.Struct, frozen=True):
    """The schedules that are due, and when the next one will be."""

    rows: list[ScheduleRow]
    now_at: int
    """The instant by the store's clock."""
    next_at: int | None
    """The earliest `next_at` that is later than now."""


class ScheduleChange(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule as it must be from now on."""

    name: str
    revision: int
    """The revision that it has, as far as the writer knows; 0: there is no such schedule."""
    next_revision: int
    """The revision that it has afterwards. Never a revision that it had before, also not before it was deleted."""
    next_at: int | None = None
    data: bytes | None
    """None deletes it."""
    starts: list[Change] = []
    """New trees; an id that is taken already is left as it is."""
    audit: Action | None = None
    """An entry for the audit log; written if and only if this change is."""


class ScheduleTable(Protocol):
    """Schedules by name."""

    async def find_due_schedules(self, *, limit: int) -> DueSchedules:
        """Schedules whose `next_at` is not later than now, the earliest first; at most `limit`."""

    async def find_schedules(self, names: Sequence[str]) -> dict[str, ScheduleRow]:
        """The schedules with these names; unknown ones are left out."""

    async def list_schedules(self, *, after: str = "", limit: int) -> list[ScheduleRow]:
        """Schedules by name ascending, those behind `after`; at most `limit`."""

    async def change_schedules(self, changes: Sequence[ScheduleChange]) -> list[Outcome]:
        """Change schedules, each of another name, and start what they start, in one transaction.

        A change of a schedule that has another revision than it says conflicts, and starts nothing; it does not touch
        the others.

        Raises:
            StoreUnavailableError: nothing was written.
            CommitUnknownError: everything or nothing was written, and only reading can tell.
        """
