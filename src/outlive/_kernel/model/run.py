"""A run as its row says it: the fold of its journal, kept for claiming and searching."""

from __future__ import annotations

import enum
from typing import Literal

import msgspec

from outlive._kernel.model.approval import OpenRequest
from outlive._kernel.model.failure import Failure
from outlive._kernel.model.payload import Payload
from outlive._kernel.model.wait import Wait, WaitKind


class RunStatus(enum.Enum):
    """Where a run is in its life."""

    PENDING = "pending"
    """Waits for a worker."""
    RUNNING = "running"
    """A worker owns it."""
    WAITING = "waiting"
    """Suspended until a timer, a retry, a signal or a child."""
    PARKED = "parked"
    """Stopped with a reason that a person can act on; goes on after `resume`."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    CONTINUED = "continued"
    """Ended, and the next generation goes on under its id; this one has moved aside."""
    DAMAGED = "damaged"
    """Its row in the store cannot be read; `reason` says what is wrong with it. No row says this of itself."""

    is_terminal: bool
    """Whether the run has ended; nothing changes it any more."""

    def __init__(self, value: str) -> None:
        # Once for each member, and no property: this is asked all the time.
        self.is_terminal = value in ("succeeded", "failed", "cancelled", "timed_out", "continued")


STORED = tuple(status for status in RunStatus if status is not RunStatus.DAMAGED)
"""Every status that a row can have."""
TERMINAL = tuple(status for status in RunStatus if status.is_terminal)
UNENDED = tuple(status for status in RunStatus if not status.is_terminal)
"""Every other one: what is parked, and what cannot be read, may go on some day."""
MOVING = (RunStatus.PENDING, RunStatus.RUNNING, RunStatus.WAITING)
"""A run goes on without a person."""
OPEN = (*MOVING, RunStatus.PARKED)
"""A run that can be read, and has not ended."""
FAILED = (RunStatus.FAILED, RunStatus.TIMED_OUT)
"""A run ended with an error of its own."""
ENDED_BADLY = (*FAILED, RunStatus.CANCELLED)
"""A run ended, and has no result."""


def definition_key(workflow: str, version: int) -> str:
    """How a store names a definition when it asks which worker can run what."""
    return f"{workflow}@{version}"


HASHES_FROM = 2**32
"""People count the versions of their code. A version of this size is that of a flow: the first digits of a hash."""


def definition_shown(workflow: str, version: int) -> str:
    """A definition as people know it: `order@2`, and a flow with its hash, `order@3f9a1c02b7de`."""
    return definition_key(workflow, version) if version < HASHES_FROM else f"{workflow}@{version:012x}"


INTERNAL = ("outlive.intervention:", "outlive.batch.step:", "outlive.batch.run:", "outlive.bulk")
"""Prefixes of the names of workflows whose runs the engine makes for itself: requests to retry or fork, chunks of
batches, verbs for many runs. A batch, and the delivery of an event, are what a user asked for."""


def is_internal(workflow: str) -> bool:
    """Whether the engine makes runs of this workflow for itself."""
    return workflow.startswith(INTERNAL)


OUTSIDE, IN_LINE, HELD = 0, 1, 2
"""The places of a run with a queue. OUTSIDE: it is not due yet. IN_LINE: it is due, and waits for a slot. HELD: a claim
gave it a slot, which it has until it ends or is parked, or, if its queue wants it so, is suspended."""


class Run(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One run as it is seen from outside its journal."""

    id: str
    journal: int = 0
    """The store's handle of the journal that the run lives in; 0 until the run is stored."""
    number: int = 0
    """Its place in its tree: 0 for the root."""
    root_id: str
    parent_id: str | None = None
    workflow: str
    version: int
    nonce: int
    """Random, made with the root run: it salts checksums, idempotency keys and `outlive.random()`."""
    status: RunStatus = RunStatus.PENDING
    waits: tuple[Wait, ...] = ()
    wake_at: int | None = None
    """When a worker should look at it; None when only a message can wake it."""
    owner: str = ""
    """The worker that runs it; empty when none does."""
    epoch: int = 0
    """How many times the tree was claimed: the fencing token."""
    attempts: int = 0
    """Take-overs after an interruption since the last progress."""
    created_at: int = 0
    updated_at: int = 0
    finished_at: int | None = None
    timeout_at: int | None = None
    tags: dict[str, str] = {}
    reason: str = ""
    """Why it is parked or was cancelled."""
    result: Payload | None = None
    failure: Failure | None = None
    published: Payload | None = None
    """The object that the run last showed with `outlive.publish`, as JSON."""
    approvals: tuple[OpenRequest, ...] = ()
    """Requests to people that have no decision yet, oldest first."""
    queue: str = ""
    """The queue that it was started in; empty for none, and for a child."""
    queue_key: str = ""
    """Its key in the queue."""
    lead: int = 0
    """By how many microseconds its priority brings it forward in the line."""
    slots: int = 1
    """How many slots of its queue it takes."""
    timeout: int | None = None
    """How long it may take from the next claim on, in microseconds: `timeout_at` is not settled before that."""
    begin_by: int | None = None
    """When a worker must have begun it; in a run that was claimed, that it was too late."""
    slot: int = OUTSIDE
    """Where it is in its queue: `OUTSIDE`, `IN_LINE`, or `HELD`."""

    @property
    def definition(self) -> str:
        """`workflow@version`."""
        return definition_key(self.workflow, self.version)

    @property
    def definition_shown(self) -> str:
        """The definition for people: a flow is shown with its hash."""
        return definition_shown(self.workflow, self.version)


class RunFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs to list; every field narrows."""

    statuses: tuple[RunStatus, ...] = ()
    ids: tuple[str, ...] = ()
    """One of these; empty for any."""
    workflow: str | None = None
    version: int | None = None
    root_id: str | None = None
    """The whole tree of this root."""
    parent_id: str | None = None
    """Direct children only."""
    roots_only: bool = False
    hides_internal: bool = False
    """No run that the engine makes for itself: see `is_internal`."""
    owner: str | None = None
    tags: dict[str, str] = {}
    since_at: int | None = None
    """Created at this instant or later."""
    until_at: int | None = None
    """Created before this instant."""
    finished_since_at: int | None = None
    """Ended at this instant or later."""
    finished_until_at: int | None = None
    """Ended before this instant."""
    id_prefix: str | None = None
    """A prefix of the id."""
    error: str | None = None
    """The error with which the run failed: see `has_error`."""
    waiting_for: str | None = None
    """The signal, ask, approval or run that it waits for, by name: see `waits_for`."""
    sleeps: bool = False
    """A timer will wake it: see `sleeps`."""
    queue: str | None = None
    """Was started in this queue; empty for those without one."""
    overdue_at: int | None = None
    """Had to be begun before this instant, and was not."""
    asks: str | None = None
    """Has an open request for approval: from this person, or from anyone if empty. Not with `waiting_for`."""

    @property
    def is_search(self) -> bool:
        """Whether a store may have to look at many runs that do not fit. Runs of one tree, of one parent or of one
        worker, and runs with known ids, are found by an index that has no others."""
        return not self.ids and self.root_id is None and self.parent_id is None and not self.owner


def has_error(run: Run, name: str) -> bool:
    """Whether the run failed with an exception of a class of this name, given with as much of its module as one likes:
    `CardDeclined`, `errors.CardDeclined`, `shop.errors.CardDeclined`."""
    return run.failure is not None and f".{run.failure.error}".endswith(f".{name}")


def asks(run: Run, person: str) -> bool:
    """Whether the run has an open request for approval from this person, or from anyone if that is empty."""
    return any(not person or person in request.assignees for request in run.approvals)


def sleeps(run: Run) -> bool:
    """Whether a timer will wake the tree of this root: a sleep, a timeout or a deadline, maybe beside other waits."""
    return any(wait.kind is WaitKind.TIMER for wait in run.waits)


def is_overdue(run: Run, at: int) -> bool:
    """Whether a run had to be begun before an instant, and was not."""
    return run.begin_by is not None and run.begin_by < at and run.finished_at is None


def finished_in(run: Run, since: int | None, until: int | None) -> bool:
    """Whether the run ended at the instant `since` or later, and before `until`."""
    if since is None and until is None:
        return True
    at = run.finished_at
    return at is not None and (since is None or at >= since) and (until is None or at < until)


_NAMED_WAITS = (WaitKind.SIGNAL, WaitKind.APPROVAL, WaitKind.CHILD, WaitKind.ASK)


def waits_for(run: Run, name: str) -> bool:
    """Whether the tree of this root waits for a signal, an ask, an approval or another run of this name."""
    return any(wait.name == name and wait.kind in _NAMED_WAITS for wait in run.waits)


def passes(run: Run, wanted: RunFilter) -> bool:
    """Whether the run has everything that the filter asks for; databases say the same in SQL."""
    return (
        (not wanted.statuses or run.status in wanted.statuses)
        and (not wanted.ids or run.id in wanted.ids)
        and wanted.workflow in (None, run.workflow)
        and wanted.version in (None, run.version)
        and wanted.owner in (None, run.owner)
        and wanted.root_id in (None, run.root_id)
        and wanted.parent_id in (None, run.parent_id)
        and not (wanted.roots_only and run.number)
        and not (wanted.hides_internal and is_internal(run.workflow))
        and (not wanted.tags or wanted.tags.items() <= run.tags.items())
        and (wanted.since_at is None or run.created_at >= wanted.since_at)
        and (wanted.until_at is None or run.created_at < wanted.until_at)
        and finished_in(run, wanted.finished_since_at, wanted.finished_until_at)
        and (not wanted.id_prefix or run.id.startswith(wanted.id_prefix))
        and (wanted.error is None or has_error(run, wanted.error))
        and (wanted.waiting_for is None or waits_for(run, wanted.waiting_for))
        and (not wanted.sleeps or sleeps(run))
        and (wanted.overdue_at is None or is_overdue(run, wanted.overdue_at))
        and wanted.queue in (None, run.queue)
        and (wanted.asks is None or asks(run, wanted.asks))
    )


GroupField = Literal["status", "workflow", "queue"]
"""By what runs are grouped to be counted."""


def group_of(run: Run, by: GroupField) -> str:
    """The group that a run is counted in; a run without a queue is in the group with the empty name."""
    return run.status.value if by == "status" else run.workflow if by == "workflow" else run.queue


def in_group(wanted: RunFilter, by: GroupField, group: str) -> RunFilter:
    """The filter for the runs of one group."""
    match by:
        case "status":
            return msgspec.structs.replace(wanted, statuses=(RunStatus(group),))
        case "workflow":
            return msgspec.structs.replace(wanted, workflow=group)
        case "queue":
            return msgspec.structs.replace(wanted, queue=group)
