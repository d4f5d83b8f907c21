"""Where a tree stands in the memory of a worker.

    begun, or claimed and REPLAYING
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

A tree that is claimed without being in memory is replayed first, in slices, and may be discarded meanwhile. Nothing
happens to it then: inbox, pauses and the end of the session wait for its last slice, or release it unread.

A tree that leaves may still have changes without an outcome; nothing new happens to it. The worker ignores what still
arrives for one that is gone.
"""

from __future__ import annotations

from enum import Enum


class TreePhase(Enum):
    """The phases of a tree in memory."""

    REPLAYING = "replaying"
    """This worker owns it, and feeds it its journal."""
    MOVING = "moving"
    """This worker owns it, and things happen to it."""
    LEAVING = "leaving"
    """It has ended, is suspended, parked or released, and that is not durable yet."""
    SUSPENDED = "suspended"
    """It waits and has no owner; it is kept so that waking it needs no replay."""
    GONE = "gone"
    """This worker does not use it any more: it has ended, is only in the store, or another worker owns it."""

    @property
    def is_owned(self) -> bool:
        """Whether this worker owns the tree and has written nothing that ends that."""
        return self is TreePhase.MOVING or self is TreePhase.REPLAYING


FOLLOWS: dict[TreePhase, frozenset[TreePhase]] = {
    TreePhase.REPLAYING: frozenset({TreePhase.MOVING, TreePhase.GONE}),
    TreePhase.MOVING: frozenset({TreePhase.LEAVING, TreePhase.GONE}),
    TreePhase.LEAVING: frozenset({TreePhase.SUSPENDED, TreePhase.GONE}),
    TreePhase.SUSPENDED: frozenset({TreePhase.MOVING, TreePhase.GONE}),
    TreePhase.GONE: frozenset(),
}
"""Which phases may follow each."""
