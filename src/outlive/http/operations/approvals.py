"""Approvals: the inbox of people, and what one run has asked for."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from msgspec import Struct

import outlive.errors as e
from outlive.client.audit import ApprovalEntry
from outlive.http.operation import Call, operation
from outlive.http.operations.runs import narrowed
from outlive.http.wire.page import Json, Limit, Name
from outlive.http.wire.runs import DecisionView, RunsQuery


class ApprovalsQuery(RunsQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of which runs, and for whom."""

    assignee: Name | None = None
    """Only what this person, or this group, may decide."""
    limit: Limit = 100
    """Of how many runs a page has the requests."""
    after: str | None = None
    """`next` or `previous` of another page with the same parameters."""


class ApprovalView(Struct, frozen=True, kw_only=True):
    """One request for approval, and what became of it."""

    id: str
    """Tells the requests of one run apart: `request` in a decision."""
    run_id: str
    name: str
    status: Literal["pending", "approved", "rejected", "closed"]
    title: str
    assignees: list[str]
    schema: dict[str, Any] | None
    """The JSON Schema of the form; null if there is nothing to fill in."""
    requested_at: datetime
    deadline: datetime | None
    escalated_at: datetime | None
    closed_at: datetime | None
    reason: str
    """Why it is closed."""
    age: float
    """Seconds for which it has been open, or was."""
    decision: DecisionView | None


class ApprovalsPage(Struct, frozen=True):
    """Requests for approval."""

    items: list[ApprovalView]
    next: str | None
    previous: str | None


@operation("GET", "/approvals", scope="viewer", reach="runs")
async def list_approvals(call: Call, query: ApprovalsQuery) -> ApprovalsPage:
    """What runs ask people for and have no decision on, the oldest runs first: the inbox of one person, or of all."""
    query = narrowed(call, query)
    page = await call.engine.approvals(assignee=query.assignee, limit=query.limit, after=query.after, **query.filters())
    return ApprovalsPage([_view(call, entry) for entry in page], page.next, page.previous)


@operation("GET", "/runs/{run_id}/approvals", scope="viewer", reach="run", raises=(e.RunNotFoundError,))
async def run_approvals(call: Call, run_id: str) -> ApprovalsPage:
    """Everything that a run and its children have asked people for, with who decided what and when."""
    return ApprovalsPage([_view(call, it) for it in await call.engine.get(run_id).approvals()], None, None)


def _view(call: Call, it: ApprovalEntry) -> ApprovalView:
    made = it.decision
    form: Json = None if made is None else call.view.field(it.name, made.form)
    decision = None
    if made is not None:
        is_yours = made.by == call.principal.name
        decision = DecisionView(made.name, made.approved, made.by, made.at, made.comment, form, is_yours)
    return ApprovalView(
        id=it.id,
        run_id=it.run_id,
        name=it.name,
        status=it.status,
        title=it.title,
        assignees=list(it.assignees),
        schema=it.schema,
        requested_at=it.requested_at,
        deadline=it.deadline,
        escalated_at=it.escalated_at,
        closed_at=it.closed_at,
        reason=it.reason,
        age=it.age.total_seconds(),
        decision=decision,
    )
