"""Queues: those that runs are in, and whether their limits hold at every instant.

What is under way is counted here: from the rows of the store after each write, where no more slots may be taken than a
queue allows, and from the ledger, where no more of its runs may be at work in the hands of their owners. After the
faults no queue may stand still: where a run waits and a slot is free, the run is taken within a lease.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from outlive._model import Run, RunStatus
from outlive._model.limit import TokenBucket
from outlive._model.queue import Queue
from outlive._model.run import HELD
from proof.simulation.world import World

QUEUES = {
    queue.name: queue
    for queue in (
        Queue("simulated.one", concurrency=1),
        Queue("simulated.two", concurrency=2, hold="running"),
        Queue("simulated.keyed", per_key=1),
        Queue("simulated.mine", per_worker=1, concurrency=7),
        Queue("simulated.rated", rate=TokenBucket(1, burst=2)),
    )
}
KEYS = ("", "a", "a", "b")


class QueueAudit:
    """Counts who is under way."""

    def __init__(self, world: World, roots: Callable[[], Iterable[Run]]) -> None:
        self._world = world
        self._roots = roots
        self._still_since: dict[str, float] = {}

    def check(self) -> None:
        """The slots that are taken, after a write."""
        queued = [run for run in self._roots() if run.queue in QUEUES]
        held = [run for run in queued if run.slot == HELD]
        if held:
            self._count("has given slots to", held)
        if held and any(self._waits(run) for run in queued):
            self._world.sometimes["run waited in a queue"] += 1

    def check_work(self, at_work: Iterable[Run]) -> None:
        """The runs that have a step under way in the process that owns them."""
        self._world.sometimes["step of a run in a queue"] += 1
        self._count("has at work", [run for run in at_work if run.queue in QUEUES])

    def _count(self, what: str, runs: list[Run]) -> None:
        for name, count in Counter(run.queue for run in runs).items():
            most = QUEUES[name].concurrency
            if most is not None and count > most:
                ids = [run.id for run in runs if run.queue == name]
                self._world.complain(f"queue {name} {what} {ids}, and its limit is {most}")
        for (name, key), count in Counter((run.queue, run.queue_key) for run in runs if run.queue_key).items():
            most = QUEUES[name].per_key
            if most is not None and count > most:
                self._world.complain(f"queue {name} {what} {count} runs with the key {key}, and its limit is {most}")

    def look(self, *, patience_seconds: float, workers: int) -> None:
        """After the faults: no run waits long where a slot is free."""
        roots = [run for run in self._roots() if run.queue in QUEUES and not run.status.is_terminal]
        for name, queue in QUEUES.items():
            held = [run for run in roots if run.queue == name and run.slot == HELD]
            keys = {run.queue_key for run in held if run.queue_key and queue.per_key}
            waiting = [run for run in roots if run.queue == name and self._waits(run) and run.queue_key not in keys]
            room = min(queue.concurrency or len(held) + 1, workers if queue.per_worker else len(held) + 1)
            if not waiting or len(held) >= room:
                self._still_since.pop(name, None)
                continue
            since = self._still_since.setdefault(name, self._world.seconds)
            if self._world.seconds - since > patience_seconds:
                self._world.complain(f"queue {name} stands still since {since:.3f} s: {waiting[0].id} could go on")

    def _waits(self, run: Run) -> bool:
        is_due = run.wake_at is not None and run.wake_at <= self._world.now()
        return run.slot != HELD and is_due and run.status is not RunStatus.PARKED
