"""Cells: small things that all workers of a store share, changed one after the other."""

from __future__ import annotations

import asyncio

import pytest

from outlive._kernel.store.contract import Store
from outlive.testing.clock import ManualClock
from outlive_conformance.suite.builders import begin, see_everything
from outlive_conformance.suite.facet import Facet
from outlive_conformance.suite.factory import StoreFactory


def look(data: bytes | None, now_at: int) -> tuple[bytes, bytes | None]:
    """The content of a cell; looking makes an empty cell of a new one."""
    return data or b"", data


def add(data: bytes | None, now_at: int) -> tuple[bytes, int]:
    """One more than before."""
    number = int(data or b"0") + 1
    return str(number).encode(), number


class CellsConformance(Facet):
    """`change_cell`, `read_cell`, and `ring`, which reaches other processes that `watch`."""

    async def test_ring_for_a_cell_says_which_one(self, store: Store, other: Store) -> None:
        """Other processes that watch hear the name of the cell, which itself stays as it is."""
        rings: list[str] = []
        store.watch(rings.append)
        await store.ring("own")
        await other.ring("cell")
        await other.change_cell("cell", look)

        assert {*rings} <= {"", "cell"}

    async def test_cell_is_read_as_it_is(self, store: Store, other: Store) -> None:
        """By every store, and reading changes nothing: a cell that was never written holds None."""
        assert await store.read_cell("cell") is None
        await store.change_cell("cell", lambda before, now_at: (b"\x00x", None))

        assert [await each.read_cell("cell") for each in (store, other, store)] == [b"\x00x"] * 3
        assert await store.read_cell("Cell") is None
        assert await store.change_cell("Cell", look) is None

    async def test_new_cell_holds_nothing(self, store: Store) -> None:
        """None, which is not the same as nothing in it."""
        assert await store.change_cell("new", look) is None
        assert await store.change_cell("new", look) == b""

    @pytest.mark.parametrize(
        "data", [b"text", b"\x00", bytes(range(256)), b"x" * 100_000], ids=["text", "zero", "binary", "large"]
    )
    async def test_cell_holds_what_was_put_there(self, store: Store, other: Store, data: bytes) -> None:
        """Bytes are bytes, and every store sees them when the verb returns."""
        await store.change_cell("cell", lambda before, now_at: (data, None))

        assert await other.change_cell("cell", look) == data

    async def test_cell_is_changed_by_the_last_change(self, store: Store, other: Store) -> None:
        """Each change sees what the one before has written, by whichever worker."""
        answers = [await each.change_cell("counter", add) for each in (store, other, store, other)]

        assert answers == [1, 2, 3, 4]

    async def test_cells_are_apart(self, store: Store) -> None:
        """A name is a name, whatever is in it; also one that differs only in case, or in a blank at its end."""
        names = ["a", "A", "a ", "", "a/b", "ä", "a\x00b", "a\x01b", "x" * 200]
        for name in names:
            await store.change_cell(name, lambda before, now_at, name=name: (name.encode(), None))  # type: ignore[misc]

        assert [await store.change_cell(name, look) for name in names] == [name.encode() for name in names]

    async def test_checker_is_given_the_name_of_every_cell(self, store: Store) -> None:
        """In the order of their bytes, a page at a time, without cells whose first change failed."""

        def fail(before: bytes | None, now_at: int) -> tuple[bytes, None]:
            raise LookupError("not this way")

        names = ["", "A", "a", "a ", "a/b", "ä", *(f"cell-{number}" for number in range(6))]
        for name in names:
            await store.change_cell(name, look)
        with pytest.raises(LookupError):
            await store.change_cell("failed", fail)
        found: list[str] = []

        while page := await store.examiner.list_cells(after=found[-1] if found else None, limit=5):
            assert len(page) <= 5
            found += page

        assert found == sorted(names)

    async def test_cell_that_is_to_hold_nothing_is_gone(self, store: Store, other: Store) -> None:
        """The cell is as if it was never written, for every store; changes that come meanwhile happen one after the
        other."""

        def remove(before: bytes | None, now_at: int) -> tuple[None, bytes | None]:
            return None, before

        await store.change_cell("cell", lambda *_: (b"x", None))
        assert [await store.change_cell("cell", remove), await other.change_cell("cell", remove)] == [b"x", None]
        assert [await other.read_cell("cell"), await store.examiner.list_cells(limit=5)] == [None, []]
        assert await other.change_cell("cell", look) is None

        each = [add, remove] * 6
        await asyncio.gather(*((store, other)[n % 3 == 0].change_cell("busy", change) for n, change in enumerate(each)))
        assert await store.read_cell("busy") in (None, *(b"%d" % number for number in range(1, 7)))

    async def test_change_gets_the_time_of_the_store(self, store: Store, clock: ManualClock) -> None:
        """A change gets the time of the store, and not that of the caller."""
        first = await store.change_cell("clock", lambda before, now_at: (b"", now_at))
        clock.advance(seconds=90)
        second = await store.change_cell("clock", lambda before, now_at: (b"", now_at))

        assert (first, second) == (clock.now() - 90_000_000, clock.now())

    async def test_change_that_raises_changes_nothing(self, store: Store) -> None:
        """Its own error comes out, and others who asked at the same moment are not hurt."""
        await store.change_cell("cell", lambda before, now_at: (b"kept", None))

        def fail(before: bytes | None, now_at: int) -> tuple[bytes, None]:
            raise LookupError("not this way")

        asked = [store.change_cell("counter", add), store.change_cell("cell", fail), store.change_cell("counter", add)]
        first, error, second = await asyncio.gather(*asked, return_exceptions=True)

        assert isinstance(error, LookupError)
        assert [first, second] == [1, 2]
        assert await store.change_cell("cell", look) == b"kept"
        assert await store.change_cell("counter", add) == 3

    async def test_new_cell_whose_first_change_raises_holds_nothing(self, store: Store) -> None:
        """It was never written."""

        def fail(before: bytes | None, now_at: int) -> tuple[bytes, None]:
            raise LookupError("not this way")

        with pytest.raises(LookupError, match="not this way"):
            await store.change_cell("new", fail)

        assert await store.change_cell("new", look) is None

    async def test_no_change_is_lost(self, store: Store, other: Store) -> None:
        """Two hundred at once, of two stores: each has a number of its own."""
        answers = await asyncio.gather(
            *(each.change_cell("counter", add) for _ in range(100) for each in (store, other))
        )

        assert sorted(answers) == list(range(1, 201))

    async def test_changes_of_many_cells_do_not_wait_for_each_other_in_a_circle(
        self, store: Store, other: Store
    ) -> None:
        """One goes through the cells forwards and the other one backwards."""
        names = [f"cell-{number}" for number in range(20)]
        forwards = [store.change_cell(name, add) for name in names * 5]
        backwards = [other.change_cell(name, add) for name in names[::-1] * 5]

        await asyncio.gather(*forwards, *backwards)

        assert {await store.change_cell(name, add) for name in names} == {11}

    async def test_cells_leave_runs_alone(self, store: Store) -> None:
        """They are not part of a journal."""
        tree = await begin(store)
        before = await see_everything(store, tree)

        await store.change_cell("run-1", add)

        assert await see_everything(store, tree) == before

    async def test_cells_are_there_after_reopening(self, factory: StoreFactory) -> None:
        """A shared cell outlives the stores that share it."""
        store = await factory.open()
        await store.change_cell("counter", add)
        await store.close()

        reopened = await factory.open()

        assert await reopened.change_cell("counter", add) == 2
        await reopened.close()

    async def test_change_whose_caller_is_gone_hurts_no_other(self, store: Store) -> None:
        """A caller that gives up does not know whether it happened; the next change is made all the same."""
        given_up = asyncio.ensure_future(store.change_cell("counter", add))
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.wait([given_up])

        assert await store.change_cell("counter", add) in {1, 2}
