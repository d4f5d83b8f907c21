"""What a store must answer, written from the contract alone.

As simple as it can be: no indexes, no batches, no fast ways. Everything lies in a `World`; a change is tried on it, and
if it conflicts the world is what it was before. Slow, and easy to believe.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from outlive._kernel.client.finding import GROUP_FIELDS, GROUPS_MAX
from outlive._kernel.journal.codec import Row, salt_of, seal
from outlive._kernel.journal.event import RunClaimed
from outlive._kernel.journal.fold import Fold
from outlive._kernel.model import Run, RunFilter, RunStatus, Wait, WaitKind
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.store.contract import (
    Answer,
    Change,
    Claim,
    Claims,
    Delivery,
    Forgotten,
    InboxMessage,
    ItemResult,
    Message,
    MessageKind,
    MessageRefusal,
    Outcome,
    Watch,
    WorkerInfo,
)
from outlive._kernel.store.streams import Appended, StreamAppend, StreamLimits
from proof.differential.shelf import Shelf
from proof.differential.streams import Stream, appended
from proof.differential.world import Tree, World


class Conflict(Exception):
    """The change cannot be written."""


class Oracle:
    """The verbs of a store, one after the other."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self.now = clock
        self.world = World()
        self.shelf = Shelf()
        self.workers: dict[str, WorkerInfo] = {}
        self.retired: set[str] = set()
        self.notes: list[str] = []

    # -- Writing -------------------------------------------------------------------------------------------

    def commit(self, changes: Sequence[Change]) -> list[tuple[Outcome, int]]:
        """Each change whole or not at all."""
        return [self._try(change) for change in changes]

    def transact(self, changes: Sequence[Change], note: str, behind: Row | None) -> list[tuple[Outcome, int]]:
        """All changes and the note, or nothing."""
        before = copy.copy(self.world)
        is_behind = behind is None or behind in self.world.trees[changes[0].journal].rows
        outcomes = self.commit(changes)
        if is_behind and all(outcome is Outcome.COMMITTED for outcome, _ in outcomes):
            self.notes.append(note)
            return outcomes
        self.world = before
        return [(Outcome.CONFLICT, change.journal) for change in changes]

    def _try(self, change: Change) -> tuple[Outcome, int]:
        before = copy.copy(self.world)
        try:
            return Outcome.COMMITTED, self._write(change)
        except Conflict:
            self.world = before
            return Outcome.CONFLICT, change.journal

    def _write(self, change: Change) -> int:
        trees = self.world.trees
        for run in change.renames:
            self._rename(run)
        journal = change.journal or max(trees, default=0) + 1
        if change.journal == 0:
            trees[journal] = Tree()
        elif (
            journal not in trees
            or trees[journal].tail != change.after
            or trees[journal].has_ended != change.reopens
            or change.prior != trees[journal].rows[-1][2]
        ):
            raise Conflict
        tree = trees[journal]
        if any(self.world.find(run.id) for run in change.runs if run.number not in tree.runs):
            raise Conflict
        tree.rows += change.rows
        for run in change.runs:
            tree.runs[run.number] = replace(run, journal=journal)
            tree.births = max(tree.births, run.number)
        tree.inbox = [message for message in tree.inbox if message.id not in change.consumed]
        for key in change.freed_keys:
            tree.keys.discard(key)
            tree.answers.pop(key, None)
        for blob in change.blobs:
            self.world.blobs[blob.id] = blob.data
        for answer in change.answers:
            self._answer(tree, answer)
        for said in change.streams:
            place = said.run, said.name
            if (grown := tree.streams.get(place, Stream()).said(said.lines)).position:
                tree.streams[place] = grown
        for item in change.items:
            tree.items.setdefault((item.run, item.index), item)
        if change.successor_of in trees and trees[change.successor_of].has_ended:
            inherit = self._inherit_talk if change.lives_on else self._inherit
            inherit(tree, trees[change.successor_of])
        for start in change.starts:
            outcome, _ = self._try(start)
            if outcome is Outcome.CONFLICT and start.successor_of:
                raise Conflict
        for message in change.messages:
            self._post(message, most=None)
        # A start that was left out has put another world here: that from before it.
        tree = self.world.trees[journal]
        if change.forgets is not None:
            self._forget(tree, change.forgets)
        self._wake(tree)
        for run in change.runs:
            if run.number == 0 and run.status.is_terminal and run.status is not RunStatus.CONTINUED:
                self._send_end(run)
        return journal

    def _send_end(self, run: Run) -> None:
        for (run_id, watcher), key in list(self.world.watches.items()):
            if run_id == run.id:
                del self.world.watches[run_id, watcher]
                self._post(Watch(run_id=run_id, watcher=watcher, key=key).message(run, at=self.now()), most=None)

    def _answer(self, tree: Tree, answer: Answer) -> None:
        if answer.key in tree.keys:
            tree.answers.setdefault(answer.key, answer)

    def _rename(self, run: Run) -> None:
        tree = self.world.trees.get(run.journal)
        if tree is None or not tree.has_ended or run.number not in tree.runs:
            return
        taken = self.world.find(run.id)
        if taken and (taken[0], taken[1].number) != (run.journal, run.number):
            raise Conflict
        tree.runs[run.number] = replace(tree.runs[run.number], id=run.id, root_id=run.root_id, parent_id=run.parent_id)

    def _inherit(self, successor: Tree, ancestor: Tree) -> None:
        successor.inbox += [message for message in ancestor.inbox if message.run == 0]
        ancestor.inbox = [message for message in ancestor.inbox if message.run]
        successor.keys |= ancestor.keys
        successor.answers |= ancestor.answers
        ancestor.keys, ancestor.answers = set(), {}
        for key in [key for key in ancestor.streams if key[0] == 0]:
            successor.streams[key] = ancestor.streams.pop(key).inherited()

    def _inherit_talk(self, successor: Tree, ancestor: Tree) -> None:
        talk = (MessageKind.SIGNAL, MessageKind.ASK)
        moved = [message for message in ancestor.inbox if message.run == 0 and message.kind in talk]
        ancestor.inbox = [message for message in ancestor.inbox if message not in moved]
        successor.inbox += moved
        waiting = {message.key for message in moved}
        for key in set(ancestor.keys):
            is_of_ask = key.startswith("@ask/") and (key in waiting or key in ancestor.answers)
            if is_of_ask or not key.startswith("@"):
                ancestor.keys.discard(key)
                successor.keys.add(key)
                if key in ancestor.answers:
                    successor.answers[key] = ancestor.answers.pop(key)

    def _forget(self, tree: Tree, gone: Forgotten) -> None:
        tree.rows = [row for row in tree.rows if row[0] >= gone.before]
        forgotten = {number for number in tree.runs if number and number < gone.below}
        tree.runs = {number: run for number, run in tree.runs.items() if number not in forgotten}
        tree.items = {key: item for key, item in tree.items.items() if key[0] not in forgotten}
        tree.inbox = [message for message in tree.inbox if message.run not in forgotten]
        tree.streams = {key: stream for key, stream in tree.streams.items() if key[0] not in forgotten}

    def _wake(self, tree: Tree) -> None:
        root = tree.runs[0]
        kinds = {message.kind for message in tree.inbox}
        is_called = MessageKind.RESUME in kinds if root.status is RunStatus.PARKED else bool(kinds)
        if is_called and not tree.has_ended and (root.wake_at is None or root.wake_at > self.now()):
            tree.runs[0] = replace(root, wake_at=self.now())

    # -- Messages ------------------------------------------------------------------------------------------

    def deliver(self, messages: Sequence[Message], start: Change | None, most: int) -> list[Delivery]:
        """One by one, after the tree that they may start."""
        if start is not None:
            self._try(start)
        return [self._post(message, most=most) for message in messages]

    def _post(self, message: Message, *, most: int | None) -> Delivery:
        found = self.world.find(message.run_id)
        if found is None:
            return Delivery.UNKNOWN_RUN
        tree, run = self.world.trees[found[0]], found[1]
        if message.key and message.key in tree.keys:
            return Delivery.DUPLICATE
        if tree.has_ended or run.status.is_terminal:
            return Delivery.FINISHED
        if most is not None and len(tree.inbox) >= most:
            return Delivery.FULL
        self.world.messages += 1
        tree.inbox.append(
            InboxMessage(
                id=self.world.messages,
                run=run.number,
                kind=message.kind,
                at=message.at,
                name=message.name,
                key=message.key,
                payload=message.payload,
                ended=message.ended,
            )
        )
        tree.keys |= {message.key} - {""}
        for blob in message.blobs:
            self.world.blobs[blob.id] = blob.data
        self._wake(tree)
        return Delivery.ACCEPTED

    def refuse(self, worker_id: str, refusals: Sequence[MessageRefusal]) -> None:
        """Answer messages of trees that this worker owns."""
        for refusal in refusals:
            tree = self.world.trees.get(refusal.journal)
            if tree is None or tree.has_ended or tree.runs[0].owner != worker_id:
                continue
            if any(message.id == refusal.message for message in tree.inbox):
                tree.inbox = [message for message in tree.inbox if message.id != refusal.message]
                self._answer(tree, refusal.answer)

    def find_answers(self, asks: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Answer | None]:
        """Those of keys that were seen."""
        answers: dict[tuple[str, str], Answer | None] = {}
        for run_id, key in asks:
            found = self.world.find(run_id)
            if found is not None and key in self.world.trees[found[0]].keys:
                answers[run_id, key] = self.world.trees[found[0]].answers.get(key)
        return answers

    def watch_ends(self, watches: Sequence[Watch]) -> dict[str, Run]:
        """Keep those of root runs that are open."""
        runs: dict[str, Run] = {}
        for watch in watches:
            if (found := self.world.find(watch.run_id)) is not None:
                runs[watch.run_id] = found[1]
                if not found[1].number and not found[1].status.is_terminal:
                    self.world.watches[watch.run_id, watch.watcher] = watch.key
        return runs

    def delete(self, journals: Sequence[int], ended_before: int) -> list[int]:
        """Trees that ended before, unless an open run needs them."""
        gone = [journal for journal in journals if journal in self.world.trees and self.may_go(journal, ended_before)]
        for journal in gone:
            root = self.world.trees.pop(journal).runs[0]
            self.world.watches = {pair: key for pair, key in self.world.watches.items() if pair[1] != root.id}
        return gone

    def may_go(self, journal: int, ended_before: int) -> bool:
        """Whether a tree may be deleted."""
        tree = self.world.trees[journal]
        root, ids = tree.runs[0], {run.id for run in tree.runs.values()}
        is_old = tree.has_ended and root.finished_at is not None and root.finished_at < ended_before
        is_needed = False
        for other in self.world.trees.values():
            if other.has_ended:
                continue
            starts = {run.id for run in other.runs.values() if run.created_at <= root.created_at}
            waits = {wait.name for run in other.runs.values() for wait in run.waits}
            is_needed |= root.parent_id in starts or other.runs[0].parent_id in ids or bool(waits & ids)
        return is_old and not is_needed

    def append_streams(self, appends: Sequence[StreamAppend], limits: StreamLimits) -> list[Appended]:
        """One by one, each by the owner of its tree alone."""
        answers = []
        for append in appends:
            tree = self.world.trees.get(append.journal)
            if tree is None or tree.has_ended or tree.runs[0].epoch != append.epoch:
                answers.append(Appended.LOST)
            else:
                answers.append(appended(tree.streams, append.said, append.mark, limits))
        return answers

    # -- Workers -------------------------------------------------------------------------------------------

    def register(self, worker: WorkerInfo, lease_seconds: float) -> None:
        """Begin a session."""
        self.workers[worker.id] = worker
        self.retired.discard(worker.id)
        self.renew(worker.id, lease_seconds)

    def renew(self, worker_id: str, lease_seconds: float) -> bool:
        """Extend a lease."""
        if worker_id not in self.workers or worker_id in self.retired:
            return False
        expires_at = self.now() + round(lease_seconds * MICROSECONDS)
        self.workers[worker_id] = replace(self.workers[worker_id], expires_at=expires_at)
        return True

    def is_live(self, worker_id: str) -> bool:
        """Whether its lease holds."""
        worker = self.workers.get(worker_id)
        return worker is not None and worker_id not in self.retired and worker.expires_at > self.now()

    def list_workers(self) -> list[WorkerInfo]:
        """Those that live or own trees."""
        owners = [tree.runs[0].owner for tree in self.world.trees.values() if not tree.has_ended]
        workers = [
            replace(worker, is_live=self.is_live(worker.id), runs=owners.count(worker.id))
            for worker in self.workers.values()
        ]
        return [worker for worker in workers if worker.is_live or worker.runs]

    def retire(self, worker_id: str) -> None:
        """End a session, and its lease with it."""
        worker = self.workers.get(worker_id)
        if worker is not None and worker_id not in self.retired:
            self.workers[worker_id] = replace(worker, expires_at=min(worker.expires_at, self.now()))
        self.retired.add(worker_id)

    def is_left_alone(self, owner: str, stale_seconds: float) -> bool:
        """Whether no worker may take what this owner has."""
        if owner not in self.workers:
            return False
        lost_at = self.workers[owner].expires_at + round(stale_seconds * MICROSECONDS)
        return self.is_live(owner) or (stale_seconds > 0 and self.now() < lost_at)

    def list_claimable(self, definitions: Sequence[str], stale_seconds: float = 0) -> list[tuple[int, int]]:
        """Wake-ups and trees that no living worker owns, earliest first."""
        found = []
        for journal, tree in self.world.trees.items():
            root = tree.runs[0]
            is_free = not tree.has_ended and not self.is_left_alone(root.owner, stale_seconds)
            if is_free and root.definition in definitions and root.wake_at is not None:
                found.append((root.wake_at, journal))
        return sorted(found)

    def is_orphan(self, journal: int) -> bool:
        """Whether a tree has an owner (a dead one, if it can be claimed)."""
        return bool(self.world.trees[journal].runs[0].owner)

    def claim(
        self,
        worker_id: str,
        definitions: Sequence[str],
        limit: int,
        orphans_max: int | None = None,
        stale_seconds: float = 0,
    ) -> Claims:
        """Take what is due."""
        if not self.is_live(worker_id):
            return Claims([], None)
        claimable = self.list_claimable(definitions, stale_seconds)
        due: list[int] = []
        for wake_at, journal in claimable:
            is_one_too_many = self.is_orphan(journal) and sum(map(self.is_orphan, due)) == orphans_max
            if wake_at <= self.now() and len(due) < limit and not is_one_too_many:
                due.append(journal)
        has_all_orphans = sum(map(self.is_orphan, due)) == orphans_max
        left = [(wake_at, journal) for wake_at, journal in claimable if journal not in due]
        later = [wake_at for wake_at, journal in left if not (has_all_orphans and self.is_orphan(journal))]
        return Claims([self._claim(journal, worker_id) for journal in due], later[0] if later else None)

    def _claim(self, journal: int, worker_id: str) -> Claim:
        tree = self.world.trees[journal]
        root, seq = tree.runs[0], tree.tail + 1
        event = RunClaimed(
            at=self.now(),
            worker=worker_id,
            epoch=root.epoch + 1,
            interrupted=bool(root.owner),
            begins=root.epoch == 0,
        )
        fold = Fold(root.root_id)
        fold.runs[0] = root
        fold.apply(event)
        prior, row = tree.rows[-1][2], seal(event, salt=salt_of(root.nonce), seq=seq)
        tree.rows.append(row)
        tree.runs[0] = fold.root
        return Claim(fold.root, seq, prior=prior, crc=row[2], interrupted=event.interrupted)

    # -- Reading -------------------------------------------------------------------------------------------

    def list_runs(self, wanted: RunFilter) -> list[Run]:
        """All of them, newest first."""
        runs = sorted((run for _, run in self.world.each_run()), key=lambda run: (run.created_at, run.id))
        return [run for run in reversed(runs) if passes(run, wanted)]

    def count_groups(self, runs: list[Run], limit: int) -> dict[str, int]:
        """How many of them each group has."""
        by = GROUP_FIELDS[limit % 3]
        names = [run.status.value if by == "status" else getattr(run, by) for run in runs]
        return {name: min(names.count(name), limit) for name in sorted(set(names))[:GROUPS_MAX]}

    def read_items(self, run_id: str, after: int, limit: int) -> list[ItemResult]:
        """By index."""
        found = self.world.find(run_id)
        if found is None:
            return []
        items = self.world.trees[found[0]].items
        return [items[key] for key in sorted(items) if key[0] == found[1].number and key[1] > after][:limit]


def passes(run: Run, wanted: RunFilter) -> bool:
    """Whether the filter lets the run through."""
    if wanted.statuses and run.status not in wanted.statuses:
        return False
    if wanted.roots_only and run.number:
        return False
    if any(run.tags.get(name) != value for name, value in wanted.tags.items()):
        return False
    if wanted.since_at is not None and run.created_at < wanted.since_at:
        return False
    if wanted.until_at is not None and run.created_at >= wanted.until_at:
        return False
    if wanted.ids and run.id not in wanted.ids:
        return False
    if wanted.finished_since_at is not None and (run.finished_at or -1) < wanted.finished_since_at:
        return False
    if wanted.finished_until_at is not None and not (run.finished_at and run.finished_at < wanted.finished_until_at):
        return False
    if run.id[: len(wanted.id_prefix or "")] != (wanted.id_prefix or ""):
        return False
    if wanted.error is not None and (run.failure is None or wanted.error not in _names_of(run.failure.type)):
        return False
    if wanted.waiting_for is not None and Wait(WaitKind.SIGNAL, wanted.waiting_for) not in run.waits:
        return False
    if wanted.hides_internal and run.workflow.startswith("outlive.batch.step:"):
        return False
    if wanted.sleeps and all(wait.kind is not WaitKind.TIMER for wait in run.waits):
        return False
    asked_of = [name for request in run.approvals for name in ("", *request.assignees)]
    if wanted.asks is not None and wanted.asks not in asked_of:
        return False
    if wanted.overdue_at is not None and not (
        run.begin_by and not run.finished_at and run.begin_by < wanted.overdue_at
    ):
        return False
    asked = [(wanted.queue, run.queue), (wanted.workflow, run.workflow), (wanted.version, run.version)]
    asked += [(wanted.root_id, run.root_id)]
    asked += [(wanted.parent_id, run.parent_id or ""), (wanted.owner, run.owner)]
    return all(wanted is None or wanted == fact for wanted, fact in asked)


def _names_of(error: str) -> list[str]:
    """What the class of an exception may be called: `Broken` and `app.Broken`."""
    parts = error.split(".")
    return [".".join(parts[start:]) for start in range(len(parts))]
