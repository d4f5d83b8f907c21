"""Two halves: while a server writes one batch, the answers to the other are worked on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from outlive._kernel.runtime.commit.committer import BATCH_MIN, Committer
from outlive._kernel.store.contract import Change, Outcome
from outlive._kernel.store.memory import MemoryStore
from outlive.telemetry import Counters
from outlive.testing.clock import ManualClock
from outlive_conformance.suite.builders import begin, stepped


class Noting(MemoryStore):
    """Says when it is asked to commit, takes a few turns, and may refuse a tree."""

    def __init__(self) -> None:
        super().__init__(clock=ManualClock())
        self.notes: list[str] = []
        self.refused = 0

    async def commit(self, changes: Sequence[Change]) -> list[tuple[Outcome, int]]:
        """See `Store`."""
        self.notes.append(f"batch of {len(changes)}")
        for _ in range(20):
            await asyncio.sleep(0)
        if self.refused:
            return [
                (Outcome.CONFLICT if change.journal == self.refused else Outcome.COMMITTED, change.journal)
                for change in changes
            ]
        return await super().commit(changes)


def new_committer(store: Noting) -> Committer:
    """One that overlaps."""
    return Committer(store, counters=Counters(), batch_max=1000, overlaps=True)


async def test_outcomes_are_answered_while_the_next_batch_is_with_the_store() -> None:
    """Half of what moves is written while the other half is worked on."""
    store = Noting()
    trees = [await begin(store, f"run-{number}") for number in range(2 * BATCH_MIN)]
    store.notes.clear()
    committer = new_committer(store)

    for tree in trees:
        committer.submit(tree.change(stepped(store)), lambda outcome, journal: store.notes.append("answered"))
    assert await committer.drain(outage_seconds_max=5)

    half = [f"batch of {BATCH_MIN}"]
    assert store.notes == half * 2 + ["answered"] * 2 * BATCH_MIN


async def test_a_conflict_is_answered_before_anything_else_is_written() -> None:
    """A later change of a tree that was lost to another worker never reaches the store, where it could fit behind the
    new owner."""
    store = Noting()
    trees = [await begin(store, f"run-{number}") for number in range(2 * BATCH_MIN)]
    store.notes.clear()
    committer = new_committer(store)
    outcomes: list[Outcome] = []
    lost = trees[0]
    store.refused = lost.journal

    for tree in trees:
        committer.submit(tree.change(stepped(store)), lambda outcome, journal: outcomes.append(outcome))
    lost.seq += 1
    committer.submit(lost.change(stepped(store)), lambda outcome, journal: outcomes.append(outcome))
    assert await committer.drain(outage_seconds_max=5)

    assert store.notes == [f"batch of {BATCH_MIN + 1}", f"batch of {BATCH_MIN - 1}"]
    assert outcomes.count(Outcome.CONFLICT) == 2
    assert len(outcomes) == 2 * BATCH_MIN + 1
