"""What the claimer of a session is to look at next.

The worker and the engine write their requests here and go on at once. The claimer, which sleeps between two looks at
the store, wakes up and reads them.
"""

from __future__ import annotations

from outlive._runtime.tree.live import LiveTree
from outlive._runtime.wakeup import Wakeup


class ClaimRequests:
    """Requests of one session."""

    def __init__(self) -> None:
        self.wakeup = Wakeup()
        self.lookups: list[tuple[LiveTree, list[str]]] = []
        """Trees, and the runs that they started detached and that may not tell them of their end."""
        self.is_unsure = False
        """Whether the store may give this worker trees that are nowhere in its memory."""
        self.is_suspicious = False
        """Whether others may own what is in memory here."""
        self.is_hungry = False
        """Whether the last look ended for want of room."""

    def look(self) -> None:
        """Something may be due: look now."""
        self.wakeup.ring()

    def look_for_unheld(self) -> None:
        """A tree was thrown away here: see whether the store agrees that it is not ours."""
        self.is_unsure = True
        self.wakeup.ring()

    def reconcile(self) -> None:
        """Compare what is in memory here with what the store says is ours: what is ours and nowhere here is claimed
        again, and what is here and no longer ours is discarded."""
        self.is_suspicious = True
        self.look_for_unheld()

    def look_up(self, live: LiveTree, run_ids: list[str]) -> None:
        """See whether runs that a tree started detached will tell it of their end."""
        self.lookups.append((live, run_ids))
        self.wakeup.ring()

    def has_room(self) -> None:
        """The worker can take more: look now, if there was no room for everything the last time."""
        if self.is_hungry:
            self.wakeup.ring()
