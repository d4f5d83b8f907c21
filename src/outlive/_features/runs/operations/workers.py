"""Workers: which processes work on the store."""

from __future__ import annotations

from msgspec import Struct

from outlive._kernel.values.worker import Worker
from outlive.http.operation import Call, operation


class WorkersList(Struct, frozen=True):
    """Workers."""

    items: list[Worker]


@operation("workers.list", "GET", "/workers", scope="viewer")
async def list_workers(call: Call) -> WorkersList:
    """Sessions of workers that are live or still own runs. Others take over what those own that are gone."""
    return WorkersList(await call.engine.workers.list())
