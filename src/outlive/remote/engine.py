"""An engine behind an HTTP API: the verbs of `AnyEngine`, which return when what they did is durable there."""

from __future__ import annotations

import asyncio
import builtins
import os
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar, TypeVarTuple, Unpack, overload

from msgspec import UNSET

from outlive._features.approvals.remote import RemoteApprovals
from outlive._features.batches.batch import Batch
from outlive._features.batches.remote import RemoteBatch, RemoteBatches
from outlive._features.batches.starting import BatchOptions
from outlive._features.bulk.remote import RemoteBulk
from outlive._features.events.remote import RemoteEvents
from outlive._features.flows.remote import RemoteFlows
from outlive._features.promises.remote import RemotePromises
from outlive._features.queues.remote import RemoteQueues
from outlive._features.retention.values import Purge
from outlive._features.schedules.remote import RemoteSchedules
from outlive._features.security.remote import RemoteAudit, RemoteKeys
from outlive._features.tasks.remote import RemoteTasks
from outlive._kernel.client.asks import AskOptions
from outlive._kernel.client.bulk import BulkFilters, TreeFilters, WorkflowFilters
from outlive._kernel.client.changing import ChangeOptions
from outlive._kernel.client.finding import COUNT_MAX, GROUP_FIELDS, Filters, Order, Page
from outlive._kernel.client.handle import RunHandle
from outlive._kernel.client.message_start import NamedStart, given_by_name
from outlive._kernel.client.recovery import Incomplete
from outlive._kernel.client.signal_many import OneSignal, SignalCall, wanted_signals
from outlive._kernel.client.start_many import OneStart, WorkflowCall, wanted_starts
from outlive._kernel.client.start_options import MessageConflict, OwnStartOptions, StartOptions
from outlive._kernel.define.workflow import Bound, Startable, Workflow, bound
from outlive._kernel.journal.plain import plain_json
from outlive._kernel.model import given, known_run_id
from outlive._kernel.model.retention import KEEP_SECONDS_MIN
from outlive._kernel.model.run import GroupField
from outlive._kernel.model.under_way import StepUnderWay
from outlive._kernel.replay.command import WorkflowSpec
from outlive._kernel.values.count import Count
from outlive._kernel.values.event import Event
from outlive._kernel.values.outcome import RunOutcome
from outlive._kernel.values.run import Run
from outlive.engine.any_engine import AnyEngine, SyncEngine
from outlive.engine.health import Health
from outlive.errors import InvalidArgumentError, OutliveError
from outlive.errors.program import of_item
from outlive.errors.run import SignalsRefusedError, StartsRefusedError
from outlive.http.wire.runs import RunCounts
from outlive.remote.connection import Connection
from outlive.remote.following import Message
from outlive.remote.refusal import error_of
from outlive.remote.run import WAIT_SECONDS, RemoteRun
from outlive.remote.talking import RemoteAsks, RemoteDeadLetters, RemoteInbox, answered
from outlive.remote.values import (
    attributed,
    batch_fields,
    named_start,
    one_signal,
    one_start,
    only_given,
    plain_filters,
    plain_start,
    query_of,
    queue_of,
    refuse_of_store,
    seconds_of,
    start_fields,
    start_of,
)
from outlive.remote.workers import RemoteWorkers, RemoteWorkflows

R = TypeVar("R")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Remote(AnyEngine):
    """Talks to one server. An async context manager; `sync` is the same for code without an event loop."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._sync = SyncEngine(self)
        self.url = connection.url

    async def __aenter__(self) -> Self:
        self._connection.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        return self._connection.loop

    @property
    def sync(self) -> SyncEngine:
        """These verbs without `await`: `with outlive.connect(...).sync as engine:`."""
        return self._sync

    async def operate(
        self,
        operation_name: str,
        /,
        *,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, object] | None = None,
        patience: float = 0.0,
        **path: str,
    ) -> Any:
        """Any operation of the API by its name, as `docs/openapi.json` has it; its answer as a struct.

        Args:
            query: the parameters behind the question mark.
            body: what is sent as JSON.
            patience: seconds that the server is asked to wait before it answers.
            path: the names in the path.
        """
        return await self._connection.operate(operation_name, query=query, body=body, patience=patience, **path)

    def follow(
        self, operation_name: str, query: Mapping[str, object] | None = None, /, **path: str
    ) -> AsyncIterator[Message]:
        """The messages of an operation that sends them one by one, until it is over."""
        return self._connection.follow(operation_name, query, **path)

    # -- Starting --------------------------------------------------------------------------------------------

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
        where, said = "engine.start", dict[str, Any](options)
        if isinstance(workflow, str):
            named = given_by_name(where, workflow, args, version, said)
            return await self._start(plain_start(where, named), said)
        if version is not None:
            said["version"] = version
        return await self._start(named_start(where, workflow, args), said, bound(workflow, args).workflow.spec)

    async def start_many(
        self, starts: Iterable[WorkflowCall | OneStart], **options: Unpack[StartOptions]
    ) -> builtins.list[RunHandle[Any]]:
        where = "engine.start_many"
        bodies, specs = builtins.list[dict[str, Any]](), builtins.list[WorkflowSpec | None]()
        for index, (call, said) in enumerate(wanted_starts(starts, options)):
            try:
                bodies.append(one_start(where, call, said))
            except OutliveError as error:
                raise of_item(error, index) from None
            workflow = call.workflow if isinstance(call, Bound) else call[0]
            specs.append(None if isinstance(workflow, str) else workflow.spec)
        if not bodies:
            return []
        answer = await self._connection.operate("runs.start_many", body={"starts": bodies})
        refused = {at: error_of(it.problem) for at, it in enumerate(answer.items) if it.problem is not None}
        if refused:
            raise StartsRefusedError([it.id for it in answer.items], refused)
        return [self._run(it.id, spec) for it, spec in zip(answer.items, specs, strict=True)]

    async def _start(
        self, named: NamedStart, options: Mapping[str, Any], spec: WorkflowSpec | None = None
    ) -> RunHandle[Any]:
        body = only_given(named._asdict() | start_fields("engine.start", named.workflow, options))
        return self._run((await self._connection.operate("runs.start", body=body)).id, spec)

    def _run(self, run_id: str, spec: WorkflowSpec | None = None) -> RunHandle[Any]:
        return RemoteRun(self, self._connection, run_id, spec=spec)

    def get(self, run_id: str) -> RunHandle[Any]:
        return self._run(known_run_id("engine.get", run_id))

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
        where = "engine.start_batch"
        spec = None
        if not isinstance(work, str):
            spec = given.instance(where, "work", work, Workflow, like="order, or its name").spec
            if version is not None:
                raise InvalidArgumentError(where, "version", version, "leave it out: the workflow itself has one")
        found = (
            [row async for row in rows] if isinstance(rows, AsyncIterable) else list(given.many(where, "rows", rows))
        )
        body = {
            "workflow": work if spec is None else spec.name,
            "rows": plain_json(where, found),
            "version": version if spec is None else spec.version,
            **batch_fields(where, options),
        }
        started = await self._connection.operate("batches.start", body=only_given(body))
        return RemoteBatch(self._run(started.id), self._connection, self._run, spec)

    # -- Finding ---------------------------------------------------------------------------------------------

    async def list(
        self, *, order: Order = "-created_at", limit: int = 100, after: str | None = None, **filters: Unpack[Filters]
    ) -> Page[Run]:
        query = query_of(filters) | {"order": order, "limit": limit, "after": after}
        found = await self._connection.operate("runs.list", query=query)
        return Page(found.items, next=found.next, previous=found.previous)

    async def info(self, run_id: str) -> Run:
        return await self.get(run_id).info()

    async def count(self, *, limit: int = COUNT_MAX, **filters: Unpack[Filters]) -> Count:
        query = query_of(filters) | {"limit": limit}
        found: Count = await self._connection.operate("runs.count", query=query)
        return found

    async def count_by(self, by: GroupField, *, limit: int = COUNT_MAX, **filters: Unpack[Filters]) -> dict[str, Count]:
        given.one_of("engine.count_by", "by", by, GROUP_FIELDS)
        query = query_of(filters) | {"limit": limit, "by": by}
        found: RunCounts = await self._connection.operate("runs.count_by", query=query)
        return found.groups

    # -- What users send to runs -----------------------------------------------------------------------------

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
        refuse_of_store("engine.signal", connection=connection)
        started = start_of("engine.signal", start, headers, on_conflict)
        body = only_given({"payload": plain_json("engine.signal", payload), "key": key, "start": started})
        await self._connection.operate("runs.signal", body=body, run_id=run_id, name=name)

    async def signal_many(self, signals: Iterable[SignalCall | OneSignal]) -> None:
        bodies: builtins.list[dict[str, Any]] = []
        for index, each in enumerate(wanted_signals(signals)):
            try:
                bodies.append(one_signal("engine.signal_many", each))
            except OutliveError as error:
                raise of_item(error, index, of="signals") from None
        if not bodies:
            return
        answer = await self._connection.operate("runs.signal_many", body={"signals": bodies})
        refused = {at: error_of(it.problem) for at, it in enumerate(answer.items) if it.problem is not None}
        if refused:
            raise SignalsRefusedError(len(bodies), refused)

    @overload
    async def ask(self, run_id: str, name: str, body: Any = None, **options: Unpack[AskOptions]) -> Any: ...
    @overload
    async def ask(
        self, run_id: str, name: str, body: Any = None, *, reply: type[T], **options: Unpack[AskOptions]
    ) -> T: ...
    async def ask(
        self, run_id: str, name: str, body: Any = None, *, reply: Any = Any, **options: Unpack[AskOptions]
    ) -> Any:
        timeout = seconds_of("engine.ask", "timeout", options.get("timeout"))
        deadline = None if timeout is None else asyncio.get_running_loop().time() + timeout
        wait = WAIT_SECONDS if timeout is None else min(WAIT_SECONDS, timeout)
        start = start_of(
            "engine.ask", options.get("start"), options.get("headers"), options.get("on_conflict", "attach")
        )
        said = {"body": plain_json("engine.ask", body), "key": options.get("key"), "wait": wait, "start": start}
        found = await self._connection.operate(
            "runs.ask", body=only_given(said), run_id=run_id, name=name, patience=wait
        )
        return await answered(self._connection, run_id, name, found, deadline, timeout, reply)

    # -- What operators do to runs ---------------------------------------------------------------------------

    async def cancel(
        self, run_id: str | None = None, *, reason: str = "", **filters: Unpack[TreeFilters]
    ) -> builtins.list[RunOutcome]:
        return await self._act("cancel", run_id, reason, filters)

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
        return await self._gate("pause", run_id, workflow, filters, attributed(by, reason), everything=all)

    async def resume(
        self,
        run_id: str | None = None,
        *,
        workflow: str | None = None,
        all: bool = False,
        **filters: Unpack[BulkFilters],
    ) -> builtins.list[RunOutcome]:
        return await self._gate("resume", run_id, workflow, filters, None, everything=all)

    async def _gate(
        self,
        verb: str,
        run_id: str | None,
        workflow: str | None,
        filters: Mapping[str, Any],
        body: dict[str, Any] | None,
        *,
        everything: bool,
    ) -> builtins.list[RunOutcome]:
        given_filters = only_given(filters)
        is_queue = given_filters.keys() == {"queue"} and workflow is None
        is_bulk = bool(given_filters) and not is_queue
        if [run_id is not None, workflow is not None and not is_bulk, is_queue, everything, is_bulk].count(True) != 1:
            wanted = "give a run, a workflow, a queue, all, or filters"
            raise InvalidArgumentError(f"engine.{verb}", "run_id", run_id, wanted)
        if is_bulk:
            chosen = plain_filters(given_filters) | (body or {})
            outcomes: builtins.list[RunOutcome] = (
                await self._connection.operate(f"bulk.{verb}", body=only_given({**chosen, "workflow": workflow}))
            ).items
            return outcomes
        if run_id is not None:
            await self._connection.operate(f"runs.{verb}", body=body, run_id=run_id)
            return []
        if workflow is not None:
            await self._connection.operate(f"workflows.{verb}", body=body, name=workflow)
        elif is_queue:
            await self._connection.operate(f"queues.{verb}", body=body, name=given_filters["queue"])
        else:
            await self._connection.operate(f"store.{verb}", body=body)
        return []

    async def retry(
        self, run_id: str | None = None, *, reason: str = "", **filters: Unpack[TreeFilters]
    ) -> builtins.list[RunOutcome]:
        return await self._act("retry", run_id, reason, filters)

    async def _act(
        self, verb: str, run_id: str | None, reason: str, filters: Mapping[str, Any]
    ) -> builtins.list[RunOutcome]:
        if run_id is not None:
            await self._connection.operate(f"runs.{verb}", body={"reason": reason}, run_id=run_id)
            return []
        body = only_given({**plain_filters(filters), "reason": reason})
        outcomes: builtins.list[RunOutcome] = (await self._connection.operate(f"bulk.{verb}", body=body)).items
        return outcomes

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
        options = {"at": at, "set": set, "input": input, "version": version, "id": id, "reason": reason}
        body = only_given(plain_json("engine.fork", options))
        return self._run((await self._connection.operate("runs.fork", body=body, run_id=run_id)).id)

    async def change(self, run_id: str, *, reason: str = "", **changes: Unpack[ChangeOptions]) -> None:
        where, said = "engine.change", dict(changes)
        body = only_given({"reason": reason or None, "key": said.get("key"), "priority": said.get("priority")})
        body |= only_given({"tags": said.get("tags"), "queue": queue_of(changes.get("queue"))})
        body |= only_given({"delay": seconds_of(where, "delay", changes.get("delay"))})
        if (start_at := changes.get("start_at")) is not None:
            body["start_at"] = given.instant(where, "start_at", start_at).isoformat()
        timeout = changes.get("timeout", UNSET)
        if timeout is not UNSET:
            body["timeout"] = None if timeout is None else given.seconds(where, "timeout", timeout)
        await self._connection.operate("runs.change", body=body, run_id=run_id)

    async def skip_step(self, run_id: str, call: str | None = None, *, result: Any = UNSET) -> None:
        body = only_given({"call": call})
        body |= {} if result is UNSET else {"result": plain_json("engine.skip_step", result)}
        await self._connection.operate("runs.skip_step", body=body, run_id=run_id)

    # -- Looking at runs -----------------------------------------------------------------------------------------

    async def history(self, run_id: str) -> builtins.list[Event]:
        events: builtins.list[Event] = []
        after: int | None = -1
        while after is not None:
            found = await self._connection.operate("runs.history", query={"after": after}, run_id=run_id)
            events += found.items
            after = found.next
        return events

    async def steps(self, run_id: str, *, arguments: bool = False) -> builtins.list[StepUnderWay]:
        query = {"arguments": given.flag("run.steps", "arguments", arguments)}
        found: builtins.list[StepUnderWay] = (
            await self._connection.operate("runs.steps", query=query, run_id=run_id)
        ).items
        return found

    async def list_stuck(self, *, limit: int = 100, before: str | None = None) -> builtins.list[Incomplete]:
        found = await self._connection.operate("runs.list_stuck", query={"limit": limit, "before": before})
        items: builtins.list[Incomplete] = found.items
        return items

    async def purge(
        self,
        *,
        older_than: given.Span = KEEP_SECONDS_MIN,
        archive: str | os.PathLike[str] | None = None,
        **filters: Unpack[WorkflowFilters],
    ) -> Purge:
        refuse_of_store("engine.purge", archive=archive)
        seconds = seconds_of("engine.purge", "older_than", older_than)
        body = only_given({**plain_filters(filters), "older_than": seconds})
        found: Purge = await self._connection.operate("bulk.purge", body=body)
        return found

    async def health(self) -> Health:
        found: Health = await self._connection.operate("health.get")
        return found

    # -- Namespaces ------------------------------------------------------------------------------------------

    @property
    def approvals(self) -> RemoteApprovals:
        return RemoteApprovals(self._connection)

    @property
    def promises(self) -> RemotePromises:
        return RemotePromises(self._connection)

    @property
    def asks(self) -> RemoteAsks:
        return RemoteAsks(self._connection)

    @property
    def inbox(self) -> RemoteInbox:
        return RemoteInbox(self._connection)

    @property
    def dead_letters(self) -> RemoteDeadLetters:
        return RemoteDeadLetters(self._connection)

    @property
    def batches(self) -> RemoteBatches:
        return RemoteBatches(self._connection, self._run)

    @property
    def workflows(self) -> RemoteWorkflows:
        return RemoteWorkflows(self._connection)

    @property
    def keys(self) -> RemoteKeys:
        return RemoteKeys(self._connection)

    @property
    def audit(self) -> RemoteAudit:
        return RemoteAudit(self._connection)

    @property
    def schedules(self) -> RemoteSchedules:
        return RemoteSchedules(self._connection, self._run)

    @property
    def bulk(self) -> RemoteBulk:
        return RemoteBulk(self._connection, self._run)

    @property
    def tasks(self) -> RemoteTasks:
        return RemoteTasks(self._connection)

    @property
    def queues(self) -> RemoteQueues:
        return RemoteQueues(self._connection)

    @property
    def workers(self) -> RemoteWorkers:
        return RemoteWorkers(self._connection)

    @property
    def events(self) -> RemoteEvents:
        return RemoteEvents(self._connection)

    @property
    def flows(self) -> RemoteFlows:
        return RemoteFlows(self._connection, self._run)

    def __repr__(self) -> str:
        return f"<Remote {self.url}>"
