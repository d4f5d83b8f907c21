"""Runs on the wire."""

from __future__ import annotations

from typing import Annotated, Literal, cast

from msgspec import UNSET, Meta, Struct, UnsetType

from outlive._kernel.client.changing import ChangeOptions
from outlive._kernel.client.finding import IDS_MAX, Filters, Page
from outlive._kernel.client.signal_many import SIGNALS_MAX
from outlive._kernel.client.start_many import STARTS_MAX
from outlive._kernel.journal.event import UNREAD_MAX
from outlive._kernel.model.run import GroupField
from outlive._kernel.values.count import Count
from outlive._kernel.values.dead_letter import DeadLetter
from outlive._kernel.values.event import PAYLOAD_BYTES_MAX, Event
from outlive._kernel.values.failure import Failure
from outlive._kernel.values.inbox import UnreadMessage
from outlive._kernel.values.outcome import RunOutcome
from outlive._kernel.values.run import Run, Status
from outlive.errors.advice import Advice
from outlive.http.problem import ProblemBody
from outlive.http.wire.page import Instant, Json, Key, Limit, Name, RunId, Seq, Span, Text, tags_of
from outlive.http.wire.start import Start

PayloadBytes = Annotated[int, Meta(ge=0, le=PAYLOAD_BYTES_MAX)]


# -- What is asked for ------------------------------------------------------------------------------------------


class StartRun(Start, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run to start."""

    workflow: Name
    """The name of the workflow."""
    arguments: dict[str, Json] | list[Json] | None = None
    """By name, or in a list. They are checked against the schema that workers have described."""
    version: int | None = None
    """The newest version unless given."""


class StartRuns(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Runs to start."""

    starts: Annotated[list[StartRun], Meta(min_length=1, max_length=STARTS_MAX)]


class WhichRuns(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which runs; what else narrows is in the requests that take it."""

    status: list[Status] = []
    """Any of these."""
    workflow: Name | None = None
    ids: Annotated[list[str], Meta(max_length=IDS_MAX)] = []
    """One of these."""
    version: int | None = None
    """The version of the workflow."""
    parent_id: str | None = None
    """The run that started them as its children."""
    id_prefix: str | None = None
    since: Instant | None = None
    """Created at this instant or later."""
    until: Instant | None = None
    """Created before this instant."""
    finished_since: Instant | None = None
    """Ended at this instant or later."""
    finished_until: Instant | None = None
    """Ended before this instant."""
    waiting_for: str | None = None
    """The name of a signal, an ask or an approval, or the id of a run; `@timer` for what a timer will wake."""
    error: str | None = None
    """The class of the exception that it failed with."""
    queue: str | None = None


class RunsQuery(WhichRuns, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which runs."""

    tag: list[str] = []
    """`name=value`; may be given several times, and all of them count."""
    roots_only: bool = False
    """No child runs."""
    internal: bool = False
    """Include runs that the engine makes for itself, such as chunks of batches."""

    def filters(self) -> Filters:
        """The filters in the form of the engine."""
        found = {name: getattr(self, name) for name in Filters.__annotations__ if name not in ("tags", "status", "ids")}
        several = {"status": self.status or None, "ids": self.ids or None}
        return cast("Filters", found | several | {"tags": tags_of(self.tag)})


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


class RunsCountByQuery(RunsCountQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which runs to count, up to which number, and in which groups."""

    by: GroupField = "status"


class InboxQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many messages."""

    limit: Annotated[int, Meta(ge=1, le=UNREAD_MAX)] = 100


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
    on_conflict: Literal["attach", "attach_open"] = "attach"
    """When a run with the id has ended: refuse the message, or begin another run for it under the id."""


class SendSignal(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A signal to send."""

    payload: Json = None
    key: Key | None = None
    """The key of the signal: with the same key, for this run and name, it is the same signal; the header
    `Idempotency-Key` unless given."""
    start: StartIfAbsent | None = None
    """Create the run if there is none."""


class SignalTo(SendSignal, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A signal and the run that it is for."""

    run_id: Name
    name: Name


class SendSignals(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Signals to send."""

    signals: Annotated[list[SignalTo], Meta(min_length=1, max_length=SIGNALS_MAX)]


class AskRun(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The question to a run."""

    body: Json = None
    key: Key | None = None
    """The key of the ask: with the same key, for this run and name, it is the same ask; the header `Idempotency-Key`
    unless given."""
    wait: Span = 30.0
    """How long to wait for the answer, up to a limit of the server."""
    start: StartIfAbsent | None = None
    """Create the run if there is none."""


class Decide(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A decision."""

    form: Json = None
    """The form that the person filled in."""
    comment: Text = ""
    request: Key | None = None
    """The id of the request; the oldest open one of this name unless given."""
    by: Name | None = None
    """The person who decides. Only a caller that needs no key may say so; else it is the owner of the key."""


class Reasoned(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why it is done."""

    reason: Text = ""


class Attributed(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why it is done, and who does it."""

    reason: Text = ""
    by: Name | None = None
    """The person who does it. Only a caller that needs no key may say so; else it is the owner of the key."""


class ChangeRun(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The facts about an open run to change."""

    tags: dict[str, str | None] | None = None
    """Tags beside its own; null removes one."""
    timeout: Span | UnsetType | None = UNSET
    """How long it may take: from now on, or from its beginning if no worker has begun it; null for as long as it
    likes."""
    queue: str | None = None
    """Another queue, `default` for none: only of a run that no worker has begun, as the next four."""
    key: str | None = None
    priority: int | None = None
    delay: Span | None = None
    """How long from now it is to begin."""
    start_at: Instant | None = None
    """The instant instead."""
    reason: Text = ""

    def changes(self) -> ChangeOptions:
        """The changes in the form of the engine."""
        return cast("ChangeOptions", {name: getattr(self, name) for name in ChangeOptions.__annotations__})


class SkipStep(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which step to skip."""

    call: Key | None = None
    """The name of the call in the history; may be left out if only one is in flight."""
    result: Json | UnsetType = UNSET
    """The result of the step for the workflow; without it, the workflow gets `StepSkippedError`."""


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
    """The id of the new run: with the same id it is the same fork; the header `Idempotency-Key` makes one unless
    given."""
    reason: Text = ""


class PurgeRuns(WhichRuns, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which runs to delete for good. At least one filter."""

    older_than: Span = 3600.0
    """How long ago they ended at least."""
    tags: dict[str, str] | None = None
    limit: int = 1000
    dry_run: bool = False
    """Only say what would be deleted."""


# -- What is answered -------------------------------------------------------------------------------------------


class Started(Struct, frozen=True):
    """A run that was started, now or by an earlier request with the same id or key."""

    id: str


class StartOutcome(Struct, frozen=True):
    """The answer for one of many starts."""

    id: str
    problem: ProblemBody | None = None
    """Why it was not started: its id is taken."""


class StartedRuns(Struct, frozen=True):
    """Many starts."""

    items: list[StartOutcome]
    """An answer for each, in the order of the starts."""


class SignalOutcome(Struct, frozen=True):
    """The answer for one of many signals."""

    run_id: str
    name: str
    problem: ProblemBody | None = None
    """Why it was not sent: its run is not there, has ended or is full."""


class SentSignals(Struct, frozen=True):
    """Many signals."""

    items: list[SignalOutcome]
    """An answer for each, in the order of the signals."""


class RunsPage(Struct, frozen=True):
    """A page of runs."""

    items: list[Run]
    next: str | None
    """Give it as `after` to get the next page."""
    previous: str | None


class RunCounts(Struct, frozen=True):
    """How many runs each group has."""

    groups: dict[str, Count]
    """By the name of the status, workflow or queue; runs without a queue are in `default`."""


class WhyView(Struct, frozen=True):
    """The wait of a run, or how it ended."""

    id: str
    status: Status
    why: str
    """One sentence."""
    advice: tuple[Advice, ...] = ()
    """The verbs that help next, as data."""
    next: str = ""
    """The advice as requests."""


class HistoryView(Struct, frozen=True):
    """A part of a history."""

    items: list[Event]
    next: int | None
    """Give it as `after` to get what follows; null if this is all."""
    position: str = ""
    """Give it as `after` to follow the run behind these events."""


class RunsList(Struct, frozen=True):
    """Runs."""

    items: list[Run]


class ResultView(Struct, frozen=True):
    """How a run ended."""

    id: str
    status: Status
    result: Json
    """The result of the run, if it succeeded."""
    error: Failure | None
    reason: str


class NotEnded(Struct, frozen=True):
    """The run has not ended; ask again."""

    id: str
    status: Status
    why: str
    advice: tuple[Advice, ...] = ()
    """The verbs that help it go on."""


class AnswerView(Struct, frozen=True):
    """The answer of a run to an ask."""

    key: str
    answer: Json
    error: Failure | None
    """If the answer is an error."""


class NotAnswered(Struct, frozen=True):
    """The ask is durable and has no answer yet: `GET /runs/{id}/asks/{name}/{key}` waits for it."""

    key: str
    why: str
    advice: tuple[Advice, ...] = ()
    """The verbs that help the run go on."""


class Outcomes(Struct, frozen=True):
    """The outcomes of many runs."""

    items: list[RunOutcome]


class PublishedView(Struct, frozen=True):
    """The object that a run shows."""

    id: str
    fields: dict[str, Json]


class UnreadList(Struct, frozen=True):
    """Messages that a run has not read."""

    items: list[UnreadMessage]


class DeadLettersList(Struct, frozen=True):
    """Messages that could not be read."""

    items: list[DeadLetter]


# -- From values of ours ----------------------------------------------------------------------------------------


def runs_page(page: Page[Run]) -> RunsPage:
    """A page of runs on the wire."""
    return RunsPage(page, page.next, page.previous)
