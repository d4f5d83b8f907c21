"""Checkpoints of users' programs. The contract of each verb is in `outlive._kernel.store.checkpoints`."""

from __future__ import annotations

from outlive._kernel.journal.checkpoint import CheckpointRow
from outlive._kernel.store.memory.state import MemoryState


class MemoryCheckpoints:
    """The verbs of a store that are about checkpoints."""

    _state: MemoryState

    async def append_checkpoint(self, run_id: str, row: CheckpointRow) -> bool:
        """See `CheckpointTable`."""
        return self._state.checkpoints.setdefault(run_id, {}).setdefault(row[0], row) == row

    async def read_checkpoints(self, run_id: str) -> list[CheckpointRow]:
        """See `CheckpointTable`."""
        return [row for _, row in sorted(self._state.checkpoints.get(run_id, {}).items())]

    async def clear_checkpoints(self, run_id: str) -> None:
        """See `CheckpointTable`."""
        self._state.checkpoints.pop(run_id, None)
