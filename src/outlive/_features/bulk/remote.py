"""`engine.bulk` through a server."""

from __future__ import annotations

from typing import Unpack

from outlive._features.bulk.verbs import BulkOperation, BulkProgress
from outlive._features.bulk.workflow import BulkVerb
from outlive._kernel.client.bulk import TreeFilters
from outlive._kernel.client.finding import Page
from outlive._kernel.model import given
from outlive._kernel.model.retention import KEEP_SECONDS_MIN
from outlive.remote.connection import Connection
from outlive.remote.run import NewRun
from outlive.remote.values import attributed, only_given, plain_filters, seconds_of


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
        found: BulkProgress = await self._connection.operate("bulk.progress", operation_id=operation_id)
        return found

    async def list(self, *, limit: int = 20, after: str | None = None) -> Page[BulkProgress]:
        """Operations, the newest first, each with how far it has come."""
        found = await self._connection.operate("bulk.list", query=only_given({"limit": limit, "after": after}))
        return Page(found.items, next=found.next, previous=found.previous)
