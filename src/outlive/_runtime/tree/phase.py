"""Where a tree stands in the memory of a worker.

    begun, or claimed and rebuilt
              |
              v       an event takes its owner away
           MOVING ------------------------------------> LEAVING
              ^ |                                        |    |
    claimed   | |  lost, refused,       that is durable, |    |  that is durable, and it has ended,
    again     | |  or never ours        and it waits     |    |  is parked or was released; or refused
              | v                                        v    v
              | GONE <-------------------------- SUSPENDED    GONE
              |           evicted, or changed        |
              +--------------------------------------+

A tree that leaves may still have changes on their way; nothing new happens to it. One that is gone is used by nobody:
what still arrives for it is dropped.
"""

from __future__ import annotations

from enum import Enum


class Phase(Enum):
    """The phases of a tree in memory."""

    MOVING = "moving"
    """This worker owns it, and things happen to it."""
    LEAVING = "leaving"
    """It has ended, is suspended, parked or released, and that is not durable yet."""
    SUSPENDED = "suspended"
    """It waits and has no owner; it is kept so that waking it needs no replay."""
    GONE = "gone"
    """It is in nobody's hands here: over, in the store, or another worker's."""


FOLLOWS: dict[Phase, frozenset[Phase]] = {
    Phase.MOVING: frozenset({Phase.LEAVING, Phase.GONE}),
    Phase.LEAVING: frozenset({Phase.SUSPENDED, Phase.GONE}),
    Phase.SUSPENDED: frozenset({Phase.MOVING, Phase.GONE}),
    Phase.GONE: frozenset(),
}
"""Which phases may follow each."""
