"""The order of a queue: the arithmetic of one claim, the same in every store.

Each key of a queue has a line of runs, and a *turn*: a number that rises by one for each run that is taken from its
line (by less for a key with a weight). The line with the lowest turn is next. The cell of the queue keeps the turn
that was served last: a key that comes back after a while goes on from there, and has neither saved up turns nor lost
any (start-time fair queueing).

A claim plans as if every line were long, fetches so many heads of each line at once, and corrects the plan where a line
had fewer. A line that was found empty when its turn had come can be forgotten: no later turn is lower than its own.

A run may take several slots, and raises the turn of its line by as many. When it is the next one and the free slots are
too few for it, nothing else is taken until they are enough, and the cell names its line, which no line that is
made later overtakes: so small runs cannot starve it. A run that takes more slots than the limits ever allow is passed
over; it stays in line until a person raises them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple

import msgspec

from outlive._kernel.model.queue import SLOTS_MAX, QueueLimits, QueueRecord, queue_data, queue_in
from outlive._kernel.store.contract import Claims
from outlive._kernel.store.tables.claiming import ClaimRequest, WakeUp

PLAN_MIN = 32
"""Lines that are looked at in one round at least: many may be empty."""
ROUNDS_MAX = 8
"""Rounds of one claim; then the rest is left to the next claim."""
HOLDERS_MAX = 100
"""Holders of slots that are listed at most."""
BEFORE_ALL = -1.0
"""Lower than every turn."""
MOVED_MAX = 1_000
"""Runs that one claim moves into the line at most."""


class HeldSlots(NamedTuple):
    """The slots of a queue that are held, as far as its limits ask for them."""

    in_all: int = 0
    by_worker: int = 0
    """By the worker that claims."""
    by_key: Mapping[str, int] = {}
    """The runs under way by key, however many slots they take."""


class LineHead(NamedTuple):
    """A run at the head of its line."""

    run: int
    """Its key in the store."""
    slots: int
    """How many slots it takes."""


def beyond_worker(
    limits: QueueLimits,
    held: HeldSlots,
    request: ClaimRequest,
    free: Sequence[WakeUp],
    orphans: Sequence[WakeUp],
    slots_of: Mapping[int, int],
    *,
    now_at: int,
    damaged: Collection[int],
) -> set[int]:
    """The due runs with slots for which the worker of a claim has no room, oldest first. A run that takes
    more slots than one worker may have counts as taking all of these."""
    if (most := limits.per_worker) is None:
        return set()
    first = sorted(due for due in orphans if due[1] not in damaged)[: request.orphans_max]
    used, beyond = held.by_worker, {run for _, run in orphans} - {run for _, run in first}
    for wake_at, run in sorted([*free, *first]):
        if wake_at <= now_at and run not in damaged:
            used += min(slots_of[run], most)
            if used > most:
                beyond.add(run)
    return beyond


class Serving:
    """One claim from the line of one queue."""

    def __init__(self, name: str, record: QueueRecord, held: HeldSlots, *, limit: int, now_at: int) -> None:
        limits = record.limits
        self._name, self._record, self._now_at = name, record, now_at
        self._weights, self._per_key = limits.weights, limits.per_key
        self.slots_max = limits.slots_max
        """Runs that take more slots are passed over."""
        self._free = SLOTS_MAX
        """How many slots may still be taken."""
        if limits.concurrency is not None:
            self._free = limits.concurrency - held.in_all
        if limits.per_worker is not None:
            self._free = min(self._free, limits.per_worker - held.by_worker)
        self._is_blocked = False
        """Whether the next run takes more slots than are free."""
        self._first = record.first
        self._leading: str | None = None
        """The key of the line that the plan begins with, out of turn."""
        self._is_guessed = False
        """Whether that line may have no run that this worker can run."""
        self._passes_first = False
        """Whether it has none."""
        room = min(limit, self._free)
        self._is_slowed = False
        if record.paused is not None:
            room = 0
        elif room > 0:
            fits = record.room_in_rate(name, room, now_at)
            self._is_slowed, room = fits < room, fits
        self.room = max(0, room)
        """How many runs may still be taken."""
        self.turns: dict[str, float] = {}
        """The turns of the keys that were looked at."""
        self.empty: set[str] = set()
        """Keys whose lines were found empty when it was their turn."""
        self.has_more = False
        """Whether there may be more to take, and the claim ended before it knew."""
        self.is_drained = False
        """Whether no line that may be served has a run."""
        self._held = dict(held.by_key)
        self._taken = 0
        self._rounds = 0
        self._turn = record.turn
        self._order: list[str] = []
        self._planned: dict[str, int] = {}
        self._effective: dict[str, float] = {}
        """The turns of the lines of this round."""
        self._picked: dict[int, tuple[str, int]] = {}
        self._is_alone = False

    @property
    def lines_wanted(self) -> int:
        """How many lines to fetch for the next round, lowest turn first; 0 if the claim is done."""
        if not self.room or self._is_blocked:
            return 0
        if self._rounds == ROUNDS_MAX:
            # Not if nothing could be taken: a line of damaged runs must not keep the claimer busy.
            self.has_more |= bool(self._taken or self.empty)
            return 0
        return max(self.room, PLAN_MIN) + len(self.turns)

    @property
    def passed_over(self) -> list[str]:
        """Keys that have all the slots that they may have, or no run in line."""
        most = self._per_key
        full = () if most is None else (key for key, held in self._held.items() if key and held >= most)
        return sorted({*full, *self.empty})

    def plan(self, lines: Sequence[tuple[str, float]]) -> dict[str, int]:
        """How many runs to fetch of each key, given the keys and turns of lines, lowest turn first."""
        self._rounds += 1
        turns: dict[str, float] = {}
        for key, turn in lines:
            turns.setdefault(key, self.turns.get(key, max(turn, self._turn)))
        self._leading = None
        if self._first is not None and not self._passes_first and self._first[0] not in self.passed_over:
            key, turn = self._first
            self._leading, self._is_guessed = key, key not in turns
            turns.setdefault(key, self.turns.get(key, max(turn, self._turn)))
        # Without another key there is nothing to share, and nothing to remember.
        self._is_alone = len(turns) == 1 and not self.turns
        heap = [(BEFORE_ALL if key == self._leading else turn, key) for key, turn in turns.items()]
        heapify(heap)
        self._order, self._planned, self._effective = [], {}, turns
        left = max(self.room, min(PLAN_MIN, len(heap)))
        while heap and left:
            turn, key = heap[0]
            count = self._planned[key] = self._planned.get(key, 0) + 1
            self._order.append(key)
            left -= 1
            if key and self._per_key is not None and self._held.get(key, 0) + count >= self._per_key:
                heappop(heap)
            else:
                heapreplace(heap, (max(turn, turns[key]) + self._step(key), key))
        if not self._is_alone:
            self.turns.update({key: turns[key] for key in self._planned})
        return dict(self._planned)

    def pick(self, heads: Mapping[str, Sequence[LineHead]]) -> list[int]:
        """Which runs to take, in order, given the first runs of each planned line in their order."""
        picked: list[int] = []
        rest, free = {key: list(reversed(runs)) for key, runs in heads.items()}, self._free
        self._picked = {}
        for key in self._order:
            if len(picked) == self.room:
                break
            if rest.get(key):
                run, slots = rest[key].pop()
                if slots > free:
                    # It is the turn of this run. If others were picked before it, the next round shows it again.
                    if not picked:
                        self._block(key)
                    break
                free -= slots
                picked.append(run)
                self._picked[run] = key, slots
                self._pass_turn(key, steps=slots)
            elif key == self._leading and self._is_guessed:
                self._leading, self._passes_first = None, True
                self.turns.pop(key, None)
                self._planned[key] = 0  # Its other places in this order are not a line's.
            elif key not in self.empty and len(heads.get(key, ())) < self._planned[key]:
                self._pass_turn(key, steps=0)
                self.empty.add(key)
        return picked

    def took(self, runs: Iterable[int]) -> None:
        """These of the picked runs were taken."""
        for run in runs:
            key, slots = self._picked[run]
            self._free -= slots
            self.room = min(self.room - 1, self._free)
            self._taken += 1
            if self._per_key is not None:
                self._held[key] = self._held.get(key, 0) + 1

    def _block(self, key: str) -> None:
        """Take nothing more: what becomes free is for the first run of this line."""
        self._is_blocked = True
        if key != self._leading:
            self._first = key, self._effective[key]

    def _pass_turn(self, key: str, *, steps: int) -> None:
        leads = key == self._leading
        if leads:
            self._first = self._leading = None
        if not self._is_alone:
            # A line that was served out of turn takes no turn from the others.
            self._turn = self._turn if leads else max(self._turn, self.turns[key])
            self.turns[key] += steps * self._step(key)

    def _step(self, key: str) -> float:
        return 1 / self._weights.get(key, 1) if self._weights else 1.0

    def next_wake_at(self) -> int | None:
        """When there may be more to take without anything having happened; None if that is not known."""
        if self.has_more:
            return self._now_at
        if self.is_drained or not self._is_slowed:
            return None
        return self._record.charged(self._name, self._taken, self._now_at).next_in_rate(self._name, self._now_at)

    def rest(self) -> Claims:
        """The state of the queue after the claim: its next wake-up, and whether new runs may begin there at once."""
        is_open = self.is_drained and self._record.is_open
        return Claims([], self.next_wake_at(), frozenset({self._name}) if is_open else frozenset())

    def data(self, before: bytes | None) -> bytes | None:
        """The new content of the cell of the queue; None if that is its content before."""
        record = self._record.charged(self._name, self._taken, self._now_at)
        if (self._turn, self._first) != (record.turn, record.first):
            record = msgspec.structs.replace(record, turn=self._turn, first=self._first)
        return None if record is self._record and record == queue_in(before) else queue_data(record)


def sources(queues: Sequence[str] | None, found: Collection[str], *, claim_number: int) -> list[str]:
    """Where a claim takes from, in order: these queues, or all, each of which is the first in another claim. Runs
    without a queue are the queue without a name."""
    if queues is not None:
        return [name for name in dict.fromkeys(queues) if not name or name in found]
    names = ["", *sorted(found)]
    first = claim_number % len(names)
    return names[first:] + names[:first]
