"""A tree of runs as a file: its history, and behind it what else a store needs to take it over.

    {"tree": {"message": {...}}}  {"tree": {"key": "..."}}  {"tree": {"answer": {...}}}  {"tree": {"item": {...}}}
    {"tree": {"stream": {...}}}  {"tree": {"document": {...}}}

The rows of its runs are not in the file: they are the fold of the journal (docs/reference/history-format.md).
"""

from __future__ import annotations

import msgspec

from outlive._journal.codec import open_journal
from outlive._journal.history import blobs_of, read_history, write_history
from outlive._model import Run
from outlive._model.payload import Blob
from outlive._store.contract import Answer, ItemResult, Message, Store
from outlive._store.streams import StreamLines
from outlive.client.flows.carrying import CarriedDocument, documents_of
from outlive.client.fsck.reading import Reading
from outlive.client.tree_copy import TreeCopy, read_copy
from outlive.errors import HistoryFormatError


class Part(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """One thing that hangs on a journal."""

    message: Message | None = None
    key: str | None = None
    answer: Answer | None = None
    item: ItemResult | None = None
    stream: StreamLines | None = None
    document: CarriedDocument | None = None


class PartLine(msgspec.Struct, frozen=True):
    """The line of such a thing."""

    tree: Part


_decode = msgspec.json.Decoder(PartLine).decode


async def export_tree(store: Store, run: Run) -> str:
    """The file of the tree that a run belongs to; of its journal alone, if the tree moves too fast for more."""
    copy = await read_copy(store, run.journal)
    rows = await store.read_journal(run.journal) if copy is None else copy.rows
    open_journal(rows, nonce=run.nonce, run_id=run.root_id)
    if copy is not None:
        copy.documents = await documents_of(store, copy.runs)
        return write_tree(copy, run)
    ids = blobs_of(rows)
    return write_history(run, rows, await store.get_blobs(sorted(ids)) if ids else {}, None)


def write_tree(copy: TreeCopy, run: Run) -> str:
    """The file of a copy that a run belongs to."""
    parts = [
        *(Part(message=message) for message in copy.messages),
        *(Part(key=key) for key in copy.keys),
        *(Part(answer=answer) for answer in copy.answers),
        *(Part(item=item) for item in copy.items),
        *(Part(stream=stream) for stream in copy.streams),
        *(Part(document=document) for document in copy.documents),
    ]
    return write_history(run, copy.rows, {blob.id: blob.data for blob in copy.blobs}, list(map(PartLine, parts)))


def tree_in(text: str, *, source: str) -> TreeCopy:
    """The tree of a file. Whether all of it fits together is checked when it is written into a store.

    Raises:
        HistoryFormatError: it is no such file, or not whole.
    """
    history = read_history(text, source=source)
    head = history.head
    if head.rest < 0:
        reason = "only the journal is in it: the run moved while it was exported, or an older Outlive has written it"
        raise HistoryFormatError(source, 1, reason)
    reading = Reading(head.root_id, journal=0, nonce=head.nonce)
    for row in history.rows:
        reading.take(row)
    if reading.problems:
        raise HistoryFormatError(source, 1, str(reading.problems[0]))
    runs = reading.fold.runs
    copy = TreeCopy(runs=[runs[number] for number in sorted(runs)], rows=history.rows)
    copy.blobs = [Blob(id, history.blobs[id]) for id in sorted(history.blobs)]
    for number, line in history.rest:
        try:
            _take(copy, _decode(line).tree)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise HistoryFormatError(source, number, f"it cannot be read: {error}") from error
    return copy


def _take(copy: TreeCopy, part: Part) -> None:
    if part.key is not None:
        copy.keys.append(part.key)
    if part.message is not None:
        copy.messages.append(part.message)
    if part.answer is not None:
        copy.answers.append(part.answer)
    if part.item is not None:
        copy.items.append(part.item)
    if part.stream is not None:
        copy.streams.append(part.stream)
    if part.document is not None:
        copy.documents.append(part.document)
