"""A checkpoint: what a program that keeps its own state writes down, to go on from there after a crash.

Only for `CheckpointStore`. Workflows and machines have a journal and need none of this.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from outlive.errors.store import InvalidCheckpointError

NUMBER_MAX = 2**63 - 1
"""The largest sequence number, and the largest version, that every store can hold."""


class CheckpointKind(enum.Enum):
    """The meaning of a checkpoint."""

    STATE = "state"
    """A state was entered; its work may or may not have been done."""
    CURSOR = "cursor"
    """How far the work of a state has come; `output` is the cursor."""
    UNDO = "undo"
    """The work of a state was done; `output` is what undoing it needs."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One row of a run. What is wrong with it is refused when it is made.

    Args:
        sequence: its place in the run, 0 or more; a run has each number once, in any order and with any gaps.
        state: the name of the state.
        task: who did the work, if that is worth saying.
        kind: what it says.
        output: bytes of your own. None is not output; `b""` is an output that is empty.
        version: of your code, 0 or more; 0 also for a row from before there were versions.
        unknown_kind: set when it is read and was written by a later release: the kind as it lies in the store. The row
            counts as a `STATE` then, and written again it keeps this kind.

    Raises:
        InvalidCheckpointError: something of it cannot be stored.
    """

    sequence: int
    state: str
    task: str = ""
    kind: CheckpointKind = CheckpointKind.STATE
    output: bytes | None = None
    version: int = 0
    unknown_kind: str = ""

    def __post_init__(self) -> None:
        _check_number("sequence", self.sequence)
        _check_number("version", self.version)
        for name in ("state", "task", "unknown_kind"):
            _check_text(name, getattr(self, name))
        if not self.state:
            raise InvalidCheckpointError("state", self.state, "it names no state")
        if not isinstance(self.kind, CheckpointKind):
            raise InvalidCheckpointError("kind", self.kind, "use a CheckpointKind")
        if self.unknown_kind and self.kind is not CheckpointKind.STATE:
            raise InvalidCheckpointError("unknown_kind", self.unknown_kind, "an unknown kind counts as a STATE")
        if self.output is not None and not isinstance(self.output, bytes):
            raise InvalidCheckpointError("output", type(self.output), "it is bytes, or None for no output")


def _check_number(name: str, number: object) -> None:
    if not isinstance(number, int) or isinstance(number, bool):
        raise InvalidCheckpointError(name, number, "it is a whole number")
    if not 0 <= number <= NUMBER_MAX:
        raise InvalidCheckpointError(name, number, f"it is between 0 and {NUMBER_MAX}")


def _check_text(name: str, text: object) -> None:
    if not isinstance(text, str):
        raise InvalidCheckpointError(name, text, "it is text; of a member of an Enum take its name or its value")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidCheckpointError(name, text, "UTF-8 cannot hold it") from error
