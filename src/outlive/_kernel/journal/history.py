"""A journal as a file: one line of JSON for the head, one for each blob, one for each event.

    {"outlive": "history", "format": 1, "run_id": ..., "root_id": ..., "nonce": ..., "version": ..., "events": 9}
    {"blob": "<sha-256>", "data": "<base64>"}
    {"seq": 0, "format": 1, "crc": 123, "event": {"t": "RunCreated", ...}}
    {"tree": {"message": {...}}}

The event stands there byte for byte as in the journal, so its checksum still holds: a line that was changed, lost,
doubled or brought from elsewhere does not verify. Behind the events stands what hangs on the journal in its store, for
another store that takes the run over (`outlive._features.moving.tree_file`). The format is described in
docs/reference/history-format.md, and is kept readable for ever: a history is what people check into their repositories.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

from outlive._kernel.journal.codec import Row
from outlive._kernel.model import Run
from outlive.errors.store import HistoryFormatError

LineT = TypeVar("LineT")

KIND = "history"
FORMAT = 1

# Payload objects are written by one encoder, so a reference always looks like this. A user's text that happens to look
# the same costs one look-up that finds nothing.
_REFERENCE = re.compile(rb'"blob":"([0-9a-f]{64})"')


class Head(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The first line."""

    outlive: str
    format: int
    run_id: str
    """The run that was asked for."""
    root_id: str
    """The root of its tree; the journal is that of the whole tree."""
    nonce: int
    version: str
    """The version of Outlive that wrote the file."""
    events: int
    rest: int = -1
    """How many lines say what hangs on the journal; -1 if nothing was said of that."""


class BlobLine(msgspec.Struct, frozen=True):
    """The content of a blob that events refer to."""

    blob: str
    data: str


class EventLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A row of the journal."""

    seq: int
    format: int
    crc: int
    event: msgspec.Raw = msgspec.Raw()
    body: str = ""
    """Base64 of the row instead of `event`, should it not fit on one line."""


class History(msgspec.Struct):
    """The content of a file."""

    source: str
    head: Head
    rows: list[Row]
    lines: list[int]
    """The line of each row."""
    blobs: dict[str, bytes]
    rest: list[tuple[int, str]]
    """Lines about what hangs on the journal, each with its number."""


def blobs_of(rows: Iterable[Row]) -> set[str]:
    """The ids of the blobs that rows refer to, found without decoding them."""
    return {id for row in rows if b'"blob"' in row[3] for id in references_in(row[3])}


def references_in(text: bytes) -> set[str]:
    """The ids of blobs that stand in a text."""
    return {id.decode() for id in _REFERENCE.findall(text)}


def write_history(run: Run, rows: list[Row], blobs: dict[str, bytes], rest: Sequence[msgspec.Struct] | None) -> str:
    """The file of a journal, and of what hangs on it if that is known."""
    head = Head(
        outlive=KIND,
        format=FORMAT,
        run_id=run.id,
        root_id=run.root_id,
        nonce=run.nonce,
        version=_version(),
        events=len(rows),
        rest=-1 if rest is None else len(rest),
    )
    lines: list[msgspec.Struct] = [head]
    lines += [BlobLine(id, base64.b64encode(blobs[id]).decode()) for id in sorted(blobs)]
    lines += [_line_of(row) for row in rows]
    lines += rest or ()
    return "".join(msgspec.json.encode(line).decode() + "\n" for line in lines)


def read_history(text: str, *, source: str) -> History:
    """Read a file; the checksums of its rows are verified when they are opened.

    Raises:
        HistoryFormatError: it is not a history, or not whole.
    """
    # Not splitlines(): a user's text may hold line breaks that JSON does not escape.
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not lines:
        raise HistoryFormatError(source, 1, "the file is empty")
    head = _decode(lines[0][1], Head, source, 1)
    if head.outlive != KIND:
        raise HistoryFormatError(source, 1, f"it holds {head.outlive!r} and not a history")
    if head.format > FORMAT:
        raise HistoryFormatError(source, 1, f"format {head.format} is newer than this Outlive knows ({FORMAT})")
    if not 0 <= head.nonce < 2**64:
        raise HistoryFormatError(source, 1, f"{head.nonce} is not a nonce")
    history = History(source, head, [], [], {}, [])
    for number, line in lines[1:]:
        _take(history, number, line)
    if len(history.rows) != head.events:
        last = lines[-1][0]
        raise HistoryFormatError(source, last, f"{len(history.rows)} events, and the head says {head.events}")
    if len(history.rest) != max(0, head.rest):
        last = lines[-1][0]
        raise HistoryFormatError(source, last, f"{len(history.rest)} lines behind the events, not {max(0, head.rest)}")
    return history


def _take(history: History, number: int, line: str) -> None:
    if line.startswith('{"tree"'):
        history.rest.append((number, line))
        return
    if line.startswith('{"blob"'):
        blob = _decode(line, BlobLine, history.source, number)
        data = _bytes_in(blob.data, history.source, number)
        if hashlib.sha256(data).hexdigest() != blob.blob:
            raise HistoryFormatError(history.source, number, "the content of the blob has another hash")
        history.blobs[blob.blob] = data
        return
    row = _decode(line, EventLine, history.source, number)
    body = _bytes_in(row.body, history.source, number) if row.body else bytes(row.event)
    history.rows.append((row.seq, row.format, row.crc, body))
    history.lines.append(number)


def _decode(line: str, kind: type[LineT], source: str, number: int) -> LineT:
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise HistoryFormatError(source, number, f"it cannot be read: {error}") from error


def _bytes_in(text: str, source: str, number: int) -> bytes:
    try:
        return base64.b64decode(text)
    except ValueError as error:
        raise HistoryFormatError(source, number, f"it is not base64: {error}") from error


def _line_of(row: Row) -> EventLine:
    seq, format_, crc, body = row
    # A user's payload codec may have made JSON with line breaks; then the line would not be one.
    if b"\n" in body or b"\r" in body:
        return EventLine(seq, format_, crc, body=base64.b64encode(body).decode())
    return EventLine(seq, format_, crc, event=msgspec.Raw(body))


def _version() -> str:
    # Not above: this import takes a tenth of the time in which an engine's process starts.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("outlive")
    except PackageNotFoundError:  # Run from its source.
        return "unknown"
