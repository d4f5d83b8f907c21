"""The operations of the API, by resource. Importing this declares all of them."""

from outlive.http.operations import (
    approvals,
    batches,
    document,
    events,
    flows,
    follow,
    health,
    promises,
    queues,
    recovery,
    runs,
    schedules,
    verbs,
    workers,
    workflows,
)

__all__ = [
    "approvals",
    "batches",
    "document",
    "events",
    "flows",
    "follow",
    "health",
    "promises",
    "queues",
    "recovery",
    "runs",
    "schedules",
    "verbs",
    "workers",
    "workflows",
]
