"""The line of a store: the write of a caller stands in it until the store begins with it.

A caller that gives a write up cancels it. One that still stood in line never happens, and only the store knows whether
it did. A store that has no line to tell of says nothing, and the outcome of its writes is not known.
"""

from __future__ import annotations

from contextvars import ContextVar


class PlaceInLine:
    """The place of one write in it."""

    def __init__(self) -> None:
        self.stands = False
        """Whether the write is in line. A caller may look when it has cancelled it: then it stays as it is."""
        self._has_begun = False

    def join(self) -> None:
        """A part of the write is in line; all of it, if nothing of it has begun."""
        self.stands = not self._has_begun

    def leave(self) -> None:
        """The store begins with it, unless it finds after this that the caller has cancelled it. From any thread."""
        self._has_begun, self.stands = True, False


LINE: ContextVar[PlaceInLine | None] = ContextVar("outlive-store-line", default=None)
"""The place of the write that is being asked for, if its caller wants to know."""
