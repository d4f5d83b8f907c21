"""Sinks: addresses to which events are delivered over HTTP. They lie in one cell of the store."""

from __future__ import annotations

import msgspec

from outlive._features.events.values import Sink
from outlive._kernel.store.contract import CellStore
from outlive.errors import StoreError

SINKS_CELL = "@sinks"


Sinks = dict[str, Sink]

_decode = msgspec.json.Decoder(Sinks).decode
_encode = msgspec.json.Encoder().encode


def sinks_in(held: bytes | None) -> Sinks:
    """The sinks in the cell.

    Raises:
        StoreError: it is damaged. It is not taken for an empty one: events would be delivered nowhere, silently.
    """
    try:
        return {} if not held else _decode(held)
    except msgspec.MsgspecError as error:
        raise StoreError(
            f"the sinks of events cannot be read ({error}); delete the cell {SINKS_CELL}, and add them"
        ) from None


async def read_sinks(store: CellStore) -> Sinks:
    """The sinks by name."""
    return sinks_in(await store.read_cell(SINKS_CELL))


async def put_sink(store: CellStore, sink: Sink) -> None:
    """Add a sink, or change it."""

    def change(held: bytes | None, _: int) -> tuple[bytes, None]:
        return _encode(sinks_in(held) | {sink.name: sink}), None

    await store.change_cell(SINKS_CELL, change)


async def drop_sink(store: CellStore, name: str) -> None:
    """Remove a sink, if there is one."""

    def change(held: bytes | None, _: int) -> tuple[bytes | None, None]:
        sinks = sinks_in(held)
        if name not in sinks:
            return held, None
        return _encode({key: each for key, each in sinks.items() if key != name}), None

    return await store.change_cell(SINKS_CELL, change)
