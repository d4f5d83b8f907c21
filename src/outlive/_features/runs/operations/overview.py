"""The overview: what needs a person, and how the store does."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct

from outlive._kernel.client.finding import COUNT_MAX
from outlive._kernel.model.instant import instant_of
from outlive._kernel.values.count import Count
from outlive.errors import StoreUnavailableError
from outlive.http.operation import Call, operation
from outlive.metrics.activity import Activity, activity_of
from outlive.metrics.figures import Figures, figures_of

FIGURES_AGE_SECONDS_MAX = 2.0


class MinuteView(Struct, frozen=True):
    """How many runs were created in a minute, by how they are now."""

    start: datetime
    succeeded: int
    failed: int
    cancelled: int
    open: int


class LengthsView(Struct, frozen=True):
    """How long runs take once a worker has begun them: the time in line is not in it."""

    runs: int
    """How many were looked at, the last created ones."""
    p50: float
    """Seconds."""
    p95: float


class QueueSummary(Struct, frozen=True):
    """How full a queue is."""

    name: str
    in_line: Count
    running: Count
    waiting: timedelta | None
    """How long the oldest run at the head of its lines has waited."""
    paused: str


class OverviewView(Struct, frozen=True, kw_only=True):
    """A store as it is now."""

    runs: dict[str, Count]
    """Runs that have not ended, by status."""
    failed: Count
    """Runs of the last 24 hours that have failed or timed out."""
    approvals: Count
    """Runs that ask people for a decision."""
    minutes: list[MinuteView]
    """The last hour, the oldest minute first."""
    lengths: LengthsView
    workers: int
    """Live workers."""
    pending_seconds: float
    """How long the oldest due run without a queue has waited for a worker."""
    schedule_seconds: float
    """How long the oldest due schedule has waited for a worker."""
    queues: list[QueueSummary]
    """Queues that have runs, or are paused."""


@operation("overview.get", "GET", "/overview", scope="viewer", raises=(StoreUnavailableError,))
async def overview(call: Call) -> OverviewView:
    """The state of the store, and everything that needs a person: the figures of the first page of the dashboard.

    It costs about the same whatever the number of runs; what was read is used again for a few seconds.
    """
    figures = await figures_of(call.engine, age_seconds_max=FIGURES_AGE_SECONDS_MAX)
    if figures is None:
        raise StoreUnavailableError("the store", "it does not answer in time")
    return _view(figures, await activity_of(call.engine))


def _view(figures: Figures, activity: Activity) -> OverviewView:
    return OverviewView(
        runs={status: _count(number) for status, number in figures.runs.items()},
        failed=_count(activity.failed_today),
        approvals=_count(figures.approvals),
        minutes=[
            MinuteView(instant_of(it.starts_at), it.succeeded, it.failed, it.cancelled, it.open)
            for it in activity.minutes
        ],
        lengths=LengthsView(activity.timed, activity.p50_seconds, activity.p95_seconds),
        workers=figures.workers,
        pending_seconds=figures.pending_seconds,
        schedule_seconds=figures.schedule_seconds,
        queues=[
            QueueSummary(
                it.name,
                it.in_line,
                it.running,
                it.waiting,
                it.paused,
            )
            for it in figures.queues
            if it.in_line or it.running or it.paused
        ],
    )


def _count(number: int) -> Count:
    return Count(number, number >= COUNT_MAX)
