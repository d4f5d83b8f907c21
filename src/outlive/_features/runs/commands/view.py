"""A run as commands show it: a row of a table, and plain values for programs.

Runs come from an engine or a server, which has blacked out in their errors what it redacts.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from outlive.cli.paint import span

if TYPE_CHECKING:
    from outlive._kernel.values.failure import Failure
    from outlive._kernel.values.run import Run

MESSAGE_CHARACTERS_MAX = 100
"""So much of the message of an error is in a list; `runs why` has all of it."""
TITLES = ["run", "workflow", "status", "age", "note"]


def row_of(run: Run, *, now: datetime) -> list[str]:
    """A run in one line."""
    age = span(max(0.0, (now - run.created_at).total_seconds()))
    return [run.id, run.definition, run.status, age, note_of(run)]


def note_of(run: Run) -> str:
    """The most useful fact about a run beside its status."""
    if run.error is not None:
        return failure_shown(run.error)
    if run.reason:
        return run.reason
    if run.has_ended:
        took = (run.finished_at or run.updated_at) - run.created_at
        return f"took {span(max(0.0, took.total_seconds()))}"
    if run.waits:
        more = f" and {len(run.waits) - 1} more" if len(run.waits) > 1 else ""
        return f"waits for {run.waits[0].describe()}{more}"
    return f"on worker {run.worker}" if run.worker else "-"


def failure_shown(failure: Failure) -> str:
    """The class of an error, and the first words of its message."""
    words = " ".join(failure.message.split())
    cut = words if len(words) <= MESSAGE_CHARACTERS_MAX else f"{words[: MESSAGE_CHARACTERS_MAX - 3]}..."
    return f"{failure.type}: {cut}" if cut else failure.type


def plain_run(run: Run) -> Any:
    """A run for programs: as the HTTP API shows it."""
    import msgspec

    return msgspec.to_builtins(run)


def when(at: int | None) -> str | None:
    """An instant of a journal for programs."""
    from outlive._kernel.model.instant import instant_of

    return None if at is None else instant_of(at).isoformat().replace("+00:00", "Z")
