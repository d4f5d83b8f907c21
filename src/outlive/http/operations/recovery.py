"""Recovery: the runs that do not move, why, and letting them go on."""

from __future__ import annotations

from msgspec import Struct

import outlive.errors as e
from outlive.client.recovery import Incomplete
from outlive.http.operation import Call, operation
from outlive.http.operations.bulk import bounded, for_each
from outlive.http.wire.bulk import Bulk, bulk_filters
from outlive.http.wire.page import Done, Limit
from outlive.http.wire.runs import Outcomes


class IncompleteQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which page."""

    limit: Limit = 100
    before: str | None = None
    """The id of the last run of the page before."""


class IncompleteList(Struct, frozen=True):
    """Runs that do not move."""

    items: list[Incomplete]
    next: str | None
    """Give it as `before` to get the next page."""


@operation("GET", "/recovery", scope="viewer", raises=(e.RunNotFoundError,))
async def list_incomplete(call: Call, query: IncompleteQuery) -> IncompleteList:
    """Runs that do not move and why, newest first.

    They are parked, left behind by a worker that is gone, damaged, or due while no live worker has their definition.
    """
    items = await call.engine.recovery(limit=query.limit, before=query.before)
    return IncompleteList(items, items[-1].run.id if len(items) == query.limit else None)


@operation(
    "POST",
    "/recovery/{run_id}/resume",
    scope="operator",
    reach="run",
    answers=202,
    raises=(e.RunNotFoundError, e.RunNotParkedError, e.RunFinishedError, e.InboxFullError),
)
async def resume_incomplete(call: Call, run_id: str) -> Done:
    """Let one run go on that is parked."""
    if not await call.was_done(run_id):
        await call.engine.resume(run_id)
    return Done(run_id)


@operation("POST", "/recovery/resume", scope="operator", reach="tagged")
async def resume_all(call: Call, body: Bulk | None = None) -> Outcomes:
    """Let all parked runs go on, or those that fit a filter; with `dry_run` only list them.

    Runs whose worker is gone need none of this: another worker takes them over by itself.
    """
    wanted = body or Bulk()
    filters = bulk_filters(wanted)
    if not set(filters) - {"limit", "dry_run"}:
        filters["status"] = ["parked"]
    return await for_each(call, call.engine.resume, bounded(call, filters))
