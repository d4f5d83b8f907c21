"""Group commit: one writer for the changes of all trees.

While one batch is being committed, the next one collects. So a hundred runs that finish a step at about the same time
cost one transaction, and a run that is alone waits for no other. Outcomes are answered from plain callbacks of the
event loop, never from inside a task, because an answer may feed an execution.

A store that is down is not a failure of any run: the batch is kept and tried again with back-off, and what is behind it
waits. See `CommitRetry`.

Changes of trees that are there come before the creation of new ones, however many of those wait: a burst of starts does
not keep what runs already from going on.

A change of a tree depends on the changes before it that have no outcome yet. If one of them is refused, so are those
behind it: they must not find a place in a journal that another worker has continued.
"""

from __future__ import annotations

import asyncio
import math
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, NamedTuple

from outlive._kernel.client.access import CommitAnswer
from outlive._kernel.journal.codec import Row
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.runtime.commit.retry import CommitRetry
from outlive._kernel.store.contract import Change, Outcome, Store, Transaction
from outlive._tasks import own_task
from outlive.errors import CommitUnknownError, StoreUnavailableError
from outlive.telemetry import Counters, log

DRAIN_LOOK_SECONDS = 0.02
BATCH_MIN = 16
"""Fewer changes than this are not worth two commits."""
BIRTHS_MAX = 500
"""New trees in one batch: what moves meanwhile waits for the batch."""
TURNS_TO_THE_STORE = 3
"""Turns of the event loop after which the store has begun to write a batch."""

BatchOutcomes = tuple[list[tuple[Change, CommitAnswer]], list[tuple[Outcome, int]]]
"""A batch and the outcomes of its changes."""


class Within(NamedTuple):
    """A change that commits in the transaction of a step."""

    transaction: Transaction
    change: Change
    answer: CommitAnswer
    void: Callable[[Exception | None], None]
    """Called if nothing was written, with the reason if it is the step's own failure: the tree must be discarded."""


class Committer:
    """Collects changes and commits them in batches, in the order in which they came."""

    def __init__(self, store: Store, *, counters: Counters, batch_max: int, overlaps: bool = False) -> None:
        self._store = store
        self._counters = counters
        self._batch_max = batch_max
        self._overlaps = overlaps
        """Whether outcomes are answered while the next batch is written, which pays if the store is a server."""
        self._queue: deque[tuple[Change, CommitAnswer]] = deque()
        self._new: deque[tuple[Change, CommitAnswer]] = deque()
        """Changes that create trees."""
        self._batch: list[tuple[Change, CommitAnswer]] = []
        """The batch that the store was given last."""
        self._before: list[tuple[Change, CommitAnswer]] = []
        """The batch before it, whose outcomes may not be answered yet."""
        self._births: frozenset[int] | None = None
        """The nonces of the trees that these two create, once a caller has asked."""
        self.answered_at = 0.0
        """When the store last answered a batch, by the clock of the loop."""
        self._pump: asyncio.Task[None] | None = None
        self._transactions: set[asyncio.Task[None]] = set()
        self._held: dict[int, list[tuple[Change, CommitAnswer] | Within]] = {}
        """By journal: changes that wait for the outcome of a step's transaction."""
        self._retry = CommitRetry(store, counters=counters, waiting=lambda: len(self._queue) + len(self._new) + 1)
        self._is_abandoned = False

    @property
    def trouble(self) -> str:
        """Why the store refuses at the moment, or empty."""
        return self._retry.trouble

    @property
    def waiting(self) -> int:
        """Changes that have no outcome yet."""
        return len(self._queue) + len(self._new) + len(self._batch) + sum(map(len, self._held.values()))

    def submit(self, change: Change, answer: CommitAnswer) -> None:
        """Commit a change soon; `answer` is called from a plain callback once its outcome is durable."""
        assert change.rows, "every change proves by the next seq that it may be written"
        if self._is_abandoned:
            return
        if self._held and change.journal in self._held:
            self._held[change.journal].append((change, answer))
            return
        (self._queue if change.journal else self._new).append((change, answer))
        if self._pump is None:
            self._pump_soon()

    def withdraw(self, nonce: int) -> bool:
        """Never create the tree with this nonce, though that was submitted; its change is answered as a conflict.
        False if the store has the change, or may have it: then it may be created, now or later."""
        if nonce in self._given_births():
            return False
        self._retry.withdrawn.add(nonce)
        return True

    def _given_births(self) -> frozenset[int]:
        if self._births is None:
            given = [*self._before, *(self._batch if self._retry.may_be_written else ())]
            births = frozenset(change.runs[0].nonce for change, _ in given if not change.journal)
            if not self._retry.may_be_written:
                return births  # Only until the batch is tried again.
            self._births = births
        return self._births

    def _pump_soon(self) -> None:
        if self._pump is None:
            self._pump = own_task(self._run(), name="outlive-committer")

    @property
    def is_idle(self) -> bool:
        """Whether everything submitted so far has its outcome."""
        return self._pump is None and not self._transactions and not self._held

    # -- Transactions of steps -------------------------------------------------------------------------------

    def submit_within(self, within: Within) -> None:
        """Commit a change in the transaction of a step.

        Changes of its tree that are still in the queue are committed with it. Later ones wait for the outcome.
        """
        if self._is_abandoned:
            return
        journal = within.change.journal
        if journal in self._held:
            self._held[journal].append(within)
            return
        self._held[journal] = []
        # A change that the store has and has not answered may be refused, and then another worker's row has its seq.
        given = [change for change, _ in self._batch if change.journal == journal]
        behind = given[-1].rows[-1] if given else None
        self._spawn(self._run_within(within, self._take_queued(journal), behind))

    async def begin(self, *, seconds_max: float) -> Transaction:
        """A transaction for a step. See `Store.begin`."""
        return await self._store.begin(seconds_max=seconds_max)

    def roll_back(self, transaction: Transaction) -> None:
        """Roll back what a step wrote, without waiting for it."""
        self._spawn(rolled_back(transaction))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = own_task(work, name="outlive-transaction")
        self._transactions.add(task)
        task.add_done_callback(self._transactions.discard)

    async def _run_within(self, within: Within, earlier: list[tuple[Change, CommitAnswer]], behind: Row | None) -> None:
        entries = [*earlier, (within.change, within.answer)]
        reason: Exception | None = None
        try:
            outcomes = await self._commit_within(within, [change for change, _ in entries], behind)
        except StoreUnavailableError:
            outcomes = []
        except Exception as error:  # The database refuses what the step wrote, or its time was up.
            outcomes, reason = [], error
        asyncio.get_running_loop().call_soon(self._end_within, within, entries, outcomes, reason)

    async def _commit_within(
        self, within: Within, changes: list[Change], behind: Row | None
    ) -> list[tuple[Outcome, int]]:
        try:
            return await within.transaction.commit(changes, behind=behind)
        except CommitUnknownError:
            self._counters.unknowns += 1
            # All of the changes were written or none, so that the last one stands for all.
            found = await self._retry.read_back([within.change], [0])
            self._retry.log_recovery()
            if not found:
                raise
            return list(found.values()) * len(changes)

    def _end_within(
        self,
        within: Within,
        entries: list[tuple[Change, CommitAnswer]],
        outcomes: list[tuple[Outcome, int]],
        reason: Exception | None,
    ) -> None:
        journal = within.change.journal
        if outcomes:
            self._counters.transactions += 1
            self._count(entries, outcomes)
            self._answer(entries, outcomes)
        else:
            # Nothing was written, and what the step wrote is lost. The earlier changes do not depend on it.
            within.void(reason)
            self._refuse_rest(journal)
            self._queue.extendleft(reversed(entries[:-1]))
        self._submit_held(journal)

    def _submit_held(self, journal: int) -> None:
        """Submit the changes that waited for the transaction of a tree."""
        for entry in self._held.pop(journal, ()):
            if isinstance(entry, Within):
                self.submit_within(entry)
            else:
                self.submit(*entry)
        if self._queue or self._new:
            self._pump_soon()

    # -- Stopping --------------------------------------------------------------------------------------------

    def gather(self) -> None:
        """Write what comes from now on in as few batches as possible: the worker stops, and overlap gains nothing."""
        self._overlaps = False

    async def drain(self, *, outage_seconds_max: float, silence_seconds: float = math.inf) -> bool:
        """Wait until everything submitted so far has its outcome; False if the store is away for longer than
        `outage_seconds_max`, or has not answered at all after `silence_seconds`."""
        loop = asyncio.get_running_loop()
        silent_at = loop.time() + silence_seconds
        while self._pump is not None or self._transactions:
            busy = [self._pump, *self._transactions]
            await asyncio.wait([task for task in busy if task is not None], timeout=DRAIN_LOOK_SECONDS)
            # The last answers were scheduled before the pump ended: one turn of the loop calls them.
            await asyncio.sleep(0)
            outage_seconds_max -= DRAIN_LOOK_SECONDS
            if self.trouble and outage_seconds_max <= 0:
                return False
            if loop.time() >= silent_at:
                return False
        return True

    def abandon(self) -> None:
        """Commit nothing more, not even what waits: the engine has stopped."""
        self._is_abandoned = True
        for task in self._transactions:
            task.cancel()
        if self._pump is not None:
            self._pump.cancel()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        unanswered: BatchOutcomes | None = None
        try:
            while self._queue or self._new:
                batch = self._next_batch(len(self._batch))
                self._before, self._batch, self._births = self._batch, batch, None
                changes, where = merged([change for change, _ in batch])
                answering, unanswered = unanswered, None
                commit = self._retry.commit(changes)
                given_at = loop.time()
                outcomes = await (commit if answering is None else self._commit_while_answering(commit, answering))
                done_at = loop.time()
                if self._retry.is_answered:
                    self.answered_at = done_at
                took = (done_at - given_at) * MICROSECONDS
                if len(changes) < len(batch):
                    outcomes = [outcomes[place] for place in where]
                self._count(batch, outcomes, took)
                unanswered = batch, outcomes
                # A conflict is answered first: the later changes of its tree must not reach the store.
                has_more = self._overlaps and (self._queue or self._new)
                if has_more and Outcome.CONFLICT not in [outcome for outcome, _ in outcomes]:
                    continue
                loop.call_soon(self._answer, *unanswered)
                unanswered = None
                # One turn of the loop: what the answers bring about joins the next batch.
                await asyncio.sleep(0)
        finally:
            self._pump, self._before, self._batch, self._births = None, [], [], None

    def _next_batch(self, previous: int) -> list[tuple[Change, CommitAnswer]]:
        """Take the next batch: changes of existing trees first, then new trees. If batches overlap, it is half of the
        changes that wait or were just written: while the store writes one half, the worker handles the outcomes of
        the other half."""
        queue, new = self._queue, self._new
        most = min(len(queue) + len(new), self._batch_max)
        if self._overlaps:
            most = min(most, max((len(queue) + len(new) + previous + 1) // 2, BATCH_MIN))
        # A quarter is for new trees if there are some: however much moves, they are written too.
        batch = [queue.popleft() for _ in range(min(len(queue), most - min(len(new), most // 4)))]
        if new:
            batch += [new.popleft() for _ in range(min(len(new), most - len(batch), BIRTHS_MAX))]
        return batch

    async def _commit_while_answering(
        self, committing: Coroutine[Any, Any, list[tuple[Outcome, int]]], answering: BatchOutcomes
    ) -> list[tuple[Outcome, int]]:
        """Give a batch to the store, and answer the one before as soon as the store has it."""
        loop = asyncio.get_running_loop()
        commit = loop.create_task(committing, name="outlive-commit")
        try:
            try:
                for _ in range(TURNS_TO_THE_STORE):
                    await asyncio.sleep(0)
            finally:
                loop.call_soon(self._answer, *answering)
            return await commit
        except asyncio.CancelledError:
            commit.cancel()
            raise

    def _answer(self, batch: list[tuple[Change, CommitAnswer]], outcomes: list[tuple[Outcome, int]]) -> None:
        for (change, answer), (outcome, journal) in zip(batch, outcomes, strict=True):
            try:
                answer(outcome, journal)
            except Exception:  # The others must be answered too.
                log.exception("the outcome of a change could not be handled")
            if outcome is Outcome.CONFLICT and change.journal:
                self._refuse_rest(change.journal)

    def _refuse_rest(self, journal: int) -> None:
        """A change was refused, so refuse the later ones of its tree. The worker has discarded the tree, and
        no more will follow."""
        refused: list[tuple[Change, CommitAnswer]] = []
        for entry in [*self._take_queued(journal), *self._held.pop(journal, ())]:
            if isinstance(entry, Within):
                self.roll_back(entry.transaction)
                refused.append((entry.change, entry.answer))
            else:
                refused.append(entry)
        if refused:
            self._counters.conflicts += len(refused)
            self._answer(refused, [(Outcome.CONFLICT, journal)] * len(refused))

    def _take_queued(self, journal: int) -> list[tuple[Change, CommitAnswer]]:
        taken = [entry for entry in self._queue if entry[0].journal == journal]
        if taken:
            self._queue = deque(entry for entry in self._queue if entry[0].journal != journal)
        return taken

    def _count(
        self, batch: list[tuple[Change, CommitAnswer]], outcomes: list[tuple[Outcome, int]], took: float | None = None
    ) -> None:
        counters = self._counters
        counters.commits += 1
        if took is not None:
            for histogram, value in (
                (counters.measures.commit_seconds, took),
                (counters.measures.commit_changes, len(batch)),
            ):
                # `Histogram.add`, written out without the calls.
                histogram.counts[bisect_left(histogram.bounds, value)] += 1
                histogram.sum += value
        for (change, _), (outcome, _) in zip(batch, outcomes, strict=True):
            if outcome is not Outcome.COMMITTED:
                counters.conflicts += outcome is Outcome.CONFLICT
                continue
            counters.rows += len(change.rows)
            for row in change.rows:
                counters.bytes += len(row[3])


async def rolled_back(transaction: Transaction) -> None:
    """Roll a transaction back; if the store is away, the transaction has ended with the connection."""
    with suppress(StoreUnavailableError):
        await transaction.rollback()


def merged(changes: list[Change]) -> tuple[list[Change], list[int]]:
    """A batch in which the changes of one tree are one change, and where each given change went if any were merged.

    A change proves by the next seq that it may be written. That proof holds only for the first of several: if another
    worker has taken the tree over, its claim has the seq of the first change, and the second would fit behind the
    claim. So they are committed together or not at all.
    """
    if len({change.journal for change in changes}) == len(changes):
        return changes, []
    places: dict[int, int] = {}
    groups: list[list[Change]] = []
    where: list[int] = []
    for change in changes:
        place = places.get(change.journal) if change.journal else None
        if place is None or not _builds_on(groups[place][-1], change):
            place = places[change.journal] = len(groups)
            groups.append([])
        groups[place].append(change)
        where.append(place)
    return [group[0] if len(group) == 1 else _joined(group) for group in groups], where


def _builds_on(first: Change, second: Change) -> bool:
    """Whether the second follows the first; not if this worker lost the tree and claimed it again between them."""
    return second.after == first.after + len(first.rows) and second.prior == first.rows[-1][2]


def _joined(group: list[Change]) -> Change:
    runs = {run.number: run for change in group for run in change.runs}
    return Change(
        journal=group[0].journal,
        after=group[0].after,
        prior=group[0].prior,
        rows=[row for change in group for row in change.rows],
        runs=list(runs.values()),
        renames=[run for change in group for run in change.renames],
        consumed=[message for change in group for message in change.consumed],
        blobs=[blob for change in group for blob in change.blobs],
        answers=[answer for change in group for answer in change.answers],
        items=[item for change in group for item in change.items],
        streams=[lines for change in group for lines in change.streams],
        rings=next((change.rings for change in group if change.rings), ""),
        starts=[start for change in group for start in change.starts],
        messages=[message for change in group for message in change.messages],
        forgets=next((change.forgets for change in reversed(group) if change.forgets is not None), None),
        is_guarded=group[0].is_guarded,
        retagged=[number for change in group for number in change.retagged],
        requeued=any(change.requeued for change in group),
        audit=[action for change in group for action in change.audit],
    )
