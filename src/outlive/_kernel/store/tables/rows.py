"""Columns of Outlive's own tables to values of the model, and back: the same in every database.

Columns hold what is searched or what a person wants to read; waits, tags, results and failures are JSON texts. What a
database cannot hold as it is, a user's text or a message's, goes through a function of its store (`Text`).

A damaged row is a value too: it says what of it cannot be read, and a caller who reads many rows gets all the others.
It is logged and counted once (`outlive.telemetry.damaged_rows`).

What a caller is given of a run (its result, its failure, what it publishes, the outcomes of its items, its answers),
and what a run is sent, has a checksum in its text, which is verified when the row is read: SQLite has no checksums of
its own, and a bit that has changed leaves JSON to be JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from zlib import crc32

import msgspec

from outlive._kernel.model import Failure, Payload, Run, RunStatus, Wait
from outlive._kernel.model.approval import OpenRequest
from outlive._kernel.model.run import STORED
from outlive._kernel.store.contract import Answer, Ended, InboxMessage, ItemResult, Message, MessageKind
from outlive._kernel.store.tables.columns import RUN_COLUMNS
from outlive.telemetry import damaged_rows

Text = Callable[[str], str]
"""A text as a database holds it, or the way back."""

_encode = msgspec.json.Encoder().encode
_decode_waits = msgspec.json.Decoder(tuple[Wait, ...]).decode
_decode_approvals = msgspec.json.Decoder(tuple[OpenRequest, ...]).decode
_decode_tags = msgspec.json.Decoder(dict[str, str]).decode
_decode_payload = msgspec.json.Decoder(Payload).decode
_decode_failure = msgspec.json.Decoder(Failure).decode
_decode_ended = msgspec.json.Decoder(Ended).decode
decode_names = msgspec.json.Decoder(tuple[str, ...]).decode

_CHECKSUM = '"crc":'
BITS_32 = 0xFFFF_FFFF
T = TypeVar("T")
_UNSIGNED = 2**64
_STATUSES: dict[str | RunStatus, RunStatus] = {name: status for status in STORED for name in (status, status.value)}
KINDS: dict[str | MessageKind, MessageKind] = {name: kind for kind in MessageKind for name in (kind, kind.value)}


def to_json(value: object) -> str:
    """JSON as text: SQLite takes a blob for its own binary form."""
    return _encode(value).decode()


def to_json_or_null(value: object) -> str | None:
    """JSON, or NULL for nothing."""
    return _encode(value).decode() if value else None


def _sealed(value: msgspec.Struct | None, salt: int) -> str | None:
    """A JSON object as text, with its checksum as its last field; None for nothing."""
    if value is None:
        return None
    text = _encode(value)
    comma = "," if len(text) > 2 else ""
    return f"{text[:-1].decode()}{comma}{_CHECKSUM}{crc32(text, salt)}}}"


def _opened(text: str, decode: Callable[[str], T], salt: int) -> T:
    """The value of such a text. One without a checksum was written by an earlier release.

    Raises:
        MsgspecError: it cannot be read. ValueError: it has another checksum.
    """
    head, mark, tail = text.rpartition(_CHECKSUM)
    if mark and tail[-1:] == "}" and tail[:-1].isdecimal():
        text = head.removesuffix(",") + "}"
        if crc32(text.encode(), salt) != int(tail[:-1]):
            raise ValueError("what it says has another checksum than when it was written")
    return decode(text)


def _salt(nonce: int, number: int) -> int:
    """The start value of a checksum: so a text of another run does not pass."""
    return (nonce ^ number) & BITS_32


def _salt_of(*place: object) -> int:
    """The start value of a checksum for a row that belongs to a run: so a text of another item, or of another message,
    does not pass."""
    return crc32("\0".join(map(str, place)).encode("utf-8", "surrogatepass"))


def item_columns(item: ItemResult) -> tuple[str | None, str | None]:
    """The outcome of an item as its columns hold it: result, failure."""
    salt = _salt_of(item.run, item.index)
    return _sealed(item.result, salt), _sealed(item.failure, salt)


def message_columns(message: Message) -> tuple[str | None, str | None]:
    """The columns of a message: payload, ended."""
    salt = _salt_of(message.kind.value, message.name, message.key)
    return _sealed(message.payload, salt), _sealed(message.ended, salt)


def tags_in(data: str | None) -> dict[str, str]:
    """The tags in a column of a store whose texts are as they are."""
    return {} if data is None else _decode_tags(data)


def tags_to_json(tags: dict[str, str], text: Text) -> str | None:
    """Tags, or NULL for none."""
    return to_json({text(name): text(value) for name, value in tags.items()}) if tags else None


def state_of(run: Run, text: Text) -> tuple[Any, ...]:
    """The columns that can change while a run lives, in the order of STATE_COLUMNS."""
    salt = (run.nonce ^ run.number) & BITS_32  # `_salt` without a call: this is done for every change of every run.
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
        text(run.reason),
        _sealed(run.result, salt),
        _sealed(run.failure, salt),
        _sealed(run.published, salt),
        _encode(run.approvals).decode() if run.approvals else None,
        run.slot,
        run.timeout,
        run.begin_by,
    )


def birth_of(run: Run, text: Text, *, key: int | None, journal: int) -> tuple[Any, ...]:
    """All columns of a run, in the order of RUN_COLUMNS."""
    return (
        key,
        run.id,
        journal,
        run.number,
        run.root_id,
        run.parent_id,
        text(run.workflow),
        run.version,
        # Journals allow 64 bits without a sign; databases have 63 and a sign.
        run.nonce if run.nonce < _UNSIGNED // 2 else run.nonce - _UNSIGNED,
        run.created_at,
        tags_to_json(run.tags, text),
        text(run.queue) if run.queue else None,
        text(run.queue_key) if run.queue else None,
        run.lead,
        run.slots,
        *state_of(run, text),
    )


UNREADABLE = (msgspec.MsgspecError, UnicodeError, KeyError, TypeError, ValueError)
"""The errors that reading a damaged column can raise."""


def to_run(row: Sequence[Any], text: Text) -> Run:
    """A run from its columns, in the order of `birth_of`; more columns may follow. One that is damaged has the status
    DAMAGED, what of it can be read, and what is wrong with it as its reason."""
    try:
        return to_sound_run(row, text)
    except UNREADABLE as error:
        return to_damaged_run(row, error)


def to_damaged_run(row: Sequence[Any], error: Exception) -> Run:
    """A run made of the readable columns of a damaged row."""
    (
        _, id, journal, number, root_id, parent_id, workflow, version, nonce, created_at, _, _, _, _, _,
        status, _, wake_at, owner, epoch, attempts, updated_at, *_,
    ) = row  # fmt: skip
    fault = _fault_in(row, error) if status in _STATUSES else f"no run has the status {status!r}"
    damaged_rows.add("run", str(id), fault)
    return Run(
        id=str(id),
        journal=_number(journal),
        number=_number(number),
        root_id=str(root_id),
        parent_id=None if parent_id is None else str(parent_id),
        workflow=str(workflow),
        version=_number(version),
        nonce=_number(nonce) % _UNSIGNED,
        status=RunStatus.DAMAGED,
        wake_at=None if wake_at is None else _number(wake_at),
        owner=str(owner),
        epoch=_number(epoch),
        attempts=_number(attempts),
        created_at=_number(created_at),
        updated_at=_number(updated_at),
        reason=f"its row in the store is damaged: {fault}; outlive fsck --repair writes it again from the journal",
    )


def _fault_in(row: Sequence[Any], error: Exception) -> str:
    """The fault of the row of a run, with the name of the column if that holds JSON."""
    for name, decode in _JSON_COLUMNS.items():
        text = row[RUN_COLUMNS.index(name)]
        if text is not None:
            try:
                decode(text)
            except UNREADABLE as fault:
                return f"its {name} cannot be read: {fault}"
    return str(error)


_JSON_COLUMNS: dict[str, Callable[[str], Any]] = {
    "tags": _decode_tags,
    "waits": _decode_waits,
    "result": _decode_payload,
    "failure": _decode_failure,
    "published": _decode_payload,
    "approvals": _decode_approvals,
}
"""Columns that hold JSON, and how each is read."""


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0


def to_sound_run(row: Sequence[Any], text: Text) -> Run:
    """A run from a row that is as it was written.

    Raises:
        MsgspecError, UnicodeError, KeyError, TypeError, ValueError: it is not.
    """
    (
        _, id, journal, number, root_id, parent_id, workflow, version, nonce, created_at, tags,
        queue, queue_key, lead, slots,
        status, waits, wake_at, owner, epoch, attempts, updated_at, finished_at, timeout_at, reason, result, failure,
        published, approvals, slot, timeout, begin_by, *_,
    ) = row  # fmt: skip
    nonce = nonce if nonce >= 0 else nonce + _UNSIGNED
    salt = _salt(nonce, number)
    return Run(
        id=id,
        journal=journal,
        number=number,
        root_id=root_id,
        parent_id=parent_id,
        workflow=text(workflow),
        version=version,
        nonce=nonce,
        status=_STATUSES[status],
        waits=() if waits is None else _decode_waits(waits),
        wake_at=wake_at,
        owner=owner,
        epoch=epoch,
        attempts=attempts,
        created_at=created_at,
        updated_at=updated_at,
        finished_at=finished_at,
        timeout_at=timeout_at,
        tags={} if tags is None else {text(name): text(value) for name, value in _decode_tags(tags).items()},
        reason=text(reason),
        result=None if result is None else _opened(result, _decode_payload, salt),
        failure=None if failure is None else _opened(failure, _decode_failure, salt),
        published=None if published is None else _opened(published, _decode_payload, salt),
        approvals=() if approvals is None else _decode_approvals(approvals),
        queue="" if queue is None else text(queue),
        queue_key="" if queue_key is None else text(queue_key),
        lead=lead,
        slots=slots,
        slot=slot,
        timeout=timeout,
        begin_by=begin_by,
    )


def to_inbox_message(row: Sequence[Any], text: Text) -> tuple[int, InboxMessage]:
    """A row of read_inbox.sql: the journal, and the message; one that is damaged says so in `fault`."""
    try:
        return _to_sound_inbound(row, text)
    except UNREADABLE as error:
        return to_damaged_inbox_message(row, error)


def to_damaged_inbox_message(row: Sequence[Any], error: Exception) -> tuple[int, InboxMessage]:
    """A message made of the readable columns of a damaged row."""
    journal, id, run, kind, at, name, key, *_ = row
    fault = f"no message is of the kind {kind!r}" if isinstance(error, KeyError) else str(error)
    damaged_rows.add("inbox", str(id), fault)
    return journal, InboxMessage(
        id=id,
        run=run,
        kind=KINDS.get(kind, MessageKind.SIGNAL),
        at=_number(at),
        name=str(name),
        key=str(key),
        fault=fault,
    )


def _to_sound_inbound(row: Sequence[Any], text: Text) -> tuple[int, InboxMessage]:
    journal, id, run, kind, at, name, key, payload, ended = row
    kind, name, key = KINDS[kind], text(name), text(key)
    salt = 0 if payload is ended is None else _salt_of(kind.value, name, key)
    return journal, InboxMessage(
        id=id,
        run=run,
        kind=kind,
        at=at,
        name=name,
        key=key,
        payload=None if payload is None else _opened(payload, _decode_payload, salt),
        ended=None if ended is None else _opened(ended, _decode_ended, salt),
    )


def to_names(text: Any, worker_id: str) -> tuple[tuple[str, ...], str]:
    """The definitions of a worker, and what is wrong with them if they cannot be read."""
    try:
        return decode_names(text), ""
    except UNREADABLE as error:
        fault = f"its definitions cannot be read: {error}"
        damaged_rows.add("worker", worker_id, fault)
        return (), fault


class _StoredAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The content of the column of an answer."""

    result: Payload | None = None
    failure: Failure | None = None


_decode_answer = msgspec.json.Decoder(_StoredAnswer).decode


def answer_to_json(answer: Answer) -> str:
    """An answer as it is kept with its key."""
    text = _sealed(_StoredAnswer(answer.result, answer.failure), _salt_of(answer.key))
    assert text is not None
    return text


def to_answer(key: str, text: Any) -> Answer:
    """An answer from its column; one that is damaged is a failure that says what is wrong with it."""
    try:
        stored = _opened(text, _decode_answer, _salt_of(key))
    except UNREADABLE as error:
        fault = str(error)
        damaged_rows.add("answer", key, fault)
        message = f"the stored answer is damaged: {fault}"
        return Answer(key=key, failure=Failure("outlive.errors.UnreadableError", message), fault=fault)
    return Answer(key=key, result=stored.result, failure=stored.failure)


def to_item(row: Sequence[Any]) -> ItemResult:
    """A row of read_items.sql; one that is damaged has failed with what is wrong with it."""
    run, index, result, failure = row
    salt = _salt_of(run, index)
    try:
        return ItemResult(
            run=run,
            index=index,
            result=None if result is None else _opened(result, _decode_payload, salt),
            failure=None if failure is None else _opened(failure, _decode_failure, salt),
        )
    except UNREADABLE as error:
        fault = str(error)
        damaged_rows.add("item", f"{run}/{index}", fault)
        message = f"the stored outcome of item {index} is damaged: {fault}"
        failure = Failure(type="outlive.errors.UnreadableError", message=message)
        return ItemResult(run=run, index=index, failure=failure, fault=fault)
