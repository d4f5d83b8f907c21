"""The arguments of a step as they are recorded with its outcome: for people, and never for a replay.

`Engine(record_arguments=True)` writes them. They are an object by the names of the parameters, without the fields that
the engine redacts: what is not to be seen does not come into the journal a second time. Long texts and lists are cut,
and what was cut says so, until the whole fits into `RECORDED_BYTES_MAX`.

A step that has its arguments in a closure may show some (`shown`): whatever objects a framework has, which need no
stored form and are never read back.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import msgspec

from outlive._kernel.journal.modelled import is_model
from outlive._kernel.journal.redaction import Redaction

RECORDED_BYTES_MAX = 4_096
"""The limit for the recorded arguments of one call."""
READ_BYTES_MAX = 4 * 1024 * 1024
"""Larger arguments are not looked at: only their size is recorded."""
DEPTH_MAX = 8
SHOWN_DEPTH_MAX, SHOWN_ITEMS_MAX = 12, 100
"""How deep it is looked into what a step shows, and how many items of a list or an object are looked at."""
_MORE = re.compile(r"\[(\d[\d,]*) more\]")
_EMPTY: tuple[Any, ...] = (None, "", [], {})
_CUTS = ((1_500, 30), (600, 12), (200, 6), (60, 3))
"""Characters of a text and items of a list or an object that are kept: first much, then less."""


def recorded(data: bytes, redaction: Redaction, *, bytes_max: int = RECORDED_BYTES_MAX) -> bytes:
    """The JSON object of the arguments of a call as it is recorded."""
    if len(data) > READ_BYTES_MAX:
        return _size_of(data)
    plain = redaction.hide(msgspec.json.decode(data))
    found = msgspec.json.encode(plain)
    for characters, items in _CUTS:
        if len(found) <= bytes_max:
            return found
        found = msgspec.json.encode(_cut(plain, characters, items, DEPTH_MAX))
    return found if len(found) <= bytes_max else _size_of(data)


def _size_of(data: bytes) -> bytes:
    return msgspec.json.encode({"arguments": f"[{len(data):,} bytes]"})


def _cut(value: Any, characters: int, items: int, depth: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= characters else f"{value[:characters]}... [{len(value):,} characters]"
    if not isinstance(value, list | dict):
        return value
    if not depth:
        return f"[{len(value):,} items]"
    if isinstance(value, dict):
        return _without_end(value, items, lambda each: _cut(each, characters, items, depth - 1))
    return _without_middle(value, items, lambda each: _cut(each, characters, items, depth - 1))


def _without_middle(value: Sequence[Any], items: int, form: Callable[[Any], Any]) -> list[Any]:
    """The first message of a conversation, which gives its subject, and the last ones with the question."""
    if len(value) <= items:
        return [form(each) for each in value]
    more = len(value) - items + _left_out(value[1])
    return [form(value[0]), f"[{more:,} more]", *(form(each) for each in value[1 - items :])]


def _without_end(value: Mapping[Any, Any], items: int, form: Callable[[Any], Any]) -> dict[str, Any]:
    """The first fields of an object."""
    kept = {str(name): form(value[name]) for name in list(value)[:items]}
    return (
        kept if len(value) <= items else kept | {"...": f"[{len(value) - items + _left_out(value.get('...')):,} more]"}
    )


def _left_out(said: Any) -> int:
    """How many items more than itself a value stands for, if it says that some were left out already."""
    found = _MORE.fullmatch(said) if isinstance(said, str) else None
    return int(found[1].replace(",", "")) - 1 if found else 0


# -- What a step shows of itself -----------------------------------------------------------------------------------


def shown_json(shown: Mapping[str, Any]) -> bytes:
    """JSON of the arguments that a step shows: of a long list the first item and the last ones, of an object the fields
    that say something, of anything else its type. Texts are whole, so that fields in their JSON can be hidden."""
    return msgspec.json.encode({str(name): _plain(value, SHOWN_DEPTH_MAX) for name, value in shown.items()})


def _plain(value: Any, depth: int) -> Any:
    if value is None or type(value) in (str, bool, int, float):
        return value
    if isinstance(value, Enum):
        return _plain(value.value, depth)
    if isinstance(value, bytes | bytearray | memoryview):
        return f"[{len(value):,} bytes]"
    if isinstance(value, str | date | time | timedelta | Decimal | UUID):
        return str(value)
    if not depth:
        return f"[{type(value).__qualname__}]"
    if isinstance(value, list | tuple | Set):
        return _without_middle(list(value), SHOWN_ITEMS_MAX, lambda each: _plain(each, depth - 1))
    if isinstance(value, Mapping):
        return _without_end(value, SHOWN_ITEMS_MAX, lambda each: _plain(each, depth - 1))
    names = _fields_of(type(value))
    if names is None:
        return f"[{type(value).__qualname__}]"
    fields = {name: _plain(getattr(value, name, None), depth - 1) for name in names}
    return {name: field for name, field in fields.items() if field not in _EMPTY}


def _fields_of(cls: type) -> list[str] | None:
    """The fields of a class whose author lets them be seen in its `repr`; None if it has no fields."""
    if dataclasses.is_dataclass(cls):
        return [field.name for field in dataclasses.fields(cls) if field.repr]
    if is_model(cls):
        known: Mapping[str, Any] = cls.__pydantic_fields__  # type: ignore[attr-defined]
        return [name for name, field in known.items() if field.repr and not field.exclude]
    return list(cls.__struct_fields__) if issubclass(cls, msgspec.Struct) else None
