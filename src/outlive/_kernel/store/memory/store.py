"""The verbs on dictionaries.

Everything lives in a `MemoryState` until the process ends. A store is a connection to it, and `share()` gives another
one, so that two workers can contend in one process. There are no threads and no locks: a verb never awaits, so nothing
can happen in the middle of it. A verb first judges and then writes. What comes in is frozen; what goes out is a new
list of frozen values. The contract of each verb is in `outlive._kernel.store.contract` and not repeated here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Container, Sequence
from typing import Any, TypeVar

from msgspec.structs import asdict, replace

from outlive._kernel.journal.codec import Row
from outlive._kernel.model import Run, RunFilter, RunStatus
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.run import GroupField, group_of
from outlive._kernel.store.audit import Action
from outlive._kernel.store.change import has_final_end, judge
from outlive._kernel.store.contract import (
    NO_LIMIT,
    PAGE_SIZE_MAX,
    TRANSACTION_SECONDS_MAX,
    Answer,
    CellChange,
    Change,
    Claim,
    Claims,
    Declared,
    Delivery,
    Forgotten,
    InboxMessage,
    ItemResult,
    Message,
    MessageKind,
    MessageRefusal,
    Outcome,
    QueueMeasure,
    Watch,
    WorkerInfo,
)
from outlive._kernel.store.memory.audit import MemoryAudit, append_audit
from outlive._kernel.store.memory.beat import MemoryBeat
from outlive._kernel.store.memory.checkpoints import MemoryCheckpoints
from outlive._kernel.store.memory.claim import MemoryClaim, is_open, list_queues, measure_queue
from outlive._kernel.store.memory.deleting import MemoryDeletion
from outlive._kernel.store.memory.examine import MemoryExaminer
from outlive._kernel.store.memory.state import MemoryState, Stream, Tree, is_wanted
from outlive._kernel.store.memory.transaction import MemoryTransaction
from outlive._kernel.store.schedules import DueSchedules, ScheduleChange, ScheduleRow
from outlive._kernel.store.streams import (
    CHUNKS_READ_MAX,
    Appended,
    StreamAppend,
    StreamChunk,
    StreamLimits,
    StreamLines,
    StreamState,
    fits,
    grow,
    is_there,
)
from outlive._kernel.store.tables.claiming import ClaimRequest, claim_change
from outlive._kernel.store.tables.searching import ListPlace
from outlive._kernel.store.tables.session_rows import forgotten
from outlive.errors import ConfigurationError
from outlive.errors.store import StoreWentBackError

T = TypeVar("T")


class MemoryStore(MemoryDeletion, MemoryAudit, MemoryCheckpoints):
    """A store that forgets everything when the process ends."""

    def __init__(self, *, clock: Callable[[], int], state: MemoryState | None = None) -> None:
        self._clock = clock
        self._state = state or MemoryState()
        self._transaction: MemoryTransaction | None = None

    def share(self) -> MemoryStore:
        """Another store on the same state."""
        return type(self)(clock=self._clock, state=self._state)

    async def open(self, *, migrate: bool = True) -> None:
        """There is nothing to connect to."""

    async def close(self) -> None:
        """Only what a step has left open is closed: the other stores on this state go on."""
        if self._transaction is not None:
            self._transaction.abandon("the store was closed")

    def now(self) -> int:
        """The clock that was given."""
        return self._clock()

    async def commit(self, changes: Sequence[Change]) -> list[tuple[Outcome, int]]:
        """Judge and write one change after the other."""
        return [self._commit(change) for change in changes]

    def _commit(self, change: Change) -> tuple[Outcome, int]:
        if change.eager and not is_open(self._state, change.eager):
            return Outcome.MUST_WAIT, 0
        tree = self._find_writable(change)
        if tree is None:
            return Outcome.CONFLICT, change.journal
        has_successors = change.starts and any(start.successor_of for start in change.starts)
        go_back = self._state.save(_list_touched(change)) if has_successors else None
        self._write(tree, change)
        for start in change.starts:
            outcome, _ = self._commit(start)
            if outcome is Outcome.CONFLICT and start.successor_of and go_back is not None:
                go_back()
                return Outcome.CONFLICT, change.journal
        for message in change.messages:
            self._deliver(message, inbox_messages_max=NO_LIMIT)
        if self._state.watches:
            self._send_ends(change)
        return Outcome.COMMITTED, tree.journal

    def _send_ends(self, change: Change) -> None:
        """Send the end of a tree to its watchers."""
        for run in change.runs:
            if run.number == 0 and has_final_end(run):
                for watch in self._state.watches.pop(run.id, {}).values():
                    self._deliver(watch.message(run, at=self.now()), inbox_messages_max=NO_LIMIT)

    def _find_writable(self, change: Change) -> Tree | None:
        """The tree that the change may write to, a new one if it creates it; None if it conflicts."""
        assert change.rows, "a change without a row proves nothing"
        first = change.after + 1 if change.journal else change.rows[0][0]
        for seq, row in enumerate(change.rows, first):
            assert row[0] == seq, "a gap"
        taken = self._list_taken(change) if change.renames else self._state.runs
        if taken is None:
            return None
        tree = Tree(self._state.handles + 1) if change.journal == 0 else self._state.trees.get(change.journal)
        if tree is None:
            return None
        for run in change.runs:
            if run.number not in tree.runs and run.id in taken:
                return None
        if change.journal == 0:
            return tree
        if tree.rows[-1][0] != change.after or change.prior != tree.rows[-1][2]:
            return None
        return tree if tree.root.status.is_terminal == change.reopens else None

    def _list_taken(self, change: Change) -> Container[str] | None:
        """The ids that are taken after the renames of a change; None if one of these has no room."""
        taken = set(self._state.runs)
        for run in self._list_renames(change):
            taken.remove(self._state.trees[run.journal].runs[run.number].id)
            if run.id in taken:
                return None
            taken.add(run.id)
        return taken

    def _list_renames(self, change: Change) -> list[Run]:
        """The renames that take place."""
        trees = self._state.trees
        there = [run for run in change.renames if run.journal in trees and run.number in trees[run.journal].runs]
        return [run for run in there if trees[run.journal].is_over]

    def _write(self, tree: Tree, change: Change) -> None:
        self._state.handles = max(self._state.handles, tree.journal)
        self._state.trees[tree.journal] = self._state.active[tree.journal] = tree
        for run in self._list_renames(change) if change.renames else ():
            renamed = self._state.trees[run.journal]
            before = renamed.runs[run.number]
            self._put_run(renamed, replace(before, id=run.id, root_id=run.root_id, parent_id=run.parent_id))
        tree.rows.extend(change.rows)
        for run in change.runs:
            self._put_run(tree, run)
        for message_id in change.consumed:
            tree.inbox.pop(message_id, None)
        for key in change.freed_keys:
            tree.keys.discard(key)
            tree.answers.pop(key, None)
        if change.blobs:
            self._put_blobs(change.blobs)
        tree.keys.update(change.keys)
        if change.answers:
            self._answer(tree, change.answers)
        for item in change.items:
            tree.items.setdefault((item.run, item.index), item)
        for said in change.streams:
            self._append(tree, said)
        if change.successor_of:
            inherit = self._inherit_talk if change.lives_on else self._inherit
            inherit(tree, change.successor_of)
        if change.audit:
            append_audit(self._state, change.audit, self.now())
        if change.forgets is not None:
            self._forget(tree, change.forgets)
        if tree.inbox:
            # The writer may not have seen the messages that came while it released the tree.
            self._wake_for_inbox(tree)

    def _inherit(self, successor: Tree, ancestor: int) -> None:
        """Move keys, and messages to the root, from an ended tree."""
        tree = self._state.trees.get(ancestor)
        if tree is not None and tree.is_over:
            successor.inbox |= {id: message for id, message in tree.inbox.items() if message.run == 0}
            tree.inbox = {id: message for id, message in tree.inbox.items() if message.run}
            successor.keys, tree.keys = successor.keys | tree.keys, set()
            successor.answers, tree.answers = tree.answers, {}
            for key in [key for key in tree.streams if key[0] == 0]:
                stream = successor.streams[key] = tree.streams.pop(key)
                stream.state = stream.state._replace(items=0, size=0, mark=0, number=0)

    def _inherit_talk(self, successor: Tree, ancestor: int) -> None:
        """Move signals and asks that wait for the root, and the keys of signals and asks. The key of an ask that was
        taken and has no answer stays: it may be sent again."""
        tree = self._state.trees.get(ancestor)
        if tree is None or not tree.is_over:
            return
        talk = (MessageKind.SIGNAL, MessageKind.ASK)
        moved = {id: it for id, it in tree.inbox.items() if it.run == 0 and it.kind in talk}
        successor.inbox |= moved
        tree.inbox = {id: it for id, it in tree.inbox.items() if id not in moved}
        known = {it.key for it in moved.values()} | tree.answers.keys()
        kept = {key for key in tree.keys if not key.startswith("@") or (key.startswith("@ask/") and key in known)}
        successor.keys, tree.keys = successor.keys | kept, tree.keys - kept
        successor.answers = {key: it for key, it in tree.answers.items() if key in kept}
        tree.answers = {key: it for key, it in tree.answers.items() if key not in kept}

    def _answer(self, tree: Tree, answers: Sequence[Answer]) -> None:
        for answer in answers:
            if answer.key in tree.keys:
                tree.answers.setdefault(answer.key, answer)

    def _forget(self, tree: Tree, forgotten: Forgotten) -> None:
        tree.rows = [row for row in tree.rows if row[0] >= forgotten.before]
        tree.items = {key: item for key, item in tree.items.items() if not 0 < key[0] < forgotten.below}
        tree.inbox = {id: message for id, message in tree.inbox.items() if not 0 < message.run < forgotten.below}
        tree.streams = {key: stream for key, stream in tree.streams.items() if not 0 < key[0] < forgotten.below}
        for number in [number for number in tree.runs if 0 < number < forgotten.below]:
            del self._state.runs[tree.runs.pop(number).id]

    def _put_run(self, tree: Tree, run: Run) -> None:
        before = tree.runs.get(run.number)
        if before is not None:
            del self._state.runs[before.id]
        tree.runs[run.number] = self._state.runs[run.id] = replace(run, journal=tree.journal)
        if run.number == 0 and run.status.is_terminal:
            self._state.active.pop(tree.journal, None)

    async def begin(self, *, seconds_max: float = TRANSACTION_SECONDS_MAX) -> MemoryTransaction:
        """One at a time; the other verbs do not wait for it."""
        self._transaction = await self._state.tables.begin(self._commit_all, seconds_max=seconds_max)
        return self._transaction

    def _commit_all(
        self, changes: Sequence[Change], behind: Row | None
    ) -> tuple[list[tuple[Outcome, int]], Callable[[], None]]:
        """All changes or none, and a way back."""
        go_back = self._state.save(self._state.trees)
        if behind is not None and self._state.trees[changes[0].journal].rows[-1] != behind:
            return [(Outcome.CONFLICT, change.journal) for change in changes], go_back
        outcomes = [self._commit(change) for change in changes]
        if not all(outcome is Outcome.COMMITTED for outcome, _ in outcomes):
            go_back()
            outcomes = [(Outcome.CONFLICT, change.journal) for change in changes]
        return outcomes, go_back

    async def request_start(self, connection: Any, change: Change) -> Outcome:
        """There is no database that could be shared."""
        raise ConfigurationError(
            "the in-memory store has no transactions to share; starting a run in your own needs PostgreSQL"
        )

    async def request_message(self, connection: Any, message: Message, *, start: Change | None = None) -> Delivery:
        """There is no database that could be shared."""
        raise ConfigurationError("the in-memory store has no transactions to share; sending in one needs PostgreSQL")

    async def read_cell(self, name: str) -> bytes | None:
        """The content of the cell now."""
        return self._state.cells.get(name)

    async def change_cell(self, name: str, change: CellChange[T], *, audit: Action | None = None) -> T:
        """Nothing can happen in the middle of it."""
        before = self._state.cells.get(name)
        after, answer = change(before, self.now())
        self._state.put_cell(name, after)
        if audit is not None and after != before:
            append_audit(self._state, [audit], self.now())
        return answer

    def watch(self, ring: Callable[[str], None]) -> None:
        """Never rings: there is no other process that could make something due."""

    async def ring(self, cell: str) -> None:
        """There is no other process that could hear it."""

    async def claim_runs(
        self,
        worker_id: str,
        definitions: Sequence[str],
        *,
        limit: int,
        orphans_max: int | None = None,
        stale_seconds: float = 0,
        declined: Collection[tuple[int, int]] = (),
        queues: Sequence[str] | None = None,
        declared: Declared | None = None,
    ) -> Claims:
        """Claim from one queue after the other; `next_wake_at` is when the first tree that is left becomes due."""
        if not self._is_live(worker_id):
            return Claims([], None)
        most = limit + 1 if orphans_max is None else orphans_max
        request = ClaimRequest(worker_id, definitions, limit, most, stale_seconds, declined, queues, declared)
        self._state.claims += 1
        found = [(wake_at, tree.root) for wake_at, _, tree in self._list_claimable(definitions, stale_seconds)]
        claim = MemoryClaim(self._state, request, claim=self._claim, put_run=self._put_run, now=self.now())
        return claim.run(found, claim_number=self._state.claims)

    async def list_queues(self) -> list[str]:
        """All runs are looked at."""
        return list_queues(self._state)

    async def measure_queue(self, name: str, *, limit: int, run_id: str = "") -> QueueMeasure:
        """All open trees are looked at."""
        return measure_queue(self._state, name, limit=limit, run_id=run_id)

    def _list_claimable(self, definitions: Sequence[str], stale_seconds: float = 0) -> list[tuple[int, int, Tree]]:
        """Trees without an owner who is alive, with their wake-ups, earliest first."""
        kept = {worker_id for worker_id in self._state.workers if not self._is_lost(worker_id, stale_seconds)}
        free = [tree for tree in self._state.active.values() if tree.root.owner not in kept]
        ours = [tree for tree in free if tree.root.definition in definitions]
        return sorted((tree.root.wake_at, tree.journal, tree) for tree in ours if tree.root.wake_at is not None)

    def _claim(self, tree: Tree, worker_id: str, now: int) -> Claim:
        change, claim = claim_change(tree.root, tree.rows[-1], worker_id=worker_id, now=now)
        tree.rows += change.rows
        self._put_run(tree, claim.run)
        return claim

    async def deliver(
        self, messages: Sequence[Message], *, starts: Sequence[Change] = (), inbox_messages_max: int
    ) -> list[Delivery]:
        """Create the trees that are asked for, then judge one message after the other."""
        for start in starts:
            self._commit(start)
        return [self._deliver(message, inbox_messages_max=inbox_messages_max) for message in messages]

    def _deliver(self, message: Message, *, inbox_messages_max: int) -> Delivery:
        run = self._state.runs.get(message.run_id)
        if run is None or not message.bounds.allow(self._state.trees[run.journal].root):
            return Delivery.UNKNOWN_RUN
        tree = self._state.trees[run.journal]
        delivery = judge(
            is_key_seen=message.key in tree.keys,
            is_over=tree.root.status.is_terminal or run.status.is_terminal,
            waiting=len(tree.inbox),
            messages_max=inbox_messages_max,
        )
        if delivery is Delivery.ACCEPTED:
            self._accept(tree, run.number, message)
        return delivery

    def _accept(self, tree: Tree, number: int, message: Message) -> None:
        self._state.messages += 1
        fields = asdict(message)
        del fields["run_id"], fields["blobs"], fields["audit"], fields["bounds"]
        self._put_blobs(message.blobs)
        tree.inbox[self._state.messages] = InboxMessage(id=self._state.messages, run=number, **fields)
        if message.key:
            tree.keys.add(message.key)
        if message.audit is not None:
            append_audit(self._state, [message.audit], self.now())
        self._wake_for_inbox(tree)

    def _wake_for_inbox(self, tree: Tree) -> None:
        """Make a tree due whose inbox has messages; a parked one only if a RESUME is among them."""
        root, now = tree.root, self.now()
        if root.status.is_terminal or (root.wake_at is not None and root.wake_at <= now):
            return
        if root.wake_at is not None and root.status is RunStatus.PENDING and root.epoch == 0:
            return  # It is to begin later.
        kinds = {message.kind for message in tree.inbox.values()}
        if MessageKind.RESUME in kinds or (kinds and root.status is not RunStatus.PARKED):
            self._put_run(tree, replace(root, wake_at=now))

    # -- Sessions of workers ---------------------------------------------------------------------------------

    def _is_live(self, worker_id: str) -> bool:
        worker = self._state.workers.get(worker_id)
        return worker is not None and worker_id not in self._state.retired and self.now() < worker.expires_at

    def _is_lost(self, worker_id: str, stale_seconds: float) -> bool:
        """Whether its lease ended so long ago that others may have what it owns."""
        worker = self._state.workers[worker_id]
        is_stale = not stale_seconds or worker.expires_at + round(stale_seconds * MICROSECONDS) <= self.now()
        return is_stale and not self._is_live(worker_id)

    async def register_worker(self, worker: WorkerInfo, *, lease_seconds: float) -> None:
        """Begin a session."""
        self._state.workers[worker.id] = worker
        self._state.retired.discard(worker.id)
        self.extend_lease(worker.id, lease_seconds, renewed=0)

    async def redefine_worker(self, worker_id: str, definitions: Sequence[str]) -> None:
        """Write what a session can run by now."""
        if (worker := self._state.workers.get(worker_id)) is not None and worker_id not in self._state.retired:
            self._state.workers[worker_id] = replace(worker, definitions=tuple(definitions))

    def open_beat(self, worker_id: str) -> MemoryBeat:
        """A way to renew the lease from another thread."""
        return MemoryBeat(self.extend_lease, worker_id)

    def watch_incarnation(self, changed: Callable[[StoreWentBackError], None]) -> None:
        """It ends with its process, and is never another one."""

    def extend_lease(self, worker_id: str, lease_seconds: float, *, renewed: int) -> int | None:
        """Called by a beat in its own thread, so it leaves alone what `end_session` sets."""
        worker = self._state.workers.get(worker_id)
        if worker_id in self._state.retired:
            return None
        if worker is None or worker.expires_at < renewed:
            raise StoreWentBackError("memory:", forgotten(worker_id, None if worker is None else worker.expires_at))
        expires_at = self.now() + round(lease_seconds * MICROSECONDS)
        self._state.workers[worker_id] = replace(worker, expires_at=expires_at)
        return expires_at

    async def end_session(self, worker_id: str) -> None:
        """End a session; it is remembered, because it may still own trees."""
        if (worker := self._state.workers.get(worker_id)) is not None and worker_id not in self._state.retired:
            # First: a beat in its own thread extends what is not retired.
            self._state.retired.add(worker_id)
            expires_at = min(self._state.workers[worker_id].expires_at, self.now())
            self._state.workers[worker_id] = replace(worker, expires_at=expires_at)

    async def list_workers(self, *, with_runs: bool = True) -> list[WorkerInfo]:
        """The sessions that are live or own runs."""
        owned = Counter(tree.root.owner for tree in self._state.active.values() if with_runs)
        workers = [replace(it, is_live=self._is_live(it.id), runs=owned[it.id]) for it in self._state.workers.values()]
        return [worker for worker in workers if worker.is_live or worker.runs]

    # -- Reading ---------------------------------------------------------------------------------------------

    async def watch_ends(self, watches: Sequence[Watch]) -> dict[str, Run]:
        """Judge and keep one watch after the other."""
        runs = await self.find_runs([watch.run_id for watch in watches])
        for watch in watches:
            run = runs.get(watch.run_id)
            if run is not None and run.number == 0 and not run.status.is_terminal:
                self._state.watches.setdefault(run.id, {})[watch.watcher] = watch
        return runs

    async def read_inbox(self, journals: Sequence[int]) -> dict[int, list[InboxMessage]]:
        """Ids rise, and a dictionary keeps its order."""
        trees = self._state.trees
        return {id: list(trees[id].inbox.values()) for id in journals if id in trees and trees[id].inbox}

    async def refuse_messages(self, worker_id: str, refusals: Sequence[MessageRefusal]) -> None:
        """Remove messages that wait for a tree of this worker, and answer them."""
        for refusal in refusals:
            tree = self._state.active.get(refusal.journal)
            if tree is not None and tree.root.owner == worker_id and tree.inbox.pop(refusal.message, None) is not None:
                self._answer(tree, [refusal.answer])

    async def find_answers(self, asks: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Answer | None]:
        """The answers to the asks whose keys are known."""
        runs, trees = self._state.runs, self._state.trees
        there = [(run_id, key, trees[runs[run_id].journal]) for run_id, key in asks if run_id in runs]
        return {(run_id, key): tree.answers.get(key) for run_id, key, tree in there if key in tree.keys}

    async def find_inboxes(self, worker_id: str) -> list[int]:
        """The trees of this worker that have messages."""
        return [tree.journal for tree in self._state.active.values() if tree.inbox and tree.root.owner == worker_id]

    async def read_journal(self, journal: int, *, after: int = -1, limit: int | None = None) -> list[Row]:
        """Rows are dense: where one stands follows from its seq and that of the first."""
        tree = self._state.trees.get(journal)
        rows = tree.rows[max(0, after + 1 - tree.rows[0][0]) :] if tree else []
        return rows if limit is None else rows[:limit]

    async def read_journals(self, journals: Sequence[int]) -> dict[int, list[Row]]:
        """Copies, so that a reader's list does not grow with the journal."""
        return {id: list(self._state.trees[id].rows) for id in journals if id in self._state.trees}

    async def find_run(self, run_id: str) -> Run | None:
        """The run with this id, if there is one."""
        return self._state.runs.get(run_id)

    async def find_runs(self, run_ids: Sequence[str]) -> dict[str, Run]:
        """The runs that exist."""
        return {id: self._state.runs[id] for id in run_ids if id in self._state.runs}

    async def list_runs(
        self,
        filter: RunFilter,  # noqa: A002
        *,
        limit: int = 100,
        before: ListPlace | None = None,
        after: ListPlace | None = None,
        oldest_first: bool = False,
    ) -> list[Run]:
        """All runs are looked at."""
        found = [run for run in self._state.runs.values() if is_wanted(run, filter, before, after)]
        ordered = sorted(found, key=lambda run: (run.created_at, run.id), reverse=not oldest_first)
        return ordered[: min(limit, PAGE_SIZE_MAX)]

    async def count_runs(self, filter: RunFilter, *, limit: int) -> int:  # noqa: A002
        """All runs are looked at."""
        return min(sum(is_wanted(run, filter) for run in self._state.runs.values()), limit)

    async def count_groups(
        self,
        filter: RunFilter,  # noqa: A002
        by: GroupField,
        *,
        limit: int,
        groups_max: int,
    ) -> dict[str, int]:
        """All runs are looked at."""
        found = Counter(group_of(run, by) for run in self._state.runs.values() if is_wanted(run, filter))
        return {group: min(found[group], limit) for group in sorted(found)[:groups_max]}

    async def read_items(self, run_id: str, *, after: int = -1, limit: int = PAGE_SIZE_MAX) -> list[ItemResult]:
        """All items of the tree are looked at."""
        if (run := self._state.runs.get(run_id)) is None:
            return []
        items = self._state.trees[run.journal].items.values()
        found = [item for item in items if item.run == run.number and item.index > after]
        return sorted(found, key=lambda item: item.index)[: min(limit, PAGE_SIZE_MAX)]

    # -- Streams ---------------------------------------------------------------------------------------------

    async def append_streams(self, appends: Sequence[StreamAppend], *, limits: StreamLimits) -> list[Appended]:
        """See `StreamTable`."""
        return [self._judge_append(append, limits) for append in appends]

    def _judge_append(self, append: StreamAppend, limits: StreamLimits) -> Appended:
        tree, said = self._state.trees.get(append.journal), append.said
        if tree is None or tree.is_over or tree.root.epoch != append.epoch:
            return Appended.LOST
        states = {key: stream.state for key, stream in tree.streams.items() if key[0] == said.run}
        own = states.setdefault((said.run, said.name), StreamState())
        items, size = sum(each.items for each in states.values()), sum(each.size for each in states.values())
        is_new = not is_there(own, append.mark)
        if is_new and not fits(limits, said.lines, streams=len(states), items=items, size=size):
            return Appended.FULL
        self._append(tree, said, mark=append.mark)
        return Appended.APPENDED

    def _append(self, tree: Tree, said: StreamLines, *, mark: int = 0) -> None:
        stream = tree.streams.get((said.run, said.name)) or Stream(StreamState(), [])
        growth = grow(stream.state, said.lines, mark=mark)
        if growth is not None:
            stream.take(growth)
            tree.streams[said.run, said.name] = stream

    async def read_stream(
        self, run_id: str, name: str, *, after: int = 0, limit: int = CHUNKS_READ_MAX
    ) -> list[StreamChunk]:
        """See `StreamTable`."""
        run = self._state.runs.get(run_id)
        stream = None if run is None else self._state.trees[run.journal].streams.get((run.number, name))
        if stream is None or after >= stream.state.position:
            return []
        begin = max(0, bisect_right(stream.chunks, after + 1, key=lambda chunk: chunk.first) - 1)
        return stream.chunks[begin : begin + limit]

    async def list_streams(self, run_id: str) -> dict[str, int]:
        """See `StreamTable`."""
        run = self._state.runs.get(run_id)
        return {} if run is None else self._state.trees[run.journal].ends_of_streams(run.number)

    def follow(self, ring: Callable[[str], None]) -> bool:
        """See `StreamTable`. There is no other process."""
        return False

    # -- Schedules -------------------------------------------------------------------------------------------

    async def find_due_schedules(self, *, limit: int) -> DueSchedules:
        """All schedules are looked at."""
        now = self.now()
        rows = sorted(
            ((row.next_at, row.name, row) for row in self._state.schedules.values() if row.next_at is not None),
            key=lambda it: it[:2],
        )
        due = [row for next_at, _, row in rows if next_at <= now]
        return DueSchedules(due[:limit], now, next((next_at for next_at, _, _ in rows if next_at > now), None))

    async def find_schedules(self, names: Sequence[str]) -> dict[str, ScheduleRow]:
        """The schedules that exist."""
        return {name: self._state.schedules[name] for name in names if name in self._state.schedules}

    async def list_schedules(self, *, after: str = "", limit: int) -> list[ScheduleRow]:
        """All schedules are looked at."""
        return [self._state.schedules[name] for name in sorted(self._state.schedules) if name > after][:limit]

    async def change_schedules(self, changes: Sequence[ScheduleChange]) -> list[Outcome]:
        """Judge and write one change after the other."""
        return [self._change_schedule(change) for change in changes]

    def _change_schedule(self, change: ScheduleChange) -> Outcome:
        held = self._state.schedules.get(change.name)
        if (0 if held is None else held.revision) != change.revision:
            return Outcome.CONFLICT
        if change.data is None:
            self._state.schedules.pop(change.name, None)
        else:
            row = ScheduleRow(change.name, change.next_at, change.next_revision, change.data)
            self._state.schedules[change.name] = row
        for start in change.starts:
            self._commit(start)
        if change.audit is not None:
            append_audit(self._state, [change.audit], self.now())
        return Outcome.COMMITTED

    @property
    def examiner(self) -> MemoryExaminer:
        """See `Store`."""
        return MemoryExaminer(self._state, put_run=self._put_run, wake_for_inbox=self._wake_for_inbox, now=self.now)


def _list_touched(change: Change) -> set[int]:
    """The trees that a change and its starts write to, apart from new ones."""
    touched = {change.journal, change.successor_of, *(run.journal for run in change.renames)}
    return touched.union(*map(_list_touched, change.starts))
