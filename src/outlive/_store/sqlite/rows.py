"""Rows of the database to values of the model, and back, where SQLite differs from others.

The rows of a statement come as one JSON text.
"""

from __future__ import annotations

import msgspec

from outlive._model import Run, RunStatus
from outlive._store.contract import Inbound, ItemResult, MessageKind, WorkerInfo
from outlive._store.sqlite.query import Value
from outlive._store.tables import rows
from outlive._store.tables.rows import decode_names, to_inbound, to_item
from outlive.telemetry import log

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
    RunStatus, str | None, int | None, str, int, int, int, int | None, int | None, str, str | None, str | None,
    str | None,
]  # fmt: skip
_decode_runs = msgspec.json.Decoder(list[_RunRow]).decode
_decode_raw = msgspec.json.Decoder(list[msgspec.Raw]).decode


def decode_runs(text: str) -> list[tuple[int, Run]]:
    """What get_runs.sql gives, with the keys."""
    return [(row[0], rows.to_run(row, AS_IT_IS)) for row in _decode_runs(text)]


def decode_run(text: str) -> Run:
    """One row of them."""
    return rows.to_run(msgspec.json.decode(text, type=_RunRow), AS_IT_IS)


def decode_sound_runs(text: str) -> list[tuple[int, Run]]:
    """The same without rows that are damaged: one of them must not keep the others from being claimed."""
    try:
        return decode_runs(text)
    except msgspec.MsgspecError:
        return [pair for row in _decode_raw(text) for pair in _decode_one(row)]


def _decode_one(row: msgspec.Raw) -> list[tuple[int, Run]]:
    try:
        return decode_runs(f"[{bytes(row).decode()}]")
    except msgspec.MsgspecError as error:
        log.error("a run row is damaged and cannot be claimed: %s in %.200s", error, bytes(row).decode())
        return []


_MailRow = tuple[int, int, int, MessageKind, int, str, str, str | None, str | None]
_decode_mail = msgspec.json.Decoder(list[_MailRow]).decode


def decode_mail(text: str) -> dict[int, list[Inbound]]:
    """What read_inbox.sql gives, by journal, oldest first."""
    inboxes: dict[int, list[Inbound]] = {}
    for row in sorted(_decode_mail(text), key=lambda row: row[1]):
        journal, inbound = to_inbound(row, AS_IT_IS)
        inboxes.setdefault(journal, []).append(inbound)
    return inboxes


_decode_items = msgspec.json.Decoder(list[tuple[int, int, str | None, str | None]]).decode


def decode_items(text: str) -> list[ItemResult]:
    """What read_items.sql gives, by index."""
    return [to_item(row) for row in sorted(_decode_items(text), key=lambda row: row[1])]


class Lease(msgspec.Struct, frozen=True, array_like=True):
    """What find_owners.sql knows of an owner; all but the id is None for one that was never registered."""

    id: str
    expires_at: int | None
    is_retired: int | None
    lock_file: int | None


decode_leases = msgspec.json.Decoder(list[Lease]).decode


class WorkerRow(msgspec.Struct, frozen=True, array_like=True):
    """What list_workers.sql gives."""

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
        """As the contract says it."""
        return WorkerInfo(
            id=self.id,
            name=self.name,
            definitions=decode_names(self.definitions),
            started_at=self.started_at,
            expires_at=self.expires_at,
            is_live=is_live,
            process=self.process,
            lease=self.lease,
            runs=self.runs,
        )


decode_workers = msgspec.json.Decoder(list[WorkerRow]).decode
decode_pairs = msgspec.json.Decoder(list[tuple[int, int]]).decode
decode_streams = msgspec.json.Decoder(list[list[tuple[int, int]]]).decode
decode_pages = msgspec.json.Decoder(list[list[tuple[int, str, int]]]).decode
decode_page = msgspec.json.Decoder(list[tuple[int, str, int]]).decode
decode_strings = msgspec.json.Decoder(list[str]).decode
decode_numbers = msgspec.json.Decoder(list[int]).decode
decode_rows = msgspec.json.Decoder(list[tuple[int, int, int, int, int]]).decode
