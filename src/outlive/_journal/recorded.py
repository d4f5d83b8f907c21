"""The arguments of a step as they are recorded with its outcome: for people, and never for a replay.

`Engine(record_arguments=True)` writes them. They are an object by the names of the parameters, without the fields that
the engine redacts: what is not to be seen does not come into the journal a second time. Long texts and lists are cut,
and what was cut says so, until the whole fits into `RECORDED_BYTES_MAX`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from outlive._journal.redaction import Redaction

RECORDED_BYTES_MAX = 4_096
"""The limit for the recorded arguments of one call."""
READ_BYTES_MAX = 4 * 1024 * 1024
"""Larger arguments are not looked at: only their size is recorded."""
DEPTH_MAX = 8
_CUTS = ((1_500, 30), (600, 12), (200, 6), (60, 3))
"""Characters of a text and items of a list or an object that are kept: first much, then less."""


def recorded(data: bytes, redaction: Redaction) -> bytes:
    """The JSON object of the arguments of a call as it is recorded."""
    if len(data) > READ_BYTES_MAX:
        return _size_of(data)
    plain = redaction.hide(msgspec.json.decode(data))
    found = msgspec.json.encode(plain)
    for characters, items in _CUTS:
        if len(found) <= RECORDED_BYTES_MAX:
            return found
        found = msgspec.json.encode(_cut(plain, characters, items, DEPTH_MAX))
    return found if len(found) <= RECORDED_BYTES_MAX else _size_of(data)


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
        kept = {name: _cut(each, characters, items, depth - 1) for name, each in list(value.items())[:items]}
        return kept if len(value) <= items else kept | {"...": f"[{len(value) - items:,} more]"}
    if len(value) <= items:
        return [_cut(each, characters, items, depth - 1) for each in value]
    # The first message of a conversation gives its subject, and the last ones the question.
    left_out = len(value) - items
    shown = [_cut(each, characters, items, depth - 1) for each in [value[0], *value[1 - items :]]]
    return [shown[0], f"[{left_out:,} more]", *shown[1:]]
