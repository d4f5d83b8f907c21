"""Values for readers that know no type: what a run publishes and emits, and the public form of every value.

What is published is written exactly, as `tagged` does. An enum is written as its value, and a model, a dataclass or a
struct as the JSON of its fields: a reader gets an object, or names the type and gets the value again.

The public form is JSON without tags: what people, other programs and other languages get, whatever is stored.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import msgspec

from outlive._kernel.journal.event import AnyEvent, SnapshotTaken, payload_fields
from outlive._kernel.journal.modelled import NOT_FINITE
from outlive._kernel.journal.tagged import DEPTH_MAX, READERS
from outlive._kernel.journal.value import TAG_BYTES, TAGGED, Stored, codec_for, converter_of, is_record, write_custom
from outlive._kernel.model import Failure, Payload
from outlive.errors import UnreadableError

_PLAIN = frozenset({str, int, float, bool, type(None)})


class ReadableCodec:
    """The codec of such values."""

    def encode(self, value: Any, what: str) -> bytes:
        """JSON of this value.

        Raises:
            UnserialisableError: it has no stored form; `what` names it in the message.
        """
        return TAGGED.encode(value if type(value) in _PLAIN else _readable(value, what, DEPTH_MAX), what)

    def decode(self, data: Stored, what: str) -> Any:
        """The value, with an object in the place of a model.

        Raises:
            UnreadableError: the JSON stands for no value.
        """
        return TAGGED.decode(data, what)


READABLE = ReadableCodec()


def public_json(data: Stored) -> Any:
    """The public form of stored JSON, for people and for programs in any language."""
    plain = TAGGED.decode_plain(data)
    return public_of(plain) if TAG_BYTES in bytes(data) else plain


def is_public(data: Stored) -> bool:
    """Whether stored JSON is its own public form."""
    return TAG_BYTES not in bytes(data)


def public_value(value: Any, what: str) -> Any:
    """The public form of a value that is here.

    Raises:
        UnserialisableError: it has none; `what` names it in the message.
    """
    return public_json(READABLE.encode(value, what))


def public_custom(value: Any) -> Any:
    """The public form of a value that msgspec does not know.

    Raises:
        TypeError: it has none.
    """
    return public_of(write_custom(value))


def public_of(plain: Any) -> Any:
    """The public form of a value: each type has one, which msgspec gives to a value of a declared type.

    A tuple and a set are lists, bytes are base64, an instant is RFC 3339, a span is ISO 8601, a Decimal and a UUID are
    text, and so is a number that is not finite. An integer is a number, however large. The keys of a
    dict are text; a dict with keys that are not scalars is a list of pairs.
    """
    if type(plain) is list:
        return [public_of(item) for item in plain]
    if type(plain) is not dict:
        return plain
    if len(plain) == 1 and "$" in plain:
        try:
            tag, body = plain["$"]
            return _PUBLIC[tag](body)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
            pass  # A field of its own is called `$`.
    return {key: public_of(item) for key, item in plain.items()}


def public_failure(failure: Failure) -> Failure:
    """A failure with its arguments and attributes in their public form."""
    cause = failure.cause
    return msgspec.structs.replace(
        failure,
        args=public_of(failure.args),
        attributes=public_of(failure.attributes),
        cause=None if cause is None else public_failure(cause),
    )


def public_event(event: AnyEvent) -> AnyEvent:
    """An event whose values are in their public form; its payloads are JSON that stands in it."""
    changed: dict[str, Any] = {}
    if isinstance(event, SnapshotTaken):
        changed["created"] = public_event(event.created)
        for field, messages in (("signals", event.signals), ("asks", event.asks), ("set_aside", event.set_aside)):
            changed[field] = tuple(public_event(each) for each in messages)
    for field in payload_fields(type(event)):
        payload = getattr(event, field)
        if isinstance(payload, Payload) and payload.v is not msgspec.UNSET and TAG_BYTES in bytes(payload.v):
            changed[field] = Payload(v=msgspec.Raw(msgspec.json.encode(public_json(payload.v))))
    if (failure := getattr(event, "failure", None)) is not None:
        changed["failure"] = public_failure(failure)
    return msgspec.structs.replace(event, **changed) if changed else event


def _public_pairs(pairs: list[Any]) -> Any:
    """A dict with other keys than text: with their texts, if they are scalars and these are different."""
    found = {_key_of(key): public_of(item) for key, item in pairs}
    if None in found or len(found) < len(pairs):
        return [[public_of(key), public_of(item)] for key, item in pairs]
    return found


def _key_of(key: Any) -> str | None:
    plain = public_of(key)
    if isinstance(plain, str):
        return plain
    return None if isinstance(plain, list | dict) else TAGGED.encode_plain(plain).decode()


def _public_int(body: str) -> int | str:
    number = int(body, 16)
    try:
        str(number)
    except ValueError:  # Python limits how many decimal digits it writes.
        return body
    return number


def _as_msgspec_writes(read: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda body: msgspec.to_builtins(read(body))


def _public_list(body: list[Any]) -> list[Any]:
    return [public_of(item) for item in body]


_NOT_FINITE = dict(zip(("inf", "-inf", "nan"), NOT_FINITE, strict=True))
_PUBLIC: dict[str, Callable[[Any], Any]] = {
    "tuple": _public_list,
    "set": _public_list,
    "frozenset": _public_list,
    "dict": _public_pairs,
    "int": _public_int,
    "float": _NOT_FINITE.__getitem__,
    **{kind: _as_msgspec_writes(READERS[kind]) for kind in ("datetime", "time", "timedelta")},
    **dict.fromkeys(("bytes", "bytearray", "date", "Decimal", "UUID", "complex"), str),
}


def _readable(value: Any, what: str, depth: int) -> Any:
    kind = type(value)
    if kind in _PLAIN or not depth:
        return value  # One that is nested too deeply is refused with its path.
    if kind in (list, tuple, set, frozenset):
        return kind(_readable(each, what, depth - 1) for each in value)
    if kind is dict:
        return {_readable(key, what, depth - 1): _readable(each, what, depth - 1) for key, each in value.items()}
    if isinstance(value, enum.Enum):
        return _readable(value.value, what, depth - 1)
    if is_record(kind) or converter_of(kind) is not None:
        return _fields_of(codec_for(kind).encode(value, what), what)
    return value


def _fields_of(data: Stored, what: str) -> Any:
    try:
        return TAGGED.decode(data, what)
    except UnreadableError:
        return TAGGED.decode_plain(data)  # A field of its own is called `$`.
