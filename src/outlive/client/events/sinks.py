"""Sinks: addresses to which events are delivered over HTTP. They lie in one cell of the store."""

from __future__ import annotations

import msgspec

from outlive._model.trigger import fits
from outlive._store.contract import CellStore
from outlive.errors import StoreError

CELL = "@sinks"


class Sink(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where events of some types are delivered to."""

    name: str
    url: str
    types: tuple[str, ...] = ("*",)
    """The types of events, or patterns as `order.*`."""
    secret: str | None = None
    """The name of the secret whose value signs the deliveries; the value is never stored."""

    def wants(self, event_type: str) -> bool:
        """Whether events of this type are delivered there."""
        return any(fits(each, event_type) for each in self.types)


Sinks = dict[str, Sink]

_decode = msgspec.json.Decoder(Sinks).decode
_encode = msgspec.json.Encoder().encode


def sinks_in(held: bytes | None) -> Sinks:
    """What the cell holds.

    Raises:
        StoreError: it is damaged. It is not taken for an empty one: events would be delivered nowhere, silently.
    """
    try:
        return {} if not held else _decode(held)
    except msgspec.MsgspecError as error:
        raise StoreError(
            f"the sinks of events cannot be read ({error}); delete the cell {CELL}, and add them"
        ) from None


async def read_sinks(store: CellStore) -> Sinks:
    """The sinks by name."""
    return sinks_in(await store.read_cell(CELL))


async def put_sink(store: CellStore, sink: Sink) -> None:
    """Add a sink, or change it."""

    def change(held: bytes | None, _: int) -> tuple[bytes, None]:
        return _encode(sinks_in(held) | {sink.name: sink}), None

    await store.change_cell(CELL, change)


async def drop_sink(store: CellStore, name: str) -> bool:
    """Remove a sink; whether there was one."""

    def change(held: bytes | None, _: int) -> tuple[bytes | None, bool]:
        sinks = sinks_in(held)
        if name not in sinks:
            return held, False
        return _encode({key: each for key, each in sinks.items() if key != name}), True

    return await store.change_cell(CELL, change)
