"""The verbs of greetings."""

from __future__ import annotations

import msgspec

from outlive._kernel.client.client import Client
from outlive._kernel.store.contract import Store

GREETINGS_CELL = "test.greetings"


class Greeting(msgspec.Struct, frozen=True):
    """One greeting."""

    text: str
    is_answered: bool = False


class Greetings:
    """Adds and lists greetings."""

    def __init__(self, client: Client) -> None:
        self._access = client.access

    async def add(self, text: str) -> None:
        """Greet the store; a worker answers."""

        def write(data: bytes | None, _: int) -> tuple[bytes, None]:
            return msgspec.json.encode([*greetings_in(data), Greeting(text)]), None

        await self._access.store.change_cell(GREETINGS_CELL, write)

    async def list(self) -> list[Greeting]:
        """All greetings, in the order in which they came."""
        return greetings_in(await self._access.store.read_cell(GREETINGS_CELL))


async def answer_all(store: Store) -> None:
    """Answer the greetings that have no answer yet; all workers may do this at once."""

    def write(data: bytes | None, _: int) -> tuple[bytes, None]:
        return msgspec.json.encode([Greeting(it.text, is_answered=True) for it in greetings_in(data)]), None

    await store.change_cell(GREETINGS_CELL, write)


def greetings_in(data: bytes | None) -> list[Greeting]:
    """The greetings in the bytes of the cell."""
    return [] if data is None else msgspec.json.decode(data, type=list[Greeting])
