"""The protocols of the namespaces that an engine and a connection share.

Each protocol is a table of names, parameters and results. The classes of `client` carry the verbs out in a store, and
say what each of them does. The classes of `remote` carry them out through a server. `any_engine` has the rest.
"""

from __future__ import annotations

import builtins
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar

from outlive._features.events.values import Sink
from outlive._features.security.audit_values import AuditCheck, AuditEntry
from outlive._features.security.key_values import ApiKey, NewKey
from outlive._features.tasks.values import Task, TaskNotice
from outlive._features.tasks.verbs import LEASE_SECONDS
from outlive._kernel.client.finding import Page
from outlive._kernel.model import given
from outlive._kernel.model.queue import Queue
from outlive._kernel.model.trigger import Sent, TriggerInfo
from outlive._kernel.values.queue import QueueState
from outlive._kernel.values.step_info import StepInfo
from outlive._kernel.values.worker import Worker
from outlive._kernel.values.workflow import WorkflowInfo

T = TypeVar("T")


class PromiseVerbs(Protocol):
    """`engine.promises`."""

    async def resolve(self, promise: str, value: Any = None) -> bool:
        """See `Promises`."""

    async def fail(self, promise: str, error: Exception) -> bool:
        """See `Promises`."""


class QueueVerbs(Protocol):
    """`engine.queues`."""

    async def list(self) -> builtins.list[QueueState]:
        """See `Queues`."""

    async def stats(self, queue: Queue | str) -> QueueState:
        """See `Queues`."""

    async def set(self, queue: Queue | str, **limits: Any) -> None:
        """See `Queues`."""

    async def reset(self, queue: Queue | str) -> None:
        """See `Queues`."""

    async def pause(self, queue: Queue | str, *, by: str = "", reason: str = "") -> None:
        """See `Queues`."""

    async def resume(self, queue: Queue | str) -> None:
        """See `Queues`."""

    async def drain(self, queue: Queue | str, *, by: str = "", reason: str = "draining") -> None:
        """See `Queues`."""


class WorkerVerbs(Protocol):
    """`engine.workers`."""

    async def list(self) -> builtins.list[Worker]:
        """See `Workers`."""

    async def steps(self) -> builtins.list[StepInfo]:
        """The steps that live workers run, by name: what each takes and gives, as workers have said.

        Steps of Python and remote steps; a remote step has the name of its queue in front, as in a document."""


class WorkflowVerbs(Protocol):
    """`engine.workflows`."""

    async def list(self) -> builtins.list[WorkflowInfo]:
        """See `Workflows`."""


class TaskVerbs(Protocol):
    """`engine.tasks`."""

    async def claim(
        self,
        queue: str,
        steps: Sequence[str] | Mapping[str, Mapping[str, Any]],
        *,
        worker: str = "",
        lease_seconds: float = LEASE_SECONDS,
        wait: float = 0.0,
    ) -> Task | None:
        """See `Tasks`."""

    async def heartbeat(
        self,
        task_id: str,
        lease: str,
        *,
        progress: Mapping[str, Any] | None = None,
        lease_seconds: float = LEASE_SECONDS,
    ) -> TaskNotice:
        """See `Tasks`."""

    async def complete(self, task_id: str, lease: str, output: Any = None) -> None:
        """See `Tasks`."""

    async def fail(
        self,
        task_id: str,
        lease: str,
        message: str,
        *,
        type: str = "RemoteError",  # noqa: A002 (what it is called in journals)
        retryable: bool = True,
        retry_after: float | None = None,
        traceback: str = "",
    ) -> None:
        """See `Tasks`."""


class KeyVerbs(Protocol):
    """`engine.keys`."""

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

    async def list(self) -> builtins.list[ApiKey]:
        """See `Keys`."""

    async def revoke(self, key_id: str, *, reason: str = "") -> ApiKey:
        """See `Keys`."""


class AuditVerbs(Protocol):
    """`engine.audit`."""

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

    async def verify(
        self, *, since: str | None = None, keep: given.Span | None = None, key: bytes | None = None
    ) -> AuditCheck:
        """See `AuditLog`."""


class EventVerbs(Protocol):
    """`engine.events`."""

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

    async def triggers(self) -> list[TriggerInfo]:
        """See `Events`."""

    async def forget(self, workflow: str) -> None:
        """See `Events`."""

    async def add_sink(self, name: str, url: str, *, types: Sequence[str] = ("*",), secret: str | None = None) -> None:
        """See `Events`."""

    async def remove_sink(self, name: str) -> None:
        """See `Events`."""

    async def sinks(self) -> list[Sink]:
        """See `Events`."""
