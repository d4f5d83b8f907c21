"""A run as commands show it: a row of a table, and plain values for programs.

Runs come from `engine.view`, which has blacked out in their errors what the engine redacts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from outlive.cli.advice import as_typed
from outlive.cli.paint import span

if TYPE_CHECKING:
    from outlive._model import Failure, Run

MICROSECONDS = 1_000_000
MESSAGE_CHARACTERS_MAX = 100
"""So much of the message of an error is in a list; `runs why` has all of it."""
TITLES = ["run", "workflow", "status", "age", "note"]


def row_of(run: Run, *, now_at: int) -> list[str]:
    """A run in one line."""
    age = span(max(0, now_at - run.created_at) / MICROSECONDS)
    return [run.id, run.definition, run.status.value, age, note_of(run)]


def note_of(run: Run) -> str:
    """The most useful fact about a run beside its status."""
    from outlive._model.worker import name_in
    from outlive.client.why import wait_shown

    if run.failure is not None:
        return failure_shown(run.failure)
    if run.reason:
        return as_typed(run.reason)
    if run.status.is_terminal:
        took = (run.finished_at or run.updated_at) - run.created_at
        return f"took {span(max(0, took) / MICROSECONDS)}"
    if run.waits:
        more = f" and {len(run.waits) - 1} more" if len(run.waits) > 1 else ""
        return f"waits for {wait_shown(run.waits[0])}{more}"
    return f"on worker {name_in(run.owner)}" if run.owner else "-"


def failure_shown(failure: Failure) -> str:
    """The class of an error, and the first words of its message."""
    words = " ".join(failure.message.split())
    cut = words if len(words) <= MESSAGE_CHARACTERS_MAX else f"{words[: MESSAGE_CHARACTERS_MAX - 3]}..."
    return f"{failure.error}: {cut}" if cut else failure.error


def plain_run(run: Run) -> dict[str, Any]:
    """A run for programs; instants are RFC 3339 text in UTC."""
    return {
        "id": run.id,
        "workflow": run.workflow,
        "version": run.version,
        "status": run.status.value,
        "root_id": run.root_id,
        "parent_id": run.parent_id,
        "created_at": when(run.created_at),
        "updated_at": when(run.updated_at),
        "finished_at": when(run.finished_at),
        "timeout_at": when(run.timeout_at),
        "wake_at": when(run.wake_at),
        "owner": run.owner or None,
        "attempts": run.attempts,
        "tags": run.tags,
        "reason": run.reason or None,
        "error": None if run.failure is None else run.failure.error,
        "message": None if run.failure is None else run.failure.message,
        "queue": run.queue or None,
        "queue_key": run.queue_key or None,
        "waits": [
            {"kind": wait.kind.value, "name": wait.name, "until": when(wait.until_at), "detail": wait.detail or None}
            for wait in run.waits
        ],
    }


def when(at: int | None) -> str | None:
    """An instant of a journal for programs."""
    from outlive._model.instant import instant_of

    return None if at is None else instant_of(at).isoformat().replace("+00:00", "Z")
