"""Retention: short runs that are deleted when they have ended some time ago, and then their blobs, by every worker.

The services are those of production; only their spans are shorter: a day would be a long simulation (`hurried`). While
faults last, at each deletion: the run has been kept for as long as its rule says, and the fleet as a whole deletes no
faster than one worker may, because the workers take turns; and no blob goes that a row of the store names. In the end:
all these runs have ended well and are gone, and so are the blobs that only they named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Any

from outlive._features.retention import blob_collector, cell_collector, pruner
from outlive._kernel.model import Run, RunStatus
from outlive._kernel.model import retention as rules
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.retention import Keep
from outlive._kernel.store.memory.deleting import references_of
from outlive._kernel.store.memory.state import MemoryState, Tree
from proof.simulation.plan import DELETES_PER_SECOND, Keeping
from proof.simulation.replacing import replaced
from proof.simulation.world import World

BRIEF = "simulated.brief"
TURN_SECONDS = 10.0
TREES_AT_ONCE = 3
ROUND_SECONDS = 15


@contextmanager
def hurried(it: Keeping | None) -> Iterator[None]:
    """Let the services of all workers do in seconds what they do in hours."""
    with ExitStack() as stack:
        if it is not None:
            for module, name, value in (
                (pruner, "TURN_SECONDS", TURN_SECONDS),
                (pruner, "WALK_SECONDS", 3.0),
                (pruner, "TREES_AT_ONCE", TREES_AT_ONCE),
                (cell_collector, "ROUND", 2 * MICROSECONDS),
                (blob_collector, "ROUND", ROUND_SECONDS * MICROSECONDS),
                (blob_collector, "BLOB_GRACE", round(it.grace_seconds * MICROSECONDS)),
            ):
                stack.enter_context(replaced(module, name, value))
        yield


def rules_of(it: Keeping | None) -> list[Keep]:
    """The rules of every worker."""
    if it is None:
        return []
    with replaced(rules, "KEEP_SECONDS_MIN", 0.0):
        return [Keep(BRIEF, succeeded=timedelta(seconds=it.kept_seconds))]


class RetentionAudit:
    """Looks at what the services of all workers delete."""

    def __init__(self, world: World, state: MemoryState, it: Keeping | None) -> None:
        self._world = world
        self._state = state
        self._it = it
        self._first_at = 0.0
        self._deleted = 0
        self._turns_lost = 0
        self._turn_until: int | None = None
        """Until when a worker has its turn; None if no worker has."""
        self.blobs: dict[str, bytes] = {}
        """Blobs that were deleted."""
        self._orphans: set[str] = set()
        """Blobs that only trees named which are gone."""

    @property
    def is_over(self) -> bool:
        """Whether there is nothing left to delete."""
        if self._it is None:
            return True
        is_gone = not any(tree.root.workflow == BRIEF for tree in self._state.trees.values())
        return is_gone and self._orphans.isdisjoint(self._state.blobs)

    def cell_changed(self, name: str, data: bytes | None) -> None:
        """A worker takes a turn, or ends it; or a cell is removed."""
        self._world.sometimes["cell removed"] += data is None
        if name != pruner.RETENTION_CELL:
            return
        now, next_at = self._world.now(), pruner.turns_in(data).next_at
        is_taken = next_at == now + round(pruner.TURN_SECONDS * MICROSECONDS)
        if is_taken and self._turn_until is not None and self._turn_until <= now:
            self._turns_lost += 1
            self._world.sometimes["turn of the pruner taken from a worker"] += 1
        self._turn_until = next_at if is_taken else None

    def trees_deleted(self, trees: list[Tree]) -> None:
        """Trees that were deleted, by a rule or by a person."""
        if self._it is None:
            return
        left = references_of(self._state.trees.values())
        self._orphans = (self._orphans | references_of(trees)) - left
        for root in (tree.root for tree in trees if tree.root.workflow == BRIEF):
            self._check_span(root, self._it.kept_seconds)
            self._check_pace()

    def _check_span(self, root: Run, seconds: float) -> None:
        assert root.finished_at is not None
        if self._world.now() - root.finished_at < seconds * MICROSECONDS:
            self._world.complain(f"run {root.id} was deleted before it had been kept for {seconds} s")

    def _check_pace(self) -> None:
        """A turn may delete a little more than fits, and then makes a pause. A worker that has lost its turn may delete
        what it was about to; so may one whose request comes late."""
        assert self._it is not None
        self._first_at = self._first_at or self._world.seconds
        self._deleted += 1
        self._world.sometimes["run deleted by its rule"] += 1
        seconds = self._world.seconds - self._first_at + self._it.jumped_seconds
        most = DELETES_PER_SECOND * seconds + 2 * TREES_AT_ONCE * (1 + self._turns_lost)
        if self._deleted > most:
            self._world.complain(f"{self._deleted} runs were deleted in {seconds:.1f} s, and at most {most:.0f} may be")

    def blobs_deleted(self, before: Mapping[str, bytes]) -> None:
        """What was there before some blobs were deleted."""
        gone = {id: data for id, data in before.items() if id not in self._state.blobs}
        for id in gone.keys() & references_of(self._state.trees.values()):
            self._world.complain(f"blob {id} was deleted, and a row names it")
        self._world.sometimes["blob deleted"] += len(gone)
        self.blobs |= gone

    def judge(self, started: Mapping[str, str], gone: Mapping[str, Run], value: Any) -> None:
        """All have ended well, and nothing is left of them but what was known of them."""
        for run_id, text in started.items():
            run = gone.get(run_id)
            if run is None:
                self._world.complain(f"run {run_id} was acknowledged, and is not among the deleted runs")
            elif run.status is not RunStatus.SUCCEEDED or run.result is None or value(run.result) != text:
                self._world.complain(f"run {run_id} was deleted, and had ended as {run.status.value}")
        for id in self._orphans & self._state.blobs.keys():
            self._world.complain(f"blob {id} is left, and no row names it")
