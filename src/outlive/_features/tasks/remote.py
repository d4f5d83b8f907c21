"""`engine.tasks` through a server: remote steps that are worked on."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from outlive._features.tasks.values import Task, TaskNotice
from outlive._features.tasks.verbs import LEASE_SECONDS, WAIT_SECONDS_MAX, Steps
from outlive._kernel.journal.plain import plain_json
from outlive._kernel.model import given
from outlive.remote.connection import Connection
from outlive.remote.values import only_given

WAIT_SECONDS = 20.0
"""How long the server is asked to wait for a task before it is asked again."""


class RemoteTasks:
    """`engine.tasks`, for keys with the scope `worker`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def claim(
        self,
        queue: str,
        steps: Steps,
        *,
        worker: str = "",
        lease_seconds: float = LEASE_SECONDS,
        wait: float = 0.0,
    ) -> Task | None:
        """See `Tasks.claim`."""
        loop, where = asyncio.get_running_loop(), "engine.tasks.claim"
        names = given.texts(where, "steps", steps, like="resize")
        deadline = loop.time() + given.number(where, "wait", wait, least=0, most=WAIT_SECONDS_MAX, like=20)
        said = plain_json(where, dict(steps)) if isinstance(steps, Mapping) else names
        wanted = {"queue": queue, "steps": said, "worker": worker, "lease_seconds": lease_seconds}
        while True:
            seconds = max(0.0, min(WAIT_SECONDS, deadline - loop.time()))
            found = await self._connection.operate("tasks.claim", body={**wanted, "wait": seconds}, patience=seconds)
            task: Task | None = found.task
            if task is not None:
                return task
            if loop.time() >= deadline:
                return None

    async def heartbeat(
        self,
        task_id: str,
        lease: str,
        *,
        progress: Mapping[str, Any] | None = None,
        lease_seconds: float = LEASE_SECONDS,
    ) -> TaskNotice:
        """See `Tasks.heartbeat`."""
        said = plain_json("engine.tasks.heartbeat", progress)
        body = only_given({"lease": lease, "progress": said, "lease_seconds": lease_seconds})
        found: TaskNotice = await self._connection.operate("tasks.heartbeat", body=body, task_id=task_id)
        return found

    async def complete(self, task_id: str, lease: str, output: Any = None) -> None:
        """See `Tasks.complete`."""
        body = {"lease": lease, "output": plain_json("engine.tasks.complete", output)}
        await self._connection.operate("tasks.complete", body=body, task_id=task_id)

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
        """See `Tasks.fail`."""
        said = {"message": message, "type": type, "retryable": retryable, "traceback": traceback}
        body = only_given({"lease": lease, "retry_after": retry_after, **said})
        await self._connection.operate("tasks.fail", body=body, task_id=task_id)
