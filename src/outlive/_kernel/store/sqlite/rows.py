"""Rows of the database to values of the model, and back, where SQLite differs from others.

The rows of a statement come as one JSON text.
"""

from __future__ import annotations

from typing import Any

import msgspec

from outlive._kernel.journal.codec import Row
from outlive._kernel.model import Run, RunStatus
from outlive._kernel.store.contract import InboxMessage, ItemResult, MessageKind, WorkerInfo
from outlive._kernel.store.sqlite.query import Value
from outlive._kernel.store.tables import rows
from outlive._kernel.store.tables.rows import (
    KINDS,
    UNREADABLE,
    to_damaged_inbox_message,
    to_inbox_message,
    to_item,
    to_names,
)

AS_IT_IS = str
"""SQLite holds every text as it is."""


def state_of(run: Run) -> tuple[Value, ...]:
    """The columns that can change while a run lives, in the order of update_runs.sql."""
    return rows.state_of(run, AS_IT_IS)


def birth_of(run: Run, *, key: int | None, journal: int) -> tuple[Value, ...]:
    """All columns, in the order of create_runs.sql."""
    return rows.birth_of(run, AS_IT_IS, key=key, journal=journal)


_RunRow = tuple[
    int, str, int, int, str, str | None, str, int, int, int, str | None,
    str | None, str | None, int, int,
    RunStatus, str | None, int | None, str, int, int, int, int | None, int | None, str, str | None, str | None,
    str | None, str | None, int, int | None, int | None,
]  # fmt: skip
_decode_runs = msgspec.json.Decoder(list[_RunRow]).decode
_decode_run = msgspec.json.Decoder(_RunRow).decode
_decode_raw = msgspec.json.Decoder(list[msgspec.Raw]).decode
Buffer = bytes | msgspec.Raw


def decode_runs(text: str | bytes) -> list[tuple[int, Run]]:
    """The runs and their keys in the text that get_runs.sql gives; a damaged row becomes the run that `to_run` makes of
    it."""
    try:
        return [(row[0], rows.to_sound_run(row, AS_IT_IS)) for row in _decode_runs(text)]
    except UNREADABLE:
        return [_decode_one(row) for row in _decode_raw(text)]


def decode_run(row: bytes) -> Run:
    """One row of them."""
    return _decode_one(row)[1]


def _decode_one(row: Buffer) -> tuple[int, Run]:
    try:
        values = _decode_run(row)
        return values[0], rows.to_sound_run(values, AS_IT_IS)
    except UNREADABLE as error:
        plain = _plain(row)
        return plain[0], rows.to_damaged_run(plain, error)


def _plain(row: Buffer) -> list[Any]:
    """The columns of a damaged row. A byte that is not text any more becomes a character that is none."""
    columns: list[Any] = msgspec.json.decode(bytes(row).decode("utf-8", "replace"))
    return columns


_InboxRow = tuple[int, int, int, MessageKind, int, str, str, str | None, str | None]
_decode_request = msgspec.json.Decoder(list[_InboxRow]).decode
_decode_message = msgspec.json.Decoder(_InboxRow).decode


def decode_request(text: str | bytes) -> dict[int, list[InboxMessage]]:
    """The messages in the text that read_inbox.sql gives, by journal, oldest first."""
    inboxes: dict[int, list[InboxMessage]] = {}
    try:
        found = [to_inbox_message(row, AS_IT_IS) for row in _decode_request(text)]
    except UNREADABLE:
        found = [_decode_one_message(row) for row in _decode_raw(text)]
    for journal, inbound in sorted(found, key=lambda pair: pair[1].id):
        inboxes.setdefault(journal, []).append(inbound)
    return inboxes


def _decode_one_message(row: Buffer) -> tuple[int, InboxMessage]:
    try:
        return to_inbox_message(_decode_message(row), AS_IT_IS)
    except UNREADABLE as error:
        plain = _plain(row)
        # msgspec says which column is wrong; of a kind, `to_inbox_message` says it in words.
        return to_inbox_message(plain, AS_IT_IS) if plain[3] not in KINDS else to_damaged_inbox_message(plain, error)


def decode_items(text: str | bytes) -> list[ItemResult]:
    """The items in the text that read_items.sql gives, by index."""
    found = [_plain(row) for row in _decode_raw(text)]
    return [to_item(row) for row in sorted(found, key=lambda row: row[1])]


class Lease(msgspec.Struct, frozen=True, array_like=True):
    """A row of find_owners.sql; all but the id is None for an owner that was never registered."""

    id: str
    expires_at: int | None
    is_retired: int | None
    lock_file: int | None


_decode_leases = msgspec.json.Decoder(tuple[list[Lease], bool | int]).decode


def decode_leases(text: str | bytes) -> tuple[list[Lease], bool | int]:
    """The result of find_owners.sql: owners, and whether queues have something to claim. An owner whose name is damaged
    and not text any more is taken for dead."""
    return _decode_leases(as_text(text))


class WorkerRow(msgspec.Struct, frozen=True, array_like=True):
    """A row of list_workers.sql."""

    id: str
    name: str
    definitions: str
    started_at: int
    expires_at: int
    is_retired: int
    lock_file: int | None
    process: str
    lease: str
    runs: int

    def to_worker(self, *, is_live: bool) -> WorkerInfo:
        """The worker in the form of the contract."""
        names, fault = to_names(self.definitions, self.id)
        return WorkerInfo(
            id=self.id,
            name=self.name,
            definitions=names,
            started_at=self.started_at,
            expires_at=self.expires_at,
            is_live=is_live,
            process=self.process,
            lease=self.lease,
            runs=self.runs,
            fault=fault,
        )


_decode_workers = msgspec.json.Decoder(list[WorkerRow]).decode


def decode_workers(text: str | bytes) -> list[WorkerRow]:
    """The rows in the text that list_workers.sql gives."""
    return _decode_workers(as_text(text))


def as_text(text: str | bytes) -> str:
    """Bytes that are not text any more become characters that are none."""
    return text if isinstance(text, str) else text.decode("utf-8", "replace")


decode_streams = msgspec.json.Decoder(list[list[tuple[int, int]]]).decode
_decode_pages = msgspec.json.Decoder(list[list[tuple[int, str, int]]]).decode
_decode_page = msgspec.json.Decoder(list[tuple[int, str, int]]).decode


def decode_pages(text: str | bytes) -> list[list[tuple[int, str, int]]]:
    """The pages in the text that list_runs.sql gives."""
    return _decode_pages(as_text(text))


def decode_page(text: str | bytes) -> list[tuple[int, str, int]]:
    """The page in the text that any other list of runs gives."""
    return _decode_page(as_text(text))


decode_strings = msgspec.json.Decoder(list[str]).decode
decode_names = msgspec.json.Decoder(list[str]).decode
decode_numbers = msgspec.json.Decoder(list[int]).decode
_decode_events = msgspec.json.Decoder(list[tuple[int, int, int, int, int]]).decode


def decode_events(numbers: str, bodies: bytes) -> list[tuple[int, Row]]:
    """The events in the text that read_journals.sql and find_tails.sql give, each with its journal."""
    found: list[tuple[int, Row]] = []
    start = 0
    for journal, seq, format_, crc, length in _decode_events(numbers):
        found.append((journal, (seq, format_, crc, bodies[start : start + length])))
        start += length
    return found
