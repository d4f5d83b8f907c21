"""Workers: which processes work on the store."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from outlive._model.instant import instant_of
from outlive._store.contract import WorkerInfo
from outlive.http.operation import Call, operation


class WorkerView(Struct, frozen=True, kw_only=True):
    """A session of a worker, and its lease."""

    id: str
    name: str
    is_live: bool
    started_at: datetime
    expires_at: datetime
    """When its lease runs out, if it is not renewed."""
    process: str
    """The process it lives in, as its machine knows it; empty if there is no telling."""
    lease: str
    """What keeps its lease: `store`, `none`, or the place of an etcd."""
    runs: int
    """Trees of runs that it owns."""
    definitions: list[str]
    """What it can run, as `workflow@version`."""
    fault: str
    """What is wrong with its row, if that is damaged."""


class WorkersList(Struct, frozen=True):
    """Workers."""

    items: list[WorkerView]
    now: datetime
    """The time by which leases run out: that of the store."""


@operation("workers.list", "GET", "/workers", scope="viewer")
async def list_workers(call: Call) -> WorkersList:
    """Sessions of workers that are live or still own runs. Others take over what those own that are not live."""
    found, now_at = await call.view.workers()
    return WorkersList([_view(it) for it in found], instant_of(now_at))


def _view(it: WorkerInfo) -> WorkerView:
    return WorkerView(
        id=it.id,
        name=it.name,
        is_live=it.is_live,
        started_at=instant_of(it.started_at),
        expires_at=instant_of(it.expires_at),
        process=it.process,
        lease=it.lease or "store",
        runs=it.runs,
        definitions=[name for name in it.definitions if not name.startswith("outlive.")],
        fault=it.fault,
    )
