"""What the engine counts and where it logs. Imports nothing of ours, so that every room may use it.

Counters are plain integers on one object per engine: adding to them costs nanoseconds, and a program that publishes
them (an exporter, a benchmark) reads them as they are. Each has a row in the operating guide (a test compares).
"""

from __future__ import annotations

import logging
import traceback
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

log = logging.getLogger("outlive")
_handle = log.handle


def _handle_safely(record: logging.LogRecord) -> None:
    """Give a record to the handlers of the application. One that raises is reported as `logging` reports its own: it
    was called in the middle of moving runs, and none of them may be lost for it."""
    try:
        _handle(record)
    except Exception:
        if logging.raiseExceptions:
            with suppress(Exception):
                traceback.print_exc()


log.handle = _handle_safely  # type: ignore[method-assign]  # Whatever class the application has chosen for loggers.


def run_fields(
    run_id: str | None, workflow: str | None, *, step: str | None = None, attempt: int | None = None
) -> dict[str, object]:
    """The fields of a run for a record of the log: `log.info("...", extra=run_fields(run.id, run.workflow))`.

    All of them are on every record that has any, so that a format may name them; None where there is nothing to say.
    """
    return {"run_id": run_id, "workflow": workflow, "step": step, "attempt": attempt}


class DamagedRows:
    """Rows of stores that could not be read: each is logged once in the life of the process, and counted."""

    KEPT_MAX = 10_000

    def __init__(self) -> None:
        self._seen: set[tuple[str, str, str]] = set()
        self.count = 0

    def add(self, kind: str, id: str, fault: str) -> None:
        """A row was read that cannot be read."""
        seen = kind, id, fault
        if seen not in self._seen:
            if len(self._seen) < self.KEPT_MAX:
                self._seen.add(seen)
            self.count += 1
            extra = run_fields(id if kind == "run" else None, None)
            log.error("a row of the store is damaged: %s %s: %s", kind, id, fault, extra=extra)


damaged_rows = DamagedRows()
"""Of this process: threads of all of its stores add to it."""


@dataclass(slots=True)
class Counters:
    """How much one engine has done since it started."""

    commits: int = 0
    """Transactions with journal events."""
    rows: int = 0
    """Journal rows written."""
    bytes: int = 0
    """Bytes of journal rows written."""
    conflicts: int = 0
    """Changes refused because another writer was first, and changes that came behind such a one."""
    unknowns: int = 0
    """Commits whose outcome had to be read back."""
    runs_started: int = 0
    """Trees created and owned by this worker in one commit."""
    runs_claimed: int = 0
    """Trees taken from the store."""
    orphans_claimed: int = 0
    """Claims of runs whose worker was lost."""
    runs_replayed: int = 0
    """Executions rebuilt from their journal."""
    runs_evicted: int = 0
    """Suspended trees discarded from memory to make room."""
    runs_ended: int = 0
    """Runs that ended here, children too."""
    runs_parked: int = 0
    """Trees parked here."""
    runs_quarantined: int = 0
    """Runs parked because worker after worker was lost while it ran them."""
    runs_held_back: int = 0
    """Orphans parked because a policy says that they do not go on by themselves."""
    runs_reclaimed: int = 0
    """Runs that were ours in the store and nowhere here, and were claimed again."""
    runs_disowned: int = 0
    """Trees in memory that the store gives to another worker, or that were ended from outside, and were discarded."""
    runs_declined: int = 0
    """Claimed runs that were released because newer code had moved them."""
    calls_changed: int = 0
    """Calls that the code made in a replay with other arguments than the journal has."""
    runs_deleted: int = 0
    """Runs that retention deleted here, without their children."""
    runs_archived: int = 0
    """Runs that retention wrote to an archive here, before it deleted them."""
    archive_failures: int = 0
    """How often an archive could not be written, so that nothing was deleted."""
    blobs_deleted: int = 0
    """Blobs that no row referred to, and that were deleted here."""
    steps_skipped: int = 0
    """Steps that a person had skipped."""
    steps_started: int = 0
    """Attempts begun."""
    steps_retried: int = 0
    """Attempts that failed and will be followed by another one."""
    steps_delayed: int = 0
    """Attempts that had to wait for a rate limit or a breaker so long that the journal says so."""
    breakers_opened: int = 0
    """How often an outcome of this engine opened a breaker."""
    transactions: int = 0
    """Transactions of steps that were committed with the journal, or refused."""
    processes_begun: int = 0
    """Processes for steps with `process=True`."""
    signals_taken: int = 0
    """Signals that became events here."""
    hooks_failed: int = 0
    """Hooks of observers that raised, or took too long."""
    hooks_dropped: int = 0
    """Hooks that were not called, or cut off: their observer was too far behind, or the engine stopped."""
    sessions_ended: int = 0
    """Sessions of dead workers that were ended before their leases had run out."""
    ticks_started: int = 0
    """Runs of schedules that this worker started."""
    ticks_skipped: int = 0
    """Ticks of schedules that this worker skipped, because a run of an earlier tick was open."""
    schedules_tripped: int = 0
    """Schedules that this worker stopped because too many of their runs in a row had failed."""
    service_failures: int = 0
    """How often a service of this worker raised; it is tried again."""
    stalls: int = 0
    """How often the event loop stood still for more than a second."""

    @property
    def rows_damaged(self) -> int:
        """Rows that this process could not read, of all of its stores together."""
        return damaged_rows.count

    def step_started(self, attempt: Any) -> None:
        """An attempt of a step is about to be called; a test may look at which one."""
        self.steps_started += 1
