"""The counters and the log of the engine. Imports nothing of ours, so that every room may use it.

Counters are plain integers on one object per engine: adding to them costs nanoseconds, and a program that publishes
them (`outlive.metrics`, a benchmark) reads them as they are. Each has a row in the operating guide (a test compares).
"""

from __future__ import annotations

import logging
import traceback
from bisect import bisect_left
from contextlib import suppress
from dataclasses import dataclass, field
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
"""The damaged rows that this process has read: threads of all of its stores add to it."""


MICROSECONDS = 1_000_000
SERIES_MAX = 1_000
"""Histograms of one kind, each for other labels: what comes later is counted under `OTHER`."""
OTHER = "(other)"
SHORT = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)
"""Bounds for what the store does, in seconds."""
STEPS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300, 3_600)
RUNS = (0.01, 0.1, 1, 10, 60, 600, 3_600, 21_600, 86_400, 604_800)
SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000)


class Histogram:
    """The counts of values by their upper bounds.

    The path of a step adds a value without a call, because every call there costs time:

        histogram.counts[bisect_left(histogram.bounds, value)] += 1
        histogram.sum += value
    """

    __slots__ = ("bounds", "counts", "scale", "sum")

    def __init__(self, bounds: tuple[float, ...], scale: int = 1) -> None:
        self.scale = scale
        """The number of added units in a shown unit: times are added in microseconds and shown in seconds."""
        self.bounds = tuple(bound * scale for bound in bounds)
        """The upper bounds, as values are added; the last count is for what is above all of them."""
        self.counts = [0] * (len(bounds) + 1)
        self.sum: float = 0

    def add(self, value: float) -> None:
        """A value was measured."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        """How many values were added."""
        return sum(self.counts)


class Series(dict[tuple[str, ...], Histogram]):
    """Histograms of one kind by the values of their labels, made when they are first asked for."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds

    def __missing__(self, labels: tuple[str, ...]) -> Histogram:
        if len(self) >= SERIES_MAX:
            labels = OTHER, *labels[1:]
        return self.setdefault(labels, Histogram(self._bounds, MICROSECONDS))


def _short() -> Histogram:
    return Histogram(SHORT, MICROSECONDS)


def _about(text: str, *labels: str) -> dict[str, Any]:
    """The metadata of a field of `Measures`: its help text, and the names of its labels."""
    return {"help": text, "labels": labels}


@dataclass(slots=True)
class Measures:
    """How long things took in one engine since it started, and how large they were."""

    commit_seconds: Histogram = field(
        default_factory=_short,
        metadata=_about("From the moment when the store is given a batch of changes until it has answered."),
    )
    commit_changes: Histogram = field(
        default_factory=lambda: Histogram(SIZES), metadata=_about("Changes of trees in one batch.")
    )
    claim_seconds: Histogram = field(
        default_factory=_short, metadata=_about("How long the store took to answer a claim.")
    )
    lease_renewal_seconds: Histogram = field(
        default_factory=_short, metadata=_about("How long the store took to renew the lease of this worker.")
    )
    schedule_lag_seconds: Histogram = field(
        default_factory=lambda: Histogram(STEPS, MICROSECONDS),
        metadata=_about("From the instant of a tick of a schedule until this worker started its run."),
    )
    step_seconds: Series = field(
        default_factory=lambda: Series(STEPS),
        metadata=_about(
            "How long attempts of steps took, without the time in which they waited to begin.", "step", "outcome"
        ),
    )
    run_seconds: Series = field(
        default_factory=lambda: Series(RUNS),
        metadata=_about("From the creation of a run to its end, for runs that ended here.", "workflow", "status"),
    )


def counted(text: str) -> Any:
    """A field of `Counters`: what it counts, in words."""
    return field(default=0, metadata={"help": text})


@dataclass(slots=True)
class Counters:
    """How much one engine has done since it started."""

    commits: int = counted("Transactions with journal events.")
    rows: int = counted("Journal rows written.")
    bytes: int = counted("Bytes of journal rows written.")
    conflicts: int = counted(
        "Changes refused because another writer was first, and changes that came behind such a one."
    )
    unknowns: int = counted("Commits whose outcome had to be read back.")
    store_changes: int = counted("How often the store turned out to be another one, or to have gone back.")
    runs_started: int = counted("Trees created and owned by this worker in one commit, also by the engine for itself.")
    runs_claimed: int = counted("Trees taken from the store.")
    orphans_claimed: int = counted("Claims of runs whose worker was lost.")
    runs_replayed: int = counted(
        "Claimed trees built from their journal, because they were not in memory; trees that begin here count too."
    )
    runs_evicted: int = counted("Suspended trees discarded from memory to make room.")
    runs_ended: int = counted("Runs that ended here, children and runs that the engine makes for itself too.")
    runs_released: int = counted("Trees released in the middle of their work, because this worker stopped.")
    runs_parked: int = counted("Trees parked here.")
    runs_quarantined: int = counted("Runs parked because worker after worker was lost while it ran them.")
    runs_held_back: int = counted("Orphans parked because a policy says that they do not go on by themselves.")
    runs_reclaimed: int = counted("Runs that were ours in the store and nowhere here, and were claimed again.")
    runs_disowned: int = counted(
        "Trees in memory that the store gives to another worker, or that were ended from outside, and were discarded."
    )
    runs_declined: int = counted("Claimed runs that were released because newer code had moved them.")
    calls_changed: int = counted("Facts that the code would record otherwise in a replay than the journal has.")
    runs_deleted: int = counted("Runs that retention deleted here, without their children.")
    runs_archived: int = counted("Runs that retention wrote to an archive here, before it deleted them.")
    archive_failures: int = counted("How often an archive could not be written, so that nothing was deleted.")
    blobs_deleted: int = counted("Blobs that no row referred to, and that were deleted here.")
    cells_removed: int = counted("Cells of limits, breakers, bursts and links that said nothing any more.")
    steps_skipped: int = counted("Steps that a person had skipped.")
    timers_fired: int = counted("Timers of runs that became due here.")
    steps_unfit: int = counted(
        "Steps that were not begun, because this worker would have ended before them; their runs were released."
    )
    steps_started: int = counted("Attempts begun.")
    steps_retried: int = counted("Attempts that failed and will be followed by another one.")
    steps_delayed: int = counted(
        "Attempts that had to wait for a rate limit or a breaker so long that the journal says so."
    )
    breakers_opened: int = counted("How often an outcome of this engine opened a breaker.")
    transactions: int = counted("Transactions of steps that were committed with the journal, or refused.")
    processes_begun: int = counted("Processes for steps with `process=True`.")
    signals_taken: int = counted("Signals that became events here.")
    hooks_failed: int = counted("Hooks of observers that raised, or took too long.")
    hooks_dropped: int = counted(
        "Hooks that were not called, or cut off: their observer was too far behind, or the engine stopped."
    )
    sessions_ended: int = counted("Sessions of dead workers that were ended before their leases had run out.")
    ticks_started: int = counted("Runs of schedules that this worker started.")
    ticks_skipped: int = counted(
        "Ticks of schedules that this worker skipped, because a run of an earlier tick was open."
    )
    schedules_tripped: int = counted(
        "Schedules that this worker stopped because too many of their runs in a row had failed."
    )
    service_failures: int = counted("How often a service of this worker raised; it is tried again.")
    stalls: int = counted("How often the event loop stood still for more than a second.")
    leases_lost: int = counted("How often this worker lost its lease, and discarded its runs.")

    measures: Measures = field(default_factory=Measures)
    """How long that took."""

    @property
    def rows_damaged(self) -> int:
        """Rows that this process could not read, of all of its stores together."""
        return damaged_rows.count

    def step_started(self, attempt: Any) -> None:
        """An attempt of a step is about to be called; a test may look at which one."""
        self.steps_started += 1
