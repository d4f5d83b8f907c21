"""Where a reader of all references to blobs stands: in which table, and behind which row of it.

The order of the tables matters: a reference that moves, moves from an earlier one to a later one
(`outlive._kernel.store.deleting`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from outlive._kernel.journal.history import references_in
from outlive._kernel.store.deleting import References

FIRST: dict[str, tuple[Any, ...]] = {
    "requests": ("",),
    "inbox": (-1,),
    "answers": (-1, ""),
    "items": (-1, -1, -1),
    "streams": (-1,),
    "events": (-1,),
}
"""The tables, each with a place before its first row, as SQLite has them."""


class TablePlace(msgspec.Struct, frozen=True, array_like=True):
    """A table, and the last row of it that was read."""

    table: str
    row: list[Any]


_decode = msgspec.json.Decoder(TablePlace).decode


def place_of(after: str, first: dict[str, tuple[Any, ...]]) -> TablePlace:
    """Where to go on."""
    if after:
        return _decode(after)
    table = next(iter(first))
    return TablePlace(table, list(first[table]))


def references_of(
    place: TablePlace, rows: Sequence[Sequence[Any]], first: dict[str, tuple[Any, ...]], *, limit: int
) -> References:
    """The references in the rows behind a place: each has its own place in front, and behind it a text or None."""
    ids = ids_in(row[-1] for row in rows)
    if len(rows) == limit:
        return References(ids, msgspec.json.encode(TablePlace(place.table, list(rows[-1][:-1]))).decode())
    later = list(first)[list(first).index(place.table) + 1 :]
    return References(ids, msgspec.json.encode(TablePlace(later[0], list(first[later[0]]))).decode() if later else None)


def ids_in(texts: Iterable[bytes | None]) -> set[str]:
    """The ids of all blobs that these texts name."""
    return set().union(*(references_in(text) for text in texts if text))
