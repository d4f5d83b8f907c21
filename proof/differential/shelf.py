"""What the oracle keeps beside journals: cells and checkpoints, written from their contracts alone."""

from __future__ import annotations

from typing import TypeVar

from outlive._kernel.journal.checkpoint import CheckpointRow
from outlive._kernel.store.contract import CellChange

T = TypeVar("T")


class Shelf:
    """Cells by name, and checkpoints in no order."""

    def __init__(self) -> None:
        self.cells: dict[str, bytes] = {}
        self.checkpoints: list[tuple[str, CheckpointRow]] = []

    def change_cell(self, name: str, change: CellChange[T], now: int) -> T:
        """What it is to hold, unless it raises."""
        after, answer = change(self.cells.get(name), now)
        if after is None:
            self.cells.pop(name, None)
        else:
            self.cells[name] = after
        return answer

    def append(self, run_id: str, row: CheckpointRow) -> bool:
        """Whether the row is there, as the only one with its sequence."""
        there = [each for each in self.read(run_id) if each[0] == row[0]]
        if not there:
            self.checkpoints.append((run_id, row))
        return there in ([], [row])

    def read(self, run_id: str) -> list[CheckpointRow]:
        """By sequence."""
        return sorted((row for id, row in self.checkpoints if id == run_id), key=lambda row: row[0])

    def clear(self, run_id: str) -> None:
        """Only this run's."""
        self.checkpoints = [(id, row) for id, row in self.checkpoints if id != run_id]

    def list_marked(self) -> list[bytes]:
        """The ids of runs that have any, in the order of their bytes."""
        return sorted({id.encode() for id, _ in self.checkpoints})
