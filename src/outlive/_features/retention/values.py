"""The result of a purge, as people and programs see it."""

from __future__ import annotations

from datetime import datetime

import msgspec


class Purge(msgspec.Struct, frozen=True):
    """The runs that `engine.purge` found, and the deleted ones. Runs are counted without their children."""

    found: int = 0
    """Runs that fit and ended long enough ago."""
    deleted: int = 0
    """Runs that were deleted; 0 in a dry run."""
    oldest: datetime | None = None
    """When the first of the found runs ended."""
    newest: datetime | None = None
    """When the last of them ended."""
    counts: dict[str, int] = {}
    """How many were found of each workflow and status, as "order failed"."""
    files: tuple[str, ...] = ()
    """The archives that were written."""

    @property
    def kept(self) -> int:
        """How many were found and stay for now: an open run needs them, or they could not be archived."""
        return self.found - self.deleted

    def __repr__(self) -> str:
        return f"<Purge: {self.found} found, {self.deleted} deleted>"
