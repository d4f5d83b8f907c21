"""Changes of any number of trees, as the arrays that one statement takes.

A batch is optimistic: it is written as if nothing conflicted, and the fence makes the whole of it fail if something
does (`Conflict`). Only then each change is looked at (`commit`). An id that is taken is not an accident but
a normal answer to a start: the statement leaves such a tree out and says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from outlive._kernel.model import Run
from outlive._kernel.model.queue import queue_cell
from outlive._kernel.model.run import IN_LINE, OUTSIDE
from outlive._kernel.store.contract import NO_LIMIT, Answer, Change, Message, Outcome
from outlive._kernel.store.postgres.audit import audited
from outlive._kernel.store.postgres.query import BLOB_COLUMNS, EVENT_COLUMNS
from outlive._kernel.store.postgres.rows import birth_of, state_of, to_text
from outlive._kernel.store.postgres.streams import to_lines
from outlive._kernel.store.tables.columns import RUN_COLUMNS, STATE_COLUMNS
from outlive._kernel.store.tables.journal_rows import Conflict, JournalRows, plain_rows
from outlive._kernel.store.tables.rows import answer_to_json, item_columns, message_columns, tags_to_json, to_json

Values = list[Any]


def columns_of(rows: Sequence[Sequence[Any]], count: int) -> Values:
    """Rows as one array for each of their columns; NULLs when there are none."""
    return [list(column) for column in zip(*rows, strict=True)] if rows else [None] * count


def plan_rows(changes: Sequence[Change]) -> Values | None:
    """The parameters of commit_rows.sql, if there is nothing but rows."""
    rows = plain_rows(changes, with_guarded=False)
    if rows is None:
        return None
    journal, seq, after, prior, format_, crc, _, body = columns_of(
        sorted(rows, key=_journal_and_seq), len(EVENT_COLUMNS)
    )
    return [journal, seq, after, prior, format_, crc, body]


def _journal_and_seq(row: Sequence[Any]) -> tuple[int, int]:
    return row[0], row[1]


class Batch:
    """Collects changes, then gives the parameters of commit_changes.sql."""

    def __init__(self, handles: Iterable[int]) -> None:
        self._handles = iter(handles)
        self._rows = JournalRows()
        self._roots: dict[int, Run] = {}
        self._new_roots: list[tuple[Any, ...]] = []
        self._children: dict[tuple[int, int], Run] = {}
        self._blobs: list[tuple[Any, ...]] = []
        self._messages: list[dict[str, Any]] = []
        self._messages_max = NO_LIMIT
        self._rest: dict[str, list[Any]] = {}
        self._journals: list[int] = []
        self._ids: set[str] = set()
        self._lined: set[tuple[str, str, str]] = set()
        self._eager: dict[int, dict[str, Any]] = {}
        """The queues of new runs that want to begin at once, and whether one that gets in line comes before them."""

    @property
    def creates(self) -> bool:
        """Whether there are new trees in it."""
        return bool(self._new_roots)

    def add(self, change: Change) -> None:
        """Take a change."""
        self._journals.append(self._add(change))

    def post(self, messages: Sequence[Message], *, messages_max: int = NO_LIMIT) -> None:
        """Take messages; they are judged when all changes have been written."""
        for message in messages:
            self._messages.append(_message(message))
            number = len(self._messages)
            self._blobs += [(0, number, blob.id, blob.data) for blob in message.blobs]
        self._messages_max = messages_max

    def _add(self, change: Change) -> int:
        journal = change.journal or next(self._handles)
        is_last = False
        for run in change.runs:
            if run.number:
                self._children[journal, run.number] = run
            else:
                is_last = run.status.is_terminal
                if change.journal:
                    self._roots[journal] = run
                else:
                    self._create(change, run, journal)
                if change.requeued:
                    queue, key = (to_text(run.queue), to_text(run.queue_key)) if run.queue else (None, None)
                    fields = {"journal": journal, "queue": queue, "queue_key": key, "lead": run.lead}
                    self._note("requeued", fields)
                if run.queue:
                    self._note_slot(run)
            if run.tags and (run.number or not change.journal):
                self._note("tagged", {"journal": journal, "number": run.number})
            if change.retagged and run.number in change.retagged:
                tags = tags_to_json(run.tags, to_text)
                self._note("retagged", {"journal": journal, "number": run.number, "tags": tags})
                self._note("tagged", {"journal": journal, "number": run.number})
        self._rows.add(change, journal, is_last=is_last)
        self._blobs += [(journal, None, blob.id, blob.data) for blob in change.blobs]
        for message_id in change.consumed:
            self._note("consumed", {"id": message_id, "journal": journal})
        for key in change.keys:
            self._note("keys", {"journal": journal, "key": to_text(key)})
        for answer in change.answers:
            self._note("answers", answer_of(answer, journal))
        for item in change.items:
            result, failure = item_columns(item)
            fields = {"journal": journal, "run": item.run, "index": item.index, "result": result, "failure": failure}
            self._note("items", fields)
        for said in change.streams:
            self._note("streams", to_lines(journal, said))
        if change.rings:
            self._note("rings", to_text(change.rings))
        for run in change.renames:
            fields = {"journal": run.journal, "number": run.number, "id": run.id}
            self._note("renames", fields | {"root_id": run.root_id, "parent_id": run.parent_id})
        if change.successor_of and not change.journal:
            fields = {"journal": journal, "successor_of": change.successor_of, "lives_on": change.lives_on}
            self._note("successors", fields)
        if change.is_guarded and change.journal:
            self._note("guarded", journal)
        if change.forgets is not None:
            before, below = change.forgets.before, change.forgets.below
            self._note("forgets", {"journal": journal, "before": before, "below": below})
        for action in change.audit:
            self._note("audit", audited(action) | {"journal": journal})
        for start in change.starts:
            self._add(start)
        self.post(change.messages)
        return journal

    def _create(self, change: Change, root: Run, journal: int) -> None:
        if root.id in self._ids:
            raise Conflict("two new trees with one id")
        self._ids.add(root.id)
        self._new_roots.append(birth_of(root, key=journal, journal=journal))
        if change.eager:
            queue = to_text(change.eager)
            is_behind = any(line[0] == queue for line in self._lined)
            self._eager[journal] = {"cell": to_text(queue_cell(change.eager)), "queue": queue, "is_behind": is_behind}
        if (
            change.starts
            or change.messages
            or change.items
            or change.keys
            or change.renames
            or change.successor_of
            or change.consumed
            or change.streams
        ):
            self._note("must", journal)

    def _note_slot(self, root: Run) -> None:
        if root.slot == IN_LINE:
            self._lined.add(line_of(root))
        elif root.slot == OUTSIDE:
            self._note("freed", to_text(root.queue))

    def _note(self, kind: str, what: Any) -> None:
        self._rest.setdefault(kind, []).append(what)

    def values(self, *, now: int | None, channel: str | None, rings_channel: str | None = None) -> Values:
        """The parameters of commit_changes.sql."""
        children = [birth_of(run, key=None, journal=journal) for (journal, _), run in self._children.items()]
        roots = [(key, *state_of(run)) for key, run in sorted(self._roots.items())]
        rest: dict[str, Any] = dict(self._rest)
        if self._lined:
            rest["lined"] = sorted(self._lined)
        if self._eager:
            rest["eager"] = [{"journal": journal, **place} for journal, place in self._eager.items()]
        if "rings" in rest and rings_channel is not None:
            rest["rings_channel"] = rings_channel
        else:
            rest.pop("rings", None)
        if self._messages:
            rest |= {"messages": self._messages, "messages_max": self._messages_max}
        return [
            now,
            channel,
            *columns_of(self._rows.rows, len(EVENT_COLUMNS)),
            *columns_of(roots, 1 + len(STATE_COLUMNS)),
            *columns_of(self._new_roots + children, len(RUN_COLUMNS)),
            *columns_of(self._blobs, len(BLOB_COLUMNS)),
            to_json(rest) if rest else None,
        ]

    def outcomes(self, lost: Sequence[int] | None) -> list[tuple[Outcome, int]]:
        """The outcomes of the changes, in order, when the trees in `lost` were not created."""
        if not lost:
            return [(Outcome.COMMITTED, journal) for journal in self._journals]
        gone = set(lost)
        return [
            # If its id is taken, that is found when it gets in line.
            (Outcome.MUST_WAIT if journal in self._eager else Outcome.CONFLICT, 0)
            if journal in gone
            else (Outcome.COMMITTED, journal)
            for journal in self._journals
        ]


def line_of(root: Run) -> tuple[str, str, str]:
    """The line that a run is in."""
    return to_text(root.queue), to_text(root.queue_key), to_text(root.definition)


def answer_of(answer: Answer, journal: int) -> dict[str, Any]:
    """An answer as our functions take it."""
    return {"journal": journal, "key": to_text(answer.key), "answer": answer_to_json(answer)}


def _message(message: Message) -> dict[str, Any]:
    payload, ended = message_columns(message)
    fields: dict[str, Any] = {
        "run_id": to_text(message.run_id),
        "kind": message.kind.value,
        "at": message.at,
        "name": to_text(message.name),
        "key": to_text(message.key),
        "payload": payload,
        "ended": ended,
    }
    if message.audit is not None:
        fields["audit"] = audited(message.audit)
    if message.bounds.workflows is not None:
        fields["workflows"] = [to_text(workflow) for workflow in message.bounds.workflows]
    if message.bounds.tags:
        fields["tags"] = {to_text(name): to_text(value) for name, value in message.bounds.tags.items()}
    return fields
