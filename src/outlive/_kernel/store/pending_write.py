"""Whether a write of a caller is pending: the store has it, and has not begun with it.

A caller that gives a write up cancels it. A write that was still pending never happens, and only the store knows
whether it was. A store that cannot tell says nothing, and the outcome of its writes is not known.
"""

from __future__ import annotations

from contextvars import ContextVar


class PendingWrite:
    """One write, and whether it is pending."""

    def __init__(self) -> None:
        self.is_pending = False
        """Whether the write is pending. A caller may look when it has cancelled it: then it stays as it is."""
        self._has_begun = False

    def wait(self) -> None:
        """A part of the write is pending; all of it, if nothing of it has begun."""
        self.is_pending = not self._has_begun

    def begin(self) -> None:
        """The store begins with it, unless it finds after this that the caller has cancelled it. From any thread."""
        self._has_begun, self.is_pending = True, False


PENDING_WRITE: ContextVar[PendingWrite | None] = ContextVar("outlive-store-pending-write", default=None)
"""The write that is being asked for, if its caller asks whether it is pending."""
