"""Changes of any number of trees, written with a handful of statements.

A batch is optimistic: it is written as if nothing conflicted, and the fence in commit_rows.sql makes the whole of
it fail if something does (`Conflict`). Only then each change is looked at (`commit`). An id that is taken
is not an accident but a normal answer to a start, so ids are looked up before.

A tree that goes on as another one (it ends, and starts its successor under its own id) is part of a batch as well,
because a busy engine does it all the time: the ids that become free are those of the tree that ends. Any other rename
is rare and left to the careful way.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import apsw
from msgspec.structs import replace

from outlive._kernel.model import Run
from outlive._kernel.model.payload import Blob
from outlive._kernel.model.queue import queue_cell, queue_in
from outlive._kernel.model.run import IN_LINE, OUTSIDE
from outlive._kernel.store.change import has_final_end
from outlive._kernel.store.contract import NO_LIMIT, Action, Change, Forgotten, Message, Outcome
from outlive._kernel.store.sqlite.audit import put_audit
from outlive._kernel.store.sqlite.cells import read_cell
from outlive._kernel.store.sqlite.connection import Session
from outlive._kernel.store.sqlite.deleting import put_blob
from outlive._kernel.store.sqlite.inbox import inherit, put_messages, wake_for_inbox
from outlive._kernel.store.sqlite.query import Value, bulk
from outlive._kernel.store.sqlite.rows import birth_of, decode_strings, state_of
from outlive._kernel.store.sqlite.streams import put_lines
from outlive._kernel.store.sqlite.watches import send_ends
from outlive._kernel.store.streams import StreamLines
from outlive._kernel.store.tables.journal_rows import Conflict, JournalRows
from outlive._kernel.store.tables.order import all_of, can_write_at_once
from outlive._kernel.store.tables.rows import answer_to_json, item_columns, to_json, to_json_or_null

HANDLE_MILLISECONDS = 2**42
HANDLE_BITS = 21


class Batch:
    """Collects changes, then writes them."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._rows = JournalRows()
        self._new_roots: list[Value] = []
        self._roots: dict[int, Run] = {}
        self._children: dict[tuple[int, int], Run] = {}
        self._tagged: list[str] = []
        self._lined: list[int] = []
        self._retagged: list[tuple[int, int, str | None]] = []
        self._requeued: list[tuple[int, Run]] = []
        self._consumed: list[tuple[int, int]] = []
        self._keys: list[tuple[int, str]] = []
        self._answers: list[Value] = []
        self._items: list[Value] = []
        self._streams: list[tuple[int, StreamLines]] = []
        self._blobs: dict[str, Blob] = {}
        self._messages: list[Message] = []
        self._renames: list[Run] = []
        self._audit: list[Action] = []
        self._forgotten: list[tuple[int, Forgotten]] = []
        self._successors: dict[int, tuple[int, Run, bool]] = {}
        self._taken: set[str] = set()
        self._closed: set[str] = set()
        """Queues in which no new run may begin at once."""
        self._key: int
        """The key of the last tree in the store; read when there are new ones."""

    def add(self, changes: Sequence[Change]) -> list[tuple[Outcome, int]]:
        """Take changes in order, once for a batch, and say what becomes of each if the batch can be written."""
        if not can_write_at_once(changes):
            raise Conflict
        newcomers = [root_of(change) for change in all_of(changes) if not change.journal]
        if newcomers:
            eager = {change.eager for change in changes if change.eager}
            self._closed = {queue for queue in eager if not _is_open(self._session, queue)}
            ids, first = to_json([root.id for root in newcomers]), first_handle(self._session.clock())
            key, taken = self._session.fetch("find_taken_ids", ids, first) or (0, "[]")
            assert isinstance(key, int)
            assert isinstance(taken, str)
            self._key, self._taken = key, set(decode_strings(taken))
        return [self._add(change) for change in changes]

    def _add(self, change: Change, ended: Run | None = None) -> tuple[Outcome, int]:
        """Take a change, which the change that writes `ended`, the root of an ending tree, may have started."""
        if change.eager in self._closed:
            return Outcome.MUST_WAIT, 0
        if change.renames:
            self._make_room(change, ended)
        journal = change.journal or self._create(change)
        if not journal:
            if change.successor_of:
                raise Conflict  # A tree does not end without its successor: the change that starts it conflicts, too.
            return Outcome.CONFLICT, 0
        is_last = False
        root: Run | None = None
        for run in change.runs:
            if run.number:
                self._children[journal, run.number] = run
            else:
                is_last, root = run.status.is_terminal, run
                if change.journal:
                    self._roots[journal] = run
                if change.requeued:
                    self._requeued.append((journal, run))
                if run.slot == IN_LINE:
                    self._lined.append(journal)
                    self._closed.add(run.queue)  # Later runs do not overtake it.
                elif run.queue and run.slot == OUTSIDE:
                    self._session.made_due = True  # There is a slot for those in line.
            if run.tags and (run.number or not change.journal):
                self._tagged.append(run.id)
            if change.retagged and run.number in change.retagged:
                self._retagged.append((journal, run.number, to_json_or_null(run.tags)))
                self._tagged.append(run.id)
        self._rows.add(change, journal, is_last=is_last)
        if change.consumed:
            self._consumed += [(id, journal) for id in change.consumed]
        for blob in change.blobs:
            self._blobs[blob.id] = blob
        self._keys += [(journal, key) for key in change.keys]
        for answer in change.answers:
            self._answers += (journal, answer.key, answer_to_json(answer))
        for item in change.items:
            self._items += (journal, item.run, item.index, *item_columns(item))
        self._streams += [(journal, said) for said in change.streams]
        for start in change.starts:
            self._add(start, replace(root, journal=journal) if is_last and root is not None else None)
        self._messages += change.messages
        self._audit += change.audit
        if change.forgets is not None:
            self._forgotten.append((journal, change.forgets))
        return Outcome.COMMITTED, journal

    def _make_room(self, change: Change, ended: Run | None) -> None:
        """Take the renames of a change."""
        if ended is None:
            raise Conflict  # Which ids are free is known only after the renames.
        self._renames += change.renames
        if any(not run.number for run in change.renames):
            self._taken.discard(ended.id)

    def _create(self, change: Change) -> int:
        """The handle of a new journal, 0 if the id of its root is taken."""
        root = root_of(change)
        if root.id in self._taken:
            return 0
        self._taken.add(root.id)
        self._key += 1
        self._session.made_due |= not root.owner
        self._new_roots += birth_of(root, key=self._key, journal=self._key)
        if change.successor_of:
            self._successors[self._key] = change.successor_of, root, change.lives_on
        return self._key

    def write(self) -> None:
        """Write everything that was added.

        Raises:
            Conflict: some change of the batch conflicts; whatever was written has to be rolled back.
        """
        try:
            if self._renames:
                # Only a tree that has ended makes room, and there must be room for the others.
                self._put_tree_rows()
                self._rename()
            self._put("create_runs", self._new_roots)
            self._put("commit_rows", list(chain.from_iterable(self._rows.rows)))
        except apsw.ConstraintError as error:
            raise Conflict from error
        if self._renames:
            self._put_tags()
        else:
            self._put_tree_rows()
        for journal, run in self._requeued:
            queue_key = run.queue_key if run.queue else None
            self._session.execute("requeue_run", journal, run.queue or None, queue_key, run.lead)
        if self._lined:
            self._session.execute("put_lines", to_json(self._lined))
        if self._consumed:
            self._session.execute("delete_messages", to_json(self._consumed))
        for journal, said in self._streams:
            put_lines(self._session, journal, said)
        for key in self._keys:
            self._session.execute("put_message_key", *key)
        # Before a successor takes the keys over, and their answers with them.
        self._put("put_answers", self._answers)
        for successor, (ancestor, _, lives_on) in self._successors.items():
            inherit(self._session, ancestor, successor, lives_on=lives_on)
        for blob in self._blobs.values():
            put_blob(self._session, blob)
        self._put("put_items", self._items)
        if self._messages:
            put_messages(self._session, self._messages, inbox_messages_max=NO_LIMIT)
        if ended := {run.id: run for run in self._roots.values() if has_final_end(run)}:
            send_ends(self._session, ended)
        for journal, forgotten in self._forgotten:
            self._forget(journal, forgotten)
        if self._audit:
            put_audit(self._session, self._audit)
        self._wake_for_inbox()

    def _forget(self, journal: int, forgotten: Forgotten) -> None:
        self._session.execute("forget_events", journal, forgotten.before)
        for verb in (
            "forget_items",
            "forget_chunks",
            "forget_streams",
            "forget_messages",
            "forget_tags",
            "forget_runs",
        ):
            self._session.execute(verb, journal, forgotten.below)

    def _put_tree_rows(self) -> None:
        self._put_roots()
        self._put_children()
        self._retag()
        self._put_tags()

    def _retag(self) -> None:
        for journal, number, tags in self._retagged:
            self._session.execute("forget_tags_of_run", journal, number)
            self._session.execute("retag_run", journal, number, tags)

    def _put_tags(self) -> None:
        if self._tagged:
            self._session.execute("put_tags", to_json(self._tagged))

    def _put_roots(self) -> None:
        values: list[Value] = []
        for journal, run in self._roots.items():
            values += (journal, *state_of(run))
        if self._put("update_runs", values) != len(self._roots):
            raise Conflict

    def _rename(self) -> None:
        for run in self._renames:
            rename(self._session, run)

    def _put_children(self) -> None:
        values: list[Value] = []
        for (journal, _), run in self._children.items():
            values += birth_of(run, key=None, journal=journal)
        try:
            self._put("put_children", values)
        except apsw.ConstraintError as error:
            raise Conflict from error

    def _wake_for_inbox(self) -> None:
        """See to messages that came while the writer of a tree released it."""
        now = self._session.clock()
        roots = self._roots | {journal: root for journal, (_, root, _) in self._successors.items()}
        asleep: list[int] = []
        for journal, run in roots.items():
            if run.status.is_terminal:
                continue
            if run.wake_at is None or run.wake_at > now:
                asleep.append(journal)
            else:
                self._session.made_due |= not run.owner
        wake_for_inbox(self._session, asleep)

    def _put(self, name: str, values: list[Value]) -> int:
        """Write rows; the number that was written."""
        connection, written = self._session.connection, 0
        for statement, part in bulk(name, values):
            connection.execute(statement, part)
            written += connection.changes()
        return written


def rename(session: Session, run: Run) -> None:
    """Give a run of an ended tree another id."""
    session.execute("rename_run", run.journal, run.number, run.id, run.root_id, run.parent_id)


def first_handle(now: int) -> int:
    """The lowest handle of a journal that is created at this instant: its millisecond, and room to count from there."""
    return (now // 1_000 % HANDLE_MILLISECONDS) << HANDLE_BITS


def root_of(change: Change) -> Run:
    """The root run of a change that creates a tree."""
    for run in change.runs:
        if run.number == 0:
            return run
    raise AssertionError("a new journal needs the row of its root run")


def _is_open(session: Session, queue: str) -> bool:
    """Whether a new run may begin in a queue at once: nothing is limited there, and no run is in line."""
    return queue_in(read_cell(session, queue_cell(queue))).is_open and session.fetch("has_line", queue) == (0,)
