"""Values without an annotation: JSON that comes back exactly, or is refused when it is written.

Plain JSON values stand for themselves. What JSON would alter silently (a tuple becomes a list, a datetime a string,
an integer key a string, infinity null) is written as an object with the one key `$`:

    (1, 2)              {"$": ["tuple", [1, 2]]}
    {"a", "b"}          {"$": ["set", ["a", "b"]]}          sorted, so that equal sets are equal bytes
    {1: "x"}            {"$": ["dict", [[1, "x"]]]}         also for a dict that has a key "$" itself
    b"\\x00"             {"$": ["bytes", "AA=="]}
    datetime, date, time, timedelta, Decimal, UUID, inf, nan and integers beyond 64 bits   likewise, as text

Only exact types: a subclass (an enum, a named tuple, a defaultdict) would come back as its base, so it is refused with
its path. Nothing here ever imports or calls a class named by data.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from itertools import chain
from types import CoroutineType
from typing import Any
from uuid import UUID

import msgspec

from outlive._kernel.model.why import Why
from outlive.errors import UnserialisableError

NOT_AWAITED = "this is a call whose result was not waited for; await it"
DEPTH_MAX = 100
_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1
_PLAIN = frozenset({list, dict, str, int, float, bool, type(None)})

_json = msgspec.json.Encoder(order=None)


def to_plain(value: Any, what: str) -> Any:
    """The JSON value that stands for `value`; `what` names it in the error."""
    return _plain(value, what, "$", 0)


def is_plain(value: Any) -> bool:
    """Whether a value is its own plain form. A large one takes a tenth of the time of `to_plain`: it is looked at level
    by level, and nothing is called for each part."""
    level = [value]
    for _ in range(DEPTH_MAX):
        kinds = set(map(type, level))
        if not kinds <= _PLAIN:
            return False
        whole = [each for each in level if type(each) is int] if int in kinds else ()
        if whole and not _INT_MIN <= min(whole) <= max(whole) <= _INT_MAX:
            return False
        if float in kinds and not all(map(math.isfinite, (each for each in level if type(each) is float))):
            return False
        dicts = [each for each in level if type(each) is dict] if dict in kinds else ()
        if any("$" in each for each in dicts) or not set(map(type, chain.from_iterable(dicts))) <= {str}:
            return False
        lists = [each for each in level if type(each) is list] if list in kinds else ()
        level = [*chain.from_iterable(lists), *chain.from_iterable(map(dict.values, dicts))]
        if not level:
            return True
    return False


def from_plain(plain: Any) -> Any:
    """The value that `to_plain` was given."""
    if type(plain) is list:
        return [from_plain(item) for item in plain]
    if type(plain) is not dict:
        return plain
    if len(plain) == 1 and "$" in plain:
        tag, body = plain["$"]
        return READERS[tag](body)
    return {key: from_plain(item) for key, item in plain.items()}


def _plain(value: Any, what: str, path: str, depth: int) -> Any:
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        # In hexadecimal: Python limits how many decimal digits it reads and writes.
        return value if _INT_MIN <= value <= _INT_MAX else {"$": ["int", hex(value)]}
    if kind is float:
        return value if math.isfinite(value) else {"$": ["float", repr(value)]}
    if depth >= DEPTH_MAX:
        raise UnserialisableError(what, path, kind.__name__, f"nested deeper than {DEPTH_MAX} levels")
    if kind is list:
        return [_plain(item, what, f"{path}[{index}]", depth + 1) for index, item in enumerate(value)]
    if kind is dict:
        return _plain_dict(value, what, path, depth)
    if kind in _COLLECTIONS:
        return {"$": [kind.__name__, _plain_members(value, what, path, depth)]}
    if (kind is datetime or kind is time) and not has_plain_zone(value):
        raise UnserialisableError(
            what, path, kind.__name__, "its time zone would come back as a fixed offset; convert it: .astimezone(UTC)"
        )
    write = _WRITERS.get(kind)
    if kind is Why:
        return str(value)
    if write is None:
        raise UnserialisableError(
            what,
            path,
            kind.__qualname__,
            NOT_AWAITED
            if kind is CoroutineType
            else "has no exact form without an annotation; annotate it with its type",
        )
    return {"$": [kind.__name__, write(value)]}


def has_plain_zone(value: datetime | time) -> bool:
    """Whether text keeps everything of a time: a named zone has more than its offset, and `fold` is never written."""
    zone = type(value.tzinfo)
    # pydantic has a class of its own for the offsets that it reads.
    is_offset = zone is timezone or (zone.__name__ == "TzInfo" and zone.__module__.startswith("pydantic_core"))
    return not value.fold and (value.tzinfo is None or is_offset)


def find_unwritable(value: Any, path: str = "$") -> tuple[str, Any] | None:
    """The text in a plain value that no UTF-8 can say: a lone surrogate, as in file names of other systems."""
    if isinstance(value, str):
        return (path, value) if _is_unwritable(value) else None
    if isinstance(value, dict):
        inside = [(f"{path} key", key) for key in value]
        inside += [
            (f"{path}.{key}" if isinstance(key, str) else f"{path}[{key!r}]", each) for key, each in value.items()
        ]
    elif isinstance(value, list | tuple | set | frozenset):
        inside = [(f"{path}[{index}]", each) for index, each in enumerate(value)]
    else:
        return None
    found = (find_unwritable(each, inner) for inner, each in inside)
    return next((each for each in found if each is not None), None)


def _is_unwritable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _plain_dict(value: dict[Any, Any], what: str, path: str, depth: int) -> Any:
    if all(type(key) is str for key in value) and "$" not in value:
        return {key: _plain(item, what, f"{path}.{key}", depth + 1) for key, item in value.items()}
    pairs = [
        [_plain(key, what, f"{path} key", depth + 1), _plain(item, what, f"{path}[{key!r}]", depth + 1)]
        for key, item in value.items()
    ]
    return {"$": ["dict", pairs]}


def _plain_members(value: Any, what: str, path: str, depth: int) -> list[Any]:
    members = [_plain(item, what, f"{path}[{index}]", depth + 1) for index, item in enumerate(value)]
    if type(value) is tuple:
        return members
    return sorted(members, key=_json.encode)


_COLLECTIONS = frozenset({tuple, set, frozenset})

_WRITERS: dict[type, Callable[[Any], str]] = {
    bytes: lambda value: base64.b64encode(value).decode(),
    bytearray: lambda value: base64.b64encode(value).decode(),
    datetime: lambda value: value.isoformat(),
    date: lambda value: value.isoformat(),
    time: lambda value: value.isoformat(),
    timedelta: lambda value: f"{value.days}:{value.seconds}:{value.microseconds}",
    Decimal: str,
    UUID: str,
    complex: repr,
}


def _read_timedelta(text: str) -> timedelta:
    days, seconds, microseconds = text.split(":")
    return timedelta(int(days), int(seconds), int(microseconds))


READERS: dict[str, Callable[[Any], Any]] = {
    "tuple": lambda body: tuple(from_plain(item) for item in body),
    "set": lambda body: {from_plain(item) for item in body},
    "frozenset": lambda body: frozenset(from_plain(item) for item in body),
    "dict": lambda body: {from_plain(key): from_plain(item) for key, item in body},
    "int": lambda body: int(body, 16),
    "float": float,
    "bytes": base64.b64decode,
    "bytearray": lambda body: bytearray(base64.b64decode(body)),
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "timedelta": _read_timedelta,
    "Decimal": Decimal,
    "UUID": UUID,
    "complex": complex,
}
