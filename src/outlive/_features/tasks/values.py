"""Tasks of remote steps, as the programs see them that work on them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A task that a program has claimed."""

    id: str
    """The id of its run."""
    lease: str
    """A secret, to be sent with everything that is said of the task: with it the task may be ended."""
    lasts: timedelta
    """How long the lease lasts from now on, unless a heartbeat renews it."""
    step: str
    queue: str
    input: Any
    """The argument of the step as plain JSON."""
    claims: int
    """How many programs have claimed it, this one included."""
    progress: Any = None
    """The progress in the last heartbeat, of whichever program; None if there was none."""
    output_schema: dict[str, Any] | None = None
    """The JSON Schema that the output has to fit; None if any value will do."""

    def __repr__(self) -> str:
        return f"<Task {self.id} of {self.step} in {self.queue}>"


class TaskNotice(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a heartbeat of a program that works on a task."""

    is_cancelled: bool
    """Whether the workflow no longer wants it: the program may stop, and fail the task."""
    reason: str
    lasts: timedelta
    """How long the lease lasts from now on."""

    def __repr__(self) -> str:
        return f"<TaskNotice: {'cancelled' if self.is_cancelled else 'go on'}>"
