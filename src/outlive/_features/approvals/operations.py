"""Approvals: the inbox of people, and what one run has asked for."""

from __future__ import annotations

from msgspec import Struct

import outlive.errors as e
from outlive._kernel.values.approval import ApprovalRequest
from outlive.http.asked import narrowed
from outlive.http.operation import Call, operation
from outlive.http.wire.page import Limit, Name
from outlive.http.wire.runs import RunsQuery


class ApprovalsQuery(RunsQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The runs and the person whose approvals are listed."""

    assignee: Name | None = None
    """Only what this person, or this group, may decide."""
    limit: Limit = 100
    """The number of runs whose requests a page has."""
    after: str | None = None
    """`next` or `previous` of another page with the same parameters."""


class ApprovalsPage(Struct, frozen=True):
    """Requests for approval."""

    items: list[ApprovalRequest]
    next: str | None
    previous: str | None


@operation("approvals.list", "GET", "/approvals", scope="viewer", reach="runs")
async def list_approvals(call: Call, query: ApprovalsQuery) -> ApprovalsPage:
    """Requests without a decision, of the oldest runs first: the inbox of one person, or of all."""
    query = narrowed(call, query)
    page = await call.engine.approvals.list(
        assignee=query.assignee, limit=query.limit, after=query.after, **query.filters()
    )
    return ApprovalsPage(page, page.next, page.previous)


@operation(
    "runs.approvals", "GET", "/runs/{run_id}/approvals", scope="viewer", reach="run", raises=(e.RunNotFoundError,)
)
async def run_approvals(call: Call, run_id: str) -> ApprovalsPage:
    """Everything that a run and its children have asked people for, with who decided what and when."""
    return ApprovalsPage(await call.engine.get(run_id).approvals(), None, None)
