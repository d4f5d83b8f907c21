"""A run as its row says it."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from outlive._kernel.model import Run as StoredRun
from outlive._kernel.model import Wait as StoredWait
from outlive._kernel.model import child_id
from outlive._kernel.model.instant import instant_of
from outlive._kernel.model.pause import PAUSED
from outlive._kernel.model.run import definition_shown
from outlive._kernel.model.wait import DEADLINE, for_people
from outlive._kernel.model.worker import name_in
from outlive._kernel.values.failure import Failure, failure_of

Status = Literal[
    "pending", "running", "waiting", "parked", "succeeded", "failed", "cancelled", "timed_out", "continued", "damaged"
]
"""Where a run is in its life:

- `pending`: it waits for a worker. `running`: a worker has it.
- `waiting`: it is suspended until a timer, a retry, a signal, a child or a person.
- `parked`: stopped with a reason that a person can act on; it goes on after `resume`.
- `succeeded`, `failed`, `cancelled`, `timed_out`: it has ended.
- `continued`: it has ended, and its next generation goes on under its id.
- `damaged`: its row in the store cannot be read.
"""
ENDED: frozenset[str] = frozenset({"succeeded", "failed", "cancelled", "timed_out", "continued"})
"""The statuses of runs that have ended."""


class Wait(msgspec.Struct, frozen=True):
    """One thing that a run waits for."""

    kind: Literal["timer", "signal", "retry", "limit", "child", "approval", "promise", "ask"]
    """The kind of the wait."""
    name: str
    """Which one: the name of a signal, an ask or an approval, the call of a step, the id of a child or a promise."""
    until: datetime | None = None
    """When the wait ends by itself."""
    detail: str = ""
    """Details: what an approval is about, and who is asked."""
    run_id: str = ""
    """The run of the tree that waits."""

    def describe(self) -> str:
        """The wait in words: `signal 'paid'`, `a timer at 2026-11-19T12:00:00+00:00`."""
        said, until = "", "" if self.until is None else self.until.isoformat(timespec="seconds")
        match self.kind:
            case "timer":
                timer = "its timeout" if self.name == DEADLINE else "a timer"
                return f"{timer} at {until}" if until else timer
            case "signal" | "ask":
                said = f"{self.kind} {self.name!r}"
            case "promise":
                said = f"promise {self.name}"
            case "retry":
                return f"the next attempt of {self.name}" + (until and f" at {until}")
            case "limit":
                return f"{self.detail}, for {self.name}" + (until and f" at {until}")
            case "child":
                return f"run {self.name}"
            case "approval":
                return " ".join(
                    part for part in (f"approval {self.name!r}", self.detail, until and f"until {until}") if part
                )
        return said + (self.detail and f" ({self.detail})")

    def __repr__(self) -> str:
        return f"<Wait for {self.describe()}>"


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    id: str
    """Given by its caller, or made up."""
    workflow: str
    """The name of its workflow."""
    version: int
    """The version of its workflow, pinned when it was started."""
    status: Status
    """Where it is in its life."""
    root_id: str
    """The run at the root of its tree; itself, if nothing has started it as a child."""
    parent_id: str | None
    """The run that has started it as a child; None for the root of a tree."""
    number: int
    """Its place in its tree; 0 for the root."""
    waits: list[Wait]
    """The waits of the run."""
    created_at: datetime
    """When it was started."""
    updated_at: datetime
    """When its row was last written."""
    finished_at: datetime | None
    """When it ended; None while it is open."""
    wake_at: datetime | None
    """When a worker should look at it."""
    timeout_at: datetime | None
    """Its deadline; of a run that no worker has begun, what it would be if one began it when it was due."""
    begin_by: datetime | None
    """When a worker must have begun it: else it fails."""
    worker: str
    """The name of the worker that runs it; empty if none does."""
    attempts: int
    """Take-overs after an interruption since the last progress."""
    tags: dict[str, str]
    """Text by which it can be found."""
    reason: str
    """Why it is parked or was cancelled."""
    error: Failure | None
    """The failure of the run."""
    approvals: list[str]
    """The calls of the requests that wait for a decision."""
    queue: str
    """The queue that it was started in; empty for none, and for a child."""
    queue_key: str
    """Its key in the queue."""
    slots: int
    """How many slots of the queue it takes."""

    @property
    def has_ended(self) -> bool:
        """Whether nothing changes it any more, but a retry."""
        return self.status in ENDED

    @property
    def is_stopped(self) -> bool:
        """Whether it goes on only when a person does something: it is parked, and not merely paused, or damaged."""
        is_parked = self.status == "parked" and self.wake_at is None and not self.reason.startswith(PAUSED)
        return is_parked or self.status == "damaged"

    @property
    def definition(self) -> str:
        """The workflow with its version, `order@2`; a flow with its hash, `order@3f9a1c02b7de`."""
        return definition_shown(self.workflow, self.version)

    def __repr__(self) -> str:
        return f"<Run {self.id}: {self.definition}, {self.status.replace('_', ' ')}{_more(self)}>"


def _more(run: Run) -> str:
    if run.error is not None:
        return f": {run.error}"
    if run.reason:
        return f": {run.reason}"
    if run.waits:
        return f" for {' or '.join(wait.describe() for wait in run.waits)}"
    return f" on {run.worker}" if run.worker else ""


def run_of(stored: StoredRun, *, with_traceback: bool = True) -> Run:
    """The row of a run as users see it."""
    return Run(
        id=stored.id,
        workflow=stored.workflow,
        version=stored.version,
        status=stored.status.value,
        root_id=stored.root_id,
        parent_id=stored.parent_id,
        number=stored.number,
        waits=[wait_of(wait, stored.root_id) for wait in for_people(stored.waits)],
        created_at=instant_of(stored.created_at),
        updated_at=instant_of(stored.updated_at),
        finished_at=when(stored.finished_at),
        wake_at=when(stored.wake_at),
        timeout_at=when(stored.timeout_at),
        begin_by=when(stored.begin_by),
        worker=name_in(stored.owner),
        attempts=stored.attempts,
        tags=stored.tags,
        reason=stored.reason,
        error=failure_of(stored.failure, with_traceback=with_traceback),
        approvals=[request.call for request in stored.approvals],
        queue=stored.queue,
        queue_key=stored.queue_key,
        slots=stored.slots,
    )


def wait_of(stored: StoredWait, root_id: str) -> Wait:
    """The wait of a tree in a row or in a journal, as users see it."""
    return Wait(stored.kind.value, stored.name, when(stored.until_at), stored.detail, child_id(root_id, stored.run))


def when(at: int | None) -> datetime | None:
    """An instant of a row or of a journal as users see it."""
    return None if at is None else instant_of(at)
