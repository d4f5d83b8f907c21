"""Until when a worker may take its own lease for held.

The keeper's thread moves it forward with every renewal; the event loop looks at it before it begins anything. One
number, so that a look costs nothing and needs no lock.
"""

from __future__ import annotations


class LeaseDeadline:
    """The instant, on the clock that only goes forward, from which on the lease may be gone."""

    __slots__ = ("until",)

    def __init__(self) -> None:
        self.until = 0.0
