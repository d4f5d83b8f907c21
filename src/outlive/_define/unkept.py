"""A step that has had its effect and cannot say so: what it returned has no stored form.

For the journal it has failed, and nobody will ever know its result. But its saga counts on a failed step having left
nothing behind. So whoever runs it calls its undo before the failure is written down, with the result while that is at
hand (`outlive._runtime.steps.unkept`).
"""

from __future__ import annotations

from typing import Any


class UnkeptError(Exception):
    """An undoable step has returned what cannot be kept."""

    def __init__(self, cause: Exception, given: tuple[Any, ...] | None) -> None:
        super().__init__(str(cause))
        self.cause = cause
        """Why not: as what the step fails."""
        self.given = given
        """What the undo is to be called with; None if that is not at hand."""
