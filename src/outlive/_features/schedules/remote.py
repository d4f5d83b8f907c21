"""`engine.schedules` through a server."""

from __future__ import annotations

import builtins
from datetime import datetime
from typing import Any

import msgspec

from outlive._features.schedules.schedule import ScheduleSpec
from outlive._features.schedules.values import Schedule
from outlive._features.schedules.verbs import BackfillOverlap, TriggerOverlap
from outlive._kernel.client.handle import RunHandle
from outlive._kernel.define.step import Step
from outlive._kernel.define.workflow import Workflow
from outlive._kernel.model import given
from outlive.remote.connection import Connection
from outlive.remote.run import NewRun
from outlive.remote.values import attributed


class RemoteSchedules:
    """`engine.schedules`."""

    def __init__(self, connection: Connection, new_run: NewRun) -> None:
        self._connection, self._new_run = connection, new_run

    async def list(self, *, after: str = "", limit: int = 100) -> list[Schedule]:
        """See `Schedules`."""
        found = await self._connection.operate("schedules.list", query={"after": after, "limit": limit})
        items: builtins.list[Schedule] = found.items
        return items

    async def get(self, name: str) -> Schedule:
        """See `Schedules`."""
        found: Schedule = await self._connection.operate("schedules.get", name=name)
        return found

    async def set(
        self, name: str, schedule: ScheduleSpec, workflow: str | Workflow[..., Any] | Step[..., Any] | None = None
    ) -> Schedule:
        """See `Schedules`."""
        given.instance("engine.schedules.set", "schedule", schedule, ScheduleSpec, like="outlive.every(minutes=15)")
        target = workflow if workflow is None or isinstance(workflow, str) else workflow.name
        body = msgspec.structs.asdict(schedule) | {"workflow": target}
        found: Schedule = await self._connection.operate("schedules.set", body=body, name=name)
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
