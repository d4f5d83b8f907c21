"""`engine.workers`: which processes work on a store."""

from __future__ import annotations

import builtins
from datetime import timedelta

from outlive._kernel.client.access import Access
from outlive._kernel.model.instant import instant_of
from outlive._kernel.store.contract import WorkerInfo
from outlive._kernel.values.worker import Worker

NO_LEASE = "none"
INTERNAL = "outlive."
"""How the names of workflows begin that Outlive adds to those of users."""


class Workers:
    """The workers of a store."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def list(self) -> builtins.list[Worker]:
        """Sessions of workers that are live or still own runs. Others take over what those own that are gone."""
        store = self._access.store
        found = await store.list_workers()
        return [worker_of(stored, store.now()) for stored in found]


def worker_of(stored: WorkerInfo, now_at: int) -> Worker:
    """A worker as users see it."""
    has_end = stored.lease != NO_LEASE
    return Worker(
        id=stored.id,
        name=stored.name,
        status="live" if stored.is_live else "gone",
        started_at=instant_of(stored.started_at),
        expires_at=instant_of(stored.expires_at) if has_end else None,
        expires_in=timedelta(microseconds=stored.expires_at - now_at) if has_end else None,
        lease=stored.lease or "store",
        process=stored.process,
        runs=stored.runs,
        definitions=tuple(name for name in stored.definitions if not name.startswith(INTERNAL)),
        built_in=tuple(name for name in stored.definitions if name.startswith(INTERNAL)),
        fault=stored.fault,
    )
