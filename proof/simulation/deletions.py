"""Whether what is deleted may go: judged when it is deleted, by what the store knows at that instant.

Nothing goes that is open, that ended later than its user said, or that an open run needs. What is gone does not come
back, and the judge knows it as it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from outlive._kernel.model import Run
from outlive._kernel.store.memory.state import MemoryState, Tree
from proof.simulation.world import World


class DeletionAudit:
    """Looks at every deletion."""

    def __init__(self, world: World, state: MemoryState) -> None:
        self._world = world
        self._state = state
        self.gone: dict[str, Run] = {}
        """What was deleted, as it was."""

    def begin(self, journals: Sequence[int]) -> Mapping[int, Tree]:
        """What there is before a deletion."""
        return {journal: self._state.trees[journal] for journal in journals if journal in self._state.trees}

    def end(self, before: Mapping[int, Tree], deleted: Sequence[int], *, ended_before: int) -> None:
        """What the store deleted, and whether it may go."""
        waited_for = {
            wait.name for tree in self._state.active.values() for run in tree.runs.values() for wait in run.waits
        }
        starters = {tree.root.parent_id for tree in self._state.active.values()}
        for root in (before[journal].root for journal in deleted):
            starter = self._state.runs.get(root.parent_id or "")
            reasons = {
                "it is open": not root.status.is_terminal,
                "it ended later": root.finished_at is None or root.finished_at >= ended_before,
                "an open run waits for it": root.id in waited_for,
                "an open run will send it its end": root.id in starters,
                "the run that started it is open": starter is not None
                and not self._state.trees[starter.journal].root.status.is_terminal
                and starter.created_at <= root.created_at,
            }
            for reason in (reason for reason, is_so in reasons.items() if is_so):
                self._world.complain(f"run {root.id} was deleted, and {reason}")
            self.gone[root.id] = root

    def check_new(self, root: Run) -> None:
        """A tree that is new."""
        if root.id in self.gone:
            self._world.complain(f"run {root.id} was deleted, and is started again")
