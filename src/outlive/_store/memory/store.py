"""The verbs on dictionaries.

Everything lives in a `MemoryState` until the process ends. A store is a connection to it, and `share()` gives another
one, so that two workers can contend in one process. There are no threads and no locks: a verb never awaits, so nothing
can happen in the middle of it. A verb first judges and then writes. What comes in is frozen; what goes out is a new
list of frozen values. What each verb promises is written in `outlive._store.contract` and not repeated here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Sequence
from typing import Any, TypeVar

from msgspec.structs import asdict, replace

from outlive._journal.claiming import claim_of
from outlive._journal.codec import Row, salt_of, seal
from outlive._model import Run, RunStatus
from outlive._model.payload import Blob
from outlive._store.cell import CellChange
from outlive._store.contract import (
    TRANSACTION_SECONDS_MAX,
    Change,
    Claim,
    Claims,
    Delivery,
    Forgotten,
    Inbound,
    Message,
    MessageKind,
    Outcome,
)
from outlive._store.memory.checkpoints import MemoryCheckpoints
from outlive._store.memory.examine import MemoryExaminer
from outlive._store.memory.reading import MemoryReads
from outlive._store.memory.sessions import MemorySessions
from outlive._store.memory.state import MemoryState, Tree
from outlive._store.memory.transaction import MemoryTransaction
from outlive.errors import ConfigurationError

T = TypeVar("T")


class MemoryStore(MemoryReads, MemorySessions, MemoryCheckpoints):
    """A store that forgets everything when the process ends."""

    def __init__(self, *, clock: Callable[[], int], state: MemoryState | None = None) -> None:
        self._clock = clock
        self._state = state or MemoryState()
        self._transaction: MemoryTransaction | None = None

    def share(self) -> MemoryStore:
        """Another store on the same state."""
        return type(self)(clock=self._clock, state=self._state)

    async def open(self) -> None:
        """There is nothing to connect to."""

    async def close(self) -> None:
        """Only what a step has left open is let go of: the other stores on this state go on."""
        if self._transaction is not None:
            self._transaction.abandon("the store was closed")

    def now(self) -> int:
        """The clock that was given."""
        return self._clock()

    async def commit(self, changes: Sequence[Change]) -> list[tuple[Outcome, int]]:
        """Judge and write one change after the other."""
        return [self._commit(change) for change in changes]

    def _commit(self, change: Change) -> tuple[Outcome, int]:
        tree = self._find_writable(change)
        if tree is None:
            return Outcome.CONFLICT, change.journal
        has_heirs = any(start.heir_of for start in change.starts)
        go_back = self._state.save(_list_touched(change)) if has_heirs else None
        self._write(tree, change)
        for start in change.starts:
            outcome, _ = self._commit(start)
            if outcome is Outcome.CONFLICT and start.heir_of and go_back is not None:
                go_back()
                return Outcome.CONFLICT, change.journal
        for message in change.messages:
            self._deliver(message, inbox_messages_max=None)
        return Outcome.COMMITTED, tree.journal

    def _find_writable(self, change: Change) -> Tree | None:
        """The tree that the change may write to, a new one if it creates it; None if it conflicts."""
        assert change.rows, "a change without a row proves nothing"
        assert all(row[0] == seq for seq, row in enumerate(change.rows, change.after + 1)), "a gap"
        taken = self._list_taken(change)
        if taken is None:
            return None
        tree = Tree(len(self._state.trees) + 1) if change.journal == 0 else self._state.trees.get(change.journal)
        if tree is None:
            return None
        for run in change.runs:
            if run.number not in tree.runs and run.id in taken:
                return None
        if change.journal == 0:
            return tree
        if tree.rows[-1][0] != change.after or tree.root.status.is_terminal:
            return None
        return tree

    def _list_taken(self, change: Change) -> Container[str] | None:
        """The ids that are taken after the renames of a change; None if one of these has no room."""
        if not change.renames:
            return self._state.runs.keys()
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
        for blob in change.blobs:
            self._state.blobs.setdefault(blob.id, blob.data)
        for item in change.items:
            tree.items.setdefault((item.run, item.index), item)
        if change.heir_of:
            self._inherit(tree, change.heir_of)
        self._forget(tree, change.forgets)
        # The writer may not have seen the mail that came while it let go of the tree.
        self._wake_for_mail(tree)

    def _inherit(self, heir: Tree, ancestor: int) -> None:
        """Move keys, and messages to the root, from an ended tree."""
        tree = self._state.trees.get(ancestor)
        if tree is not None and tree.is_over:
            heir.inbox |= {id: message for id, message in tree.inbox.items() if message.run == 0}
            tree.inbox = {id: message for id, message in tree.inbox.items() if message.run}
            heir.keys, tree.keys = heir.keys | tree.keys, set()

    def _forget(self, tree: Tree, forgotten: Forgotten | None) -> None:
        if forgotten is not None:
            tree.rows = [row for row in tree.rows if row[0] >= forgotten.before]
            tree.items = {key: item for key, item in tree.items.items() if not 0 < key[0] < forgotten.below}
            tree.inbox = {id: mail for id, mail in tree.inbox.items() if not 0 < mail.run < forgotten.below}
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
        del connection, change
        raise ConfigurationError(
            "the in-memory store has no transactions to share; starting a run in your own needs PostgreSQL"
        )

    async def put_blobs(self, blobs: Sequence[Blob]) -> None:
        """Equal content has an equal id."""
        self._state.blobs.update((blob.id, blob.data) for blob in blobs)

    async def change_cell(self, name: str, change: CellChange[T]) -> T:
        """Nothing can happen in the middle of it."""
        self._state.cells[name], answer = change(self._state.cells.get(name), self.now())
        return answer

    def watch(self, ring: Callable[[], None]) -> None:
        """Never rings: there is no other process that could make something due."""

    async def claim_runs(
        self,
        worker_id: str,
        definitions: Sequence[str],
        *,
        limit: int,
        orphans_max: int | None = None,
        stale_seconds: float = 0,
        declined: Collection[tuple[int, int]] = (),
    ) -> Claims:
        """Take the trees that are due; the first one that is left says when to come again."""
        if not self._is_live(worker_id):
            return Claims([], None)
        now = self.now()
        due: list[Tree] = []
        left: list[Tree] = []
        orphans = 0
        for wake_at, journal, tree in self._list_claimable(definitions, stale_seconds):
            if (journal, wake_at) in declined:
                continue
            is_orphan = bool(tree.root.owner)
            is_taken = wake_at <= now and len(due) < limit and not (is_orphan and orphans == orphans_max)
            (due if is_taken else left).append(tree)
            orphans += is_taken and is_orphan
        later = [tree.root.wake_at for tree in left if not (tree.root.owner and orphans == orphans_max)]
        return Claims([self._claim(tree, worker_id, now) for tree in due], later[0] if later else None)

    def _list_claimable(self, definitions: Sequence[str], stale_seconds: float = 0) -> list[tuple[int, int, Tree]]:
        """Trees that nobody alive owns, with their wake-ups, earliest first."""
        kept = {worker_id for worker_id in self._state.workers if not self._is_lost(worker_id, stale_seconds)}
        free = [tree for tree in self._state.active.values() if tree.root.owner not in kept]
        ours = [tree for tree in free if tree.root.definition in definitions]
        return sorted((tree.root.wake_at, tree.journal, tree) for tree in ours if tree.root.wake_at is not None)

    def _claim(self, tree: Tree, worker_id: str, now: int) -> Claim:
        root = tree.root
        event, claimed = claim_of(root, worker_id=worker_id, at=now)
        tree.rows.append(seal(event, salt=salt_of(root.nonce), seq=tree.rows[-1][0] + 1))
        self._put_run(tree, claimed)
        return Claim(tree.root, tree.rows[-1][0], interrupted=event.interrupted)

    async def deliver(
        self, messages: Sequence[Message], *, start: Change | None = None, inbox_messages_max: int
    ) -> list[Delivery]:
        """Create the tree if that is asked for, then judge one message after the other."""
        if start is not None:
            self._commit(start)
        return [self._deliver(message, inbox_messages_max=inbox_messages_max) for message in messages]

    def _deliver(self, message: Message, *, inbox_messages_max: int | None) -> Delivery:
        run = self._state.runs.get(message.run_id)
        if run is None:
            return Delivery.UNKNOWN_RUN
        tree = self._state.trees[run.journal]
        if message.key in tree.keys:
            return Delivery.DUPLICATE
        if tree.root.status.is_terminal or run.status.is_terminal:
            return Delivery.FINISHED
        if inbox_messages_max is not None and len(tree.inbox) >= inbox_messages_max:
            return Delivery.FULL
        self._accept(tree, run.number, message)
        return Delivery.ACCEPTED

    def _accept(self, tree: Tree, number: int, message: Message) -> None:
        self._state.messages += 1
        fields = asdict(message)
        del fields["run_id"], fields["blobs"]
        self._state.blobs.update((blob.id, blob.data) for blob in message.blobs)
        tree.inbox[self._state.messages] = Inbound(id=self._state.messages, run=number, **fields)
        if message.key:
            tree.keys.add(message.key)
        self._wake_for_mail(tree)

    def _wake_for_mail(self, tree: Tree) -> None:
        """Make a tree due that has mail; a parked one only if a RESUME is among it."""
        root, now = tree.root, self.now()
        if root.status.is_terminal or (root.wake_at is not None and root.wake_at <= now):
            return
        kinds = {message.kind for message in tree.inbox.values()}
        if MessageKind.RESUME in kinds or (kinds and root.status is not RunStatus.PARKED):
            self._put_run(tree, replace(root, wake_at=now))

    @property
    def examiner(self) -> MemoryExaminer:
        """See `Store`."""
        return MemoryExaminer(self._state, put_run=self._put_run, wake_for_mail=self._wake_for_mail, now=self.now)


def _list_touched(change: Change) -> set[int]:
    """The trees that a change and its starts write to, apart from new ones."""
    touched = {change.journal, change.heir_of, *(run.journal for run in change.renames)}
    return touched.union(*map(_list_touched, change.starts))
