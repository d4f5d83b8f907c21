"""A batch behind an HTTP API."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from outlive._features.batches.batch import Batch, item_error
from outlive._features.batches.operations import ItemView
from outlive._features.batches.values import BatchInfo, BatchItem, ItemFailure
from outlive._kernel.client.finding import Page, Statuses
from outlive._kernel.client.handle import RunHandle
from outlive._kernel.model import given
from outlive._kernel.replay.command import WorkflowSpec
from outlive._kernel.values.failure import Failure, stored_failure
from outlive.errors import RunParkedError
from outlive.remote.connection import Connection
from outlive.remote.run import NewRun
from outlive.remote.values import only_given, query_of

R = TypeVar("R")
PAGE = 1_000


class RemoteBatch(Batch[R]):
    """A batch that a server has. Without the code of its workflow here, results are plain JSON."""

    def __init__(
        self, run: RunHandle[Any], connection: Connection, new_run: NewRun, spec: WorkflowSpec | None = None
    ) -> None:
        super().__init__(run)
        self._connection, self._new_run, self._spec = connection, new_run, spec
        self._work: BatchInfo | None = None

    async def info(self) -> BatchInfo:
        found: BatchInfo = await self._connection.operate("batches.info", batch_id=self.id)
        return found

    async def result(self, timeout: given.Span | None = None) -> dict[str, int]:
        counted: dict[str, int] = await self.run.result(timeout)
        return counted

    async def items(self) -> AsyncIterator[BatchItem[R]]:
        seen_to, seen = -1, set[int]()
        async for message in self._connection.follow("batches.items", {}, batch_id=self.id):
            if message.name == "item":
                item = msgspec.convert(message.data, ItemView)
                if item.index <= seen_to or item.index in seen:
                    continue  # It came before the connection broke.
                seen.add(item.index)
                while seen_to + 1 in seen:
                    seen_to += 1
                    seen.discard(seen_to)
                yield await self._item(item)
            elif message.data["parked"] is not None:
                raise RunParkedError(message.data["parked"], message.data["reason"])
        await self.run.result()

    async def outcomes(self, timeout: given.Span | None = None) -> AsyncIterator[BatchItem[R]]:
        await self.run.result(timeout)
        async for item in self._ended():
            yield await self._item(item)

    async def failures(self, *, limit: int = 1_000) -> list[ItemFailure]:
        given.whole("batch.failures", "limit", limit)
        found: list[ItemFailure] = []
        async for item in self._ended(status="failed"):
            assert item.error is not None
            found.append(ItemFailure(item.index, item.error))
            if len(found) == limit:
                break
        return found

    async def _ended(self, **query: str) -> AsyncIterator[ItemView]:
        """The items that have ended, in the order of the rows."""
        after: int | None = -1
        while after is not None:
            page = await self._connection.operate(
                "batches.outcomes", query={"after": after, "limit": PAGE, **query}, batch_id=self.id
            )
            for item in page.items:
                yield item
            after = page.next

    async def _item(self, item: ItemView) -> BatchItem[R]:
        if item.error is not None:
            return BatchItem(item.index, await self._error_of(item.index, item.error))
        if self._spec is None:
            return BatchItem(item.index, item.result)
        what = f"the result of row {item.index} of {self.id}"
        return BatchItem(item.index, self._spec.signature.result.decode(msgspec.json.encode(item.result), what))

    async def _error_of(self, index: int, error: Failure) -> BaseException:
        """The exception of an item, as an engine that has so much of its code raises it."""
        if self._work is None:
            self._work = await self.info()
        return item_error(
            self._work.work,
            index,
            stored_failure(error),
            registered=() if self._spec is None else self._spec.registered,
            is_step=self._work.kind == "step",
        )

    async def retry(self, *, id: str | None = None) -> Batch[R]:
        found = await self._connection.operate("batches.retry", body={"id": id}, batch_id=self.id)
        return RemoteBatch(self._new_run(found.id), self._connection, self._new_run, self._spec)


class RemoteBatches:
    """`engine.batches`."""

    def __init__(self, connection: Connection, new_run: NewRun) -> None:
        self._connection, self._new_run = connection, new_run

    async def list(
        self,
        *,
        limit: int = 20,
        after: str | None = None,
        status: Statuses | None = None,
        tags: Mapping[str, str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Page[BatchInfo]:
        """See `Batches.list`."""
        filters = {"status": status, "tags": tags, "since": since, "until": until}
        query = query_of(only_given({**filters, "limit": limit, "after": after}))
        found = await self._connection.operate("batches.list", query=query)
        return Page(found.items, next=found.next, previous=found.previous)

    def get(self, batch_id: str) -> Batch[Any]:
        """See `Batches`."""
        return RemoteBatch(self._new_run(batch_id), self._connection, self._new_run)

    async def retry(self, batch_id: str, *, id: str | None = None) -> Batch[Any]:
        """See `Batches`."""
        found = await self._connection.operate("batches.retry", body={"id": id}, batch_id=batch_id)
        return self.get(found.id)
