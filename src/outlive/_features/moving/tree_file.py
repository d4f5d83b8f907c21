"""A tree of runs as a file: its history, and behind it what else a store needs to take it over.

    {"tree": {"message": {...}}}  {"tree": {"key": "..."}}  {"tree": {"answer": {...}}}  {"tree": {"item": {...}}}
    {"tree": {"stream": {...}}}  {"tree": {"document": {...}}}

The rows of its runs are not in the file: they are the fold of the journal (docs/reference/history-format.md).
"""

from __future__ import annotations

import msgspec

from outlive._features.flows.library.carrying import CarriedDocument, documents_of
from outlive._features.fsck.reading import Reading
from outlive._features.moving.tree_copy import TreeCopy, read_copy
from outlive._kernel.journal.codec import open_journal
from outlive._kernel.journal.history import blobs_of, read_history, write_history
from outlive._kernel.model import Run, given, is_root_id
from outlive._kernel.model.payload import Blob
from outlive._kernel.model.queue import SLOTS_MAX
from outlive._kernel.store.contract import Answer, ItemResult, Message, Store
from outlive._kernel.store.streams import StreamLines
from outlive.errors import OutliveError
from outlive.errors.store import HistoryFormatError

_SHOWN_MAX = 80
"""Characters of what a file says that stand in an error."""


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

_NUMBER_MAX = 2**61
"""An instant, a span or a count of a run row: the sum of two of them still fits into a column of 64 bits."""
_TEXT_MAX = 1_000
"""Characters of an id, a key or a name."""


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
        HistoryFormatError: the file is not one of these, or not whole.
    """
    history = read_history(text, source=source)
    head = history.head
    if head.rest < 0:
        reason = "only the journal is in it: the run moved while it was exported, or an older Outlive has written it"
        raise HistoryFormatError(source, 1, reason)
    if not is_root_id(head.root_id):
        raise HistoryFormatError(source, 1, f"the root of a tree cannot have the id {head.root_id[:_SHOWN_MAX]!r}")
    reading = Reading(head.root_id, journal=0, nonce=head.nonce)
    for row in history.rows:
        reading.take(row)
    if reading.problems:
        raise HistoryFormatError(source, 1, str(reading.problems[0]))
    runs = reading.fold.runs
    copy = TreeCopy(runs=[runs[number] for number in sorted(runs)], rows=history.rows)
    for run in copy.runs:
        _check_row(run, source)
    copy.blobs = [Blob(id, history.blobs[id]) for id in sorted(history.blobs)]
    for number, line in history.rest:
        try:
            _take(copy, _decode(line).tree)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise HistoryFormatError(source, number, f"it cannot be read: {error}") from error
    return copy


def _check_row(run: Run, source: str) -> None:
    """See that every store can keep a row, and every worker reckon with it: the journal says of it what it likes."""
    for name in Run.__struct_fields__:
        value = getattr(run, name)
        if isinstance(value, int) and (value < 0 or value >= 2**64 if name == "nonce" else abs(value) > _NUMBER_MAX):
            raise HistoryFormatError(source, 1, f"no run has the {name} {value}")
        if isinstance(value, str) and not (given.is_storable(value) and (name == "reason" or len(value) <= _TEXT_MAX)):
            raise HistoryFormatError(source, 1, f"no store can keep the {name} {value[:_SHOWN_MAX]!r}")
    if not 1 <= run.slots <= SLOTS_MAX:
        raise HistoryFormatError(source, 1, f"no run takes {run.slots} slots")
    try:
        given.tags("import_run", run.tags)
    except OutliveError as error:
        raise HistoryFormatError(source, 1, str(error)) from error


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
