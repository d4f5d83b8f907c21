"""A batch behind an HTTP API."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Any

import msgspec

from outlive._model import given
from outlive._replay.command import WorkflowSpec
from outlive._values.batch import BatchInfo, BatchItem, ItemFailure
from outlive._values.failure import Failure, stored_failure
from outlive._values.run import Status
from outlive.client.batch import item_error
from outlive.client.finding import Page, Statuses
from outlive.errors import RunParkedError
from outlive.http.operations.batches import ItemView
from outlive.remote.contract import Connection
from outlive.remote.values import only_given, query_of

PAGE = 1_000


class RemoteBatch:
    """A batch and its items."""

    def __init__(self, remote: Connection, batch_id: str, spec: WorkflowSpec | None = None) -> None:
        """`spec` is of the workflow that is run for each row: results are of its type; without, they are plain JSON."""
        self._remote, self._spec = remote, spec
        self._work: BatchInfo | None = None
        self.id = batch_id

    async def info(self) -> BatchInfo:
        """How many items there are, how many have ended and how, and what it waits for."""
        found: BatchInfo = await self._remote.operate("batches.get", batch_id=self.id)
        return found

    async def status(self) -> Status:
        """Where the batch is in its life."""
        return (await self.info()).status

    async def cancel(self, *, reason: str = "") -> None:
        """Ask the batch to stop. Items that have ended keep their outcome."""
        await self._remote.operate("runs.cancel", body={"reason": reason}, run_id=self.id)

    async def result(self, timeout: given.Span | None = None) -> dict[str, int]:
        """Wait for the end: how many items there were (`total`), and how many `succeeded` and `failed`."""
        counted: dict[str, int] = await self._remote.result(self.id, timeout)
        return counted

    async def items(self) -> AsyncIterator[BatchItem[Any]]:
        """What became of each row, as they finish; those that have finished before come first.

        Raises:
            RunFailedError: after the last one, if the batch failed, or was cancelled (`RunCancelledError`).
            RunParkedError: nothing more comes before the run that it names is resumed.
        """
        seen_to, seen = -1, set[int]()
        async for message in self._remote.follow("batches.follow", {}, batch_id=self.id):
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
        await self._remote.result(self.id)

    async def outcomes(self, timeout: given.Span | None = None) -> AsyncIterator[BatchItem[Any]]:
        """Wait for the end: what became of each row, in the order of the rows.

        Raises:
            RunFailedError: more items failed than were tolerated, or the batch was cancelled (`RunCancelledError`).
            RunParkedError: it is parked. ResultTimeoutError: it has not ended within `timeout` seconds; it goes on.
        """
        await self._remote.result(self.id, timeout)
        async for item in self._ended():
            yield await self._item(item)

    async def results(self, timeout: given.Span | None = None) -> list[Any]:
        """Wait for the end: the results in the order of the rows; for an item that failed, its exception.

        Raises:
            RunFailedError: more items failed than were tolerated, or the batch was cancelled (`RunCancelledError`).
        """
        return [item.value async for item in self.outcomes(timeout)]

    async def failures(self, *, limit: int = 1_000) -> list[ItemFailure]:
        """Items that have failed so far, in the order of the rows, each with its error as it is shown to people."""
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
            page = await self._remote.operate(
                "batches.items", query={"after": after, "limit": PAGE, **query}, batch_id=self.id
            )
            for item in page.items:
                yield item
            after = page.next

    async def _item(self, item: ItemView) -> BatchItem[Any]:
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

    async def retry_failed(self, *, id: str | None = None) -> RemoteBatch:
        """A new batch of the rows that have not succeeded in this one."""
        found = await self._remote.operate("batches.retry", body={"id": id}, batch_id=self.id)
        return RemoteBatch(self._remote, found.id, self._spec)

    def __repr__(self) -> str:
        return f"<RemoteBatch {self.id}>"


class RemoteBatches:
    """`engine.batches`."""

    def __init__(self, remote: Connection) -> None:
        self._remote = remote

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
        found = await self._remote.operate("batches.list", query=query)
        return Page(found.items, next=found.next, previous=found.previous)

    def get(self, batch_id: str) -> RemoteBatch:
        """See `Batches.get`."""
        return RemoteBatch(self._remote, batch_id)

    async def retry(self, batch_id: str, *, id: str | None = None) -> RemoteBatch:
        """See `Batches.retry`."""
        return await self.get(batch_id).retry_failed(id=id)
