"""Runs: start them, find them, look at them."""

from __future__ import annotations

from contextlib import aclosing
from datetime import datetime

import msgspec
from msgspec import Struct, structs

import outlive.errors as e
from outlive._kernel.client.message_start import NamedStart
from outlive._kernel.client.news import Position
from outlive._kernel.client.recovery import Incomplete
from outlive._kernel.client.start_many import OneStart
from outlive._kernel.model import Payload
from outlive._kernel.model.instant import instant_of
from outlive._kernel.model.under_way import StepUnderWay
from outlive._kernel.values.count import Count
from outlive._kernel.values.event import Event, event_of, payload_size
from outlive._kernel.values.failure import failure_of
from outlive._kernel.values.run import Run
from outlive.errors.program import UnknownWorkflowError, of_item
from outlive.errors.run import RunDamagedError, StartsRefusedError
from outlive.http.advice import as_requests
from outlive.http.asked import (
    PAGE_BYTES_MAX,
    check_id,
    check_workflow,
    foreign_ids,
    id_of_others,
    made_id,
    narrowed,
    why_of,
    with_room,
)
from outlive.http.operation import JSON, Call, Content, operation
from outlive.http.problem import Problem, problem_of
from outlive.http.sse import Cursor
from outlive.http.wire.page import SEQ_MAX, Json, Limit, WaitQuery, seconds_of
from outlive.http.wire.runs import (
    DeadLettersList,
    HistoryQuery,
    HistoryView,
    InboxQuery,
    NotEnded,
    PublishedView,
    ResultView,
    RunCounts,
    RunsCountByQuery,
    RunsCountQuery,
    RunsList,
    RunsPage,
    RunsPageQuery,
    Started,
    StartedRuns,
    StartOutcome,
    StartRun,
    StartRuns,
    UnreadList,
    WhyView,
    runs_page,
)

MISSING = (e.RunNotFoundError,)
SEQ_DIGITS_MAX = len(str(SEQ_MAX))


class StepsQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the list of the steps that run now."""

    arguments: bool = False
    """Whether to give the arguments too, by the names of the parameters and without what is redacted."""


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


class StepsView(Struct, frozen=True):
    """The steps of a run that run now."""

    items: list[StepUnderWay]
    """The oldest first."""
    now: datetime
    """The time of the store."""


@operation(
    "runs.start",
    "POST",
    "/runs",
    scope="operator",
    reach="runs",
    answers=201,
    raises=(UnknownWorkflowError, e.RunExistsError, e.PayloadTooLargeError),
)
async def start_run(call: Call, body: StartRun) -> Started:
    """Start a run by the name of its workflow.

    It is durable when this answers; no worker has to be up. Sent again with the same `id`, or with the same header
    `Idempotency-Key`, it is the same run and the same answer.
    """
    check_workflow(call, body.workflow)
    run_id = body.id or made_id(call, "run", body.workflow)
    await check_id(call, run_id)
    if run_id is not None and body.on_conflict != "attach" and await call.was_done(run_id):
        return Started(run_id)
    options = body.options(id=run_id, headers=call.run_headers(body.headers))
    start = call.engine.start(body.workflow, body.arguments, version=body.version, **options)
    return Started((await with_room(call, start, run_id, body.on_conflict)).id)


@operation(
    "runs.start_many",
    "POST",
    "/bulk/start",
    scope="operator",
    reach="runs",
    answers=201,
    raises=(UnknownWorkflowError, e.PayloadTooLargeError),
)
async def start_runs(call: Call, body: StartRuns) -> StartedRuns:
    """Start many runs in one transaction, each by the name of its workflow.

    All of them are durable when this answers, and nothing is started if one of them cannot work; `detail` says which.
    An id that is taken is answered as `on_conflict` of its start says, with a problem in its place if that run was not
    started. Sent again with the same ids, or with the same header `Idempotency-Key`, they are the same runs.
    """
    for index, each in enumerate(body.starts):
        try:
            check_workflow(call, each.workflow)
        except UnknownWorkflowError as error:
            raise of_item(error, index) from None
    ids = [it.id or made_id(call, "run", it.workflow, str(index)) for index, it in enumerate(body.starts)]
    taken = await foreign_ids(call, ids)
    for index, run_id in enumerate(ids):
        if run_id in taken:
            raise of_item(id_of_others(str(run_id)), index)
    done: dict[int, str] = {}
    for index, (run_id, each) in enumerate(zip(ids, body.starts, strict=True)):
        if run_id is not None and each.on_conflict != "attach" and await call.was_done(run_id):
            done[index] = run_id
    left = [index for index in range(len(ids)) if index not in done]
    starts = [_one_start(call, ids[index], body.starts[index]) for index in left]
    refused: dict[int, e.OutliveError] = {}
    try:
        waits_for = next((index for index in left if body.starts[index].on_conflict == "cancel_open"), None)
        start = call.engine.start_many(starts)
        if waits_for is not None:
            start = with_room(call, start, ids[waits_for], "cancel_open")
        found = [run.id for run in await start]
    except StartsRefusedError as error:
        found, refused = list(error.ids), {left[at]: it for at, it in error.refused.items()}
    answers = done | dict(zip(left, found, strict=True))
    return StartedRuns([_answer(answers[index], refused.get(index)) for index in range(len(ids))])


def _one_start(call: Call, run_id: str | None, body: StartRun) -> OneStart:
    named = NamedStart(body.workflow, body.arguments, body.version)
    return {"start": named, **body.options(id=run_id, headers=call.run_headers(body.headers))}


def _answer(run_id: str, refused: e.OutliveError | None) -> StartOutcome:
    return StartOutcome(run_id, None if refused is None else problem_of(refused).body)


@operation("runs.list", "GET", "/runs", scope="viewer", reach="runs")
async def list_runs(call: Call, query: RunsPageQuery) -> RunsPage:
    """A page of the runs that fit, newest first."""
    query = narrowed(call, query)
    page = await call.view.runs(order=query.order, limit=query.limit, after=query.after, **query.filters())
    return runs_page(page)


@operation("runs.count", "GET", "/runs/count", scope="viewer", reach="runs")
async def count_runs(call: Call, query: RunsCountQuery) -> Count:
    """How many runs fit. Counting ends at `limit`."""
    query = narrowed(call, query)
    return await call.engine.count(limit=query.limit, **query.filters())


@operation("runs.count_by", "GET", "/runs/count/groups", scope="viewer", reach="runs")
async def count_runs_by(call: Call, query: RunsCountByQuery) -> RunCounts:
    """How many runs fit, grouped by their status, workflow or queue, all at one moment.

    Counting a group ends at `limit`; a group without such runs is left out.
    """
    query = narrowed(call, query)
    return RunCounts(await call.engine.count_by(query.by, limit=query.limit, **query.filters()))


@operation("runs.list_stuck", "GET", "/runs/stuck", scope="viewer", raises=MISSING)
async def list_stuck(call: Call, query: IncompleteQuery) -> IncompleteList:
    """Runs that do not move and why, newest first.

    They are parked, left behind by a worker that is gone, damaged, or due while no live worker has their definition.
    """
    items = await call.engine.list_stuck(limit=query.limit, before=query.before)
    return IncompleteList(items, items[-1].run.id if len(items) == query.limit else None)


@operation("runs.info", "GET", "/runs/{run_id}", scope="viewer", reach="run", raises=MISSING)
async def get_run(call: Call, run_id: str) -> Run:
    """One run."""
    return await call.view.run(run_id)


@operation("runs.why", "GET", "/runs/{run_id}/why", scope="viewer", reach="run", raises=MISSING)
async def why(call: Call, run_id: str) -> WhyView:
    """The wait of a run, or how it ended, in one sentence."""
    run = await call.view.run(run_id)
    found = await why_of(call, run_id)
    return WhyView(run_id, run.status, found.summary, found.advice, as_requests(found.advice))


@operation("runs.steps", "GET", "/runs/{run_id}/steps", scope="viewer", reach="run", raises=MISSING)
async def steps(call: Call, run_id: str, query: StepsQuery) -> StepsView:
    """The steps of a run that run now, the oldest first; for a root, the steps of its tree. Tasks of remote steps too.

    A worker in another process than this server tells of steps that have lasted for some seconds, and of arguments that
    are short.
    """
    found = await call.engine.steps(run_id, arguments=query.arguments)
    return StepsView(found, instant_of(call.view.now()))


@operation("runs.history", "GET", "/runs/{run_id}/history", scope="viewer", reach="run", raises=MISSING)
async def history(call: Call, run_id: str, query: HistoryQuery) -> HistoryView:
    """The journal of the tree that a run belongs to, event by event, without what is redacted."""
    run = await call.view.row(run_id)
    items: list[Event] = []
    size, has_more = 0, False
    async with aclosing(call.view.portions(run, after=query.after, limit=query.limit + 1)) as portions:
        async for portion in portions:
            for entry in portion:
                size += payload_size(entry.event, payload_bytes=query.payload_bytes)
                has_more = len(items) == query.limit or (bool(items) and size > PAGE_BYTES_MAX)
                if has_more:
                    break
                items.append(event_of(entry.position, entry.event, run.root_id, payload_bytes=query.payload_bytes))
            if has_more:
                break
    last = items[-1].seq if items else query.after
    position = Cursor(Position(run.journal, last)).write()
    return HistoryView(items, last if has_more else None, position)


@operation("runs.payload", "GET", "/runs/{run_id}/history/{seq}/{field}", scope="viewer", reach="run", raises=MISSING)
async def payload(call: Call, run_id: str, seq: str, field: str) -> Content:
    """One payload of an event, as JSON: a history says `{"[large]": bytes}` in the place of large ones."""
    if seq.isdecimal() and len(seq) <= SEQ_DIGITS_MAX and int(seq) <= SEQ_MAX:
        run = await call.view.row(run_id)
        entry = await call.view.event(run, int(seq))
        if entry is not None and isinstance(getattr(entry.event, field, None), Payload):
            data = event_of(entry.position, entry.event, run.root_id).data
            if field in data:
                return Content(JSON, msgspec.json.encode(data[field]))
    wanted = "GET /api/v1/runs/{id}/history lists the events and their fields."
    raise Problem(404, "not_found", f"event {seq} of this run has no payload {field!r}", wanted)


@operation("runs.tree", "GET", "/runs/{run_id}/tree", scope="viewer", reach="run", raises=MISSING)
async def tree(call: Call, run_id: str) -> RunsList:
    """The runs of the tree that a run belongs to, the root first."""
    return RunsList(await call.view.tree(run_id))


@operation(
    "runs.result",
    "GET",
    "/runs/{run_id}/result",
    scope="viewer",
    reach="run",
    answers={200: ResultView, 202: NotEnded},
    raises=(*MISSING, RunDamagedError),
    waits=True,
)
async def result(call: Call, run_id: str, query: WaitQuery) -> ResultView | NotEnded:
    """How a run ended; with `wait` seconds, when it does. A run that has not ended, or is parked, is answered with 202.

    The result is plain JSON, without what is redacted.
    """
    run = await call.view.ended(run_id, min(seconds_of(query.wait), call.limits.wait_seconds_max))
    if run is None:
        now = await call.view.run(run_id)
        found = await why_of(call, run_id)
        return NotEnded(run_id, now.status, found.summary, found.advice)
    error = failure_of(run.failure)
    return ResultView(run_id, run.status.value, await call.view.json(run.result), error, run.reason)


@operation("runs.published", "GET", "/runs/{run_id}/published", scope="viewer", reach="run", raises=MISSING)
async def published(call: Call, run_id: str) -> PublishedView:
    """The object that a run last showed with `outlive.publish`."""
    run = await call.view.row(run_id)
    fields: Json = await call.view.plain(run.published)
    return PublishedView(run_id, fields if isinstance(fields, dict) else {})


@operation("inbox.list", "GET", "/runs/{run_id}/inbox", scope="viewer", reach="run", raises=MISSING)
async def list_inbox(call: Call, run_id: str, query: InboxQuery) -> UnreadList:
    """Messages to a run, and to its children, that their code has not read, oldest first.

    While a worker has the run, it does not say what the code reads: such messages have the state `taken`. Values that
    are too large to be shown together are left out, and `{"[large]": bytes}` says so in their place.
    """
    found = call.view.unread(run_id, limit=query.limit, bytes_max=PAGE_BYTES_MAX)
    return UnreadList([structs.replace(it, value=call.view.field(it.name, it.value)) async for it in found])


@operation("dead_letters.list", "GET", "/runs/{run_id}/dead-letters", scope="viewer", reach="run", raises=MISSING)
async def list_dead_letters(call: Call, run_id: str) -> DeadLettersList:
    """Messages that the code of a run, and of its children, could not read, oldest first.

    Values that are too large to be shown together are left out, and `{"[large]": bytes}` says so in their place; the
    history has them.
    """
    found = call.view.dead_letters(run_id, bytes_max=PAGE_BYTES_MAX)
    return DeadLettersList([structs.replace(it, value=call.view.field(it.name, it.value)) async for it in found])


# -- What many operations need ----------------------------------------------------------------------------------
