"""Rows of the database to values of the model, and back.

Columns hold what somebody searches or a person wants to read; waits, tags, results and failures are JSON texts.
"""

from __future__ import annotations

import msgspec

from outlive._model import Failure, Payload, Run, RunStatus, Wait
from outlive._store.contract import Ended, Inbound, ItemResult, MessageKind, WorkerInfo
from outlive._store.sqlite.query import Value
from outlive.telemetry import log

_encode = msgspec.json.Encoder().encode
_decode_waits = msgspec.json.Decoder(tuple[Wait, ...]).decode
_decode_tags = msgspec.json.Decoder(dict[str, str]).decode
_decode_payload = msgspec.json.Decoder(Payload).decode
_decode_failure = msgspec.json.Decoder(Failure).decode
_decode_ended = msgspec.json.Decoder(Ended).decode
_decode_names = msgspec.json.Decoder(tuple[str, ...]).decode

_UNSIGNED = 2**64


def to_json(value: object) -> str:
    """JSON as text: SQLite takes a blob for its own binary form."""
    return _encode(value).decode()


def to_json_or_null(value: object) -> str | None:
    """JSON, or NULL for nothing."""
    return _encode(value).decode() if value else None


def state_of(run: Run) -> tuple[Value, ...]:
    """The columns that can change while a run lives, in the order of update_runs.sql."""
    return (
        run.status.value,
        to_json_or_null(run.waits),
        run.wake_at,
        run.owner,
        run.epoch,
        run.attempts,
        run.updated_at,
        run.finished_at,
        run.timeout_at,
        run.reason,
        None if run.result is None else _encode(run.result).decode(),
        None if run.failure is None else _encode(run.failure).decode(),
        None if run.published is None else _encode(run.published).decode(),
    )


def birth_of(run: Run, *, key: int | None, journal: int) -> tuple[Value, ...]:
    """All columns, in the order of create_runs.sql."""
    return (
        key,
        run.id,
        journal,
        run.number,
        run.root_id,
        run.parent_id,
        run.workflow,
        run.version,
        # Journals allow 64 bits without a sign; SQLite has 63 and a sign.
        run.nonce if run.nonce < _UNSIGNED // 2 else run.nonce - _UNSIGNED,
        run.created_at,
        to_json_or_null(run.tags),
        *state_of(run),
    )


_RunRow = tuple[
    int, str, int, int, str, str | None, str, int, int, int, str | None,
    RunStatus, str | None, int | None, str, int, int, int, int | None, int | None, str, str | None, str | None,
    str | None,
]  # fmt: skip
_decode_runs = msgspec.json.Decoder(list[_RunRow]).decode
_decode_raw = msgspec.json.Decoder(list[msgspec.Raw]).decode


def decode_runs(text: str) -> list[tuple[int, Run]]:
    """What get_runs.sql gives, with the keys."""
    return [(row[0], _to_run(row)) for row in _decode_runs(text)]


def decode_run(text: str) -> Run:
    """One row of them."""
    return _to_run(msgspec.json.decode(text, type=_RunRow))


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


def _to_run(row: _RunRow) -> Run:
    (
        _, id, journal, number, root_id, parent_id, workflow, version, nonce, created_at, tags,
        status, waits, wake_at, owner, epoch, attempts, updated_at, finished_at, timeout_at, reason, result, failure,
        published,
    ) = row  # fmt: skip
    return Run(
        id=id,
        journal=journal,
        number=number,
        root_id=root_id,
        parent_id=parent_id,
        workflow=workflow,
        version=version,
        nonce=nonce if nonce >= 0 else nonce + _UNSIGNED,
        status=status,
        waits=() if waits is None else _decode_waits(waits),
        wake_at=wake_at,
        owner=owner,
        epoch=epoch,
        attempts=attempts,
        created_at=created_at,
        updated_at=updated_at,
        finished_at=finished_at,
        timeout_at=timeout_at,
        tags={} if tags is None else _decode_tags(tags),
        reason=reason,
        result=None if result is None else _decode_payload(result),
        failure=None if failure is None else _decode_failure(failure),
        published=None if published is None else _decode_payload(published),
    )


_MailRow = tuple[int, int, int, MessageKind, int, str, str, str | None, str | None]
_decode_mail = msgspec.json.Decoder(list[_MailRow]).decode


def decode_mail(text: str) -> dict[int, list[Inbound]]:
    """What read_inbox.sql gives, by journal, oldest first."""
    inboxes: dict[int, list[Inbound]] = {}
    for journal, id, run, kind, at, name, key, payload, ended in sorted(_decode_mail(text), key=lambda row: row[1]):
        inbound = Inbound(
            id=id,
            run=run,
            kind=kind,
            at=at,
            name=name,
            key=key,
            payload=None if payload is None else _decode_payload(payload),
            ended=None if ended is None else _decode_ended(ended),
        )
        inboxes.setdefault(journal, []).append(inbound)
    return inboxes


_decode_items = msgspec.json.Decoder(list[tuple[int, int, str | None, str | None]]).decode


def decode_items(text: str) -> list[ItemResult]:
    """What read_items.sql gives, by index."""
    return [
        ItemResult(
            run=run,
            index=index,
            result=None if result is None else _decode_payload(result),
            failure=None if failure is None else _decode_failure(failure),
        )
        for run, index, result, failure in sorted(_decode_items(text), key=lambda row: row[1])
    ]


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
            definitions=_decode_names(self.definitions),
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
