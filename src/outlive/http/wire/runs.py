"""Runs on the wire."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, structs, to_builtins

from outlive._journal.event import AnyEvent, Event, payloads_of
from outlive._model import Failure, Payload, Run, child_id
from outlive._model.instant import instant_of
from outlive._model.wait import Wait as RunWait
from outlive.client.finding import Filters, Page
from outlive.client.timeline import described
from outlive.http.wire.page import Instant, Json, Key, Limit, Name, RunId, Seconds, Seq, Text, tags_of, when

Status = Literal[
    "pending", "running", "waiting", "parked", "succeeded", "failed", "cancelled", "timed_out", "continued", "damaged"
]
_SECRET_FIELDS = ("nonce", "seed", "digest", "at", "run")
"""Fields of events that are not shown: what keys are made of, and what stands beside the fields."""
_PLAIN = frozenset({str, int, bool, float, type(None)})
PAYLOAD_BYTES_MAX = 64 * 1024
"""Larger payloads of events are not in a history; each can be asked for by itself."""
PayloadBytes = Annotated[int, Meta(ge=0, le=PAYLOAD_BYTES_MAX)]


# -- What is asked for ------------------------------------------------------------------------------------------


class StartRun(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run to start."""

    workflow: Name
    """The name of the workflow."""
    arguments: dict[str, Json] | list[Json] | None = None
    """By name, or in a list. They are checked against the schema that workers have described."""
    version: int | None = None
    """The newest version unless given."""
    id: RunId | None = None
    """The same id again is the same run. Without one, the header `Idempotency-Key` makes it; without that, the server
    does."""
    on_conflict: Literal["attach", "attach_open", "reject", "replace"] = "attach"
    """What to do when the id is taken: give that run, give it if it has not ended, refuse, or take its place."""
    timeout: Seconds | None = None
    """Seconds that the run may take as a whole."""
    tags: dict[str, str] | None = None
    headers: dict[str, str] | None = None
    queue: Name | None = None
    key: str | None = None
    """Its key in the queue."""
    priority: int | None = None
    delay: Seconds | None = None
    """Seconds from now at which it is to begin."""
    start_at: Instant | None = None
    begin_within: Seconds | None = None
    """From when it is due: else it fails, and no code of it runs."""
    """The instant instead."""


class RunsQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which runs."""

    status: list[Status] = []
    """May be given several times."""
    workflow: Name | None = None
    tag: list[str] = []
    """`name=value`; may be given several times, and all of them count."""
    id_prefix: str | None = None
    since: Instant | None = None
    """Created at this instant or later."""
    until: Instant | None = None
    """Created before this instant."""
    waiting_for: str | None = None
    """The name of a signal, an ask or an approval, or the id of a run; `@timer` for what a timer will wake."""
    error: str | None = None
    """The class of the exception that it failed with."""
    queue: str | None = None
    roots_only: bool = False
    """No child runs."""
    internal: bool = False
    """Include runs that the engine makes for itself, such as chunks of batches."""

    def filters(self) -> Filters:
        """As the engine takes them."""
        return Filters(
            status=self.status or None,
            workflow=self.workflow,
            tags=tags_of(self.tag),
            id_prefix=self.id_prefix,
            since=self.since,
            until=self.until,
            waiting_for=self.waiting_for,
            error=self.error,
            queue=self.queue,
            roots_only=self.roots_only,
            internal=self.internal,
        )


class RunsPageQuery(RunsQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which runs, and which page of them."""

    order: Literal["-created_at", "created_at"] = "-created_at"
    """Newest first, or oldest first."""
    limit: Limit = 100
    after: str | None = None
    """`next` or `previous` of another page with the same parameters."""


class RunsFollowQuery(RunsQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which runs to follow."""

    limit: Limit = 100
    """The newest so many."""


class FollowQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """From where to follow a run."""

    after: str = ""
    """The id of the last message that is known already; the header `Last-Event-ID` goes before it."""
    stream: list[Name] = []
    """Follow these streams too."""
    payload_bytes: PayloadBytes = PAYLOAD_BYTES_MAX
    """Payloads of events with more bytes are left out, and `{"[large]": bytes}` says so in their place."""


class StreamQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """From where to follow a stream."""

    after: str = ""
    """The position of the last item that is known already, or the id of its message; the header `Last-Event-ID` goes
    before it."""


class RunsCountQuery(RunsQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which runs to count, and up to which number."""

    limit: int = 10_000


class HistoryQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which part of a history."""

    after: Seq = -1
    """The number of the last event that is known already."""
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 1000
    """At most so many; fewer come when they are large, and `next` says whether there are more."""
    payload_bytes: PayloadBytes = PAYLOAD_BYTES_MAX
    """Payloads with more bytes are left out, and `{"[large]": bytes}` says so in their place."""


class StartIfAbsent(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The run that a message creates, in the same transaction, if none has the id in the path."""

    workflow: Name
    """The name of the workflow."""
    arguments: dict[str, Json] | list[Json] | None = None
    """By name, or in a list. They are checked against the schema that workers have described."""
    version: int | None = None
    """The newest version unless given."""
    headers: dict[str, str] | None = None


class SendSignal(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A signal to send."""

    payload: Json = None
    key: Key | None = None
    """The same key again, for this run and name, is the same signal; the header `Idempotency-Key` unless given."""
    start: StartIfAbsent | None = None
    """Create the run if there is none."""


class AskRun(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to ask a run."""

    body: Json = None
    key: Key | None = None
    """The same key again, for this run and name, is the same ask; the header `Idempotency-Key` unless given."""
    wait: Seconds = 30.0
    """Seconds to wait for the answer, up to a limit of the server."""
    start: StartIfAbsent | None = None
    """Create the run if there is none."""


class Decide(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A decision."""

    form: Json = None
    """What the person filled in."""
    comment: Text = ""
    request: Key | None = None
    """The id of the request; the oldest open one of this name unless given."""
    by: Name | None = None
    """Who decides. Only a caller that needs no key may say so; else it is the owner of the key."""


class Reasoned(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why it is done."""

    reason: Text = ""


class SkipStep(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which step to skip."""

    call: Key | None = None
    """As the history calls it; may be left out if only one is in flight."""
    result: Json | UnsetType = UNSET
    """What the step is to have returned; without, the workflow gets `StepSkipped`."""


class ForkRun(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to fork a run."""

    at: str | int | None = None
    """The call, or the number of the event, that is not copied, nor anything behind it."""
    set: dict[str, Json] | None = None
    """Results of steps, by name or call."""
    input: dict[str, Json] | None = None
    """Other arguments of the workflow, by name."""
    version: int | None = None
    id: RunId | None = None
    """Of the new run. The same id again is the same fork; the header `Idempotency-Key` makes one unless given."""
    reason: Text = ""


class Purge(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which runs to delete for good."""

    older_than: Seconds = 3600.0
    """Seconds since they ended."""
    status: list[Status] = []
    workflow: Name | None = None
    tags: dict[str, str] | None = None
    id_prefix: str | None = None
    since: Instant | None = None
    until: Instant | None = None
    error: str | None = None
    queue: str | None = None
    limit: int = 1000
    dry_run: bool = False
    """Only say what would be deleted."""


# -- What is answered -------------------------------------------------------------------------------------------


class Started(Struct, frozen=True):
    """A run that was started, now or by an earlier request with the same id or key."""

    id: str


class WaitView(Struct, frozen=True):
    """One thing that a run waits for."""

    kind: Literal["timer", "signal", "retry", "limit", "child", "approval", "promise", "ask"]
    name: str
    until: datetime | None
    """When the wait ends by itself."""
    detail: str


class FailureView(Struct, frozen=True):
    """What a run or a step failed with."""

    type: str
    """The class, with its module."""
    error: str
    """The class of what went wrong: of a `StepFailed` that of the exception of the step. Runs are found by it."""
    message: str
    notes: list[str]
    cause: FailureView | None
    traceback: str
    """Only of one run; empty in lists."""


class RunView(Struct, frozen=True, kw_only=True):
    """One run."""

    id: str
    workflow: str
    version: int
    status: Status
    root_id: str
    parent_id: str | None
    number: int
    """Its place in its tree; 0 for the root."""
    waits: list[WaitView]
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None
    wake_at: datetime | None
    """When a worker should look at it."""
    timeout_at: datetime | None
    """Its deadline; of a run that no worker has begun, what it would be if one began it when it was due."""
    begin_by: datetime | None
    """When a worker must have begun it: else it fails."""
    worker: str
    """The session of the worker that runs it; empty if none does."""
    attempts: int
    """Take-overs after an interruption since the last progress."""
    tags: dict[str, str]
    reason: str
    """Why it is parked or was cancelled."""
    failure: FailureView | None
    approvals: list[str]
    """The calls of the requests that wait for a decision."""
    queue: str
    queue_key: str


class RunsPage(Struct, frozen=True):
    """A page of runs."""

    items: list[RunView]
    next: str | None
    """Give it as `after` to get the next page."""
    previous: str | None


class CountView(Struct, frozen=True):
    """How many there are."""

    count: int
    at_least: bool
    """Whether counting stopped at its limit."""


class WhyView(Struct, frozen=True):
    """What a run waits for, or how it ended."""

    id: str
    status: Status
    why: str
    """One sentence."""


class EventView(Struct, frozen=True):
    """One fact of a journal."""

    seq: int
    """Its number in the journal of its tree."""
    at: datetime
    run_id: str
    type: str
    data: dict[str, Json]
    """Its fields; payloads as JSON."""
    words: str = ""
    """What happened, in one sentence."""


class HistoryView(Struct, frozen=True):
    """A part of a history."""

    items: list[EventView]
    next: int | None
    """Give it as `after` to get what follows; null if this is all."""
    position: str = ""
    """Give it as `after` to follow the run behind these events."""


class RunsList(Struct, frozen=True):
    """Runs."""

    items: list[RunView]


class ResultView(Struct, frozen=True):
    """How a run ended."""

    id: str
    status: Status
    result: Json
    """What it returned, if it succeeded."""
    failure: FailureView | None
    reason: str


class NotEnded(Struct, frozen=True):
    """The run has not ended; ask again."""

    id: str
    status: Status
    why: str


class AnswerView(Struct, frozen=True):
    """What a run answered to an ask."""

    key: str
    answer: Json
    failure: FailureView | None
    """If the answer is an error."""


class NotAnswered(Struct, frozen=True):
    """The ask is durable and has no answer yet: `GET /runs/{id}/asks/{name}/{key}` waits for it."""

    key: str
    why: str


class DecisionView(Struct, frozen=True):
    """The decision that counts: the first one."""

    name: str
    approved: bool
    by: str
    at: datetime
    comment: str
    form: Json
    is_yours: bool
    """Whether it says what you have decided; else another person was first."""


class OutcomeView(Struct, frozen=True):
    """What became of one of many runs."""

    id: str
    workflow: str
    status: Status
    """What it was before."""
    done: bool
    error: str
    """The name of the error, if it was not done."""
    detail: str


class Outcomes(Struct, frozen=True):
    """What became of many runs."""

    items: list[OutcomeView]


class PurgeView(Struct, frozen=True):
    """What was found, and what was deleted."""

    found: int
    deleted: int
    oldest: datetime | None
    newest: datetime | None
    counts: dict[str, int]


class PublishedView(Struct, frozen=True):
    """What a run shows of itself."""

    id: str
    fields: dict[str, Json]


class SetAsideView(Struct, frozen=True):
    """A message that the code of a run could not read."""

    id: str
    run_id: str
    kind: Literal["signal", "decision", "promise"]
    name: str
    reason: str
    at: datetime
    value: Json


class SetAsideList(Struct, frozen=True):
    """Messages that could not be read."""

    items: list[SetAsideView]


# -- From values of ours ----------------------------------------------------------------------------------------


def run_view(run: Run, *, with_traceback: bool = False) -> RunView:
    """A run on the wire."""
    return RunView(
        id=run.id,
        workflow=run.workflow,
        version=run.version,
        status=run.status.value,
        root_id=run.root_id,
        parent_id=run.parent_id,
        number=run.number,
        waits=[_wait_view(wait) for wait in run.waits],
        created_at=instant_of(run.created_at),
        updated_at=instant_of(run.updated_at),
        finished_at=when(run.finished_at),
        wake_at=when(run.wake_at),
        timeout_at=when(run.timeout_at),
        begin_by=when(run.begin_by),
        worker=run.owner,
        attempts=run.attempts,
        tags=run.tags,
        reason=run.reason,
        failure=failure_view(run.failure, with_traceback=with_traceback),
        approvals=[request.call for request in run.approvals],
        queue=run.queue,
        queue_key=run.queue_key,
    )


def runs_page(page: Page[Run]) -> RunsPage:
    """A page of runs on the wire."""
    return RunsPage([run_view(run) for run in page], page.next, page.previous)


def failure_view(failure: Failure | None, *, with_traceback: bool) -> FailureView | None:
    """A failure on the wire."""
    if failure is None:
        return None
    cause = failure_view(failure.cause, with_traceback=with_traceback)
    traceback = failure.traceback if with_traceback else ""
    return FailureView(failure.type, failure.error, failure.message, list(failure.notes), cause, traceback)


def _wait_view(wait: RunWait) -> WaitView:
    return WaitView(wait.kind.value, wait.name, when(wait.until_at), wait.detail)


def event_view(seq: int, event: AnyEvent, root_id: str, *, payload_bytes: int = PAYLOAD_BYTES_MAX) -> EventView:
    """An event on the wire, without payloads of more bytes than these."""
    fields = {}
    for name in _fields_of(type(event)):
        value = getattr(event, name)
        # Almost all are plain, and a history has many.
        if type(value) in _PLAIN or (value := _shown(value, payload_bytes)) is not UNSET:
            fields[name] = value
    run_id, words = child_id(root_id, event.run), described(event)
    return EventView(seq, instant_of(event.at), run_id, type(event).__name__, fields, words)


def payload_size(event: AnyEvent, *, payload_bytes: int) -> int:
    """How many bytes the payloads have that are shown of an event."""
    size = 0
    for payload in payloads_of(event):
        if not isinstance(payload.v, UnsetType) and (own := len(bytes(payload.v))) <= payload_bytes:
            size += own
    return size


@cache
def _fields_of(kind: type[Event]) -> tuple[str, ...]:
    return tuple(name for name in kind.__struct_fields__ if name not in _SECRET_FIELDS)


def _shown(value: Any, payload_bytes: int) -> Any:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Payload):
        size = 0 if isinstance(value.v, UnsetType) else len(bytes(value.v))
        return value.v if size <= payload_bytes else {"[large]": size}
    if isinstance(value, tuple):
        return [_shown(each, payload_bytes) for each in value]
    if isinstance(value, Struct) and not isinstance(value, Failure):
        # Events inside a snapshot.
        return {
            name: _shown(each, payload_bytes)
            for name, each in structs.asdict(value).items()
            if name not in ("nonce", "seed", "digest")
        }
    return to_builtins(value)
