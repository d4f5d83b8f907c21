"""Cells: small things that all workers of a store share. A part of the contract of a store (`contract`).

A cell has a name and holds some bytes. The store does not know what they mean: whoever changes a cell brings the
function that does it, and the store sees to it that nobody else changes it meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")
CellChange = Callable[[bytes | None, int], tuple[bytes, T]]
"""What to make of a cell: given what it holds and the instant, what it is to hold, and an answer."""


class CellStore(Protocol):
    """The verb of cells."""

    async def change_cell(self, name: str, change: CellChange[T]) -> T:
        """Change what a named cell holds, in one transaction; what `change` answers.

        `change` is given what the cell holds (None for one that nobody has written yet) and the store's clock, and says
        what it is to hold. Changes of one cell happen one after the other, whoever makes them, and each sees what the
        one before has written. `change` must be quick and pure: it is called in the transaction, on whatever thread
        that is, and again if the transaction has to be. If it raises, the cell stays as it is and the error is raised.

        Raises:
            StoreUnavailableError: the cell is as it was.
            CommitUnknownError: it was changed or not, and only reading can tell.
        """
