"""The table of all metrics: the name of each, its kind, what it says, and how it is read.

It is the source of what is exposed, and of what the documentation, the dashboard and the alert rules may name (tests
compare). Metrics whose source is the store are the same on every worker; see `figures`. Labels are names of workflows,
steps and queues, statuses and outcomes: few, whatever the number of runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import partial
from typing import Any, Literal, NamedTuple

from outlive import __version__
from outlive._kernel.runtime.session.sessions import WorkerSessions
from outlive._kernel.values.queue import QueueState
from outlive.engine import Engine
from outlive.metrics.figures import Figures
from outlive.telemetry import Counters, Histogram, Measures, damaged_rows

Kind = Literal["counter", "gauge", "histogram"]
Source = Literal["engine", "worker", "store"]
Labels = tuple[str, ...]


class Reading(NamedTuple):
    """The sources of the metrics of one scrape."""

    engine: Engine
    worker: WorkerSessions | None
    """None for an engine that runs no workflows."""
    store: Figures | None
    """None while the store does not answer."""

    @property
    def counters(self) -> Counters:
        """The counters of the engine."""
        return self.engine.counters


Sample = tuple[Labels, float | Histogram]


class Metric(NamedTuple):
    """One metric."""

    name: str
    kind: Kind
    help: str
    read: Callable[[Reading], Iterable[Sample]]
    """The samples: the values of the labels, and the value."""
    labels: Labels = ()
    source: Source = "engine"


def _counter(reading: Reading, *, name: str) -> Iterable[Sample]:
    yield (), getattr(reading.counters, name)


def _measure(reading: Reading, *, name: str) -> Iterable[Sample]:
    found: Any = getattr(reading.counters.measures, name)
    return [((), found)] if isinstance(found, Histogram) else list(found.items())


def _of_worker(read: Callable[[WorkerSessions], float]) -> Callable[[Reading], Iterable[Sample]]:
    return lambda reading: [] if reading.worker is None else [((), read(reading.worker))]


def _of_store(read: Callable[[Figures], Iterable[Sample]]) -> Callable[[Reading], Iterable[Sample]]:
    return lambda reading: [] if reading.store is None else read(reading.store)


def _of_queues(read: Callable[[QueueState], float | None]) -> Callable[[Reading], Iterable[Sample]]:
    def samples(figures: Figures) -> Iterable[Sample]:
        for queue in figures.queues:
            if (value := read(queue)) is not None:
                yield (queue.name,), value

    return _of_store(samples)


def _info(reading: Reading) -> Iterable[Sample]:
    yield (__version__, reading.engine._worker_name if reading.worker is not None else ""), 1


COUNTERS = [
    Metric(f"outlive_{each.name}_total", "counter", each.metadata["help"], partial(_counter, name=each.name))
    for each in fields(Counters)
    if "help" in each.metadata
]
MEASURES = [
    Metric(
        f"outlive_{each.name}",
        "histogram",
        each.metadata["help"],
        partial(_measure, name=each.name),
        labels=each.metadata["labels"],
    )
    for each in fields(Measures)
]
OF_ENGINE = [
    Metric("outlive_info", "gauge", "1, with the version and the name of the worker.", _info, ("version", "worker")),
    Metric(
        "outlive_rows_damaged_total",
        "counter",
        "Rows that this process could not read, of all of its stores together.",
        lambda _: [((), damaged_rows.count)],
    ),
    Metric(
        "outlive_changes_waiting",
        "gauge",
        "Changes of trees that the store has not answered yet.",
        lambda reading: [((), 0 if (committer := reading.engine._parts.committer) is None else committer.waiting)],
    ),
    Metric(
        "outlive_store_up",
        "gauge",
        "1 if the store answers, 0 if not; then the metrics that are read from it are missing.",
        lambda reading: [((), float(reading.store is not None))],
    ),
]
OF_WORKER = [
    Metric(
        "outlive_worker_up",
        "gauge",
        "1 if this worker holds its lease and takes runs, 0 if not.",
        _of_worker(lambda worker: float(worker.health == "healthy")),
        source="worker",
    ),
    Metric(
        "outlive_lease_remaining_seconds",
        "gauge",
        "How long this worker's lease is certain from now on; negative if it is not.",
        _of_worker(lambda worker: worker.lease_seconds_left),
        source="worker",
    ),
    Metric(
        "outlive_runs_active",
        "gauge",
        "Trees that this worker owns and that are in motion in its memory.",
        _of_worker(lambda worker: worker.runs_active),
        source="worker",
    ),
    Metric(
        "outlive_steps_running",
        "gauge",
        "Attempts of steps that this worker runs now.",
        _of_worker(lambda worker: worker.steps_running),
        source="worker",
    ),
]
OF_STORE = [
    Metric(
        "outlive_runs",
        "gauge",
        "Runs that have not ended, by status. Counting stops at 10,000.",
        _of_store(lambda store: [((status,), count) for status, count in store.runs.items()]),
        ("status",),
        source="store",
    ),
    Metric(
        "outlive_pending_oldest_seconds",
        "gauge",
        "How long a pending run without a queue has been due for a worker: the longest of the first 1,000.",
        _of_store(lambda store: [((), store.pending_seconds)]),
        source="store",
    ),
    Metric(
        "outlive_approvals_open",
        "gauge",
        "Runs that ask people for a decision. Counting stops at 10,000.",
        _of_store(lambda store: [((), store.approvals)]),
        source="store",
    ),
    Metric(
        "outlive_workers",
        "gauge",
        "Workers that hold a lease.",
        _of_store(lambda store: [((), store.workers)]),
        source="store",
    ),
    Metric(
        "outlive_schedules_overdue_seconds",
        "gauge",
        "How long the oldest due schedule has waited for a worker.",
        _of_store(lambda store: [((), store.schedule_seconds)]),
        source="store",
    ),
    Metric(
        "outlive_queue_depth",
        "gauge",
        "Runs in line for a slot of the queue. Counting stops at 10,000.",
        _of_queues(lambda queue: queue.in_line.count),
        ("queue",),
        source="store",
    ),
    Metric(
        "outlive_queue_running",
        "gauge",
        "Runs that hold a slot of the queue. Counting stops at 10,000.",
        _of_queues(lambda queue: queue.running.count),
        ("queue",),
        source="store",
    ),
    Metric(
        "outlive_queue_later",
        "gauge",
        "Runs that will get in line at an instant of their own. Counting stops at 10,000.",
        _of_queues(lambda queue: queue.later.count),
        ("queue",),
        source="store",
    ),
    Metric(
        "outlive_queue_oldest_seconds",
        "gauge",
        "How long the oldest run at the head of a line of the queue has waited; 0 if none waits.",
        _of_queues(lambda queue: 0.0 if queue.waiting is None else queue.waiting.total_seconds()),
        ("queue",),
        source="store",
    ),
    Metric(
        "outlive_queue_concurrency",
        "gauge",
        "How many runs of the queue may be under way at once; missing without such a limit.",
        _of_queues(lambda queue: queue.limits.concurrency),
        ("queue",),
        source="store",
    ),
    Metric(
        "outlive_queue_paused",
        "gauge",
        "1 if a person has paused the queue, 0 if not.",
        _of_queues(lambda queue: float(bool(queue.paused))),
        ("queue",),
        source="store",
    ),
]
METRICS: tuple[Metric, ...] = (*OF_ENGINE, *OF_WORKER, *OF_STORE, *COUNTERS, *MEASURES)
"""All of them, in the order in which they are exposed."""
