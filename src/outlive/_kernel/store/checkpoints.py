"""The part of a store's contract that is about checkpoints: small enough for programs that want nothing else.

Checkpoints are rows of users' own programs, kept by the id of a run and a sequence number. They have nothing to do with
journals: a run that has checkpoints need not be one that an engine knows, and an engine never looks at them. A store
keeps rows as they are; the writer seals them and the reader verifies them (`outlive._kernel.journal.checkpoint`).

An append whose answer was lost may be repeated with the very same row, and is then answered that the row is there,
however often that happens. So a store may do that by itself when its line is cut; it must not do so with a clear,
because another process may have appended meanwhile. A clear that is repeated by its caller is another clear.

Every sentence of a docstring is checked by `outlive_conformance.suite.checkpoints` on every backend.
"""

from __future__ import annotations

from typing import Protocol

from outlive._kernel.journal.checkpoint import CheckpointRow


class CheckpointTable(Protocol):
    """Rows by the id of a run and a sequence number."""

    async def append_checkpoint(self, run_id: str, row: CheckpointRow) -> bool:
        """Write a row; True if it is there now.

        False if the run has another row with this sequence: nothing was written then. Rows may come in any order and
        with any gaps. The very same row, byte for byte, may be appended again and is there once.

        Raises:
            StoreUnavailableError: nothing was written.
            CommitUnknownError: the row was written, or will be, or not; appending the very same row again tells.
        """

    async def read_checkpoints(self, run_id: str) -> list[CheckpointRow]:
        """All rows of a run at one moment, by sequence ascending; empty for an unknown run. They come as they lie."""

    async def clear_checkpoints(self, run_id: str) -> None:
        """Remove all rows of this run and of no other; an unknown run is fine. Its sequences may be used again.

        Raises:
            StoreUnavailableError: nothing was removed.
            CommitUnknownError: all rows were removed, or none.
        """
