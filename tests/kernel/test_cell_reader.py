"""A cell that many callers read at the same time: how often the store is asked, and what each caller gets."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from outlive._kernel.client.cell_reader import CellReader
from outlive.errors import StoreUnavailableError


class Cells:
    """A store with one cell, which answers when the test says so."""

    def __init__(self) -> None:
        self.held: bytes | None = b"1"
        self.asked: list[asyncio.Future[None]] = []

    async def read_cell(self, name: str) -> bytes | None:
        """See `CellStore`."""
        assert name == "it"
        self.asked.append(asyncio.get_running_loop().create_future())
        held = self.held
        await self.asked[-1]
        return held

    async def change_cell(self, *_: Any, **__: Any) -> Any:
        """See `CellStore`."""
        raise AssertionError("reading changes nothing")


async def turns() -> None:
    """Let everything happen that can."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_callers_that_come_meanwhile_share_the_next_question() -> None:
    """A caller never gets the answer to a question from before it came, because the cell may have changed since."""
    cells = Cells()
    reader = CellReader("it", lambda held: held)
    first = asyncio.ensure_future(reader.read(cells))
    await turns()
    later = [asyncio.ensure_future(reader.read(cells)) for _ in range(10)]
    cells.held = b"2"
    await turns()
    assert len(cells.asked) == 1

    cells.asked[0].set_result(None)
    await turns()
    cells.asked[1].set_result(None)

    assert await first == b"1"
    assert {await each for each in later} == {b"2"}
    assert len(cells.asked) == 2


async def test_a_cell_that_has_not_changed_is_decoded_once() -> None:
    """A cell that has not changed is decoded once, and every caller gets the same value."""
    cells, decoded = Cells(), []

    def decode(held: bytes | None) -> list[bytes | None]:
        decoded.append(held)
        return [held]

    reader = CellReader("it", decode)
    found = []
    for held in (b"1", b"1", b"2", None):
        cells.held = held
        reading = asyncio.ensure_future(reader.read(cells))
        await turns()
        cells.asked[-1].set_result(None)
        found.append(await reading)

    assert found == [[b"1"], [b"1"], [b"2"], [None]]
    assert decoded == [None, b"1", b"2", None]


async def test_each_caller_gets_the_error_of_the_store_and_a_later_caller_asks_again() -> None:
    """A failure is the answer to the callers that waited for it, and to no later caller."""
    cells = Cells()
    reader = CellReader("it", lambda held: held)
    waiting = [asyncio.ensure_future(reader.read(cells)) for _ in range(2)]
    await turns()
    cells.asked[0].set_exception(StoreUnavailableError("the store", "it is away"))
    for each in waiting:
        with pytest.raises(StoreUnavailableError):
            await each

    again = asyncio.ensure_future(reader.read(cells))
    await turns()
    cells.asked[1].set_result(None)
    assert await again == b"1"
