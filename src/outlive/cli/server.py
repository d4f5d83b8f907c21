"""The verbs of an engine behind `outlive serve`, in the shapes in which commands know them.

`outlive.connect` gives what is on the wire. Commands are written for runs and events as an engine has them, so that
there is one of each command: here the one becomes the other. What is redacted is hidden by the server.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from outlive._journal import event as journal
from outlive._model import Failure, Payload, Run, RunStatus, Wait, WaitKind
from outlive._model.approval import Approval
from outlive._model.instant import microseconds_of
from outlive._model.under_way import StepUnderWay
from outlive._store.contract import WorkerInfo
from outlive.client.audit import ApprovalEntry
from outlive.client.finding import Count, Page
from outlive.client.following import JournalEntry
from outlive.client.recovery import Incomplete, IncompleteKind
from outlive.client.view import ITEMS_PAGE
from outlive.client.why import is_stopped
from outlive.errors import OutliveError, RunParkedError, ServerError
from outlive.http.wire.runs import EventView, RunView
from outlive.remote import Remote, RemoteRun, connect
from outlive.remote.operating import worker_of
from outlive.remote.values import failure_of

if TYPE_CHECKING:
    from outlive._journal.event import AnyEvent

UNAUTHENTICATED = 401
TIMEOUT_SECONDS = 10.0
"""How long a server may be away before a person hears of it."""


@asynccontextmanager
async def open_server(url: str) -> AsyncIterator[Server]:
    """A server by its address; the key is in OUTLIVE_KEY."""
    async with connect(url, timeout=TIMEOUT_SECONDS) as remote:
        try:
            yield Server(remote, has_key=bool(os.environ.get("OUTLIVE_KEY")))
        except ServerError as error:
            if error.status == UNAUTHENTICATED:
                error.add_note("a command takes it from OUTLIVE_KEY")
            raise
        except OutliveError as error:
            # The message says what to do, as on a store; the note of a server says what to request.
            error.__notes__ = []
            raise


class Server:
    """The verbs that commands use, over HTTP."""

    def __init__(self, remote: Remote, *, has_key: bool) -> None:
        self._remote = remote
        self._has_key = has_key
        """With a key the server knows who decides; without, a person says so."""
        self.cancel, self.retry = remote.cancel, remote.retry
        self.signal, self.ask = remote.signal, remote.ask
        self.skip_step, self.fork = remote.skip_step, remote.fork
        self.workflows = remote.workflows
        self.list_batches, self.get_batch = remote.list_batches, remote.get_batch
        self.queues, self.schedules, self.events = remote.queues, remote.schedules, remote.events
        self.audit, self.keys, self.flows, self.bulk = remote.audit, remote.keys, remote.flows, remote.bulk
        self.view = ServerView(remote)

    def get(self, run_id: str) -> ServerRun:
        """A handle of a run."""
        return ServerRun(self._remote, run_id)

    async def steps(self, run_id: str, *, arguments: bool = False, redacted: bool = True) -> list[StepUnderWay]:
        """See `Engine.steps`."""
        return await self._remote.steps(run_id, arguments=arguments)

    async def history(self, run_id: str, *, redacted: bool = True) -> list[AnyEvent]:
        """The journal of the tree of a run. See `Engine.history`."""
        return await self.get(run_id).history(redacted=redacted)

    async def count(self, **options: Any) -> Count:
        """How many runs fit. See `Engine.count`."""
        return await self._remote.count(**options)

    async def recovery(self, *, limit: int, before: Run | None = None) -> list[Incomplete]:
        """Runs that do not move, and why. See `Engine.recovery`."""
        query = {"limit": limit, "before": None if before is None else before.id}
        found = await self._remote.operate("list_incomplete", query=query)
        return [Incomplete(run=run_of(it.run), kind=IncompleteKind(it.kind), reason=it.reason) for it in found.items]

    async def pause(
        self, run_id: str | None = None, *, workflow: str = "", queue: str = "", all: bool = False, **why: str
    ) -> None:
        """Pause a run, a workflow or a queue. The server knows by the key who does it."""
        body = {"reason": why.get("reason", "")}
        if run_id is not None:
            await self._remote.operate("pause", body=body, run_id=run_id)
        elif workflow:
            await self._remote.operate("pause_workflow", body=body, name=workflow)
        elif queue:
            await self._remote.operate("pause_queue", body=body, name=queue)
        else:
            assert all, "something is to be paused"
            await self._remote.operate("pause_all", body=body)

    async def resume(
        self, run_id: str | None = None, *, workflow: str = "", queue: str = "", all: bool = False
    ) -> None:
        """Let a run, a workflow or a queue go on."""
        if run_id is not None:
            await self._remote.resume(run_id)
        elif workflow:
            await self._remote.operate("resume_workflow", name=workflow)
        elif queue:
            await self._remote.operate("resume_queue", name=queue)
        else:
            assert all, "something is to go on"
            await self._remote.operate("unpause_all")

    async def approve(self, run_id: str, name: str, *, by: str, **options: Any) -> Approval[Any]:
        """Approve what a run asks for. See `Engine.approve`."""
        return await self._decide("approve", run_id, name, by, options)

    async def reject(self, run_id: str, name: str, *, by: str, **options: Any) -> Approval[Any]:
        """Reject what a run asks for."""
        return await self._decide("reject", run_id, name, by, options)

    async def _decide(self, verb: str, run_id: str, name: str, by: str, options: dict[str, Any]) -> Approval[Any]:
        body = {key: value for key, value in options.items() if value is not None}
        if not self._has_key:
            body["by"] = by
        found = await self._remote.operate(verb, body=body, run_id=run_id, name=name)
        return Approval(found.name, found.approved, found.by, found.at, found.comment, found.form, found.is_yours)

    async def approvals(self, run_id: str | None = None, **options: Any) -> Page[ApprovalEntry]:
        """What runs ask people for. See `Engine.approvals`."""
        if run_id is not None:
            found = await self._remote.operate("run_approvals", run_id=run_id)
        else:
            found = await self._remote.operate("list_approvals", query=_query(options))
        return Page([_approval_of(view) for view in found.items], next=found.next, previous=found.previous)


class ServerView:
    """`engine.view`, as far as commands use it."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    async def run(self, run_id: str) -> Run:
        """See `View.run`."""
        return run_of(await self._remote.info(run_id))

    async def failed_items(self, batch_id: str, *, limit: int) -> list[tuple[int, Failure]]:
        """See `View.failed_items`."""
        failed: list[tuple[int, Failure]] = []
        after: int | None = -1
        while after is not None and len(failed) < limit:
            query = {"after": after, "status": "failed", "limit": ITEMS_PAGE}
            page = await self._remote.operate("list_items", query=query, batch_id=batch_id)
            failed += [(it.index, failure_of(it.failure)) for it in page.items if it.failure is not None]
            after = page.next
        return failed[:limit]

    async def runs(self, **options: Any) -> Page[Run]:
        """A page of runs. See `View.runs`."""
        page = await self._remote.list(**options)
        return Page([run_of(view) for view in page], next=page.next, previous=page.previous)

    async def workers(self) -> tuple[list[WorkerInfo], int]:
        """See `View.workers`."""
        found = await self._remote.operate("list_workers")
        return [worker_of(view) for view in found.items], microseconds_of(found.now)


class ServerRun:
    """One run behind a server."""

    def __init__(self, remote: Remote, run_id: str) -> None:
        self._run: RemoteRun[Any] = remote.get(run_id)
        self.id, self.why, self.result = run_id, self._run.why, self._run.result

    async def info(self) -> Run:
        """The run as its row says it."""
        return run_of(await self._run.info())

    async def history(self, *, redacted: bool = True) -> list[AnyEvent]:
        """The journal of its tree; always without what is redacted."""
        assert redacted, "a server gives nothing else"
        root_id = (await self.info()).root_id
        return [event_of(view, root_id) for view in await self._run.history()]

    async def follow(self, *, after: int = -1, redacted: bool = True) -> AsyncIterator[JournalEntry]:
        """The journal of its tree as it grows. See `RunHandle.follow`."""
        assert redacted, "a server gives nothing else"
        root_id, last = (await self.info()).root_id, -1
        async for message in self._run.follow():
            if message.name == "journal":
                view = msgspec.convert(message.data, EventView)
                # A next generation has a journal of its own, which begins again.
                after, last = (-1 if view.seq <= last else after), view.seq
                if view.seq > after:
                    yield JournalEntry(view.seq, event_of(view, root_id))
            elif message.name == "run":
                run = run_of(msgspec.convert(message.data, RunView))
                if run.number == 0 and is_stopped(run):
                    raise RunParkedError(run.id, run.reason)


def _query(options: dict[str, Any]) -> dict[str, Any]:
    query = {key: value for key, value in options.items() if value is not None}
    tags = query.pop("tags", {})
    if tags:
        query["tag"] = [f"{name}={value}" for name, value in tags.items()]
    return {key: value.isoformat() if isinstance(value, datetime) else value for key, value in query.items()}


# -- From the wire -----------------------------------------------------------------------------------------------------


def run_of(view: RunView) -> Run:
    """A run as an engine has it."""
    return Run(
        id=view.id,
        number=view.number,
        root_id=view.root_id,
        parent_id=view.parent_id,
        workflow=view.workflow,
        version=view.version,
        nonce=0,
        status=RunStatus(view.status),
        waits=tuple(
            Wait(kind=WaitKind(it.kind), name=it.name, until_at=_at(it.until), detail=it.detail) for it in view.waits
        ),
        wake_at=_at(view.wake_at),
        owner=view.worker,
        attempts=view.attempts,
        created_at=microseconds_of(view.created_at),
        updated_at=microseconds_of(view.updated_at),
        finished_at=_at(view.finished_at),
        timeout_at=_at(view.timeout_at),
        begin_by=_at(view.begin_by),
        tags=view.tags,
        reason=view.reason,
        failure=None if view.failure is None else failure_of(view.failure),
        queue=view.queue,
        queue_key=view.queue_key,
    )


def _at(instant: datetime | None) -> int | None:
    return None if instant is None else microseconds_of(instant)


_HIDDEN: dict[str, Any] = {"RunForked": {"seed": 0}}
"""What the wire leaves out and an event needs."""


def event_of(view: EventView, root_id: str) -> AnyEvent:
    """An event as a redacted history of an engine has it."""
    kind = getattr(journal, view.type)
    number = 0 if view.run_id == root_id else int(view.run_id.removeprefix(f"{root_id}~"))
    fields = {"at": microseconds_of(view.at), "run": number, **_HIDDEN.get(view.type, {}), **view.data}
    event: AnyEvent = _struct_of(kind, fields)
    return event


def _struct_of(kind: Any, fields: dict[str, Any]) -> Any:
    plain = {field.encode_name: _wrapped(field, fields[field.name]) for field in _fields(kind) if field.name in fields}
    return msgspec.json.decode(msgspec.json.encode(plain), type=kind)


def _fields(kind: Any) -> tuple[Any, ...]:
    return msgspec.structs.fields(kind)


def _wrapped(field: Any, value: Any) -> Any:
    """What stands on the wire as it is, as the journal has it: payloads in their envelope, waits by their own names."""
    if field.type is Payload:
        return {"v": value}  # Also null: a signal without a payload has that.
    if field.type == Payload | None:
        return None if value is None else {"v": value}
    if field.name == "waits":
        return [{it.encode_name: wait[it.name] for it in _fields(Wait) if it.name in wait} for wait in value]
    if field.name == "created":
        nested = {
            it.encode_name: _wrapped(it, value[it.name]) for it in _fields(journal.RunCreated) if it.name in value
        }
        return {"t": journal.RunCreated.__name__, **nested}
    if field.name in ("signals", "asks", "set_aside"):
        return []  # Nothing of them is shown.
    return value


def _approval_of(view: Any) -> ApprovalEntry:
    made = view.decision
    return ApprovalEntry(
        id=view.id,
        run_id=view.run_id,
        name=view.name,
        status=view.status,
        title=view.title,
        assignees=tuple(view.assignees),
        schema=view.schema,
        requested_at=view.requested_at,
        deadline=view.deadline,
        escalated_at=view.escalated_at,
        decision=None
        if made is None
        else Approval(made.name, made.approved, made.by, made.at, made.comment, made.form, made.is_yours),
        closed_at=view.closed_at,
        reason=view.reason,
        age=timedelta(seconds=view.age),
    )
