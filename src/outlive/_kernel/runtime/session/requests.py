"""Requests to the claimer of a session: what it must look at next.

The worker and the engine write their requests here and go on at once. The claimer, which sleeps between two looks at
the store, wakes up and reads them.
"""

from __future__ import annotations

from outlive._kernel.replay.command import AwaitEnd
from outlive._kernel.runtime.tree.live import LiveTree
from outlive._kernel.runtime.wakeup import Wakeup
from outlive._kernel.store.contract import MessageRefusal


class ClaimerRequests:
    """Requests of one session."""

    def __init__(self) -> None:
        self.wakeup = Wakeup()
        self.lookups: list[tuple[LiveTree, list[AwaitEnd]]] = []
        """Trees, and the ends of other trees that they wait for."""
        self.watched: set[str] = set()
        """Runs that trees of this session watch: if one of them ends here, there is a message for such a tree."""
        self.refusals: list[tuple[LiveTree, list[MessageRefusal]]] = []
        """Trees, and the asks that they have refused."""
        self.may_lack_trees = False
        """Whether this worker may own trees in the store that are not in its memory."""
        self.may_hold_strays = False
        """Whether other workers may own trees that are in memory here."""
        self.may_lack_pauses = False
        """Whether another process has paused a workflow, or let it go on."""
        self.was_claim_full = False
        """Whether the last claim took as many trees as it could, or had no room at all, so that more may be due."""
        self.open_queues: set[str] = set()
        """Queues in which a new run may begin at once, as far as the claims of this session know; the store decides."""

    def look(self) -> None:
        """Something may be due: look now."""
        self.wakeup.ring()

    def look_for_unheld(self) -> None:
        """A tree was discarded here: see whether it is still ours in the store."""
        self.may_lack_trees = True
        self.wakeup.ring()

    def reconcile(self) -> None:
        """Compare the trees in memory with the store: claim again what is ours and not in memory, and discard what is
        in memory and no longer ours."""
        self.may_hold_strays = True
        self.look_for_unheld()

    def look_up(self, live: LiveTree, waits: list[AwaitEnd]) -> None:
        """See to it that a tree hears of the ends of other trees."""
        self.lookups.append((live, waits))
        self.wakeup.ring()

    def refuse(self, live: LiveTree, refusals: list[MessageRefusal]) -> None:
        """Give asks that a tree has refused their answers, before its inbox is read again."""
        self.refusals.append((live, refusals))
        self.wakeup.ring()

    def has_room(self) -> None:
        """The worker can take more: look now, if there was no room for everything the last time."""
        if self.was_claim_full:
            self.wakeup.ring()
