"""The verbs for a whole store, through a server of it: `engine.queues`, `schedules`, `events`, `audit` and `keys`.

The answers are those of an engine: what is on the wire becomes the same values.
"""

from __future__ import annotations

import builtins
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Unpack

import msgspec

from outlive._define.bulk import BulkVerb
from outlive._define.workflow import Workflow
from outlive._model import given
from outlive._model.instant import instant_of
from outlive._model.queue import Queue
from outlive._model.retention import KEEP_SECONDS_MIN
from outlive._model.schedule import Schedule
from outlive._model.trigger import Sent, TriggerInfo
from outlive._runtime.clock import SystemClock
from outlive._runtime.wakeup import Wakeup
from outlive._values.audit import AuditCheck, AuditEntry
from outlive._values.key import ApiKey, NewKey
from outlive._values.queue import QueueState
from outlive._values.schedule import ScheduleInfo
from outlive._values.sink import Sink
from outlive._values.worker import Worker
from outlive._values.workflow import WorkflowInfo
from outlive.client.bulk import TreeFilters
from outlive.client.bulk_operations import BulkOperation, BulkProgress
from outlive.client.finding import Page
from outlive.client.handle import RunHandle
from outlive.client.queues import changeable_limits
from outlive.client.schedules.verbs import BackfillOverlap, TriggerOverlap
from outlive.errors import InvalidArgumentError
from outlive.remote.connection import Connection
from outlive.remote.run import NewRun
from outlive.remote.values import attributed, name_of, only_given, plain_filters, query_of, refuse_of_store, seconds_of

LOOK_SECONDS = 0.25
"""How often a queue is looked at that is to be empty."""


class RemoteQueues:
    """`engine.queues`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def list(self) -> list[QueueState]:
        """See `Queues`."""
        items: builtins.list[QueueState] = (await self._connection.operate("queues.list")).items
        return items

    async def stats(self, queue: Queue | str) -> QueueState:
        """See `Queues`."""
        found: QueueState = await self._connection.operate("queues.get", name=name_of(queue))
        return found

    async def set(self, queue: Queue | str, **limits: Any) -> None:
        """See `Queues`."""
        body = changeable_limits("engine.queues.set", limits)
        await self._connection.operate("queues.set", body=body, name=name_of(queue))

    async def reset(self, queue: Queue | str) -> None:
        """See `Queues`."""
        await self._connection.operate("queues.reset", name=name_of(queue))

    async def pause(self, queue: Queue | str, *, by: str = "", reason: str = "") -> None:
        """See `Queues`."""
        await self._connection.operate("queues.pause", body=attributed(by, reason), name=name_of(queue))

    async def resume(self, queue: Queue | str) -> None:
        """See `Queues`."""
        await self._connection.operate("queues.resume", name=name_of(queue))

    async def drain(self, queue: Queue | str, *, by: str = "", reason: str = "draining") -> None:
        """See `Queues`."""
        await self.pause(queue, by=by, reason=reason)
        while (await self.stats(queue)).running:
            await Wakeup().sleep(LOOK_SECONDS)


class RemoteWorkers:
    """`engine.workers`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def list(self) -> builtins.list[Worker]:
        """See `Workers`."""
        items: builtins.list[Worker] = (await self._connection.operate("workers.list")).items
        return items


class RemoteSchedules:
    """`engine.schedules`."""

    def __init__(self, connection: Connection, new_run: NewRun) -> None:
        self._connection, self._new_run = connection, new_run

    async def list(self, *, after: str = "", limit: int = 100) -> list[ScheduleInfo]:
        """See `Schedules`."""
        found = await self._connection.operate("schedules.list", query={"after": after, "limit": limit})
        items: builtins.list[ScheduleInfo] = found.items
        return items

    async def get(self, name: str) -> ScheduleInfo:
        """See `Schedules`."""
        found: ScheduleInfo = await self._connection.operate("schedules.get", name=name)
        return found

    async def set(
        self, name: str, schedule: Schedule, workflow: str | Workflow[..., Any] | None = None
    ) -> ScheduleInfo:
        """See `Schedules`."""
        given.instance("engine.schedules.set", "schedule", schedule, Schedule, like="outlive.every(minutes=15)")
        target = workflow if workflow is None or isinstance(workflow, str) else workflow.spec.name
        body = msgspec.structs.asdict(schedule) | {"workflow": target}
        found: ScheduleInfo = await self._connection.operate("schedules.set", body=body, name=name)
        return found

    async def pause(self, name: str, *, by: str = "", reason: str = "") -> None:
        """See `Schedules`."""
        await self._connection.operate("schedules.pause", body=attributed(by, reason), name=name)

    async def resume(self, name: str) -> None:
        """See `Schedules`."""
        await self._connection.operate("schedules.resume", name=name)

    async def trigger(
        self, name: str, *, overlap: TriggerOverlap | None = None, id: str | None = None
    ) -> RunHandle[Any]:
        """A handle of the run. See `Schedules`."""
        found = await self._connection.operate("schedules.trigger", body={"overlap": overlap, "id": id}, name=name)
        return self._new_run(found.id)

    async def backfill(
        self, name: str, start: datetime, end: datetime, *, overlap: BackfillOverlap | None = None
    ) -> int:
        """See `Schedules`."""
        body = {"start": start, "end": end, "overlap": overlap}
        ticks: int = (await self._connection.operate("schedules.backfill", body=body, name=name)).ticks
        return ticks

    async def delete(self, name: str) -> None:
        """See `Schedules`."""
        await self._connection.operate("schedules.delete", name=name)


class RemoteEvents:
    """`engine.events`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def send(
        self,
        event_type: str,
        data: Any = None,
        *,
        id: str | None = None,
        source: str = "",
        headers: Mapping[str, str] | None = None,
        connection: Any = None,
    ) -> Sent:
        """See `Events`."""
        refuse_of_store("engine.events.send", connection=connection)
        body = {"type": event_type, "data": data, "id": id, "source": source, "headers": headers}
        found: Sent = await self._connection.operate("events.send", body=body)
        return found

    async def triggers(self) -> list[TriggerInfo]:
        """The workflows that events and webhooks start, by name."""
        items: builtins.list[TriggerInfo] = (await self._connection.operate("events.triggers")).items
        return items

    async def forget(self, workflow: str) -> None:
        """See `Events.forget`."""
        await self._connection.operate("events.forget", workflow=workflow)

    async def add_sink(self, name: str, url: str, *, types: Sequence[str] = ("*",), secret: str | None = None) -> None:
        """See `Events.add_sink`."""
        await self._connection.operate(
            "events.set_sink", body={"url": url, "types": list(types), "secret": secret}, name=name
        )

    async def remove_sink(self, name: str) -> None:
        """See `Events.remove_sink`."""
        await self._connection.operate("events.remove_sink", name=name)

    async def sinks(self) -> list[Sink]:
        """All sinks, by name."""
        items: builtins.list[Sink] = (await self._connection.operate("events.sinks")).items
        return items


class RemoteAudit:
    """`engine.audit`, for the keys of admins."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def list(
        self,
        *,
        actor: str | None = None,
        verb: str | None = None,
        target: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> Page[AuditEntry]:
        """See `AuditLog`."""
        filters = only_given({"actor": actor, "verb": verb, "target": target, "since": since, "until": until})
        query = query_of(filters) | {"limit": limit, "after": after}
        found = await self._connection.operate("audit.list", query=query)
        return Page(found.items, next=found.next)

    async def verify(
        self, *, since: str | None = None, keep: given.Span | None = None, key: bytes | None = None
    ) -> AuditCheck:
        """See `AuditLog`. The server has a key if its `KeepAudit` has one; none is sent."""
        where = "engine.audit.verify"
        if key is not None:
            wanted = "it is sent to no server: leave it out, and the server uses its own; or verify the store itself"
            raise InvalidArgumentError(where, "key", "...", wanted)
        seconds = given.some_seconds(where, "keep", keep)
        found: AuditCheck = await self._connection.operate("audit.verify", query={"since": since, "keep": seconds})
        return found


class RemoteKeys:
    """`engine.keys`, for the keys of admins."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def create(
        self,
        name: str,
        *,
        scope: str = "viewer",
        workflows: Collection[str] | None = None,
        tags: Mapping[str, str] | None = None,
        queues: Collection[str] | None = None,
        expires: given.Span | datetime | None = None,
    ) -> NewKey:
        """See `Keys`."""
        until = expires
        if expires is not None and not isinstance(expires, datetime):
            seconds = given.seconds("engine.keys.create", "expires", expires)
            until = instant_of(SystemClock().now()) + timedelta(seconds=seconds)
        names = None if workflows is None else given.texts("engine.keys.create", "workflows", workflows, like="order")
        lines = None if queues is None else given.texts("engine.keys.create", "queues", queues, like="gpu")
        marks = None if tags is None else given.tags("engine.keys.create", tags)
        body = {"name": name, "scope": scope, "workflows": names, "tags": marks, "queues": lines, "expires": until}
        found: NewKey = await self._connection.operate("keys.create", body=body)
        return found

    async def list(self) -> builtins.list[ApiKey]:
        """See `Keys`."""
        items: builtins.list[ApiKey] = (await self._connection.operate("keys.list")).items
        return items

    async def revoke(self, key_id: str, *, reason: str = "") -> ApiKey:
        """See `Keys`."""
        found: ApiKey = await self._connection.operate("keys.revoke", body={"reason": reason}, key_id=key_id)
        return found


class RemoteBulk:
    """`engine.bulk`."""

    def __init__(self, connection: Connection, new_run: NewRun) -> None:
        self._connection, self._new_run = connection, new_run

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
        """Do something to all runs that fit, in the background. See `BulkOperations.start`."""
        seconds = seconds_of("engine.bulk.start", "older_than", older_than)
        is_purge = verb == "purge"
        said = {"id": id, **attributed(by, reason)} | ({"older_than": seconds} if is_purge else {"verb": verb})
        name = "bulk.start_purge" if is_purge else "bulk.start"
        found = await self._connection.operate(name, body=only_given({**plain_filters(filters), **said}))
        return self.get(found.id)

    def get(self, operation_id: str) -> BulkOperation:
        """See `BulkOperations`."""
        return BulkOperation(self._new_run(operation_id), self._progress)

    async def _progress(self, operation_id: str) -> BulkProgress:
        found: BulkProgress = await self._connection.operate("bulk.get", operation_id=operation_id)
        return found

    async def list(self, *, limit: int = 20, after: str | None = None) -> Page[BulkProgress]:
        """Operations, the newest first, each with how far it has come."""
        found = await self._connection.operate("bulk.list", query=only_given({"limit": limit, "after": after}))
        return Page(found.items, next=found.next, previous=found.previous)


class RemoteWorkflows:
    """`engine.workflows.list`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def list(self) -> builtins.list[WorkflowInfo]:
        """See `Workflows.list`."""
        items: builtins.list[WorkflowInfo] = (await self._connection.operate("workflows.list")).items
        return items
