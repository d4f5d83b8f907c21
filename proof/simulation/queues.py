"""Queues: those that runs are in, and whether their limits hold at every instant.

What is under way is counted here: from the rows of the store after each write, where no more slots may be taken than a
queue allows, in all, by one worker and by one key; from the ledger, where no more of its runs may be at work in the
hands of their owners; and from the claims, which may not take more out of a line than its rate allows, and not leave a
run there that could have a slot. After the faults no queue may stand still: where a run waits and a slot is free, the
run is taken within a lease.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence

from outlive._kernel.model import Run, RunStatus
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.limit import SlidingWindow, TokenBucket
from outlive._kernel.model.queue import Queue
from outlive._kernel.model.run import HELD
from proof.simulation.world import World

QUEUES = {
    queue.name: queue
    for queue in (
        Queue("simulated.one", concurrency=1),
        Queue("simulated.two", concurrency=2, hold="running"),
        Queue("simulated.keyed", per_key=1),
        Queue("simulated.mine", per_worker=1, concurrency=7),
        Queue("simulated.rated", rate=TokenBucket(1, burst=2)),
        Queue("simulated.windowed", rate=SlidingWindow(2, 3)),
        Queue("simulated.heavy", concurrency=4),
    )
}
KEYS = ("", "a", "a", "b")
SLOTS = (1, 2, 3, 4)
"""How many slots runs in the heavy queue take."""
GRAIN = 1e-3
"""Tokens that rounding to microseconds may be worth."""


class Bucket:
    """How many runs may leave a line: what a `TokenBucket` promises, worked out in another way."""

    def __init__(self, bucket: TokenBucket) -> None:
        self._bucket = bucket
        self._tokens, self._at = float(bucket.burst), 0

    def tokens(self, now_at: int) -> float:
        """What there is at this instant; a clock that was set back brings nothing."""
        more = max(0, now_at - self._at) / MICROSECONDS * self._bucket.rate
        return min(float(self._bucket.burst), self._tokens + more)

    def may_be_full(self, now_at: int) -> bool:
        """Whether a claim need not find a token: not while a clock that was set back is behind the last one, either."""
        return now_at < self._at or self.tokens(now_at) < 1 + GRAIN

    def take(self, count: int, now_at: int) -> bool:
        """Take some; whether they were there."""
        # A look writes nothing, so only a claim says from which instant on the store counts.
        self._tokens, self._at = self.tokens(now_at) - count, max(self._at, now_at)
        return self._tokens > -GRAIN


class Period:
    """How many runs may leave a line: what a `SlidingWindow` promises, from every instant at which one left."""

    def __init__(self, window: SlidingWindow) -> None:
        self._limit, self._width = window.limit, round(window.seconds * MICROSECONDS)
        self._left: list[int] = []

    def _within(self, now_at: int) -> int:
        return sum(at > now_at - self._width for at in self._left)

    def may_be_full(self, now_at: int) -> bool:
        """Whether a claim need not find room: not while a clock that was set back is behind the last one, either."""
        return now_at < max(self._left, default=0) or self._within(now_at) >= self._limit

    def take(self, count: int, now_at: int) -> bool:
        """Take some; whether there was room."""
        self._left += [max(now_at, max(self._left, default=0))] * count
        return self._within(self._left[-1]) <= self._limit


class QueueAudit:
    """Counts who is under way."""

    def __init__(self, world: World, roots: Callable[[], Iterable[Run]]) -> None:
        self._world = world
        self._roots = roots
        self._still_since: dict[str, float] = {}
        self._rates: dict[str, Bucket | Period] = {}
        for name, queue in QUEUES.items():
            if isinstance(queue.rate, TokenBucket):
                self._rates[name] = Bucket(queue.rate)
            elif isinstance(queue.rate, SlidingWindow):
                self._rates[name] = Period(queue.rate)

    def check_claim(
        self,
        worker_id: str,
        definitions: Collection[str],
        taken: Sequence[Run],
        *,
        has_room: bool,
        declined: Collection[tuple[int, int]],
    ) -> None:
        """What a live worker took out of the lines, and what it left in them though it had room."""
        now_at = self._world.now()
        for name, count in Counter(run.queue for run in taken).items():
            if name in self._rates and not self._rates[name].take(count, now_at):
                self._world.complain(f"queue {name} let {count} runs go, and its rate allows fewer")
        if not has_room:
            return
        roots = list(self._roots())
        for name, queue in QUEUES.items():
            held = [run for run in roots if run.queue == name and run.slot == HELD]
            own = sum(run.owner == worker_id for run in held)
            waiting = [run for run in roots if run.queue == name and self._waits(run)]
            # A run that takes more slots than are free has those behind it wait with it.
            needed = max((run.slots for run in waiting), default=1)
            is_full = queue.concurrency is not None and _slots(held) + needed > queue.concurrency
            is_full |= queue.per_worker is not None and own >= queue.per_worker
            if is_full or (name in self._rates and self._rates[name].may_be_full(now_at)):
                continue
            keys = Counter(run.queue_key for run in held if run.queue_key)
            for run in waiting:
                if run.definition not in definitions or (run.journal, run.wake_at) in declined:
                    continue
                if queue.per_key is None or keys[run.queue_key] < queue.per_key:
                    self._world.complain(f"queue {name} has a slot for {run.id}, and a worker with room did not get it")

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
        for name, number in Counter(run.queue for run in runs).items():
            most, count = QUEUES[name].concurrency, _slots(run for run in runs if run.queue == name)
            if count > number:
                self._world.sometimes["run took several slots of a queue"] += 1
            if most is not None and count > most:
                ids = [run.id for run in runs if run.queue == name]
                self._world.complain(f"queue {name} {what} {ids}, and its limit is {most}")
        for (name, key), count in Counter((run.queue, run.queue_key) for run in runs if run.queue_key).items():
            most = QUEUES[name].per_key
            if most is not None and count > most:
                self._world.complain(f"queue {name} {what} {count} runs with the key {key}, and its limit is {most}")
        for (name, owner), count in Counter((run.queue, run.owner) for run in runs if run.owner).items():
            most = QUEUES[name].per_worker
            if most is not None and count > most:
                self._world.complain(f"queue {name} {what} {count} runs of worker {owner}, and its limit is {most}")

    def look(self, *, patience_seconds: float, workers: int, runs_active_max: int) -> None:
        """After the faults: no run waits long where a slot is free, and a worker has room for it."""
        if sum(bool(run.owner) for run in self._roots()) >= workers * runs_active_max:
            self._still_since.clear()
            return
        roots = [run for run in self._roots() if run.queue in QUEUES and not run.status.is_terminal]
        for name, queue in QUEUES.items():
            held = [run for run in roots if run.queue == name and run.slot == HELD]
            keys = {run.queue_key for run in held if run.queue_key and queue.per_key}
            waiting = [run for run in roots if run.queue == name and self._waits(run) and run.queue_key not in keys]
            used, needed = _slots(held), max((run.slots for run in waiting), default=1)
            room = min(queue.concurrency or used + needed, workers if queue.per_worker else used + needed)
            if not waiting or used + needed > room:
                self._still_since.pop(name, None)
                continue
            since = self._still_since.setdefault(name, self._world.seconds)
            if self._world.seconds - since > patience_seconds:
                self._world.complain(f"queue {name} stands still since {since:.3f} s: {waiting[0].id} could go on")

    def _waits(self, run: Run) -> bool:
        is_due = run.wake_at is not None and run.wake_at <= self._world.now()
        return run.slot != HELD and is_due and run.status is not RunStatus.PARKED


def _slots(runs: Iterable[Run]) -> int:
    """How many slots these runs take."""
    return sum(run.slots for run in runs)
