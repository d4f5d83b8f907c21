"""Values for readers that know no type: what a run publishes and emits.

Plain values are written exactly, as `tagged` does. An enum is written as its value, and a model, a dataclass or a
struct as the JSON of its fields: a reader gets an object, or names the type and gets the value again.
"""

from __future__ import annotations

import enum
from typing import Any

import msgspec

from outlive._journal.tagged import DEPTH_MAX
from outlive._journal.value import TAGGED, Stored, codec_for, is_record
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
_NOT_FINITE = b'{"$":["float",'
"""How a number begins that is infinite or none."""


def json_of(data: Stored, what: str) -> Any:
    """What stored JSON is to a program in another language: a tuple is a list, an instant is text. With its tags, if
    JSON has nothing for it, as for a tuple that is a key, or infinity."""
    if _NOT_FINITE in bytes(data):  # Otherwise it would be null.
        return TAGGED.decode_plain(data)
    try:
        return TAGGED.decode_plain(msgspec.json.encode(_fields_of(data, what)))
    except (TypeError, ValueError, OverflowError):
        return TAGGED.decode_plain(data)


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
    if is_record(kind):
        return _fields_of(codec_for(kind).encode(value, what), what)
    return value


def _fields_of(data: Stored, what: str) -> Any:
    try:
        return TAGGED.decode(data, what)
    except UnreadableError:
        return TAGGED.decode_plain(data)  # A field of its own is called `$`.
