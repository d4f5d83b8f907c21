"""The audit log as people and programs see it."""

from __future__ import annotations

from datetime import datetime

import msgspec


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An action that was done, or refused, and by whom."""

    number: int
    at: datetime
    """By the clock of the store."""
    actor: str
    verb: str
    target: str
    """The object of the action: a run, a workflow, a schedule, a queue, a flow, a key."""
    reason: str
    key: str
    """The id of the API key that was used."""
    via: str
    """The way in: `http`, `cli` or `code`."""
    address: str
    is_denied: bool
    """Whether it was refused: then nothing was done."""
    hash: str
    """Over this row and the one before it."""

    def __repr__(self) -> str:
        denied = "denied " if self.is_denied else ""
        return f"<AuditEntry {self.number}: {self.actor}: {denied}{self.verb} {self.target}>"


class AuditCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a check of the log."""

    rows: int
    first: int
    """The number of the first row; 0 if there is none."""
    head: str
    """The ends of the log now. Keep this elsewhere, and give it as `since` to a later check."""
    problems: tuple[str, ...]
    pruned: int = 0
    """How many rows have gone from the beginning, as the log says."""
    pruned_at: datetime | None = None
    """When the last of them went."""
    pruned_since: int = 0
    """How many of them went after the earlier check."""
    sealed: int = 0
    """The number of the last row that is proven by a key; 0 without a key."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def __repr__(self) -> str:
        found = f"{len(self.problems)} problems" if self.problems else "whole"
        return f"<AuditCheck {found}: {self.rows} rows, head {self.head}>"
