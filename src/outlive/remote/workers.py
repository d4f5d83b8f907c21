"""`engine.workers` and `engine.workflows` through a server."""

from __future__ import annotations

import builtins

from outlive._kernel.values.step_info import StepInfo
from outlive._kernel.values.worker import Worker
from outlive._kernel.values.workflow import WorkflowInfo
from outlive.remote.connection import Connection


class RemoteWorkers:
    """`engine.workers`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def list(self) -> builtins.list[Worker]:
        """See `Workers`."""
        items: builtins.list[Worker] = (await self._connection.operate("workers.list")).items
        return items

    async def steps(self) -> builtins.list[StepInfo]:
        """See `Workers.steps`."""
        items: builtins.list[StepInfo] = (await self._connection.operate("workers.steps")).items
        return items


class RemoteWorkflows:
    """`engine.workflows.list`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def list(self) -> builtins.list[WorkflowInfo]:
        """See `Workflows.list`."""
        items: builtins.list[WorkflowInfo] = (await self._connection.operate("workflows.list")).items
        return items
