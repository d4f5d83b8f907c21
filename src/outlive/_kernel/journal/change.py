"""A change of an open run by a person, on its way to the worker that owns the run, and the event that it becomes."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from outlive._kernel.journal.event import RunChanged
from outlive._kernel.model import Run


class WantedChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """A change of an open run."""

    tags: dict[str, str | None] = {}
    """Tags beside its own; None removes one."""
    timeout: int | UnsetType | None = UNSET
    """How long it may take from the change on, in microseconds; None for as long as it likes."""
    reason: str = ""

    def tags_of(self, run: Run) -> dict[str, str]:
        """All tags that the run has then."""
        return {name: value for name, value in {**run.tags, **self.tags}.items() if value is not None}


def changed_by(wanted: WantedChange, run: Run, *, at: int) -> RunChanged:
    """The event of a change."""
    moves_deadline = wanted.timeout is not UNSET
    return RunChanged(
        at=at,
        run=run.number,
        tags=wanted.tags_of(run) if wanted.tags else None,
        moves_deadline=moves_deadline,
        timeout_at=at + wanted.timeout if isinstance(wanted.timeout, int) else None,
        reason=wanted.reason,
    )


wanted_change = msgspec.json.Decoder(WantedChange).decode
"""Reads a change from the message that carries it."""
