"""Claiming: which of the trees of a store one worker takes, without a queue and from each of the queues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from outlive._kernel.model import Run
from outlive._kernel.model.queue import QUEUE_CELLS, queue_cell, queue_in
from outlive._kernel.model.run import HELD, IN_LINE, OUTSIDE
from outlive._kernel.store.contract import KEY_RUNS_MAX, WAITING_KEYS_MAX, Claim, Claims, QueueMeasure, WaitingKey
from outlive._kernel.store.memory.state import MemoryState, Tree
from outlive._kernel.store.tables.claiming import ClaimRequest, joined, not_declined, pick
from outlive._kernel.store.tables.queueing import HOLDERS_MAX, HeldSlots, LineHead, Serving, beyond_worker, sources

Due = tuple[int, Run]
"""A root, and when it is due."""


class MemoryClaim:
    """One claim, at one instant."""

    def __init__(
        self,
        state: MemoryState,
        request: ClaimRequest,
        *,
        claim: Callable[[Tree, str, int], Claim],
        put_run: Callable[[Tree, Run], None],
        now: int,
    ) -> None:
        self._state, self._request, self._put_run, self._now = state, request, put_run, now
        self._claim_tree = claim

    def run(self, found: Sequence[Due], *, claim_number: int) -> Claims:
        """Take these roots, which no worker has, of one queue after the other."""
        claims, request = Claims([], None), self._request
        for name in sources(request.queues, {root.queue for _, root in found if root.queue}, claim_number=claim_number):
            rest = request.without(claims)
            if rest.limit > 0:
                own = [due for due in found if due[1].queue == name]
                claims = joined(claims, self._claim_queue(name, own, rest) if name else self._claim_due(own, rest))
        return claims

    def _claim_due(self, found: Sequence[Due], request: ClaimRequest) -> Claims:
        free = [(wake_at, root.journal) for wake_at, root in found if not root.owner]
        orphans = [(wake_at, root.journal) for wake_at, root in found if root.owner]
        picked = pick(
            not_declined(free, request.declined),
            not_declined(orphans, request.declined),
            now=self._now,
            limit=request.limit,
            orphans_max=request.orphans_max,
        )
        return Claims([self._claim(key) for key in picked.keys], picked.later_at)

    def _claim(self, journal: int) -> Claim:
        return self._claim_tree(self._state.trees[journal], self._request.worker_id, self._now)

    # -- Queues ----------------------------------------------------------------------------------------------

    def _claim_queue(self, name: str, found: Sequence[Due], request: ClaimRequest) -> Claims:
        """Take what has a slot, and then what is first in line."""
        cell = self._state.cells.get(queue_cell(name))
        record = request.record_of(name, cell)
        later_at = min((wake_at for wake_at, _ in found if wake_at > self._now), default=None)
        for wake_at, root in found:
            if root.slot == OUTSIDE and wake_at <= self._now:
                self._put_run(self._state.trees[root.journal], replace(root, slot=IN_LINE))
        held, has_slot = self._count_held(name), [due for due in found if due[1].slot == HELD]
        beyond = beyond_worker(
            record.limits,
            held,
            request,
            [(wake_at, root.journal) for wake_at, root in has_slot if not root.owner],
            [(wake_at, root.journal) for wake_at, root in has_slot if root.owner],
            {root.journal: root.slots for _, root in has_slot},
            now_at=self._now,
            damaged=(),
        )
        claims = self._claim_due([due for due in has_slot if due[1].journal not in beyond], request).claims
        held = held._replace(by_worker=held.by_worker + sum(claim.run.slots for claim in claims))
        serving = Serving(name, record, held, limit=request.limit - len(claims), now_at=self._now)
        claims += self._serve(name, serving)
        if (data := serving.data(cell)) is not None:
            self._state.cells[queue_cell(name)] = data
        return joined(Claims(claims, later_at), serving.rest())

    def _serve(self, name: str, serving: Serving) -> list[Claim]:
        turns = self._state.turns.setdefault(name, {})
        claims: list[Claim] = []
        while serving.lines_wanted:
            lines: dict[str, list[tuple[int, int, int]]] = {}
            for root in self._roots_of(name):
                if root.slot == IN_LINE and root.definition in self._request.definitions:
                    line = lines.setdefault(root.queue_key, [])
                    if root.slots <= serving.slots_max:
                        line.append(((root.wake_at or 0) - root.lead, root.journal, root.slots))
            waiting = [(key, turns.get(key, 0.0)) for key in lines if key not in serving.passed_over]
            plan = serving.plan(sorted(waiting, key=lambda line: line[1]))
            if not plan:
                serving.is_drained = True
                break
            heads = {
                key: [LineHead(*head) for _, *head in sorted(lines.get(key, []))[:count]] for key, count in plan.items()
            }
            taken = [self._claim(key) for key in serving.pick(heads)]
            serving.took(claim.run.journal for claim in taken)
            claims += taken
        turns.update(serving.turns)
        for key in serving.empty:
            turns.pop(key, None)
        return claims

    def _roots_of(self, name: str) -> list[Run]:
        return [tree.root for tree in self._state.active.values() if tree.root.queue == name]

    def _count_held(self, name: str) -> HeldSlots:
        held = [root for root in self._roots_of(name) if root.slot == HELD]
        by_worker = sum(root.slots for root in held if root.owner == self._request.worker_id)
        in_all = sum(root.slots for root in held)
        return HeldSlots(in_all, by_worker, Counter(root.queue_key for root in held))


def is_open(state: MemoryState, name: str) -> bool:
    """Whether a new run may begin in a queue at once: nothing is limited there, and no run is in line."""
    roots = (tree.root for tree in state.active.values())
    has_line = any(root.queue == name and root.slot == IN_LINE for root in roots)
    return queue_in(state.cells.get(queue_cell(name))).is_open and not has_line


def list_queues(state: MemoryState) -> list[str]:
    """All queues."""
    cells = {name.removeprefix(QUEUE_CELLS) for name in state.cells if name.startswith(QUEUE_CELLS)}
    return sorted({run.queue for run in state.runs.values() if run.queue} | cells)


def measure_queue(state: MemoryState, name: str, *, limit: int, run_id: str) -> QueueMeasure:
    """How full a queue is."""
    roots = [tree.root for tree in state.active.values() if tree.root.queue == name]
    line = sorted(((root.wake_at or 0) - root.lead, root.journal, root) for root in roots if root.slot == IN_LINE)
    first: dict[tuple[str, str], int] = {}
    for _, _, root in line:
        first.setdefault((root.queue_key, root.definition), root.wake_at or 0)
    waiting = [
        WaitingKey(min(at for (own, _), at in first.items() if own == key), key, min(count, limit, KEY_RUNS_MAX))
        for key, count in Counter(root.queue_key for _, _, root in line).items()
    ]
    held = [root for root in roots if root.slot == HELD]
    later = [root for root in roots if root.slot == OUTSIDE and not root.owner and root.wake_at is not None]
    own = next((place for place in line if place[2].id == run_id), None)
    ahead = [] if own is None else [it for it in line if it[2].queue_key == own[2].queue_key and it[:2] < own[:2]]
    return QueueMeasure(
        in_line=min(len(line), limit),
        held=min(len(held), limit),
        slots=sum(root.slots for root in held[:limit]),
        later=min(len(later), limit),
        oldest_at=min(first.values(), default=None),
        holders=tuple(held[: min(limit, HOLDERS_MAX)]),
        keys=tuple(sorted(waiting)[: min(limit, WAITING_KEYS_MAX)]),
        ahead=min(len(ahead), limit),
    )
