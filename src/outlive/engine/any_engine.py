"""`AnyEngine`: what an engine and a connection are to a program. Each verb is declared here, and here only.

A program that takes an `AnyEngine` works with either. `Engine` carries the verbs out in its store, and
`outlive.connect` through a server; `engine.sync` has them without `await`.
"""

from __future__ import annotations

import asyncio
import builtins
import os
from collections.abc import AsyncIterable, Callable, Coroutine, Generator, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar, TypeVarTuple, Unpack, overload

from msgspec import UNSET

from outlive._features.batches.batch import Batch
from outlive._features.batches.starting import BatchOptions
from outlive._features.batches.values import BatchInfo, BatchItem
from outlive._features.bulk.verbs import BulkOperation, BulkProgress
from outlive._features.bulk.workflow import BulkVerb
from outlive._features.flows.values import Flow, FlowRevision
from outlive._features.flows.verbs import StoredFlow
from outlive._features.retention.values import Purge
from outlive._features.schedules.schedule import ScheduleSpec
from outlive._features.schedules.values import Schedule
from outlive._features.schedules.verbs import BackfillOverlap, TriggerOverlap
from outlive._kernel.client.asks import AskOptions
from outlive._kernel.client.bulk import BulkFilters, TreeFilters, WorkflowFilters
from outlive._kernel.client.changing import ChangeOptions
from outlive._kernel.client.contract import ApprovalVerbs, AskVerbs, DeadLetterVerbs, InboxVerbs, LinkVerbs
from outlive._kernel.client.finding import COUNT_MAX, Filters, Order, Page, Statuses
from outlive._kernel.client.handle import RunHandle, RunVerbs
from outlive._kernel.client.recovery import Incomplete
from outlive._kernel.client.signal_many import OneSignal, SignalCall
from outlive._kernel.client.start_many import OneStart, WorkflowCall
from outlive._kernel.client.start_options import MessageConflict, OwnStartOptions, StartOptions
from outlive._kernel.define.step import Step
from outlive._kernel.define.workflow import Startable, Workflow
from outlive._kernel.model import given
from outlive._kernel.model.queue import Queue
from outlive._kernel.model.retention import KEEP_SECONDS_MIN
from outlive._kernel.model.run import GroupField
from outlive._kernel.model.under_way import StepUnderWay
from outlive._kernel.values.count import Count
from outlive._kernel.values.event import Event
from outlive._kernel.values.outcome import RunOutcome
from outlive._kernel.values.run import Run
from outlive.engine.contract import (
    AuditVerbs,
    EventVerbs,
    KeyVerbs,
    PromiseVerbs,
    QueueVerbs,
    TaskVerbs,
    WorkerVerbs,
    WorkflowVerbs,
)
from outlive.engine.health import Health
from outlive.engine.sync import Blocking, BlockingEngine, Verb

if TYPE_CHECKING:
    from outlive._features.flows.document.model import Document
    from outlive._features.flows.flow import FlowWorkflow

R = TypeVar("R")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class BatchVerbs(Protocol):
    """`engine.batches`."""

    async def list(
        self,
        *,
        limit: int = 20,
        after: str | None = None,
        status: Statuses | None = None,
        tags: Mapping[str, str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Page[BatchInfo]:
        """See `Batches`."""

    def get(self, batch_id: str) -> Batch[Any]:
        """See `Batches`."""

    async def retry(self, batch_id: str, *, id: str | None = None) -> Batch[Any]:
        """See `Batches`."""


class ScheduleVerbs(Protocol):
    """`engine.schedules`."""

    async def list(self, *, after: str = "", limit: int = 100) -> builtins.list[Schedule]:
        """See `Schedules`."""

    async def get(self, name: str) -> Schedule:
        """See `Schedules`."""

    async def set(
        self, name: str, schedule: ScheduleSpec, workflow: Workflow[..., Any] | Step[..., Any] | str | None = None
    ) -> Schedule:
        """See `Schedules`."""

    async def pause(self, name: str, *, by: str = "", reason: str = "") -> None:
        """See `Schedules`."""

    async def resume(self, name: str) -> None:
        """See `Schedules`."""

    async def trigger(
        self, name: str, *, overlap: TriggerOverlap | None = None, id: str | None = None
    ) -> RunHandle[Any]:
        """See `Schedules`."""

    async def backfill(
        self, name: str, start: datetime, end: datetime, *, overlap: BackfillOverlap | None = None
    ) -> int:
        """See `Schedules`."""

    async def delete(self, name: str) -> None:
        """See `Schedules`."""


class BulkVerbs(Protocol):
    """`engine.bulk`."""

    async def start(
        self,
        verb: BulkVerb,
        *,
        id: str | None = None,
        by: str = "",
        reason: str = "",
        older_than: given.Span = KEEP_SECONDS_MIN,
        **filters: Unpack[TreeFilters],
    ) -> BulkOperation:
        """See `BulkOperations`."""

    def get(self, operation_id: str) -> BulkOperation:
        """See `BulkOperations`."""

    async def list(self, *, limit: int = 20, after: str | None = None) -> Page[BulkProgress]:
        """See `BulkOperations`."""


class FlowVerbs(Protocol):
    """`engine.flows`."""

    async def apply(
        self,
        document: str | Path | Document | FlowWorkflow,
        *,
        by: str = "",
        reason: str = "",
        expected: int | None = None,
    ) -> Flow:
        """See `Flows`."""

    async def save_draft(
        self,
        document: str | Path | Document | FlowWorkflow,
        *,
        by: str = "",
        reason: str = "",
        expected: int | None = None,
    ) -> Flow:
        """See `Flows`."""

    async def publish(self, name: str, *, by: str = "", reason: str = "", expected: int | None = None) -> Flow:
        """See `Flows`."""

    async def discard_draft(self, name: str) -> Flow:
        """See `Flows`."""

    async def rollback(
        self, name: str, *, to: int | None = None, by: str = "", reason: str = "", expected: int | None = None
    ) -> Flow:
        """See `Flows`."""

    async def enable(self, name: str) -> Flow:
        """See `Flows`."""

    async def disable(self, name: str, *, by: str = "", reason: str = "") -> Flow:
        """See `Flows`."""

    async def delete(
        self,
        name: str,
        *,
        force: bool = False,
        runs: bool = False,
        by: str = "",
        reason: str = "",
        expected: int | None = None,
    ) -> None:
        """See `Flows`."""

    async def start(
        self,
        name: str,
        input: Any = None,
        *,
        vars: Mapping[str, Any] | None = None,  # noqa: A002  # As documents call them.
        overrides: Mapping[str, Any] | None = None,
        revision: int | None = None,
        **options: Unpack[StartOptions],
    ) -> RunHandle[Any]:
        """See `Flows`."""

    async def list(self) -> builtins.list[Flow]:
        """See `Flows`."""

    async def info(self, name: str) -> Flow:
        """See `Flows`."""

    async def get(self, name: str, *, revision: int | None = None, draft: bool = False) -> StoredFlow:
        """See `Flows`."""

    async def history(self, name: str) -> builtins.list[FlowRevision]:
        """See `Flows`."""

    async def document_of(self, run: Run) -> tuple[Document, str]:
        """See `Flows`."""


class AnyEngine(RunVerbs, Protocol):
    """An engine, or a connection to one: a program that takes it works with either."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop that entered it; None while it is not entered."""

    # -- Starting -----------------------------------------------------------------------------------------------

    @overload
    async def start(
        self, workflow: Startable[*Ts, R], *args: *Ts, **options: Unpack[OwnStartOptions]
    ) -> RunHandle[R]: ...
    @overload
    async def start(
        self,
        workflow: str,
        arguments: Mapping[str, Any] | Sequence[Any] | None = None,
        *,
        version: int | None = None,
        **options: Unpack[StartOptions],
    ) -> RunHandle[Any]: ...
    async def start(  # type: ignore[misc]  # No *Ts is compared.
        self, workflow: Any, *args: Any, version: int | None = None, **options: Unpack[OwnStartOptions]
    ) -> RunHandle[Any]:
        """Start a run; it is durable when this returns.

            run = await engine.start(order, 7)
            run = await engine.start("order", {"id": 7}, version=3)
            run = await engine.start(charge, 1200, id="charge-7")

        Args:
            workflow: a workflow, or the name of one whose code this program does not have. No worker has to be up. A
                step is started as a run of this one step, which has its retries; by its name if it says `by_name=True`.
            args: the arguments of the workflow; arguments by name are bound before: `workflow.bind(...)`. After a name
                they are one value of plain JSON: by name, `{"id": 7}`, or in a list. They are checked against the
                schema that workers have described.
            version: of a workflow that is given by its name; the newest unless given.
            id: the same id again is the same run; made up unless given.
            on_conflict: when the id is taken: `attach` gives that run (if it is one of this workflow), `attach_open`
                does so if it has not ended, and else starts a new one, which gets the signals that the run before has
                not read, and knows their keys. `reject` raises `RunExistsError`, and `reject_open` does so if it has
                not ended. `replace` ends it at once, without its clean-up, and `cancel_open` cancels it and waits
                until it has ended, its undo steps with it; then they start a new one. A run whose id is taken like
                this stays as `<id>~old1`.
            timeout: how long the run may take as a whole, from when a worker begins it.
            tags: text for searching.
            headers: text for the run and all that it starts, in `current_run().headers` and `current_step().headers`.
            queue: where it waits for its turn, that of the workflow unless given; "default" for no queue.
            key: keys of a queue have their turns one after the other, and at most `per_key` runs each at once.
            priority: the higher one goes first, among runs with the same key, in a queue with priorities.
            slots: how many slots of the queue it takes, 1 unless given: of `concurrency` and `per_worker`.
            delay: how long from now it is to begin, and gets in line if it has a queue.
            start_at: the instant instead.
            begin_within: how long after it is due a worker may begin it. Else it fails with `NotBegunError`, and no
                code of it runs.
            connection: your own connection to the PostgreSQL database that the store lies in, with a transaction open
                on it: the run is created in that transaction, and nothing of it runs before you commit. It is for a
                workflow that is in this program, on an engine, and so are the two below.
            debounce: starts of this workflow with the same key that come one soon after the other are one run, with the
                arguments of the last.
            throttle: starts with the same key within a while are the run that the first of them has started.

        Raises:
            UnknownWorkflowError: no worker has described the name; names that are near are in the message.
            InvalidArgumentError: the arguments do not fit.
        """

    async def start_many(
        self, starts: Iterable[WorkflowCall | OneStart], **options: Unpack[StartOptions]
    ) -> builtins.list[RunHandle[Any]]:
        """Start many runs in one commit; all of them are durable when this returns.

            await engine.start_many([(order, each) for each in orders], queue="orders")
            await engine.start_many([{"start": (order, each), "id": f"order-{each.id}"} for each in orders])

        Each is a run of its own, with the same promises as one from `start`; `start_batch` makes one run with many
        items. Nothing is started if one of them cannot work, and the error says which: `starts[3].timeout`. Middleware
        is around the start of each.

        Args:
            starts: at most 1,000. Each is a workflow with its arguments: `order.bind(7)`, `(order, 7)`, or
                `("order", {"id": 7})` by its name. With options of its own it is a dictionary of these, with the
                workflow as `"start"`.
            id: not here: each run has an id of its own, in its start.
            on_conflict, timeout, tags, headers, queue, key, priority, slots, delay, start_at, begin_within: as for
                `start`, for all that do not say otherwise.

        Raises:
            StartsRefusedError: ids were taken, and `on_conflict` gives no run for them. It has the `ids` of all, and
                in `refused` the error of each that was not started, by its place. The others were started.
            InvalidArgumentError: one of them cannot work; nothing was started.
            UnknownWorkflowError: no worker has described one of the names; nothing was started.
        """

    def get(self, run_id: str) -> RunHandle[Any]:
        """A handle of a run; whether there is such a run shows when it is used."""

    @overload
    async def start_batch(
        self,
        work: Callable[[T], Coroutine[object, None, R]],
        rows: Iterable[T] | AsyncIterable[T],
        **options: Unpack[BatchOptions],
    ) -> Batch[R]: ...
    @overload
    async def start_batch(
        self,
        work: str,
        rows: Iterable[Any] | AsyncIterable[Any],
        *,
        version: int | None = None,
        **options: Unpack[BatchOptions],
    ) -> Batch[Any]: ...
    async def start_batch(
        self, work: Any, rows: Any, *, version: int | None = None, **options: Unpack[BatchOptions]
    ) -> Batch[Any]:
        """Call a step or a workflow for each of many rows, each durable on its own; durable when this returns.

        Args:
            work: takes one argument, the row; or the name of a workflow that this program does not have. A connection
                takes workflows only.
            rows: any iterable, sync or async; read once, a few hundred at a time. A connection sends all of them in one
                request.
            version: of a workflow that is given by its name; the newest unless given.
            concurrency: how many items are under way at once, in all workers together; 20 unless given.
            id: the same id again is the same batch, and its rows are not read again; made up unless given.
            tags: text for searching.
            headers: as of `start`; all items have them.
            tolerate: how many items may fail before the batch does; all of them unless given.
            queue: where items wait for their turn; that of the workflow unless given, and `"default"` for none. An item
                under way holds one slot.
            key, priority, slots: as of `start`; the same for all items.
            connection: as of `start`: the batch exists if and only if you commit.

        Raises:
            RunExistsError: the id is that of something else. InvalidArgumentError: the queue takes no such key or
                priority.
        """

    # -- Finding ------------------------------------------------------------------------------------------------

    async def list(
        self, *, order: Order = "-created_at", limit: int = 100, after: str | None = None, **filters: Unpack[Filters]
    ) -> Page[Run]:
        """A page of the runs that fit, newest first; it is a list.

        Args:
            order: `created_at` for oldest first.
            limit: how many runs a page holds, up to 1,000.
            after: `page.next` or `page.previous` of another page with the same filters and order.
            status, workflow, version, tags, ids, id_prefix, parent_id, since, until, finished_since, finished_until,
            waiting_for, error, queue, roots_only: what to narrow by.
                Several statuses may be given; `since` and `until` are about the creation of a run, `finished_since`
                and `finished_until` about its end; `error` is the name of an exception class; `waiting_for` is that
                of a signal, an ask or an approval, or the id of another run; "@timer" finds what a timer will wake;
                `queue="default"` finds runs without a queue.
            internal: include runs that the engine makes for itself.
        """

    async def info(self, run_id: str) -> Run:
        """A run as it is now. See `types.Run`.

        Raises:
            RunNotFoundError: no run has this id.
        """

    async def count(self, *, limit: int = COUNT_MAX, **filters: Unpack[Filters]) -> Count:
        """How many runs fit, with the filters of `list`. Counting ends at `limit`: then `count.at_least` is true, and
        `str(count)` ends with a plus: `10,000+`."""

    async def count_by(self, by: GroupField, *, limit: int = COUNT_MAX, **filters: Unpack[Filters]) -> dict[str, Count]:
        """How many runs fit, grouped by `status`, `workflow` or `queue`: `{"failed": 3, "succeeded": 12}`. All groups
        are counted at one moment, and a group without such runs is left out. Runs without a queue are in the group
        `default`.

        Args:
            limit: counting a group ends there, as in `count`.
            filters: those of `list`.

        Raises:
            InvalidArgumentError: there are more than 1,000 groups.
        """

    # -- What users send to runs --------------------------------------------------------------------------------

    async def signal(
        self,
        run_id: str,
        name: str,
        payload: Any = None,
        *,
        key: str | None = None,
        start: tuple[Any, ...] | None = None,
        headers: Mapping[str, str] | None = None,
        on_conflict: MessageConflict = "attach",
        connection: Any = None,
    ) -> None:
        """Send a signal to a run; it is durable when this returns, and buffered until the run asks for it.

        Args:
            key: the same key again, for this run and name, is the same signal.
            start: `(workflow, *args)`: create the run in the same transaction if there is none. `("name", arguments)`
                if its code is not here, as for `start`.
            headers: of the run that it starts, as of `start`.
            on_conflict: when the run that has the id has ended: `attach` raises, and `attach_open` begins another run
                under the id in the same transaction, which knows the keys of the messages that the runs before it
                took. So a cart or an account lives on under its id; a run before stays as `<id>~old1`.
            connection: your own connection to the PostgreSQL database that the store lies in, with a transaction open
                on it: the signal is sent if and only if you commit.

        Raises:
            RunNotFoundError, RunFinishedError, SignalTypeError, InboxFullError.
        """

    async def signal_many(self, signals: Iterable[SignalCall | OneSignal]) -> None:
        """Send many signals in one commit; all of them are durable when this returns, in their order.

            await engine.signal_many([("order-7", "paid", 1200), ("order-8", "paid", 500)])
            await engine.signal_many([{"signal": (each.order, "paid", each.cents), "key": each.id} for each in events])

        Nothing is sent if one of them cannot work, and the error says which: `signals[3].payload`.

        Args:
            signals: at most 1,000. Each is the id of a run, a name and the payload, which may be left out. With
                options of its own, `key`, `start` and `headers` as for `signal`, it is a dictionary of these, with that
                as `"signal"`.

        Raises:
            SignalsRefusedError: some runs are not there, have ended or are full. It has the error of each signal that
                was not sent in `refused`, by its place. The others were sent.
            SignalTypeError: the workflow of a run declares another type; nothing was sent.
        """

    @overload
    async def ask(self, run_id: str, name: str, body: Any = None, **options: Unpack[AskOptions]) -> Any: ...
    @overload
    async def ask(
        self, run_id: str, name: str, body: Any = None, *, reply: type[T], **options: Unpack[AskOptions]
    ) -> T: ...
    async def ask(
        self, run_id: str, name: str, body: Any = None, *, reply: Any = Any, **options: Unpack[AskOptions]
    ) -> Any:
        """Ask a run something (`outlive.asks`), and wait for its answer, which it gives exactly once.

        Args:
            options: `key`, `start`, `headers`, `timeout`; see `AskOptions`.
            reply: the type of the answer; without, it comes as plain values.

        Raises:
            AskFailedError, AskRefusedError, AskTimeoutError, RunNotFoundError, RunParkedError, InboxFullError.
        """

    # -- What operators do to runs ------------------------------------------------------------------------------

    async def cancel(
        self, run_id: str | None = None, *, reason: str = "", **filters: Unpack[TreeFilters]
    ) -> builtins.list[RunOutcome]:
        """Ask a run to stop: durable when this returns; reaches its steps and children, wherever they run.

        Its `finally` blocks run. A workflow that catches the `CancelledError` and returns has succeeded. A run that no
        worker has taken up yet ends at once, and its code never runs. Asking twice is asking once.

        Args:
            filters: instead of an id, which runs: see `retry`; open runs unless `status` says so.

        Raises:
            RunNotFoundError, RunFinishedError.
        """

    async def pause(
        self,
        run_id: str | None = None,
        *,
        workflow: str | None = None,
        all: bool = False,
        by: str = "",
        reason: str = "",
        **filters: Unpack[BulkFilters],
    ) -> builtins.list[RunOutcome]:
        """Let a run with its tree, all runs of a workflow, or everything begin nothing more; durable when this returns.

        Steps that run end, and their results are kept. No step begins, no timer fires, signals are buffered, and
        callers wait on for the result. A run of a paused workflow may be started, and waits. Workers of other processes
        are rung for the pause of a workflow, and know of it within their `poll_seconds` at the latest.

        Args:
            workflow: its name; runs of it inside the trees of others are not paused.
            all: everything in this store.
            by, reason: for `why`. Through a server, and for all verbs: `by` is the owner of the key, and another name
                is refused, except by a server that asks for no key.
            filters: pause those runs, of a workflow or of any, that fit now, one by one: see `retry`. Only `queue` is
                that queue itself: see `queues.pause`.

        Raises:
            RunNotFoundError, RunFinishedError. RunParkedError: it is parked for another reason.
        """

    async def resume(
        self,
        run_id: str | None = None,
        *,
        workflow: str | None = None,
        all: bool = False,
        **filters: Unpack[BulkFilters],
    ) -> builtins.list[RunOutcome]:
        """Let a parked run go on, for example with new code; or what was paused.

        Args:
            workflow, all: as they were paused. A run that was paused by itself stays paused.
            filters: resume the parked runs that fit, one by one: see `retry`. Only `queue` is that queue itself.

        Raises:
            RunNotFoundError, RunNotParkedError.
        """

    async def retry(
        self, run_id: str | None = None, *, reason: str = "", **filters: Unpack[TreeFilters]
    ) -> builtins.list[RunOutcome]:
        """Let a run that has failed, timed out or was cancelled go on at what failed; durable when this returns.

        The same run goes on: its id, its completed steps and its history stay. The step that failed is called again
        with all its attempts; a deadline begins again, and timers are as far away as they were. A replay of the code
        finds what failed; without the code here, a live worker that has it does this, and the caller waits for it. A
        run of a tree is retried with its whole tree.

        Args:
            reason: for the history.
            filters: instead of an id, which runs, as `list` takes them: the oldest first, at most `limit` (100) of
                them; with `dry_run=True` nothing is done. The answer has one outcome for each: its `id`, the `status`
                that it had, whether it is `done`, and else the `error`; one that refuses does not stop the others.
                This process does it, and a kill leaves the others as they are; `engine.bulk.start` is one durable
                operation.

        Raises:
            RunNotFoundError. RunNotRetriableError: it has not ended or has succeeded, its saga was rolled back, no step
            failed and the code would raise the same again, or neither this process nor a live worker has the code;
            nothing was changed.
        """

    async def fork(
        self,
        run_id: str,
        *,
        at: str | int | None = None,
        set: Mapping[str, Any] | None = None,
        input: tuple[Any, ...] | Mapping[str, Any] | None = None,
        version: int | None = None,
        id: str | None = None,
        reason: str = "",
    ) -> RunHandle[Any]:
        """Start a new run with the history of another one up to some point, edited; durable when this returns.

        The other run stays as it is, whether it is open or has ended. Completed steps of the copied history are not
        called again. What an edit changes is done again: from the first one on, a step counts as completed only if the
        code still asks for it with the same arguments. Without the code here, a live worker that has it does this, and
        the caller waits for it; `set` and `input` are plain values then.

        Args:
            at: the call that is not copied, nor anything behind it: the name of a step, its call as `history` has it
                ("charge#2"), or the number of an event; without, all but the end of the run is copied.
            set: results of steps, by name or call, of the types that the steps return.
            input: other arguments of the workflow: a tuple, or a mapping by name.
            version: another version of the workflow.
            id: of the new run; made up unless given.
            reason: for the history.

        Raises:
            RunNotFoundError, RunExistsError. RunNotForkableError: there is no such call, the code contradicts the
            history, or neither this process nor a live worker has it; nothing was written.
        """

    async def change(self, run_id: str, *, reason: str = "", **changes: Unpack[ChangeOptions]) -> None:
        """Change an open run from outside; the change is durable when this returns. A worker that has the run applies
        it at once, with everything else that the run gets.

        Args:
            tags: tags beside its own; None removes one. Of a child run too.
            timeout: how long the run may take: from now on, or from its beginning if no worker has begun it; None for
                as long as it likes. Of a root.
            queue, key, priority, delay, start_at: where and when a run begins, as of `start`; `queue="default"` for no
                queue. Only of a run that no worker has begun.
            reason: why, for the history and the audit log.

        Raises:
            RunNotFoundError: no run has this id. RunFinishedError: it has ended. RunNotChangeableError: it has begun,
                and its queue and start are settled; or it is a child. InvalidArgumentError: nothing is to be changed.
        """

    async def skip_step(self, run_id: str, call: str | None = None, *, result: Any = UNSET) -> None:
        """Let a parked run go on without calling a step that is in flight; the request is durable when this returns.

        If there is no such step, or `result` does not fit it, the run is parked again and the reason says so. An undo
        that is skipped counts as done.

        Args:
            call: which step, as `history` calls it; may be left out if only one is in flight.
            result: what the step is to have returned; without, the workflow gets `StepSkippedError`.

        Raises:
            RunNotFoundError, RunNotParkedError, RunFinishedError, UnserialisableError, InboxFullError.
        """

    # -- Looking at runs ----------------------------------------------------------------------------------------

    async def history(self, run_id: str) -> builtins.list[Event]:
        """The journal of the tree that a run belongs to, verified, oldest first. See `types.Event`.

        Payloads are plain JSON, without the fields in `redact`, which are also blacked out in failures and reasons.
        """

    async def steps(self, run_id: str, *, arguments: bool = False) -> builtins.list[StepUnderWay]:
        """The steps of a run that run now, the oldest first. See `RunHandle.steps`."""

    async def list_stuck(self, *, limit: int = 100, before: str | None = None) -> builtins.list[Incomplete]:
        """Runs that do not move and why, newest first: parked, left behind by a worker that is gone, or due while no
        live worker has their definition. `before`, the id of the last run of a page, gives the next one."""

    async def purge(
        self,
        *,
        older_than: given.Span = KEEP_SECONDS_MIN,
        archive: str | os.PathLike[str] | None = None,
        **filters: Unpack[WorkflowFilters],
    ) -> Purge:
        """Delete runs that have ended, with their children, their history and everything else of them; for good.

        A run that an open run needs stays: its starter if it was started detached, a run that it started so, a run that
        waits for it. The ids of deleted runs are free: a start with one of them starts a new run.

        Args:
            older_than: only runs that ended so long ago; an hour unless given. A shorter time is for runs of which you
                know that no caller starts them once more, waits for them, or sends a message to them twice.
            archive: a folder, or an fsspec URL, to write them to before; see `read_archive`.
            filters: which runs, as `list` takes them: the oldest first, at most `limit` (1,000) of them; with
                `dry_run=True` nothing is done. At least one.

        Raises:
            ArchiveError: the archive cannot be written; what was to be in it was not deleted.
        """

    # -- The engine itself --------------------------------------------------------------------------------------

    async def health(self) -> Health:
        """Whether this engine is ready: its store answers, its worker holds its lease, its resources are well."""

    # -- Namespaces --------------------------------------------------------------------------------------------------

    @property
    def approvals(self) -> ApprovalVerbs:
        """Approvals: list, approve, reject; and links with which a person decides without a key."""

    @property
    def promises(self) -> PromiseVerbs:
        """Settles the promises of runs: resolve, fail."""

    @property
    def asks(self) -> AskVerbs:
        """Asks that were sent before: answer waits for what the run says."""

    @property
    def inbox(self) -> InboxVerbs:
        """Messages that runs have not read: list."""

    @property
    def dead_letters(self) -> DeadLetterVerbs:
        """Messages that runs could not read: list."""

    @property
    def batches(self) -> BatchVerbs:
        """Batches that `start_batch` started: list, get, retry."""

    @property
    def workflows(self) -> WorkflowVerbs:
        """The workflows that workers can run: list."""

    @property
    def keys(self) -> KeyVerbs:
        """API keys: create, list, revoke."""

    @property
    def audit(self) -> AuditVerbs:
        """The log of the actions of people and keys, from the store: list, verify."""

    @property
    def schedules(self) -> ScheduleVerbs:
        """When workflows start by themselves: list, set, pause, resume, trigger, backfill, delete."""

    @property
    def bulk(self) -> BulkVerbs:
        """One verb for many runs, in the background: start, get, list."""

    @property
    def tasks(self) -> TaskVerbs:
        """The tasks of remote steps, for programs that take them: claim, heartbeat, complete, fail."""

    @property
    def queues(self) -> QueueVerbs:
        """Where runs wait for their turn: list, stats, set, reset, pause, resume, drain."""

    @property
    def workers(self) -> WorkerVerbs:
        """Which processes work on the store: list."""

    @property
    def events(self) -> EventVerbs:
        """Sends events, each of which starts one run of every workflow that has a trigger for it."""

    @property
    def flows(self) -> FlowVerbs:
        """The library of flows in the store: apply, get, list, history, rollback, drafts, enable, disable, delete."""

    @property
    def sync(self) -> SyncEngine:
        """These verbs for sync code, in other threads; without a loop `with outlive.Engine(...).sync as engine:`."""


# -- Without await --------------------------------------------------------------------------------------------------


class SyncRunHandle(Blocking, Generic[R]):
    """A `RunHandle` for sync code: the same methods without `await`."""

    id: str

    if TYPE_CHECKING:

        def result(self, timeout: given.Span | None = None) -> R:
            """See `RunHandle`."""

        status = Verb(RunHandle.status)
        info = Verb(RunHandle.info)
        why = Verb(RunHandle.why)
        steps = Verb(RunHandle.steps)
        history = Verb(RunHandle.history)
        until = Verb(RunHandle.until)

        def published(self, key: str | None = None, *, timeout: given.Span | None = None) -> Any:
            """See `RunHandle`."""

        export = Verb(RunHandle.export)

        def stream(
            self, name: str, kind: Any = Any, *, after: int = 0, positions: bool = False, redacted: bool = False
        ) -> Iterator[Any]:
            """See `RunHandle`."""

        def watch(self) -> Iterator[dict[str, Any]]:
            """See `RunHandle`."""

        def follow(self, *, after: int = -1) -> Iterator[Event]:
            """See `RunHandle`."""

        signal = Verb(RunHandle.signal)
        ask = Verb(RunHandle.ask)
        answer = Verb(RunHandle.answer)
        cancel = Verb(RunHandle.cancel)
        approve = Verb(RunHandle.approve)
        reject = Verb(RunHandle.reject)
        approvals = Verb(RunHandle.approvals)
        inbox = Verb(RunHandle.inbox)
        dead_letters = Verb(RunHandle.dead_letters)
        pause = Verb(RunHandle.pause)
        resume = Verb(RunHandle.resume)
        retry = Verb(RunHandle.retry)
        change = Verb(RunHandle.change)
        skip_step = Verb(RunHandle.skip_step)


class SyncBatch(Blocking, Generic[R]):
    """A `Batch` for sync code."""

    id: str

    if TYPE_CHECKING:
        run: SyncRunHandle[Any]

        def results(self, timeout: given.Span | None = None) -> builtins.list[R | BaseException]:
            """See `Batch`."""

        def outcomes(self, timeout: given.Span | None = None) -> Generator[BatchItem[R], None, None]:
            """See `Batch`."""

        def items(self) -> Generator[BatchItem[R], None, None]:
            """See `Batch`."""

        def retry(self, *, id: str | None = None) -> SyncBatch[R]:
            """See `Batch`."""

        status = Verb(Batch.status)
        info = Verb(Batch.info)
        cancel = Verb(Batch.cancel)
        result = Verb(Batch.result)
        failures = Verb(Batch.failures)


class SyncBulkOperation(Blocking):
    """A `BulkOperation` for sync code."""

    id: str

    if TYPE_CHECKING:
        run: SyncRunHandle[Any]
        progress = Verb(BulkOperation.progress)
        result = Verb(BulkOperation.result)
        cancel = Verb(BulkOperation.cancel)


class SyncLinks(Blocking):
    """`engine.sync.approvals.links`."""

    if TYPE_CHECKING:
        create = Verb(LinkVerbs.create)
        use = Verb(LinkVerbs.use)


class SyncApprovals(Blocking):
    """`engine.sync.approvals`."""

    if TYPE_CHECKING:
        links: SyncLinks
        list = Verb(ApprovalVerbs.list)
        approve = Verb(ApprovalVerbs.approve)
        reject = Verb(ApprovalVerbs.reject)


class SyncPromises(Blocking):
    """`engine.sync.promises`."""

    if TYPE_CHECKING:
        resolve = Verb(PromiseVerbs.resolve)
        fail = Verb(PromiseVerbs.fail)


class SyncAsks(Blocking):
    """`engine.sync.asks`."""

    if TYPE_CHECKING:
        answer = Verb(AskVerbs.answer)


class SyncInbox(Blocking):
    """`engine.sync.inbox`."""

    if TYPE_CHECKING:
        list = Verb(InboxVerbs.list)


class SyncDeadLetters(Blocking):
    """`engine.sync.dead_letters`."""

    if TYPE_CHECKING:
        list = Verb(DeadLetterVerbs.list)


class SyncBatches(Blocking):
    """`engine.sync.batches`."""

    if TYPE_CHECKING:

        def get(self, batch_id: str) -> SyncBatch[Any]:
            """See `Batches`."""

        def retry(self, batch_id: str, *, id: str | None = None) -> SyncBatch[Any]:
            """See `Batches`."""

        list = Verb(BatchVerbs.list)


class SyncWorkflows(Blocking):
    """`engine.sync.workflows`."""

    if TYPE_CHECKING:
        list = Verb(WorkflowVerbs.list)


class SyncKeys(Blocking):
    """`engine.sync.keys`."""

    if TYPE_CHECKING:
        create = Verb(KeyVerbs.create)
        list = Verb(KeyVerbs.list)
        revoke = Verb(KeyVerbs.revoke)


class SyncAudit(Blocking):
    """`engine.sync.audit`."""

    if TYPE_CHECKING:
        list = Verb(AuditVerbs.list)
        verify = Verb(AuditVerbs.verify)


class SyncSchedules(Blocking):
    """`engine.sync.schedules`."""

    if TYPE_CHECKING:

        def trigger(
            self, name: str, *, overlap: TriggerOverlap | None = None, id: str | None = None
        ) -> SyncRunHandle[Any]:
            """See `Schedules`."""

        list = Verb(ScheduleVerbs.list)
        get = Verb(ScheduleVerbs.get)
        set = Verb(ScheduleVerbs.set)
        pause = Verb(ScheduleVerbs.pause)
        resume = Verb(ScheduleVerbs.resume)
        backfill = Verb(ScheduleVerbs.backfill)
        delete = Verb(ScheduleVerbs.delete)


class SyncBulk(Blocking):
    """`engine.sync.bulk`."""

    if TYPE_CHECKING:

        def start(
            self,
            verb: BulkVerb,
            *,
            id: str | None = None,
            by: str = "",
            reason: str = "",
            older_than: given.Span = KEEP_SECONDS_MIN,
            **filters: Unpack[TreeFilters],
        ) -> SyncBulkOperation:
            """See `BulkOperations`."""

        def get(self, operation_id: str) -> SyncBulkOperation:
            """See `BulkOperations`."""

        list = Verb(BulkVerbs.list)


class SyncTasks(Blocking):
    """`engine.sync.tasks`."""

    if TYPE_CHECKING:
        claim = Verb(TaskVerbs.claim)
        heartbeat = Verb(TaskVerbs.heartbeat)
        complete = Verb(TaskVerbs.complete)
        fail = Verb(TaskVerbs.fail)


class SyncQueues(Blocking):
    """`engine.sync.queues`."""

    if TYPE_CHECKING:
        list = Verb(QueueVerbs.list)
        stats = Verb(QueueVerbs.stats)

        def set(self, queue: Queue | str, **limits: Any) -> None:
            """See `Queues`."""

        reset = Verb(QueueVerbs.reset)
        pause = Verb(QueueVerbs.pause)
        resume = Verb(QueueVerbs.resume)
        drain = Verb(QueueVerbs.drain)


class SyncWorkers(Blocking):
    """`engine.sync.workers`."""

    if TYPE_CHECKING:
        list = Verb(WorkerVerbs.list)
        steps = Verb(WorkerVerbs.steps)


class SyncEvents(Blocking):
    """`engine.sync.events`."""

    if TYPE_CHECKING:
        send = Verb(EventVerbs.send)
        triggers = Verb(EventVerbs.triggers)
        forget = Verb(EventVerbs.forget)
        add_sink = Verb(EventVerbs.add_sink)
        remove_sink = Verb(EventVerbs.remove_sink)
        sinks = Verb(EventVerbs.sinks)


class SyncFlows(Blocking):
    """`engine.sync.flows`."""

    if TYPE_CHECKING:

        def start(
            self,
            name: str,
            input: Any = None,
            *,
            vars: Mapping[str, Any] | None = None,  # noqa: A002  # As documents call them.
            overrides: Mapping[str, Any] | None = None,
            revision: int | None = None,
            **options: Unpack[StartOptions],
        ) -> SyncRunHandle[Any]:
            """See `Flows`."""

        apply = Verb(FlowVerbs.apply)
        save_draft = Verb(FlowVerbs.save_draft)
        publish = Verb(FlowVerbs.publish)
        discard_draft = Verb(FlowVerbs.discard_draft)
        rollback = Verb(FlowVerbs.rollback)
        enable = Verb(FlowVerbs.enable)
        disable = Verb(FlowVerbs.disable)
        delete = Verb(FlowVerbs.delete)
        list = Verb(FlowVerbs.list)
        info = Verb(FlowVerbs.info)
        get = Verb(FlowVerbs.get)
        history = Verb(FlowVerbs.history)
        document_of = Verb(FlowVerbs.document_of)


class SyncEngine(BlockingEngine):
    """An engine for sync code: the same verbs without `await`, from any thread but that of the engine's loop."""

    if TYPE_CHECKING:

        @overload
        def start(
            self, workflow: Startable[*Ts, R], *args: *Ts, **options: Unpack[OwnStartOptions]
        ) -> SyncRunHandle[R]: ...
        @overload
        def start(
            self,
            workflow: str,
            arguments: Mapping[str, Any] | Sequence[Any] | None = None,
            *,
            version: int | None = None,
            **options: Unpack[StartOptions],
        ) -> SyncRunHandle[Any]: ...
        def start(self, workflow: Any, *args: Any, **options: Any) -> SyncRunHandle[Any]:  # type: ignore[misc]
            """See `AnyEngine`."""

        def start_many(
            self, starts: Iterable[WorkflowCall | OneStart], **options: Unpack[StartOptions]
        ) -> builtins.list[SyncRunHandle[Any]]:
            """See `AnyEngine`."""

        def get(self, run_id: str) -> SyncRunHandle[Any]:
            """See `AnyEngine`."""

        @overload
        def start_batch(
            self, work: Callable[[T], Coroutine[object, None, R]], rows: Iterable[T], **options: Unpack[BatchOptions]
        ) -> SyncBatch[R]: ...
        @overload
        def start_batch(
            self, work: str, rows: Iterable[Any], *, version: int | None = None, **options: Unpack[BatchOptions]
        ) -> SyncBatch[Any]: ...
        def start_batch(
            self, work: Any, rows: Any, *, version: int | None = None, **options: Unpack[BatchOptions]
        ) -> SyncBatch[Any]:
            """See `AnyEngine`."""

        def fork(
            self,
            run_id: str,
            *,
            at: str | int | None = None,
            set: Mapping[str, Any] | None = None,
            input: tuple[Any, ...] | Mapping[str, Any] | None = None,
            version: int | None = None,
            id: str | None = None,
            reason: str = "",
        ) -> SyncRunHandle[Any]:
            """See `AnyEngine`."""

        def import_run(self, text: str, *, id: str | None = None) -> SyncRunHandle[Any]:
            """See `Engine`; a connection has it not."""

        def export(self, run_id: str) -> str:
            """See `Engine`; a connection has it not."""

        def operate(
            self,
            operation_name: str,
            /,
            *,
            query: Mapping[str, object] | None = None,
            body: Mapping[str, object] | None = None,
            patience: float = 0.0,
            **path: str,
        ) -> Any:
            """See `Remote`; an engine has it not."""

        @overload
        def ask(self, run_id: str, name: str, body: Any = None, **options: Unpack[AskOptions]) -> Any: ...
        @overload
        def ask(
            self, run_id: str, name: str, body: Any = None, *, reply: type[T], **options: Unpack[AskOptions]
        ) -> T: ...
        def ask(
            self, run_id: str, name: str, body: Any = None, *, reply: Any = Any, **options: Unpack[AskOptions]
        ) -> Any:
            """See `AnyEngine`."""

        approvals: SyncApprovals
        promises: SyncPromises
        asks: SyncAsks
        inbox: SyncInbox
        dead_letters: SyncDeadLetters
        batches: SyncBatches
        workflows: SyncWorkflows
        keys: SyncKeys
        audit: SyncAudit
        schedules: SyncSchedules
        bulk: SyncBulk
        tasks: SyncTasks
        queues: SyncQueues
        workers: SyncWorkers
        events: SyncEvents
        flows: SyncFlows
        list = Verb(AnyEngine.list)
        info = Verb(AnyEngine.info)
        count = Verb(AnyEngine.count)
        count_by = Verb(AnyEngine.count_by)
        signal = Verb(AnyEngine.signal)
        signal_many = Verb(AnyEngine.signal_many)
        cancel = Verb(AnyEngine.cancel)
        pause = Verb(AnyEngine.pause)
        resume = Verb(AnyEngine.resume)
        retry = Verb(AnyEngine.retry)
        change = Verb(AnyEngine.change)
        skip_step = Verb(AnyEngine.skip_step)
        history = Verb(AnyEngine.history)
        steps = Verb(AnyEngine.steps)
        list_stuck = Verb(AnyEngine.list_stuck)
        purge = Verb(AnyEngine.purge)
        health = Verb(AnyEngine.health)
