"""Batches: a workflow for each of many rows, and what became of each."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, structs

import outlive.errors as e
from outlive._features.batches.values import BatchInfo
from outlive._kernel.client.placing import queue_choice
from outlive._kernel.define.map import Tolerance
from outlive._kernel.model import Failure as StoredFailure
from outlive._kernel.values.failure import Failure, failure_of
from outlive._kernel.values.run import Status
from outlive.errors.program import UnknownWorkflowError
from outlive.errors.run import RunNotRetriableError
from outlive.http.asked import PAGE_BYTES_MAX, check_id, check_workflow, made_id, narrowed_tags, why_of
from outlive.http.operation import EVENT_STREAM, Call, Content, operation
from outlive.http.sse import ITEMS, BatchEnd, follow_items, read_cursor
from outlive.http.wire.page import Instant, Json, Limit, Name, RunId, Seq, tags_of
from outlive.http.wire.runs import Started, StreamQuery
from outlive.http.wire.start import Placed

MISSING = (e.RunNotFoundError, e.RunExistsError)
ROWS_MAX = 100_000


class StartBatch(Placed, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A batch to start."""

    workflow: Name
    """It takes one argument, the row."""
    rows: Annotated[list[Json], Meta(max_length=ROWS_MAX)]
    version: int | None = None
    concurrency: Annotated[int, Meta(ge=1)] = 20
    """How many items are under way at once, in all workers together."""
    id: RunId | None = None
    """The id of the batch: a start with the same id is the same batch; made of the header `Idempotency-Key` unless
    given."""
    tags: dict[str, str] | None = None
    headers: dict[str, str] | None = None
    failures_max: Annotated[int, Meta(ge=0)] | None = None
    """How many items may fail before the batch does; all of them unless given."""
    failures_ratio: Annotated[float, Meta(ge=0, le=1)] | None = None
    """Which share of the items may fail; with both, whichever is less."""


class RetryBatch(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The batch of the rows that have not succeeded."""

    id: RunId | None = None
    """The id of the new batch; made of the header `Idempotency-Key` unless given."""


class ItemsQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which items."""

    after: Seq = -1
    """The place of the last item of the page before."""
    limit: Limit = 100
    status: Literal["succeeded", "failed"] | None = None


class BatchesQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which batches, and which page of them."""

    status: list[Status] = []
    tag: list[str] = []
    """`name=value`; may be given several times, and all of them count."""
    since: Instant | None = None
    until: Instant | None = None
    limit: Annotated[int, Meta(ge=1, le=100)] = 20
    after: str | None = None


class BatchesPage(Struct, frozen=True):
    """A page of batches."""

    items: list[BatchInfo]
    next: str | None
    previous: str | None


class ItemView(Struct, frozen=True):
    """The outcome of one item."""

    index: int
    """The place of its row, from 0 on."""
    status: Literal["succeeded", "failed"]
    result: Json
    error: Failure | None


class ItemsPage(Struct, frozen=True):
    """Items that have ended, in the order of their rows."""

    items: list[ItemView]
    next: int | None
    """Give it as `after` to get the next page; null if no item behind it has ended."""


@operation(
    "batches.start",
    "POST",
    "/batches",
    scope="operator",
    reach="runs",
    answers=201,
    raises=(UnknownWorkflowError, e.RunExistsError, e.PayloadTooLargeError),
)
async def start_batch(call: Call, body: StartBatch) -> Started:
    """Start a run of a workflow for each of many rows, each durable on its own. A row is the one argument."""
    check_workflow(call, body.workflow)
    batch_id = body.id or made_id(call, "batch", body.workflow)
    await check_id(call, batch_id)
    said = body.failures_max, body.failures_ratio
    try:
        batch = await call.view.batches.start_named(
            body.workflow,
            body.rows,
            version=body.version,
            concurrency=body.concurrency,
            id=batch_id,
            tags=body.tags,
            headers=call.run_headers(body.headers),
            tolerate=None if said == (None, None) else Tolerance(*said),
            choice=queue_choice(**body.place()),
        )
    except e.RunExistsError as error:
        if call.principal.bounds.is_open:
            raise
        # The principal may not be allowed to see what it is.
        raise e.RunExistsError(error.run_id, "another run has this id", "use another id") from None
    return Started(batch.id)


@operation("batches.list", "GET", "/batches", scope="viewer", reach="tagged")
async def list_batches(call: Call, query: BatchesQuery) -> BatchesPage:
    """A page of the batches that fit, the newest first, each with how many of its rows have ended, and how."""
    page = await call.engine.batches.list(
        limit=query.limit,
        after=query.after,
        status=query.status or None,
        tags=narrowed_tags(call, tags_of(query.tag)),
        since=query.since,
        until=query.until,
    )
    return BatchesPage(page, page.next, page.previous)


@operation("batches.info", "GET", "/batches/{batch_id}", scope="viewer", reach="run", raises=MISSING)
async def get_batch(call: Call, batch_id: str) -> BatchInfo:
    """A batch: how many items have ended, and how."""
    await call.view.plan_of(batch_id)
    info, why = await call.engine.batches.get(batch_id).info(), await why_of(call, batch_id)
    return structs.replace(info, why=why.summary, advice=why.advice)


@operation("batches.outcomes", "GET", "/batches/{batch_id}/items", scope="viewer", reach="run", raises=MISSING)
async def list_items(call: Call, batch_id: str, query: ItemsQuery) -> ItemsPage:
    """Items of a batch that have ended, in the order of their rows; those under way are not in it yet.

    A page has fewer than were asked for where they are large, and `next` says whether there are more.
    """
    page = await call.view.items(batch_id, after=query.after, limit=query.limit, bytes_max=PAGE_BYTES_MAX)
    items = [_item(*found) for found in page.items]
    shown = [it for it in items if query.status in (None, it.status)]
    return ItemsPage(shown, items[-1].index if page.has_more else None)


@operation(
    "batches.items",
    "GET",
    "/batches/{batch_id}/follow",
    scope="viewer",
    reach="run",
    raises=MISSING,
    media=EVENT_STREAM,
    messages={"item": ItemView, "end": BatchEnd},
)
async def follow_batch(call: Call, batch_id: str, query: StreamQuery) -> Content:
    """The items of a batch as they finish, as server-sent events; items that have finished before come first.

    Messages: `item` (as `GET /batches/{batch_id}/items` has it), `end` (it has ended, or nothing more comes until
    the run `parked` is resumed). A reader that comes again with the last id it has seen (`Last-Event-ID`) gets every
    item that it may not have; it may have some of them, and knows them by their `index`.
    """
    after = call.headers.get("last-event-id", query.after)
    cursor = read_cursor(f"0.-1;{ITEMS}={after}" if after.isdecimal() else after)
    await call.view.plan_of(batch_id)
    return Content(EVENT_STREAM, follow_items(call.view, batch_id, cursor.streams.get(ITEMS, -1), _item))


def _item(index: int, result: Any, failure: StoredFailure | None) -> ItemView:
    status: Literal["succeeded", "failed"] = "succeeded" if failure is None else "failed"
    return ItemView(index, status, result, failure_of(failure, with_traceback=False))


@operation(
    "batches.retry",
    "POST",
    "/batches/{batch_id}/retry",
    scope="operator",
    reach="run",
    answers=201,
    raises=(*MISSING, RunNotRetriableError),
)
async def retry_batch(call: Call, batch_id: str, body: RetryBatch | None = None) -> Started:
    """Start another batch, of the rows of this one that have not succeeded."""
    new_id = (body or RetryBatch()).id or made_id(call, "batch")
    await check_id(call, new_id)
    return Started((await call.engine.batches.get(batch_id).retry(id=new_id)).id)
