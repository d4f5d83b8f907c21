"""Checkpoints that cannot be written or read."""

from __future__ import annotations

import reprlib

from outlive.errors.base import OutliveError


class InvalidCheckpointError(OutliveError, ValueError):
    """A checkpoint that no store can keep."""

    def __init__(self, field: str, value: object, reason: str) -> None:
        self.field, self.value, self.reason = field, value, reason
        # Shortened: it may be of any size, and nobody knows what is in it.
        super().__init__(f"{field}={reprlib.repr(value)} cannot be part of a checkpoint: {reason}")


class DuplicateCheckpointError(OutliveError):
    """The run has a checkpoint with this sequence number already; nothing was written."""

    def __init__(self, run_id: str, sequence: int) -> None:
        self.run_id, self.sequence = run_id, sequence
        super().__init__(
            f"run {run_id!r} has a checkpoint {sequence} already; somebody else writes for this run, or it was not "
            f"loaded before going on: load_run({run_id!r}) and take the next number"
        )


class CorruptCheckpointError(OutliveError):
    """A checkpoint is not what was written."""

    def __init__(self, run_id: str, sequence: int, reason: str) -> None:
        self.run_id, self.sequence, self.reason = run_id, sequence, reason
        super().__init__(
            f"checkpoint {sequence} of run {run_id!r} is damaged: {reason}; restore it from a backup, or begin anew "
            f"after clear({run_id!r})"
        )
