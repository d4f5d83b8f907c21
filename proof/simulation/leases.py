"""The leases of a simulated process: those of the store, with simulated eyes.

In production a worker looks at the machine to see that a neighbour has died. All simulated processes share one real
process, so here the world is asked instead. Some fleets see their dead, others have to wait for the lease; and now and
then a living worker is taken for dead, which may cost that worker its session and must not cost any run its journal.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from outlive._kernel.lease.sessions import StoreLeases
from outlive._kernel.store.contract import Store, WorkerInfo


class SimulatedLeases(StoreLeases):
    """Sessions as the store has them, and processes as the world has them."""

    def __init__(
        self,
        store: Store,
        *,
        chance: random.Random,
        is_dead: Callable[[str], bool],
        sees_dead: bool,
        false_alarms: float,
        happened: Callable[[str], None],
    ) -> None:
        super().__init__(store)
        self._random = chance
        self._is_dead = is_dead
        self._sees_dead = sees_dead
        self._false_alarms = false_alarms
        self._happened = happened

    async def find_lost(self, worker_id: str) -> list[WorkerInfo]:
        """See `Leases`."""
        others = [worker for worker in await self._store.list_workers() if worker.id != worker_id and worker.is_live]
        lost = [worker for worker in others if self._sees_dead and self._is_dead(worker.id)]
        if lost:
            self._happened("death of a neighbour seen")
        if others and self._random.random() < self._false_alarms:
            wronged = self._random.choice(others)
            if not self._is_dead(wronged.id):
                self._happened("taken for dead by mistake")
                lost.append(wronged)
        return lost
