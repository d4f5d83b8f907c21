"""The trees that a worker holds in memory: those in motion, which it owns, and suspended ones, which have no owner.

A suspended tree is cached so that waking it needs no replay. It can always be rebuilt from its journal; when there are
too many, the least recently used tree is evicted. A tree that was not used for `CACHED_SECONDS_MAX` is evicted too:
another worker may have gone on with its run, or have ended it, and this worker does not learn of that.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable

from outlive._kernel.model import Run
from outlive._kernel.runtime.tree.live import LiveTree
from outlive._kernel.runtime.tree.phase import TreePhase
from outlive._kernel.store.contract import Claim
from outlive.telemetry import Counters

CACHED_SECONDS_MAX = 120.0


class LiveTrees:
    """Trees in motion by journal and by id, and a bounded cache of suspended ones."""

    def __init__(self, *, cached_max: int, counters: Counters, monotonic: Callable[[], float]) -> None:
        self._cached_max = cached_max
        self._monotonic = monotonic
        self._counters = counters
        self._active: dict[int, LiveTree] = {}
        self._begun: set[LiveTree] = set()
        """Being created: in motion as soon as that is durable."""
        self._unanswered: set[LiveTree] = set()
        """Discarded with changes that have no outcome yet: they are not claimed again before those are answered."""
        self._ids: Counter[str] = Counter()
        """How many of all these have an id: a client may start one that is in motion already, and will be refused."""
        self._cached: OrderedDict[int, tuple[LiveTree, float]] = OrderedDict()
        """Suspended trees, and since when; the oldest first."""
        self._unsaved: dict[int, bool] = {}
        """Journals of trees that have taken messages which are still in the inbox, because that is not durable, or that
        are leaving; and whether more messages came meanwhile."""

    def __len__(self) -> int:
        """How many are in motion, or about to be."""
        return len(self._active) + len(self._begun)

    def active(self) -> list[LiveTree]:
        """The trees in motion, or about to be."""
        return [*self._active.values(), *self._begun]

    def stored(self) -> list[LiveTree]:
        """The trees in motion whose creation is durable."""
        return list(self._active.values())

    def find(self, journal: int) -> LiveTree | None:
        """A tree in motion."""
        return self._active.get(journal)

    def moves(self, run_id: str) -> bool:
        """Whether a root run is in motion, or about to be."""
        return run_id in self._ids

    def is_behind(self, run: Run) -> bool:
        """Whether the tree that moves here under the id of a run is not this claim of this tree: it is an older claim
        whose conflict is not answered yet, or a new tree that will be refused."""
        if run.id not in self._ids:
            return False
        live = self._active.get(run.journal)
        if live is not None:
            return live.fold.root.epoch < run.epoch
        return not any(begun.id == run.id and begun.fold.root.nonce == run.nonce for begun in self._begun)

    def expect(self, live: LiveTree) -> None:
        """A tree is being created and will be in motion when that is durable."""
        self._begun.add(live)
        self._ids[live.id] += 1

    def add(self, journal: int, live: LiveTree) -> None:
        """A tree is in motion."""
        self._remove_id(live)
        older = self._active.get(journal)
        if older is not None and older is not live:
            # Claimed again before the committer answered its release: the older one is in motion no longer.
            self._uncount_id(older)
        self._active[journal] = live
        self._ids[live.id] += 1

    def remove(self, live: LiveTree) -> None:
        """A tree is in motion no longer."""
        self._remove_id(live)
        if self._active.get(live.journal) is live:
            del self._active[live.journal]
            self._unsaved.pop(live.journal, None)
        if live.in_flight:
            self._unanswered.add(live)
            self._ids[live.id] += 1

    def answered(self, live: LiveTree) -> None:
        """Every change of a tree that was discarded has its outcome."""
        if live in self._unanswered:
            self._unanswered.remove(live)
            self._uncount_id(live)

    def _remove_id(self, live: LiveTree) -> None:
        is_held = live in self._begun or self._active.get(live.journal) is live
        self._begun.discard(live)
        if is_held:
            self._uncount_id(live)

    def _uncount_id(self, live: LiveTree) -> None:
        self._ids[live.id] -= 1
        if not self._ids[live.id]:
            del self._ids[live.id]

    def takes_messages(self, journal: int) -> bool:
        """Whether a tree is in motion and its inbox shows only what it has not taken yet."""
        live = self._active.get(journal)
        if journal in self._unsaved or (live is not None and live.phase is not TreePhase.MOVING):
            self._unsaved[journal] = True
            return False
        return live is not None

    def inbox_taken(self, live: LiveTree) -> None:
        """A tree has taken messages; until that is durable the claimer does not read its inbox."""
        self._unsaved[live.journal] = False

    def inbox_saved(self, live: LiveTree) -> bool:
        """Note that the messages which a tree took are durable; returns whether more came meanwhile."""
        return self._unsaved.pop(live.journal, False)

    def keep(self, live: LiveTree) -> None:
        """Cache a tree that has just been suspended."""
        # It may have been claimed again, and rebuilt, before the committer answered its suspension.
        older, _ = self._cached.pop(live.journal, (None, 0.0))
        if older is not None and older is not live:
            older.discard()
        now = self._monotonic()
        self._cached[live.journal] = live, now
        while len(self._cached) > self._cached_max or self._oldest_since() < now - CACHED_SECONDS_MAX:
            _, (oldest, _) = self._cached.popitem(last=False)
            oldest.discard()
            self._counters.runs_evicted += 1

    def _oldest_since(self) -> float:
        """When the tree was suspended that is cached for longest."""
        return next(iter(self._cached.values()))[1]

    def take(self, claim: Claim) -> LiveTree | None:
        """The claimed tree, if it is cached and is just as the journal was before the claim."""
        live, _ = self._cached.pop(claim.run.journal, (None, 0.0))
        if live is not None and (live.seq, live.crc) != (claim.seq - 1, claim.prior):
            live.discard()
            return None
        return live

    def clear_cache(self) -> None:
        """Discard all suspended trees."""
        while self._cached:
            self._cached.popitem()[1][0].discard()


def is_stray(live: LiveTree, run: Run | None, *, worker_id: str) -> bool:
    """Whether a tree that moves here is not ours, by its row in the store, which was read while it moved."""
    if run is None or run.journal != live.journal or run.status.is_terminal:
        return True  # A client has ended it, and another run may have its id.
    # Without an owner it may be leaving, by a change of ours; only a later claim is a claim of another worker.
    return run.owner != worker_id and run.epoch > live.fold.root.epoch
