"""Requests of runs to people, as people and programs see them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Literal

import msgspec

from outlive._kernel.model.approval import AnyApproval

ApprovalStatus = Literal["pending", "approved", "rejected", "closed"]

LINK_SPAN = timedelta(days=7)
"""How long a link to decide is valid, unless its maker says otherwise."""


class ApprovalRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request for approval, and what became of it."""

    id: str
    """Tells the requests of one run apart: `request` in a decision."""
    run_id: str
    name: str
    status: ApprovalStatus
    title: str
    assignees: tuple[str, ...]
    """The people who are asked by now."""
    schema: dict[str, Any] | None
    """The JSON Schema of the form; None if there is nothing to fill in."""
    requested_at: datetime
    deadline: datetime | None = None
    escalated_at: datetime | None = None
    decision: AnyApproval | None = None
    """The decision: by whom, what and when; the form as plain JSON."""
    closed_at: datetime | None = None
    """When it was found that the run waits for a decision no longer."""
    reason: str = ""
    """Why it is closed."""
    age: timedelta = timedelta(0)
    """For how long it has been open, or was, when this was read."""

    def __repr__(self) -> str:
        by = "" if self.decision is None else f" by {self.decision.by}"
        return f"<ApprovalRequest {self.name} of {self.run_id}: {self.status}{by}>"


class DecisionLink(msgspec.Struct, frozen=True, kw_only=True):
    """A link with which a person decides on one approval, and what it is for."""

    run_id: str
    name: str
    """The name of the approval."""
    title: str
    """The question of the workflow."""
    approved: bool
    """Whether it approves, or rejects."""
    by: str
    """The person who decides with it."""
    expires: datetime
    has_form: bool
    """Whether there is something to fill in."""

    def __repr__(self) -> str:
        verb = "approves" if self.approved else "rejects"
        return f"<{type(self).__name__} {verb} {self.name} of {self.run_id}, for {self.by}>"


class NewLink(DecisionLink, frozen=True, kw_only=True):
    """A link that was just made. Its secret is here and nowhere else."""

    path: str
    """Where the HTTP API takes it, below the address of a server."""

    @property
    def token(self) -> str:
        """The secret: the end of its path."""
        return self.path.rpartition("/")[2]
