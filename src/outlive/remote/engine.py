"""An engine behind an HTTP API, and its runs: the same verbs, which return when what they did is durable there."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar, TypeVarTuple, Unpack, overload

import msgspec
from msgspec import UNSET

from outlive._define.map import Tolerance
from outlive._define.workflow import Startable, Workflow, bound
from outlive._journal.plain import encode_plain, plain_json
from outlive._model import given
from outlive._model.queue import Queue
from outlive._model.retention import KEEP_SECONDS_MIN
from outlive._model.under_way import StepUnderWay
from outlive._runtime.clock import SystemClock
from outlive._values.count import Count
from outlive._values.event import Event
from outlive._values.outcome import RunOutcome
from outlive._values.purge import Purge
from outlive._values.run import Run
from outlive.client.asks import AskOptions
from outlive.client.bulk import BulkFilters, TreeFilters, WorkflowFilters
from outlive.client.finding import COUNT_MAX, Filters, Order, Page
from outlive.client.message_start import NamedStart
from outlive.client.recovery import Incomplete
from outlive.client.starting import StartOptions
from outlive.engine.health import Health
from outlive.errors import ArgumentTypeError, InvalidArgumentError, ResultTimeoutError, RunParkedError
from outlive.http.wire.runs import (
    NotEnded,
    ResultView,
)
from outlive.remote.batch import RemoteBatch, RemoteBatches
from outlive.remote.flows import RemoteFlows
from outlive.remote.following import Message, follow
from outlive.remote.operating import (
    RemoteAudit,
    RemoteBulk,
    RemoteEvents,
    RemoteKeys,
    RemoteQueues,
    RemoteSchedules,
    RemoteWorkers,
    RemoteWorkflows,
)
from outlive.remote.refusal import raise_refusal
from outlive.remote.requests import Requests
from outlive.remote.run import RemoteRun
from outlive.remote.talking import RemoteApprovals, RemoteAsks, RemoteDeadLetters, RemotePromises
from outlive.remote.tasks import RemoteTasks
from outlive.remote.transport import Transport
from outlive.remote.values import (
    answer_of,
    named_start,
    only_given,
    operation_of,
    plain_filters,
    query_of,
    queue_of,
    result_of,
    seconds_of,
    start_fields,
    start_of,
    target_of,
)

R = TypeVar("R")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")

WAIT_SECONDS = 20.0
"""How long the server is asked to wait for an end before it is asked again."""


class RemoteVerbs:
    """Talks to one server. An async context manager."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._clock = SystemClock()
        self._requests = Requests(transport)
        self.queues, self.schedules, self.events = RemoteQueues(self), RemoteSchedules(self), RemoteEvents(self)
        self.audit, self.keys, self.flows = RemoteAudit(self), RemoteKeys(self), RemoteFlows(self)
        self.tasks, self.bulk, self.batches = RemoteTasks(self), RemoteBulk(self), RemoteBatches(self)
        self.approvals, self.promises, self.asks = RemoteApprovals(self), RemotePromises(self), RemoteAsks(self)
        self.dead_letters, self.workflows = RemoteDeadLetters(self), RemoteWorkflows(self)
        self.workers = RemoteWorkers(self)
        self.url = transport.origin

    async def __aenter__(self) -> Self:
        self._requests.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._requests.close()

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop that entered it; None while it is closed."""
        return self._requests.loop

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
        operation = operation_of("engine.operate", operation_name)
        if operation.media == "text/event-stream":
            wanted = f"it sends messages one by one: use engine.follow({operation_name!r}, ...)"
            raise InvalidArgumentError("engine.operate", "operation_name", operation_name, wanted)
        sent = None if body is None else encode_plain(f"engine.operate({operation_name!r})", body)
        target = target_of(operation, path)
        send = partial(self._transport.send, operation.method, target, query=query, body=sent, key=self._clock.new_id())
        answer = await self._requests.answer(
            send, self._transport.timeout + patience, may_change=operation.method != "GET"
        )
        if answer.status >= 400:
            raise_refusal(answer)
        return answer_of(operation, answer)

    async def follow(
        self, operation_name: str, query: Mapping[str, object] | None = None, /, **path: str
    ) -> AsyncIterator[Message]:
        """The messages of an operation that sends them one by one, until it is over."""
        target = target_of(operation_of("engine.follow", operation_name), path)
        async for message in follow(self._transport, target, query or {}, in_thread=self._requests.in_thread):
            yield message

    # -- Starting --------------------------------------------------------------------------------------------

    @overload
    async def start(self, workflow: Startable[*Ts, R], *args: *Ts, **options: Unpack[StartOptions]) -> RemoteRun[R]: ...
    @overload
    async def start(
        self,
        workflow: str,
        arguments: Mapping[str, Any] | Sequence[Any] | None = None,
        *,
        version: int | None = None,
        **options: Unpack[StartOptions],
    ) -> RemoteRun[Any]: ...
    async def start(self, workflow: Any, *args: Any, **options: Any) -> RemoteRun[Any]:  # type: ignore[misc]  # No *Ts is compared.
        """Start a run; it is durable when this returns.

        Args:
            workflow: its function with its arguments, if this program has it; else its name, and the arguments by name
                or in a list.
            version: of a workflow that is given by its name; the newest unless given.
            options: id, on_conflict, timeout, tags, headers, queue, key, priority, delay, start_at, begin_within: as
                `Engine.start`.
        """
        if isinstance(workflow, str):
            return await self.start_by_name(workflow, *args, **options)
        named = named_start("engine.start", workflow, args)
        run = await self._start(named, options)
        codec = bound(workflow, args).workflow.spec.signature.result
        return RemoteRun(
            self, run.id, lambda found: codec.decode(msgspec.json.encode(found), f"the result of run {run.id}")
        )

    async def start_by_name(
        self,
        workflow: str,
        arguments: Mapping[str, Any] | Sequence[Any] | None = None,
        *,
        version: int | None = None,
        **options: Unpack[StartOptions],
    ) -> RemoteRun[Any]:
        """Start a run by the name of its workflow. See `Engine.start_by_name`."""
        plain = None if arguments is None else plain_json("engine.start_by_name", arguments)
        if not isinstance(plain, dict | list | None):
            wanted = f'give the arguments of {workflow} by name, for example {{"id": 7}}, or in a list'
            raise ArgumentTypeError("engine.start_by_name", "arguments", arguments, wanted)
        return await self._start(NamedStart(workflow, plain, version), options)

    async def _start(self, named: NamedStart, options: Mapping[str, Any]) -> RemoteRun[Any]:
        body = only_given(named._asdict() | start_fields(named.workflow, options))
        return RemoteRun(self, (await self.operate("runs.start", body=body)).id)

    def get(self, run_id: str) -> RemoteRun[Any]:
        """A handle of a run; whether there is such a run shows when it is used."""
        return RemoteRun(self, run_id)

    async def start_batch(
        self,
        work: str | Workflow[..., Any],
        rows: Iterable[Any],
        *,
        version: int | None = None,
        concurrency: int = 20,
        id: str | None = None,
        tolerate: Tolerance | None = None,
        tags: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        queue: Queue | str | None = None,
        key: str | None = None,
        priority: int | None = None,
    ) -> RemoteBatch:
        """Run a workflow for each row, so many at once. See `Engine.start_batch`; the rows go in one request."""
        where = "engine.start_batch"
        spec = None
        if not isinstance(work, str):
            spec = given.instance(where, "work", work, Workflow, like="order, or its name").spec
        body = {
            "workflow": work if spec is None else spec.name,
            "rows": plain_json(where, list(given.many(where, "rows", rows))),
            "version": version if spec is None else spec.version,
            "concurrency": concurrency,
            "id": id,
            "failures_max": None if tolerate is None else tolerate.failures,
            "failures_ratio": None if tolerate is None else tolerate.ratio,
            "tags": tags,
            "headers": headers,
            "queue": queue_of(queue),
            "key": key,
            "priority": priority,
        }
        return RemoteBatch(self, (await self.operate("batches.start", body=only_given(body))).id, spec)

    # -- Looking ---------------------------------------------------------------------------------------------

    async def list(
        self, *, order: Order = "-created_at", limit: int = 100, after: str | None = None, **filters: Unpack[Filters]
    ) -> Page[Run]:
        """A page of the runs that fit, newest first. The filters are those of `Engine.list`."""
        query = query_of(filters) | {"order": order, "limit": limit, "after": after}
        found = await self.operate("runs.list", query=query)
        return Page(found.items, next=found.next, previous=found.previous)

    async def count(self, *, limit: int = COUNT_MAX, **filters: Unpack[Filters]) -> Count:
        """How many runs fit."""
        found: Count = await self.operate("runs.count", query=query_of(filters) | {"limit": limit})
        return found

    async def info(self, run_id: str) -> Run:
        """A run as its row says it."""
        found: Run = await self.operate("runs.get", run_id=run_id)
        return found

    async def why(self, run_id: str) -> str:
        """What a run waits for, or how it ended, in one sentence."""
        found: str = (await self.operate("runs.why", run_id=run_id)).why
        return found

    async def steps(self, run_id: str, *, arguments: bool = False) -> builtins.list[StepUnderWay]:
        """The steps of a run that run now, the oldest first. See `RunHandle.steps`."""
        found: builtins.list[StepUnderWay] = (
            await self.operate(
                "runs.steps", query={"arguments": given.flag("run.steps", "arguments", arguments)}, run_id=run_id
            )
        ).items
        return found

    async def history(self, run_id: str) -> builtins.list[Event]:
        """The journal of the tree that a run belongs to, without what is redacted."""
        events: builtins.list[Event] = []
        after: int | None = -1
        while after is not None:
            found = await self.operate("runs.history", query={"after": after}, run_id=run_id)
            events += found.items
            after = found.next
        return events

    async def recovery(self, *, limit: int = 100, before: str | None = None) -> builtins.list[Incomplete]:
        """Runs that do not move and why, the newest first; `before` is the id of the last one of the page before."""
        found = await self.operate("runs.list_stuck", query={"limit": limit, "before": before})
        items: builtins.list[Incomplete] = found.items
        return items

    async def health(self) -> Health:
        """How the engine of the server is."""
        found = await self.operate("health.get")
        return Health(found.store, found.worker, found.resources)

    async def result(self, run_id: str, timeout: given.Span | None = None) -> Any:
        """Wait for the result of a run, as plain JSON. See `RemoteRun.result`."""
        loop, timeout = asyncio.get_running_loop(), seconds_of("run.result", "timeout", timeout)
        deadline = None if timeout is None else loop.time() + timeout
        while True:
            wait = WAIT_SECONDS if deadline is None else min(WAIT_SECONDS, max(0.0, deadline - loop.time()))
            found = await self.operate("runs.result", query={"wait": wait}, run_id=run_id, patience=wait)
            if isinstance(found, ResultView):
                return result_of(found)
            assert isinstance(found, NotEnded)
            if found.status == "parked" and (await self.info(run_id)).is_stopped:
                raise RunParkedError(run_id, found.why)
            if deadline is not None and loop.time() >= deadline:
                assert timeout is not None
                raise ResultTimeoutError(run_id, timeout, found.why)

    # -- Talking ---------------------------------------------------------------------------------------------

    async def signal(
        self,
        run_id: str,
        name: str,
        payload: Any = None,
        *,
        key: str | None = None,
        start: tuple[Any, ...] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Send a signal to a run; it is durable when this returns.

        Args:
            start: `(workflow, *args)`, or `("name", arguments)` if this program does not have it: create the run in the
                same transaction if there is none.
            headers: of the run that it starts.
        """
        started = start_of("engine.signal", start, headers)
        body = only_given({"payload": plain_json("engine.signal", payload), "key": key, "start": started})
        await self.operate("runs.signal", body=body, run_id=run_id, name=name)

    @overload
    async def ask(self, run_id: str, name: str, body: Any = None, **options: Unpack[AskOptions]) -> Any: ...
    @overload
    async def ask(
        self, run_id: str, name: str, body: Any = None, *, reply: type[T], **options: Unpack[AskOptions]
    ) -> T: ...
    async def ask(
        self, run_id: str, name: str, body: Any = None, *, reply: Any = Any, **options: Unpack[AskOptions]
    ) -> Any:
        """Ask a run something, and wait for its answer, which it gives exactly once. `start` as for `signal`.

        Args:
            options: `key`, `start`, `headers`, `timeout`; see `Engine.ask`.
            reply: the type of the answer; without, it comes as plain JSON.
        """
        timeout = seconds_of("engine.ask", "timeout", options.get("timeout"))
        deadline = None if timeout is None else asyncio.get_running_loop().time() + timeout
        wait = WAIT_SECONDS if timeout is None else min(WAIT_SECONDS, timeout)
        start = start_of("engine.ask", options.get("start"), options.get("headers"))
        said = {"body": plain_json("engine.ask", body), "key": options.get("key"), "wait": wait, "start": start}
        found = await self.operate("runs.ask", body=only_given(said), run_id=run_id, name=name, patience=wait)
        return await self.asks._answered(run_id, name, found, deadline, timeout, reply)

    # -- Operating -------------------------------------------------------------------------------------------

    @overload
    async def cancel(self, run_id: str, *, reason: str = "") -> None: ...
    @overload
    async def cancel(self, *, reason: str = "", **filters: Unpack[TreeFilters]) -> builtins.list[RunOutcome]: ...
    async def cancel(
        self, run_id: str | None = None, *, reason: str = "", **filters: Unpack[TreeFilters]
    ) -> builtins.list[RunOutcome] | None:
        """Ask a run, or those that fit, to stop."""
        return await self._act("cancel", run_id, reason, filters)

    @overload
    async def retry(self, run_id: str, *, reason: str = "") -> None: ...
    @overload
    async def retry(self, *, reason: str = "", **filters: Unpack[TreeFilters]) -> builtins.list[RunOutcome]: ...
    async def retry(
        self, run_id: str | None = None, *, reason: str = "", **filters: Unpack[TreeFilters]
    ) -> builtins.list[RunOutcome] | None:
        """Let a run, or those that fit, go on at what failed."""
        return await self._act("retry", run_id, reason, filters)

    async def _act(
        self, verb: str, run_id: str | None, reason: str, filters: Mapping[str, Any]
    ) -> builtins.list[RunOutcome] | None:
        if run_id is not None:
            await self.operate(f"runs.{verb}", body={"reason": reason}, run_id=run_id)
            return None
        outcomes: builtins.list[RunOutcome] = (
            await self.operate(f"bulk.{verb}", body=only_given({**plain_filters(filters), "reason": reason}))
        ).items
        return outcomes

    @overload
    async def pause(self, run_id: str, *, by: str = "", reason: str = "") -> None: ...
    @overload
    async def pause(
        self,
        *,
        workflow: str | None = None,
        all: bool = False,
        by: str = "",
        reason: str = "",
        **filters: Unpack[BulkFilters],
    ) -> builtins.list[RunOutcome]: ...
    async def pause(
        self,
        run_id: str | None = None,
        *,
        workflow: str | None = None,
        all: bool = False,
        by: str = "",
        reason: str = "",
        **filters: Unpack[BulkFilters],
    ) -> builtins.list[RunOutcome] | None:
        """Let a run begin nothing more; or all runs of a workflow or of a queue, everything, or the runs that fit.

        The server knows by the key who does it. See `Engine.pause`.
        """
        return await self._gate("pause", run_id, workflow, filters, {"reason": reason}, everything=all)

    @overload
    async def resume(self, run_id: str) -> None: ...
    @overload
    async def resume(
        self, *, workflow: str | None = None, all: bool = False, **filters: Unpack[BulkFilters]
    ) -> builtins.list[RunOutcome]: ...
    async def resume(
        self,
        run_id: str | None = None,
        *,
        workflow: str | None = None,
        all: bool = False,
        **filters: Unpack[BulkFilters],
    ) -> builtins.list[RunOutcome] | None:
        """Let a run go on that is parked or paused; or a workflow, a queue, everything, or the parked runs that fit."""
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
    ) -> builtins.list[RunOutcome] | None:
        given_filters = only_given(filters)
        is_queue = given_filters.keys() == {"queue"} and workflow is None
        is_bulk = bool(given_filters) and not is_queue
        if [run_id is not None, workflow is not None and not is_bulk, is_queue, everything, is_bulk].count(True) != 1:
            wanted = "give a run, workflow=, queue=, all=True, or filters"
            raise InvalidArgumentError(f"engine.{verb}", "run_id", run_id, wanted)
        if is_bulk:
            chosen = plain_filters(given_filters) | (body or {})
            outcomes: builtins.list[RunOutcome] = (
                await self.operate(f"bulk.{verb}", body=only_given({**chosen, "workflow": workflow}))
            ).items
            return outcomes
        if run_id is not None:
            await self.operate(f"runs.{verb}", body=body, run_id=run_id)
            return None
        if workflow is not None:
            await self.operate(f"workflows.{verb}", body=body, name=workflow)
        elif is_queue:
            await self.operate(f"queues.{verb}", body=body, name=given_filters["queue"])
        else:
            await self.operate(f"store.{verb}", body=body)
        return []

    async def skip_step(self, run_id: str, call: str | None = None, *, result: Any = UNSET) -> None:
        """Let a parked run go on without a step that is in flight."""
        body = only_given({"call": call}) | (
            {} if result is UNSET else {"result": plain_json("engine.skip_step", result)}
        )
        await self.operate("runs.skip_step", body=body, run_id=run_id)

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
    ) -> RemoteRun[Any]:
        """Start a new run with the history of another one up to some point, edited. See `Engine.fork`."""
        options = {"at": at, "set": set, "input": input, "version": version, "id": id, "reason": reason}
        body = only_given(plain_json("engine.fork", options))
        return RemoteRun(self, (await self.operate("runs.fork", body=body, run_id=run_id)).id)

    async def purge(self, *, older_than: given.Span = KEEP_SECONDS_MIN, **filters: Unpack[WorkflowFilters]) -> Purge:
        """Delete runs that have ended, for good. See `Engine.purge`; archives are written where the store is."""
        seconds = seconds_of("engine.purge", "older_than", older_than)
        body = only_given({**plain_filters(filters), "older_than": seconds})
        found: Purge = await self.operate("bulk.purge", body=body)
        return found

    def __repr__(self) -> str:
        return f"<Remote {self.url}>"
