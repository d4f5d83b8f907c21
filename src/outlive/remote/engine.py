"""An engine behind an HTTP API, and its runs: the same verbs, which return when what they did is durable there."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, overload

import msgspec
from msgspec import UNSET

from outlive._define.workflow import Startable, Workflow, bound
from outlive._journal.plain import plain_json
from outlive._model import RunStatus
from outlive._runtime.clock import SystemClock
from outlive._runtime.wakeup import Wakeup
from outlive.client.finding import Count, Page
from outlive.engine.sync import SyncEngine
from outlive.errors import (
    AskFailed,
    AskTimeoutError,
    ConfigurationError,
    EngineClosedError,
    InvalidArgumentError,
    ResultTimeoutError,
    RunParkedError,
    UnreachableError,
)
from outlive.http.operation import OPERATIONS
from outlive.http.operations.approvals import ApprovalView
from outlive.http.operations.recovery import IncompleteView
from outlive.http.wire.runs import (
    AnswerView,
    DecisionView,
    EventView,
    NotAnswered,
    NotEnded,
    OutcomeView,
    ResultView,
    RunView,
)
from outlive.remote.batch import RemoteBatch
from outlive.remote.flows import RemoteFlows
from outlive.remote.following import Message, follow
from outlive.remote.operating import RemoteAudit, RemoteEvents, RemoteKeys, RemoteQueues, RemoteSchedules
from outlive.remote.refusal import raise_refusal
from outlive.remote.transport import BROKEN, Answer, Transport
from outlive.remote.values import (
    answer_of,
    failure_of,
    only_given,
    plain_filters,
    query_of,
    result_of,
    start_of,
    target_of,
)

R = TypeVar("R")

THREADS_MAX = 64
"""Requests at once; a caller that waits for a result has one of them."""
AGAIN = frozenset({429, 502, 503, 504})
"""Answers of a server, or of what stands before it, that has not done anything yet."""
TRY_SECONDS_MIN = 0.1
PAUSE_FIRST_SECONDS, PAUSE_MAX_SECONDS = 0.05, 2.0
WAIT_SECONDS = 20.0
"""How long the server is asked to wait for an end before it is asked again."""


class Remote:
    """Talks to one server. An async context manager; `sync` is the same for code without an event loop."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._clock = SystemClock()
        self._threads: ThreadPoolExecutor | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sync = SyncEngine(self)
        self.queues, self.schedules, self.events = RemoteQueues(self), RemoteSchedules(self), RemoteEvents(self)
        self.audit, self.keys, self.flows = RemoteAudit(self), RemoteKeys(self), RemoteFlows(self)
        self.url = transport.origin

    async def __aenter__(self) -> Self:
        if self._threads is not None:
            raise ConfigurationError("this connection is open already; call outlive.connect(...) for another one")
        self._threads = ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="outlive-connect")
        self._loop = asyncio.get_running_loop()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        threads, self._threads, self._loop = self._threads, None, None
        if threads is not None:
            threads.shutdown(wait=False, cancel_futures=True)
        self._transport.close()

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop that entered it; None while it is closed."""
        return self._loop

    @property
    def sync(self) -> SyncEngine:
        """The same verbs without `await`: `with outlive.connect(...).sync as engine:`."""
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
        operation = OPERATIONS[operation_name]
        sent = None if body is None else msgspec.json.encode(body)
        target = target_of(operation, path)
        send = partial(self._transport.send, operation.method, target, query=query, body=sent, key=self._clock.new_id())
        answer = await self._answer(send, self._transport.timeout + patience)
        if answer.status >= 400:
            raise_refusal(answer)
        return answer_of(operation, answer.status, answer.body)

    async def follow(
        self, operation_name: str, query: Mapping[str, object] | None = None, /, **path: str
    ) -> AsyncIterator[Message]:
        """The messages of an operation that sends them one by one, until it is over."""
        target = target_of(OPERATIONS[operation_name], path)
        async for message in follow(self._transport, target, query or {}, in_thread=self._in_thread):
            yield message

    async def _in_thread(self, call: Callable[[], Any]) -> Any:
        if self._threads is None:
            raise EngineClosedError("this connection")
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    async def _answer(self, send: Callable[..., Answer], seconds: float) -> Answer:
        """The answer to a request, which is sent until there is one or the time is over."""
        loop = asyncio.get_running_loop()
        deadline, pause = loop.time() + seconds, PAUSE_FIRST_SECONDS
        while True:
            left = max(deadline - loop.time(), TRY_SECONDS_MIN)
            try:
                answer: Answer = await self._in_thread(partial(send, timeout=left))
                if answer.status not in AGAIN or left <= answer.wait:
                    return answer
                wait = answer.wait
            except BROKEN as error:
                if left <= pause:
                    reason = str(error) or type(error).__name__
                    raise UnreachableError(self.url, f"gave no answer: {reason}") from error
                wait = 0.0
            await Wakeup().sleep(min(max(pause, wait), left))
            pause = min(pause * 2, PAUSE_MAX_SECONDS)

    # -- Starting --------------------------------------------------------------------------------------------

    @overload
    async def start(self, workflow: Startable[*tuple[Any, ...], R], *args: Any, **options: Any) -> RemoteRun[R]: ...
    @overload
    async def start(
        self, workflow: str, arguments: Mapping[str, Any] | Sequence[Any] | None = None, **options: Any
    ) -> RemoteRun[Any]: ...
    async def start(self, workflow: Any, *args: Any, **options: Any) -> RemoteRun[Any]:
        """Start a run; it is durable when this returns.

        Args:
            workflow: its function with its arguments, if this program has it; else its name, and the arguments by name
                or in a list.
            options: id, on_conflict, timeout, tags, headers, queue, key, priority, delay, start_at and version, as
                `Engine.start_by_name` takes them.
        """
        if isinstance(workflow, str):
            return await self.start_by_name(workflow, *args, **options)
        spec = bound(workflow, args).workflow.spec
        arguments = plain_json("engine.start", list(args))
        run = await self.start_by_name(spec.name, arguments, version=spec.version, **options)
        codec = spec.signature.result
        return RemoteRun(
            self, run.id, lambda found: codec.decode(msgspec.json.encode(found), f"the result of run {run.id}")
        )

    async def start_by_name(
        self,
        workflow: str,
        arguments: Mapping[str, Any] | Sequence[Any] | None = None,
        *,
        version: int | None = None,
        id: str | None = None,
        on_conflict: str = "attach",
        timeout: float | None = None,
        tags: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        queue: str | None = None,
        key: str | None = None,
        priority: int | None = None,
        delay: float | None = None,
        start_at: datetime | None = None,
    ) -> RemoteRun[Any]:
        """Start a run by the name of its workflow. See `Engine.start_by_name`."""
        body = {
            "workflow": workflow,
            "arguments": None if arguments is None else plain_json("engine.start_by_name", arguments),
            "version": version,
            "id": id,
            "on_conflict": on_conflict,
            "timeout": timeout,
            "tags": tags,
            "headers": headers,
            "queue": queue,
            "key": key,
            "priority": priority,
            "delay": delay,
            "start_at": start_at,
        }
        return RemoteRun(self, (await self.operate("start_run", body=only_given(body))).id)

    def get(self, run_id: str) -> RemoteRun[Any]:
        """A handle of a run; whether there is such a run shows when it is used."""
        return RemoteRun(self, run_id)

    async def start_batch(
        self,
        workflow: str | Workflow[..., Any],
        rows: Iterable[Any],
        *,
        version: int | None = None,
        concurrency: int = 20,
        id: str | None = None,
        failures_max: int | None = None,
        tags: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        queue: str | None = None,
        key: str | None = None,
        priority: int | None = None,
    ) -> RemoteBatch:
        """Run a workflow for each row, so many at once. See `Engine.start_batch`; the rows go in one request.

        Args:
            failures_max: how many items may fail; any number unless given.
        """
        spec = None if isinstance(workflow, str) else workflow.spec
        body = {
            "workflow": workflow if spec is None else spec.name,
            "rows": plain_json("engine.start_batch", list(rows)),
            "version": version if spec is None else spec.version,
            "concurrency": concurrency,
            "id": id,
            "failures_max": failures_max,
            "tags": tags,
            "headers": headers,
            "queue": queue,
            "key": key,
            "priority": priority,
        }
        return RemoteBatch(self, (await self.operate("start_batch", body=only_given(body))).id)

    def get_batch(self, batch_id: str) -> RemoteBatch:
        """A handle of a batch."""
        return RemoteBatch(self, batch_id)

    # -- Looking ---------------------------------------------------------------------------------------------

    async def list(
        self, *, order: str = "-created_at", limit: int = 100, after: str | None = None, **filters: Any
    ) -> Page[RunView]:
        """A page of the runs that fit, newest first. The filters are those of `Engine.list`."""
        query = query_of(filters) | {"order": order, "limit": limit, "after": after}
        found = await self.operate("list_runs", query=query)
        return Page(found.items, next=found.next, previous=found.previous)

    async def count(self, *, limit: int = 10_000, **filters: Any) -> Count:
        """How many runs fit."""
        found = await self.operate("count_runs", query=query_of(filters) | {"limit": limit})
        return Count(found.count, at_least=found.at_least)

    async def info(self, run_id: str) -> RunView:
        """A run as its row says it."""
        found: RunView = await self.operate("get_run", run_id=run_id)
        return found

    async def why(self, run_id: str) -> str:
        """What a run waits for, or how it ended, in one sentence."""
        found: str = (await self.operate("why", run_id=run_id)).why
        return found

    async def history(self, run_id: str) -> builtins.list[EventView]:
        """The journal of the tree that a run belongs to, without what is redacted."""
        events: builtins.list[EventView] = []
        after: int | None = -1
        while after is not None:
            found = await self.operate("history", query={"after": after}, run_id=run_id)
            events += found.items
            after = found.next
        return events

    async def approvals(
        self, run_id: str | None = None, *, assignee: str | None = None, limit: int = 100, **filters: Any
    ) -> Page[ApprovalView]:
        """What runs ask people for, of the oldest runs first; with a `run_id` all that this run has asked for. The
        filters are those of `Engine.approvals`."""
        if run_id is not None:
            found = await self.operate("run_approvals", run_id=run_id)
        else:
            found = await self.operate(
                "list_approvals", query=query_of(filters) | {"assignee": assignee, "limit": limit}
            )
        return Page(found.items, next=found.next, previous=found.previous)

    async def recovery(self, *, limit: int = 100, before: str | None = None) -> builtins.list[IncompleteView]:
        """Runs that do not move and why, the newest first; `before` is the id of the last one of the page before."""
        found = await self.operate("list_incomplete", query={"limit": limit, "before": before})
        items: builtins.list[IncompleteView] = found.items
        return items

    async def workflows(self) -> Any:
        """What workers can run, and what it takes."""
        return (await self.operate("list_workflows")).items

    async def result(self, run_id: str, timeout: float | None = None) -> Any:
        """Wait for the result of a run, as plain JSON. See `RemoteRun.result`."""
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        while True:
            wait = WAIT_SECONDS if deadline is None else min(WAIT_SECONDS, max(0.0, deadline - loop.time()))
            found = await self.operate("result", query={"wait": wait}, run_id=run_id, patience=wait)
            if isinstance(found, ResultView):
                return result_of(found)
            assert isinstance(found, NotEnded)
            if found.status == "parked":
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
        await self.operate("signal", body=body, run_id=run_id, name=name)

    async def ask(
        self,
        run_id: str,
        name: str,
        body: Any = None,
        *,
        key: str | None = None,
        start: tuple[Any, ...] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Ask a run something, and wait for its answer, which it gives exactly once. `start` as for `signal`."""
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        wait = WAIT_SECONDS if timeout is None else min(WAIT_SECONDS, timeout)
        started = start_of("engine.ask", start, headers)
        sent = only_given({"body": plain_json("engine.ask", body), "key": key, "wait": wait, "start": started})
        found = await self.operate("ask", body=sent, run_id=run_id, name=name, patience=wait)
        while isinstance(found, NotAnswered):
            if deadline is not None and loop.time() >= deadline:
                assert timeout is not None
                raise AskTimeoutError(run_id, name, found.key, seconds=timeout, why=found.why)
            wait = WAIT_SECONDS if deadline is None else min(WAIT_SECONDS, deadline - loop.time())
            found = await self.operate(
                "answer", query={"wait": max(0.0, wait)}, run_id=run_id, name=name, key=found.key, patience=wait
            )
        assert isinstance(found, AnswerView)
        if found.failure is not None:
            raise AskFailed(run_id, name, found.key, failure_of(found.failure))
        return found.answer

    async def approve(
        self, run_id: str, name: str, *, form: Any = None, comment: str = "", request: str | None = None
    ) -> DecisionView:
        """Approve what a run asks for, as the owner of the key. The first decision is the only one."""
        return await self._decide("approve", run_id, name, form, comment, request)

    async def reject(
        self, run_id: str, name: str, *, form: Any = None, comment: str = "", request: str | None = None
    ) -> DecisionView:
        """Reject what a run asks for, as the owner of the key."""
        return await self._decide("reject", run_id, name, form, comment, request)

    async def _decide(
        self, verb: str, run_id: str, name: str, form: Any, comment: str, request: str | None
    ) -> DecisionView:
        body = only_given({"form": plain_json(f"engine.{verb}", form), "comment": comment, "request": request})
        found: DecisionView = await self.operate(verb, body=body, run_id=run_id, name=name)
        return found

    async def resolve(self, promise: str, value: Any = None) -> bool:
        """Settle a promise of a run with a value; whether it was this call that settled it."""
        body = {"value": plain_json("engine.resolve", value)}
        is_new: bool = (await self.operate("resolve_promise", body=body, promise_id=promise)).is_new
        return is_new

    async def fail(self, promise: str, error: Exception) -> bool:
        """Settle a promise of a run with an error, which the run gets with its name and its message."""
        body = {"message": str(error), "type": type(error).__name__}
        is_new: bool = (await self.operate("fail_promise", body=body, promise_id=promise)).is_new
        return is_new

    # -- Operating -------------------------------------------------------------------------------------------

    async def cancel(self, run_id: str | None = None, *, reason: str = "", **filters: Any) -> Sequence[OutcomeView]:
        """Ask a run, or those that fit, to stop."""
        return await self._act("cancel", run_id, reason, filters)

    async def retry(self, run_id: str | None = None, *, reason: str = "", **filters: Any) -> Sequence[OutcomeView]:
        """Let a run, or those that fit, go on at what failed."""
        return await self._act("retry", run_id, reason, filters)

    async def _act(
        self, verb: str, run_id: str | None, reason: str, filters: Mapping[str, Any]
    ) -> Sequence[OutcomeView]:
        if run_id is not None:
            await self.operate(verb, body={"reason": reason}, run_id=run_id)
            return ()
        outcomes: Sequence[OutcomeView] = (
            await self.operate(f"{verb}_runs", body=only_given({**plain_filters(filters), "reason": reason}))
        ).items
        return outcomes

    async def pause(
        self, run_id: str | None = None, *, workflow: str | None = None, queue: str | None = None, reason: str = ""
    ) -> None:
        """Let a run begin nothing more; or all runs of a workflow, or of a queue."""
        await self._gate("pause", run_id, workflow, queue, {"reason": reason})

    async def resume(self, run_id: str | None = None, *, workflow: str | None = None, queue: str | None = None) -> None:
        """Let a run go on that is parked or paused; or a workflow, or a queue."""
        await self._gate("resume", run_id, workflow, queue, None)

    async def _gate(
        self, verb: str, run_id: str | None, workflow: str | None, queue: str | None, body: dict[str, Any] | None
    ) -> None:
        if [run_id, workflow, queue].count(None) != 2:
            raise InvalidArgumentError(f"engine.{verb}", "run_id", run_id, "give a run, workflow= or queue=")
        if run_id is not None:
            await self.operate(verb, body=body, run_id=run_id)
        elif workflow is not None:
            await self.operate(f"{verb}_workflow", body=body, name=workflow)
        elif queue is not None:
            await self.operate(f"{verb}_queue", body=body, name=queue)

    async def skip_step(self, run_id: str, call: str | None = None, *, result: Any = UNSET) -> None:
        """Let a parked run go on without a step that is in flight."""
        body = only_given({"call": call}) | (
            {} if result is UNSET else {"result": plain_json("engine.skip_step", result)}
        )
        await self.operate("skip_step", body=body, run_id=run_id)

    async def fork(self, run_id: str, **options: Any) -> RemoteRun[Any]:
        """Start a new run with the history of another one up to some point, edited. The options of `Engine.fork`."""
        body = only_given(plain_json("engine.fork", options))
        return RemoteRun(self, (await self.operate("fork", body=body, run_id=run_id)).id)

    def __repr__(self) -> str:
        return f"<Remote {self.url}>"


class RemoteRun(Generic[R]):
    """One run, wherever it runs."""

    def __init__(self, remote: Remote, run_id: str, decode: Any = None) -> None:
        self._remote = remote
        self._decode = decode
        self.id = run_id

    async def result(self, timeout: float | None = None) -> R:
        """Wait for the result: as the workflow's own type if it was started by its function, else as plain JSON.

        Raises:
            RunFailed: the run failed, was cancelled (`RunCancelled`) or took too long (`RunTimedOut`).
            RunParkedError: it is parked. ResultTimeoutError: it has not ended within `timeout` seconds; it goes on.
        """
        found = await self._remote.result(self.id, timeout)
        result: R = found if self._decode is None else self._decode(found)
        return result

    async def info(self) -> RunView:
        """The run as its row says it."""
        return await self._remote.info(self.id)

    async def status(self) -> RunStatus:
        """Where it is in its life."""
        return RunStatus((await self.info()).status)

    async def why(self) -> str:
        """One sentence: what it waits for, or how it ended."""
        return await self._remote.why(self.id)

    async def history(self) -> list[EventView]:
        """The journal of its tree, without what is redacted."""
        return await self._remote.history(self.id)

    async def published(self) -> dict[str, Any]:
        """What it last showed of itself with `outlive.publish`."""
        found: dict[str, Any] = (await self._remote.operate("published", run_id=self.id)).fields
        return found

    async def follow(self, *, streams: Sequence[str] = ()) -> AsyncIterator[Message]:
        """Everything that happens to it, until it has ended: messages with a name, data and an id, as
        `GET /runs/{id}/follow` of the API sends them."""
        async for message in self._remote.follow("follow_one_run", {"stream": list(streams)}, run_id=self.id):
            yield message

    async def stream(self, name: str, *, after: int = 0) -> AsyncIterator[Any]:
        """What it emits to a stream, in order, from the first item on; ends when the run has ended."""
        async for message in self._remote.follow("follow_one_stream", {"after": after}, run_id=self.id, name=name):
            if message.name == "stream":
                yield message.data["value"]

    async def watch(self) -> AsyncIterator[dict[str, Any]]:
        """What it shows of itself with `outlive.publish`, whenever that changes; ends when the run has ended."""
        async for message in self.follow():
            if message.name == "published":
                yield message.data

    async def signal(self, name: str, payload: Any = None, *, key: str | None = None) -> None:
        """Send it a signal. See `Engine.signal`."""
        await self._remote.signal(self.id, name, payload, key=key)

    async def ask(self, name: str, body: Any = None, *, key: str | None = None, timeout: float | None = None) -> Any:
        """Ask it something, and wait for its answer. See `Engine.ask`."""
        return await self._remote.ask(self.id, name, body, key=key, timeout=timeout)

    async def approve(
        self, name: str, *, form: Any = None, comment: str = "", request: str | None = None
    ) -> DecisionView:
        """Approve what it asks for, as the owner of the key."""
        return await self._remote.approve(self.id, name, form=form, comment=comment, request=request)

    async def reject(
        self, name: str, *, form: Any = None, comment: str = "", request: str | None = None
    ) -> DecisionView:
        """Reject what it asks for, as the owner of the key."""
        return await self._remote.reject(self.id, name, form=form, comment=comment, request=request)

    async def cancel(self, *, reason: str = "") -> None:
        """Ask it to stop."""
        await self._remote.cancel(self.id, reason=reason)

    async def retry(self, *, reason: str = "") -> None:
        """Let it go on at what failed."""
        await self._remote.retry(self.id, reason=reason)

    async def pause(self, *, reason: str = "") -> None:
        """Let it begin nothing more."""
        await self._remote.pause(self.id, reason=reason)

    async def resume(self) -> None:
        """Let it go on."""
        await self._remote.resume(self.id)

    async def skip_step(self, call: str | None = None, *, result: Any = UNSET) -> None:
        """Let it go on without the step in flight."""
        await self._remote.skip_step(self.id, call, result=result)

    def __repr__(self) -> str:
        return f"<RemoteRun {self.id}>"
