"""Following runs live, by server-sent events."""

from __future__ import annotations

from msgspec import Struct

from outlive._features.runs.operations.runs import MISSING
from outlive._kernel.client.streams import StreamItem, checked_place
from outlive._kernel.values.event import Event
from outlive._kernel.values.run import Run
from outlive.http.asked import narrowed
from outlive.http.live import GoneRun, ListedRuns, in_whole_minutes, read_known
from outlive.http.operation import EVENT_STREAM, Call, Content, operation
from outlive.http.sse import Cursor, StreamEnd, follow_run, follow_stream, read_cursor
from outlive.http.wire.runs import FollowQuery, RunsFollowQuery, StreamQuery

NOTHING_MORE = Content("text/plain", b"", status=204)
"""A browser that gets this does not come again."""


@operation(
    "runs.follow",
    "GET",
    "/runs/{run_id}/follow",
    scope="viewer",
    reach="run",
    raises=MISSING,
    media=EVENT_STREAM,
    answers={200: str, 204: None},
    messages={"journal": Event, "run": Run, "published": dict, "stream": StreamItem, "end": Run},
    for_tokens=True,
)
async def follow_one_run(call: Call, run_id: str, query: FollowQuery) -> Content:
    """Everything that happens to a run, as server-sent events, until it has ended.

    Messages: `journal` (an event of its tree), `run` (its row has changed), `published` (what it shows of itself),
    `stream` (an item of a stream that was asked for), `end` (the run, when it has ended). A reader that comes again
    with the last id it has seen (`Last-Event-ID`) gets what came after it; if that is nothing more, 204.
    """
    cursor = read_cursor(call.headers.get("last-event-id", query.after))
    streams = dict(checked_place(name, cursor.streams.get(name, 0)) for name in query.stream)
    run = await call.view.row(run_id)
    is_over = run.status.is_terminal and cursor.position.journal == run.journal and all(streams.values())
    if is_over and not await call.view.has_more(run, cursor.position.seq):
        return NOTHING_MORE
    parts = follow_run(
        call.view,
        run_id,
        Cursor(cursor.position, streams),
        look_seconds=call.limits.look_seconds,
        payload_bytes=query.payload_bytes,
    )
    return Content(EVENT_STREAM, parts, places=1 + len(streams))


class StreamView(Struct, frozen=True):
    """A stream of a run."""

    name: str
    items: int
    """How many items it has had."""


class StreamsList(Struct, frozen=True):
    """The streams of a run, by name."""

    items: list[StreamView]


@operation(
    "runs.streams", "GET", "/runs/{run_id}/streams", scope="viewer", reach="run", raises=MISSING, for_tokens=True
)
async def list_streams(call: Call, run_id: str) -> StreamsList:
    """Which streams a run has, by what it has emitted so far."""
    await call.view.run(run_id)
    return StreamsList([StreamView(name, items) for name, items in (await call.view.streams(run_id)).items()])


@operation(
    "runs.follow_stream",
    "GET",
    "/runs/{run_id}/streams/{name}",
    scope="viewer",
    reach="run",
    raises=MISSING,
    media=EVENT_STREAM,
    messages={"stream": StreamItem, "end": StreamEnd},
    for_tokens=True,
)
async def follow_one_stream(call: Call, run_id: str, name: str, query: StreamQuery) -> Content:
    """The items of a stream of a run, as server-sent events, from a position on until the run has ended."""
    after = call.headers.get("last-event-id", query.after)
    cursor = read_cursor(f"0.-1;_={after}" if after.isdecimal() else after)
    name, position = checked_place(name, next(iter(cursor.streams.values()), 0))
    await call.view.run(run_id)
    parts = follow_stream(call.view, run_id, name, position, look_seconds=call.limits.look_seconds)
    return Content(EVENT_STREAM, parts)


@operation(
    "runs.follow_list",
    "GET",
    "/runs/follow",
    scope="viewer",
    reach="runs",
    media=EVENT_STREAM,
    messages={"run": Run, "list": ListedRuns, "gone": GoneRun},
)
async def follow_runs(call: Call, query: RunsFollowQuery) -> Content:
    """A list of runs, live, as server-sent events: the newest that fit, then every change.

    Messages: `run` (it is new in the list, or has changed), `list` (once, after the first ones: the ids of all), `gone`
    (it is in the list no longer). A reader that comes again with the last id it has seen (`Last-Event-ID`) gets the
    runs that are new or have changed since, and `list`, which lets it drop the others. Readers share a list: it begins
    and ends at a whole minute, `since` is rounded down and `until` up.
    """
    query = in_whole_minutes(narrowed(call, query))
    of, by = call.principal.namespace, call.principal.id
    call.live.check(query, of=of, by=by)
    known = read_known(call.headers.get("last-event-id", ""))
    await call.engine.count(limit=1, **query.filters())  # A bad filter is refused before the first byte.
    return Content(EVENT_STREAM, call.live.follow(call.view, query, of=of, by=by, known=known))
