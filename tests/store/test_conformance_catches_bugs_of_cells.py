"""Planted defects in `change_cell`: each must be found, by the test that is meant to find it."""

import asyncio
from functools import partial
from typing import ClassVar, TypeVar

import pytest

from outlive._kernel.store.contract import Action, CellChange
from outlive._kernel.store.memory import MemoryStore
from outlive_conformance.suite import MemoryFactory, find_failures

T = TypeVar("T")


class Defective(MemoryStore):
    """The oracle with one defect; says which test must find it."""

    found_by: ClassVar[str]


class LosesWhatHappensMeanwhile(Defective):
    """Reads, waits, and writes."""

    found_by = "test_no_change_is_lost"

    async def change_cell(self, name: str, change: CellChange[T], *, audit: Action | None = None) -> T:
        data, answer = change(self._state.cells.get(name), self.now())
        await asyncio.sleep(0)
        self._state.cells[name] = data or b""
        return answer


class KeepsCellsToItself(Defective):
    """Has cells that no other store sees."""

    found_by = "test_cell_holds_what_was_put_there"

    async def change_cell(self, name: str, change: CellChange[T], *, audit: Action | None = None) -> T:
        cells: dict[str, bytes] = self.__dict__.setdefault("cells", {})
        after, answer = change(cells.get(name), self.now())
        cells[name] = after or b""
        return answer


class TakesNothingForNew(Defective):
    """Gives an empty cell as one that was never written."""

    found_by = "test_new_cell_holds_nothing"

    async def change_cell(self, name: str, change: CellChange[T], *, audit: Action | None = None) -> T:
        return await super().change_cell(name, lambda data, now_at: change(data or None, now_at))


class WritesBeforeItAsks(Defective):
    """A change that raises leaves a cell behind."""

    found_by = "test_new_cell_whose_first_change_raises_holds_nothing"

    async def change_cell(self, name: str, change: CellChange[T], *, audit: Action | None = None) -> T:
        before = self._state.cells.get(name)
        self._state.cells.setdefault(name, b"")
        after, answer = change(before, self.now())
        self._state.cells[name] = after or b""
        return answer


class WipesWhatRaises(Defective):
    """A change that raises empties its cell."""

    found_by = "test_change_that_raises_changes_nothing"

    async def change_cell(self, name: str, change: CellChange[T], *, audit: Action | None = None) -> T:
        before = self._state.cells.pop(name, None)
        after, answer = change(before, self.now())
        if after is not None:
            self._state.cells[name] = after
        return answer


class KeepsAnEmptyCell(Defective):
    """A cell that is to hold nothing is there all the same."""

    found_by = "test_cell_that_is_to_hold_nothing_is_gone"

    async def change_cell(self, name: str, change: CellChange[T], *, audit: Action | None = None) -> T:
        after, answer = change(self._state.cells.get(name), self.now())
        self._state.cells[name] = after or b""
        return answer


class IgnoresCase(Defective):
    """Takes two names for one."""

    found_by = "test_cells_are_apart"

    async def change_cell(self, name: str, change: CellChange[T], *, audit: Action | None = None) -> T:
        return await super().change_cell(name.lower(), change)


class StopsTheClock(Defective):
    """Tells the time of the first change for ever."""

    found_by = "test_change_gets_the_time_of_the_store"

    async def change_cell(self, name: str, change: CellChange[T], *, audit: Action | None = None) -> T:
        now_at: int = self.__dict__.setdefault("stopped_at", self.now())
        return await super().change_cell(name, lambda data, _: change(data, now_at))


@pytest.mark.parametrize("defect", Defective.__subclasses__(), ids=lambda defect: defect.__name__)
def test_defect_is_found(defect: type[Defective]) -> None:
    """By the test that is meant to."""
    assert find_failures(partial(MemoryFactory, defect), only=defect.found_by)
