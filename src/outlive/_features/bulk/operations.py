"""One verb for many runs: the runs that fit a filter.

Each run is a deed of its own, so a server that is killed has done it to some of them. A request with an
`Idempotency-Key` writes down which runs it is for before it begins (`client.request_plans`); sent again, it is for the
same runs, does it to the runs that are left, and has the same answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import msgspec

import outlive.errors as e
from outlive._features.bulk.verbs import BulkProgress
from outlive._features.bulk.wire import (
    Bulk,
    BulkChoice,
    BulkOfTrees,
    BulkPageView,
    PauseRuns,
    StartBulk,
    StartPurge,
    bulk_filters,
)
from outlive._features.bulk.workflow import BulkVerb
from outlive._features.retention.values import Purge
from outlive._kernel.client.bulk import side_by_side
from outlive._kernel.client.request_plans import RUNS_MAX, PlannedRun
from outlive._kernel.model import TERMINAL
from outlive._kernel.model.instant import MICROSECONDS, instant_of
from outlive._kernel.values.outcome import RunOutcome
from outlive.errors.base import message_of
from outlive.errors.known import ERRORS
from outlive.http.asked import made_id, narrowed_tags
from outlive.http.operation import Call, operation
from outlive.http.wire.page import Done, seconds_of
from outlive.http.wire.runs import Attributed, Outcomes, PurgeRuns, Started

PAGE = 100


@operation("bulk.cancel", "POST", "/bulk/cancel", scope="operator", reach="tagged")
async def cancel_runs(call: Call, body: BulkOfTrees) -> Outcomes:
    """Ask the runs that fit to stop: open runs unless `status` says so."""
    return await for_each(call, call.engine.cancel, bounded(call, bulk_filters(body)), reason=body.reason)


@operation("bulk.retry", "POST", "/bulk/retry", scope="operator", reach="tagged")
async def retry_runs(call: Call, body: BulkOfTrees) -> Outcomes:
    """Let the runs that fit go on at what failed: runs that ended badly unless `status` says so."""
    return await for_each(call, call.engine.retry, bounded(call, bulk_filters(body)), reason=body.reason)


@operation("bulk.pause", "POST", "/bulk/pause", scope="operator", reach="tagged")
async def pause_runs(call: Call, body: PauseRuns) -> Outcomes:
    """Let the runs that fit, each with its tree, begin nothing more: open runs unless `status` says so.

    `bulk.resume` lets them go on.
    """
    filters = bounded(call, bulk_filters(body))
    return await for_each(call, call.engine.pause, filters, by=call.person(body.by), reason=body.reason)


@operation("bulk.resume", "POST", "/bulk/resume", scope="operator", reach="tagged")
async def resume_runs(call: Call, body: Bulk | None = None) -> Outcomes:
    """Let all parked runs go on, or only parked runs that fit a filter; with `dry_run` only list them.

    Runs whose worker is gone need none of this: another worker takes them over by itself.
    """
    filters = bulk_filters(body or Bulk())
    if not set(filters) - {"limit", "dry_run"}:
        filters["status"] = ["parked"]
    return await for_each(call, call.engine.resume, bounded(call, filters))


@operation("store.pause", "POST", "/store/pause", scope="admin")
async def pause_all(call: Call, body: Attributed | None = None) -> Done:
    """Let everything in this store begin nothing more. New runs may be started, and wait."""
    said = body or Attributed()
    await call.engine.pause(all=True, by=call.person(said.by), reason=said.reason)
    return Done("store")


@operation("store.resume", "POST", "/store/resume", scope="admin")
async def unpause_all(call: Call) -> Done:
    """Let go on what was paused as a whole; a run, a workflow or a queue that was paused by itself stays paused."""
    await call.engine.resume(all=True)
    return Done("store")


@operation("bulk.purge", "POST", "/bulk/purge", scope="admin", reach="tagged")
async def purge_runs(call: Call, body: PurgeRuns) -> Purge:
    """Delete runs that have ended, with everything of them, for good. At least one filter.

    With the header `Idempotency-Key`, at most 1,000 of them.
    """
    filters = {name: value for name, value in msgspec.structs.asdict(body).items() if name != "older_than" and value}
    filters = bounded(call, filters)
    if call.request and not body.dry_run:
        return await _purge_planned(call, body, filters)
    return await call.engine.purge(older_than=body.older_than, **filters)


# -- In the background -------------------------------------------------------------------------------------------


class BulksQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which page of them."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 20
    after: str | None = None


@operation("bulk.start", "POST", "/bulk/operations", scope="operator", answers=201, raises=(e.RunExistsError,))
async def start_bulk(call: Call, body: StartBulk) -> Started:
    """Do something to all runs that fit, in the background.

    Workers do it, thousands of runs a minute, and go on when this server, the caller or one of them is killed. It is
    durable when this answers. Sent again with the same `id`, or with the same header `Idempotency-Key`, it is the same
    operation.
    """
    return await _start(call, body.verb, body)


@operation("bulk.start_purge", "POST", "/bulk/operations/purge", scope="admin", answers=201, raises=(e.RunExistsError,))
async def start_purge(call: Call, body: StartPurge) -> Started:
    """Delete runs that have ended, with everything of them, for good, in the background."""
    return await _start(call, "purge", body, older_than=body.older_than)


async def _start(call: Call, verb: BulkVerb, body: BulkChoice, **options: Any) -> Started:
    chosen = msgspec.structs.asdict(body)
    for name in ("verb", "id", "by", "reason", "older_than"):
        chosen.pop(name, None)
    filters = {name: value for name, value in chosen.items() if name in ("roots_only", "internal") or value}
    operation_id = body.id or made_id(call, "bulk", verb)
    options |= {"by": call.person(body.by), "reason": body.reason} | filters
    found = await call.engine.bulk.start(verb, id=operation_id, **options)
    return Started(found.id)


@operation("bulk.list", "GET", "/bulk/operations", scope="viewer")
async def list_bulk(call: Call, query: BulksQuery) -> BulkPageView:
    """Verbs for many runs, the newest first, each with how far it has come."""
    page = await call.engine.bulk.list(limit=query.limit, after=query.after)
    return BulkPageView(page, page.next, page.previous)


@operation("bulk.progress", "GET", "/bulk/operations/{operation_id}", scope="viewer", raises=(e.RunNotFoundError,))
async def get_bulk(call: Call, operation_id: str) -> BulkProgress:
    """A verb for many runs: how far it has come, and which runs have refused.

    It is stopped as every run is: `POST /runs/{run_id}/cancel`; what it has done stays.
    """
    return await call.engine.bulk.get(operation_id).progress()


# -- The same verb for each of them -----------------------------------------------------------------------------


def bounded(call: Call, filters: dict[str, Any]) -> dict[str, Any]:
    """The filters of a verb for many runs, as far as the principal may see them: of one of runs with some tags, roots
    with these tags only."""
    if not call.principal.tags:
        return filters
    bounds = {"roots_only": True} if "roots_only" in filters else {}
    return filters | bounds | {"tags": narrowed_tags(call, filters.get("tags"))}


async def for_each(
    call: Call, verb: Callable[..., Awaitable[list[RunOutcome] | None]], filters: dict[str, Any], **options: Any
) -> Outcomes:
    """Do something to all runs that fit, each once however often the request is sent."""
    if not call.request or filters.get("dry_run"):
        return Outcomes([_shown(it) for it in await verb(**options, **filters) or ()])
    plan = await call.plans.find(call.request)
    if plan is None:
        chosen = await verb(**options, **(filters | {"dry_run": True})) or ()
        plan = await call.plans.keep(call.request, [PlannedRun(it.id, it.workflow, it.status) for it in chosen])
    return Outcomes([it async for it in side_by_side(plan, lambda run: _done_to(call, run, verb, options))])


async def _done_to(call: Call, run: PlannedRun, verb: Callable[..., Awaitable[Any]], options: Any) -> RunOutcome:
    try:
        if not await call.was_done(run.id):
            await verb(run.id, **options)
    except Exception as error:  # The others are not to wait for this one.
        return _shown(
            RunOutcome(run.id, run.workflow, run.status, error=type(error).__name__, message=message_of(error))
        )
    return RunOutcome(run.id, run.workflow, run.status, done=True)


def _shown(it: RunOutcome) -> RunOutcome:
    """An outcome without what an error says of this server and its store."""
    is_ours = it.error in ERRORS and not issubclass(ERRORS[it.error], e.StoreError)
    return it if is_ours else msgspec.structs.replace(it, message="")


# -- Deleting ---------------------------------------------------------------------------------------------------


async def _purge_planned(call: Call, body: PurgeRuns, filters: dict[str, Any]) -> Purge:
    """Delete the runs that this request chose when it came first."""
    if body.limit > RUNS_MAX:
        wanted = f"with an Idempotency-Key, at most {RUNS_MAX:,}; send more of them"
        raise e.InvalidArgumentError("bulk.purge", "limit", body.limit, wanted)
    plan = await call.plans.find(call.request)
    if plan is None:
        await call.engine.purge(older_than=body.older_than, **(filters | {"dry_run": True}))  # It checks the filters.
        plan = await call.plans.keep(call.request, await _ended_before(call, body, filters))
    deleted = sum([await _is_gone(call, run.id) for run in plan])
    ends = sorted(run.finished_at for run in plan)
    counts = Counter(f"{run.workflow} {run.status}" for run in plan)
    oldest, newest = (instant_of(ends[0]), instant_of(ends[-1])) if ends else (None, None)
    return Purge(len(plan), deleted, oldest, newest, dict(sorted(counts.items())))


async def _ended_before(call: Call, body: PurgeRuns, filters: dict[str, Any]) -> list[PlannedRun]:
    """The runs that fit and ended long enough ago, the oldest first."""
    before = call.view.now() - round(seconds_of(body.older_than) * MICROSECONDS)
    wanted = {name: value for name, value in filters.items() if name not in ("limit", "dry_run")}
    wanted = {"status": [it.value for it in TERMINAL]} | wanted
    found: list[PlannedRun] = []
    after: str | None = None
    while len(found) < body.limit:
        page = await call.view.rows(order="created_at", limit=PAGE, after=after, roots_only=True, **wanted)
        found += [
            PlannedRun(run.id, run.workflow, run.status.value, run.finished_at)
            for run in page
            if run.finished_at is not None and run.finished_at < before
        ]
        after = page.next
        if after is None:
            break
    return found[: body.limit]


async def _is_gone(call: Call, run_id: str) -> bool:
    """Delete a run; whether this request has deleted it, now or before."""
    if await call.was_done(run_id):
        return True
    try:
        return await call.view.delete(await call.view.row(run_id))
    except e.RunNotFoundError:
        return False
