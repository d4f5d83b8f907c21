"""What a script means for cells and checkpoints: the changes of cells and the rows that a user would bring."""

from __future__ import annotations

from typing import Any

from outlive._kernel.journal.checkpoint import CheckpointBody, CheckpointRow, seal_checkpoint
from outlive._kernel.store.contract import CellChange
from proof.differential.words import Mark, Turn

Seen = tuple[bytes | None, int]
"""What a cell held when it was changed, and the time that the change was given."""


class SurprisedError(Exception):
    """A cell does not hold what its change expects."""


class PeekedError(Exception):
    """What a cell holds, from a change that was made for nothing else: it raises, so the cell stays as it is."""

    def __init__(self, data: bytes | None) -> None:
        super().__init__(data)
        self.data = data


def change_of(turn: Turn) -> CellChange[Seen]:
    """The change of a cell that a turn is."""

    def change(data: bytes | None, now_at: int) -> tuple[bytes, Seen]:
        if turn.expects and data not in turn.expects:
            raise SurprisedError
        return (data or b"") + b"+" if turn.puts is None else turn.puts, (data, now_at)

    return change


def peek(data: bytes | None, now_at: int) -> tuple[bytes, Any]:
    """A change of a cell that only looks."""
    del now_at
    raise PeekedError(data)


def row_of(mark: Mark) -> CheckpointRow:
    """The row of a checkpoint."""
    body = CheckpointBody(state=mark.state, token=mark.token)
    return seal_checkpoint(mark.run, mark.sequence, body, mark.output)
