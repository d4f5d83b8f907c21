"""Rows of the database to values of the model, and back.

Columns hold what somebody searches or a person wants to read; waits, tags, results and failures are JSON texts.

PostgreSQL has no text with a NUL in it, and Python has. The character U+0001 therefore begins an escape in every text
that a user chooses: U+0001 b for a NUL, U+0001 a for itself. Texts without the two, which is to say all texts, lie in
the database as they are. In JSON texts both are escaped by JSON. No id of a run has either of the two, but somebody may
ask for one that has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from outlive._model import Failure, Payload, Run, RunStatus, Wait
from outlive._store.contract import Ended, Inbound, ItemResult, MessageKind, WorkerInfo

_encode = msgspec.json.Encoder().encode
_decode_waits = msgspec.json.Decoder(tuple[Wait, ...]).decode
_decode_tags = msgspec.json.Decoder(dict[str, str]).decode
_decode_payload = msgspec.json.Decoder(Payload).decode
_decode_failure = msgspec.json.Decoder(Failure).decode
_decode_ended = msgspec.json.Decoder(Ended).decode
_decode_names = msgspec.json.Decoder(tuple[str, ...]).decode

_UNSIGNED = 2**64
_statuses = {status.value: status for status in RunStatus}


def to_text(text: str) -> str:
    """Text as the database can hold it."""
    if "\0" in text or "\1" in text:
        return text.replace("\1", "\1a").replace("\0", "\1b")
    return text


def from_text(text: str) -> str:
    """Text as it was."""
    return text.replace("\1b", "\0").replace("\1a", "\1") if "\1" in text else text


def to_json(value: object) -> str:
    """JSON as text."""
    return _encode(value).decode()


def to_json_or_null(value: object) -> str | None:
    """JSON, or NULL for nothing."""
    return _encode(value).decode() if value else None


def tags_to_json(tags: dict[str, str]) -> str | None:
    """Tags, or NULL for none."""
    return to_json({to_text(name): to_text(value) for name, value in tags.items()}) if tags else None


def state_of(run: Run) -> tuple[Any, ...]:
    """The columns that can change while a run lives, in the order of STATE_COLUMNS, without the key."""
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
        to_text(run.reason),
        None if run.result is None else _encode(run.result).decode(),
        None if run.failure is None else _encode(run.failure).decode(),
        None if run.published is None else _encode(run.published).decode(),
    )


def birth_of(run: Run, *, key: int | None, journal: int) -> tuple[Any, ...]:
    """All columns, in the order of RUN_COLUMNS."""
    return (
        key,
        run.id,
        journal,
        run.number,
        run.root_id,
        run.parent_id,
        to_text(run.workflow),
        run.version,
        # Journals allow 64 bits without a sign; PostgreSQL has 63 and a sign.
        run.nonce if run.nonce < _UNSIGNED // 2 else run.nonce - _UNSIGNED,
        run.created_at,
        tags_to_json(run.tags),
        *state_of(run),
    )


def to_run(row: Sequence[Any]) -> Run:
    """A run from its columns, in the order of RUN_COLUMNS; more columns may follow."""
    (
        _, id, journal, number, root_id, parent_id, workflow, version, nonce, created_at, tags,
        status, waits, wake_at, owner, epoch, attempts, updated_at, finished_at, timeout_at, reason, result, failure,
        published, *_,
    ) = row  # fmt: skip
    return Run(
        id=id,
        journal=journal,
        number=number,
        root_id=root_id,
        parent_id=parent_id,
        workflow=from_text(workflow),
        version=version,
        nonce=nonce if nonce >= 0 else nonce + _UNSIGNED,
        status=_statuses[status],
        waits=() if waits is None else _decode_waits(waits),
        wake_at=wake_at,
        owner=owner,
        epoch=epoch,
        attempts=attempts,
        created_at=created_at,
        updated_at=updated_at,
        finished_at=finished_at,
        timeout_at=timeout_at,
        tags={} if tags is None else {from_text(n): from_text(v) for n, v in _decode_tags(tags).items()},
        reason=from_text(reason),
        result=None if result is None else _decode_payload(result),
        failure=None if failure is None else _decode_failure(failure),
        published=None if published is None else _decode_payload(published),
    )


def to_inbound(row: Sequence[Any]) -> tuple[int, Inbound]:
    """A row of read_inbox.sql: the journal, and the message."""
    journal, id, run, kind, at, name, key, payload, ended = row
    return journal, Inbound(
        id=id,
        run=run,
        kind=MessageKind(kind),
        at=at,
        name=from_text(name),
        key=from_text(key),
        payload=None if payload is None else _decode_payload(payload),
        ended=None if ended is None else _decode_ended(ended),
    )


def to_item(row: Sequence[Any]) -> ItemResult:
    """A row of read_items.sql."""
    run, index, result, failure = row
    return ItemResult(
        run=run,
        index=index,
        result=None if result is None else _decode_payload(result),
        failure=None if failure is None else _decode_failure(failure),
    )


def to_worker(row: Sequence[Any]) -> WorkerInfo:
    """A row of list_workers.sql."""
    id, name, definitions, started_at, expires_at, is_live, process, lease, runs = row
    return WorkerInfo(
        id=id,
        name=from_text(name),
        definitions=_decode_names(definitions),
        started_at=started_at,
        expires_at=expires_at,
        is_live=is_live,
        process=from_text(process),
        lease=from_text(lease),
        runs=runs,
    )
