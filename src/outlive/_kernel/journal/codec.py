"""Events to journal rows and back.

The format, byte by byte
------------------------
A journal row is `(seq, format, crc, body)`:

* `seq`: 0, 1, 2, ... without a gap; unique in the journal. A journal that was compacted begins with the row of its last
  `SnapshotTaken` instead, which says in `events` how many rows went before it; or with a `RunCreated` that was written
  again before the run began, and says that in `before`.
* `format`: the version of the layout of `body`; this release writes `FORMAT` and reads every earlier one.
* `crc`: CRC-32 (zlib) over `nonce` (8 bytes, big endian), the ASCII text `<seq>/<format>/` and `body`, in this order.
  The nonce is random and made with the tree, so a row that was flipped, cut, swapped with another row of this
  journal or brought from another journal does not verify.
* `body`: one JSON object, UTF-8. `t` is the event kind, `at` the microseconds since 1970 UTC, `run` the number of
  the run in its tree (absent: 0); the other keys are the fields of the kind in `_kernel.journal.event`, absent when
  they have their default. Values of users are payload objects: `{"v": <json>}`, `{"data": <base64>, "via": [...]}`
  or `{"blob": <sha-256>, "size": n, "via": [...]}` (`outlive._kernel.model.payload`).

A reader verifies the checksum before it parses anything. A row of an older format is parsed to plain JSON and goes
through the upcasts, oldest first; a row of a newer format, or of a kind this release does not know, is refused with
`FormatTooNewError`: the run is parked, and a newer worker can resume it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, get_args
from zlib import crc32

import msgspec

from outlive._kernel.journal.event import AnyEvent, Event, RunCreated, SnapshotTaken
from outlive.errors.store import CorruptJournalError, FormatTooNewError

FORMAT = 1

Row = tuple[int, int, int, bytes]
"""(seq, format, crc, body)."""

UPCASTS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""`UPCASTS[n]` turns the JSON object of format n into that of format n + 1."""

NO_ROWS, ODD, BITS_32 = 1, 0x9E37_79B1, 2**32 - 1
"""Constants of the digests of journals. A live tree has `next_digest` written out, because nothing is called more
often."""
_KIND = re.compile(rb'\{"t":"(\w{1,40})"', re.ASCII)
_KINDS = {kind.__name__ for kind in get_args(AnyEvent)}
_encode = msgspec.json.Encoder().encode
_decode: Callable[[bytes], AnyEvent] = msgspec.json.Decoder(AnyEvent).decode


def salt_of(nonce: int) -> int:
    """The start value of every checksum in the journal of the tree with this nonce."""
    return crc32(nonce.to_bytes(8, "big"))


def seal(event: Event, *, salt: int, seq: int) -> Row:
    """Write an event as the row of a journal."""
    body = _encode(event)
    # `checksum`, written out: nothing is called more often than this.
    return seq, FORMAT, crc32(body, crc32(b"%d/%d/" % (seq, FORMAT), salt)), body


def open_row(row: Row, *, salt: int, run_id: str) -> AnyEvent:
    """Read a row back, or say exactly what is wrong with it.

    Raises:
        CorruptJournalError: the bytes differ from what was written.
        FormatTooNewError: a later release wrote it.
    """
    seq, format_, crc, body = row
    if crc != checksum(seq, format_, body, salt):
        kind = _kind_in(body)
        raise CorruptJournalError(
            run_id, seq, f"checksum does not match ({kind})" if kind else "checksum does not match"
        )
    if format_ != FORMAT:
        return _open_other_format(row, run_id)
    try:
        return _decode(body)
    except msgspec.ValidationError as error:
        # The checksum holds, so these are the bytes that were written: a kind or field of a later release.
        raise FormatTooNewError(run_id, seq, str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CorruptJournalError(run_id, seq, str(error)) from error


def _kind_in(body: bytes) -> str:
    """The kind that a damaged row says it is of; empty if it says none that there is."""
    found = _KIND.match(body)
    return found[1].decode() if found and found[1].decode() in _KINDS else ""


def checksum(seq: int, format_: int, body: bytes, salt: int) -> int:
    """The `crc` of a row."""
    return crc32(body, crc32(b"%d/%d/" % (seq, format_), salt))


def next_digest(digest: int, crc: int) -> int:
    """The digest of a journal up to and with a row of this checksum; `NO_ROWS` is that of an empty one."""
    return (digest * ODD + crc) & BITS_32


def is_sealed(row: Row, *, nonce: int) -> bool:
    """Whether the checksum of a row is right for a tree with this nonce."""
    seq, format_, crc, body = row
    return crc == checksum(seq, format_, body, salt_of(nonce))


def nonce_in(row: Row) -> int | None:
    """The nonce that the first event of a journal brings; None if it cannot be read. Nothing is verified."""
    try:
        body = msgspec.json.decode(row[3])
        nonce = body.get("created", body)["nonce"]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, KeyError, TypeError, AttributeError):
        return None
    return nonce if isinstance(nonce, int) and 0 <= nonce < 2**64 else None


def open_journal(rows: Iterable[Row], *, nonce: int, run_id: str) -> list[AnyEvent]:
    """Read a whole journal from its first row on; a gap is damage too."""
    return list(open_rows(rows, nonce=nonce, run_id=run_id))


def open_rows(rows: Iterable[Row], *, nonce: int, run_id: str, first: int = 0) -> Iterator[AnyEvent]:
    """Read the rows of a journal one after the other; with `first`, only from that row on, where a snapshot may stand
    for the rows before it."""
    salt = salt_of(nonce)
    expected, is_begun = first, False
    for row in rows:
        if row[0] and not is_begun and _kind_in(row[3]) == SnapshotTaken.__name__:
            open_row(row, salt=salt, run_id=run_id)  # If it is damaged, that is what is wrong, and no row is missing.
        if row[0] != expected and (is_begun or not stands_for_all(row, salt=salt)):
            raise CorruptJournalError(run_id, expected, f"the row is missing (next is {row[0]})")
        yield open_row(row, salt=salt, run_id=run_id)
        expected, is_begun = row[0] + 1, True


def stands_for_all(row: Row, *, salt: int) -> bool:
    """Whether a row may be the first of its journal, for all that were before it."""
    try:
        event = open_row(row, salt=salt, run_id="")
    except (CorruptJournalError, FormatTooNewError):
        return False
    if isinstance(event, RunCreated):
        return not event.run and event.before == row[0]
    return isinstance(event, SnapshotTaken) and event.events == row[0]


def creation_in(row: Row, *, nonce: int, run_id: str) -> RunCreated:
    """How a run began, by the first row of its journal.

    Raises:
        CorruptJournalError: it is not the first row of a journal.
        FormatTooNewError: a later release wrote it.
    """
    match open_row(row, salt=salt_of(nonce), run_id=run_id):
        case RunCreated() as created:
            return created
        case SnapshotTaken(created=created):
            return created
        case event:
            raise CorruptJournalError(run_id, row[0], f"the journal begins with {type(event).__name__}")


def _open_other_format(row: Row, run_id: str) -> AnyEvent:
    seq, format_, _, body = row
    if format_ > FORMAT:
        raise FormatTooNewError(run_id, seq, f"format {format_}, known up to {FORMAT}")
    try:
        fields = msgspec.json.decode(body)
        for version in range(format_, FORMAT):
            fields = UPCASTS[version](fields)
        # Through JSON once more: payloads hold the JSON itself, which no conversion of objects can give.
        return _decode(_encode(fields))
    except Exception as error:  # An upcast finds anything but what it knows.
        raise CorruptJournalError(run_id, seq, f"format {format_} cannot be read: {error!r}") from error
