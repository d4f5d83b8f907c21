"""Starting a batch: the rows are stored first, then the one run that looks after them is started.

Rows may be any iterable, sync or async, of any length: no more than some megabytes of them are in memory at a time.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence, Sized
from datetime import datetime
from typing import Any, Unpack

import msgspec

from outlive._features.batches.batch import CHUNK_ITEMS_MAX, Batch, Reader, StoredBatch
from outlive._features.batches.values import BatchInfo
from outlive._features.batches.workflows import BATCH, OF_WORKFLOW, QUEUED_BATCH, Chunk, Plan, chunk_name
from outlive._kernel.client.client import Client
from outlive._kernel.client.definitions import checked_input
from outlive._kernel.client.finding import Filters, Page, Statuses
from outlive._kernel.client.handle import StoredRun
from outlive._kernel.client.placing import QueueChoice, queue_choice
from outlive._kernel.client.slices import giving_way
from outlive._kernel.client.start_options import PlaceOptions
from outlive._kernel.client.starting import ANOTHER_ID
from outlive._kernel.define.map import Tolerance
from outlive._kernel.define.step import Step
from outlive._kernel.define.workflow import Workflow
from outlive._kernel.journal.codec import creation_in
from outlive._kernel.journal.packing import Packer, inbox_mark
from outlive._kernel.model import check_run_id, given, known_run_id
from outlive._kernel.model.payload import Blob
from outlive._kernel.model.queue import QueuePlace, queue_cell, queue_in
from outlive._kernel.replay.command import StepSpec, WorkflowSpec
from outlive._kernel.store.contract import Store
from outlive.errors import ArgumentTypeError, ConfigurationError, InvalidArgumentError, RunExistsError
from outlive.errors.run import RunNotRetriableError

WHERE = "engine.start_batch"
LISTED_MAX = 100
CHUNK_BYTES_MAX = 1024 * 1024
"""A chunk is in memory as a whole while it runs."""
BLOBS_MAX = 256
"""Chunks that are stored in one commit."""
ROUNDS = 4
"""Each lane of a batch with a queue gets about so many chunks, so that the lanes share a small batch evenly."""
AHEAD_BYTES_MAX = 4 * CHUNK_BYTES_MAX
"""Rows that are read to learn how many there are at least, where that is not known."""

Rows = Iterable[Any] | AsyncIterable[Any]

_BATCH: Workflow[[Plan], Any] = Workflow(BATCH, {})
_QUEUED_BATCH: Workflow[[Plan], Any] = Workflow(QUEUED_BATCH, {})


class Batches:
    """Many items under one id, which `Engine.start_batch` started: `list`, `get`, `retry`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._starter = BatchStarter(client)

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
        """A page of the batches that fit, the newest first, each with how many of its rows have ended, and how.

        Args:
            limit: how many batches a page holds, up to 100.
            after: `page.next` or `page.previous` of another page with the same filters.
            status, tags, since, until: as for `Engine.list`.
        """
        count = given.whole("engine.batches.list", "limit", limit, most=LISTED_MAX)
        narrow: Filters = {"status": status, "tags": tags, "since": since, "until": until}
        narrow |= {"workflow": BATCH.name, "roots_only": True}
        page = await self._client.list(limit=count, after=after, **narrow)
        found = [await self._starter.reader.info_of(run) for run in page]
        return Page(found, next=page.next, previous=page.previous)

    def get(self, batch_id: str) -> Batch[Any]:
        """A batch by its id; whether there is such a batch shows when it is used."""
        return self._starter.get(known_run_id("engine.batches.get", batch_id, name="batch_id"))

    async def retry(self, batch_id: str, *, id: str | None = None) -> Batch[Any]:
        """A new batch of the rows that have not succeeded in another one, which has ended. See `Batch.retry`."""
        return await self._starter.retry(known_run_id("engine.batches.retry", batch_id, name="batch_id"), id)


class BatchOptions(PlaceOptions, total=False):
    """The options of the start of a batch. An item under way holds one slot of its queue, or `slots`."""

    concurrency: int
    id: str | None
    tags: Mapping[str, str] | None
    headers: Mapping[str, str] | None
    tolerate: Tolerance | None
    connection: Any


class BatchStarter:
    """Starts batches."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.reader = Reader(client)

    async def begin(
        self, work: Any, rows: Rows, *, version: int | None = None, **options: Unpack[BatchOptions]
    ) -> Batch[Any]:
        """Start a batch of a step or a workflow, or of a workflow by its name. See `AnyEngine.start_batch`."""
        said: dict[str, Any] = dict(options)
        said["choice"] = queue_choice(**{name: said.pop(name, None) for name in PlaceOptions.__annotations__})
        if not isinstance(work, str):
            if version is not None:
                raise InvalidArgumentError(WHERE, "version", version, "leave it out: the workflow itself has one")
            return await self.start(work, rows, **said)
        if said.pop("connection", None) is not None:
            wanted = "give the workflow itself: a batch that is started by name has a transaction of its own"
            raise InvalidArgumentError(WHERE, "connection", "...", wanted)
        if not isinstance(rows, Sequence):
            rows = (
                [row async for row in rows]
                if isinstance(rows, AsyncIterable)
                else list(given.many(WHERE, "rows", rows))
            )
        return await self.start_named(work, rows, version=version, **said)

    async def start(
        self,
        work: Callable[[Any], Coroutine[object, None, Any]],
        rows: Rows,
        *,
        concurrency: int = 20,
        id: str | None = None,
        tags: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        tolerate: Tolerance | None = None,
        connection: Any = None,
        choice: QueueChoice | None = None,
    ) -> Batch[Any]:
        """Start a batch. See `AnyEngine.start_batch`."""
        # All of it before the rows are read, which can be done once only.
        item = _item_of(work)
        lanes = given.whole(WHERE, "concurrency", concurrency)
        run_id = self._client.new_id() if id is None else check_run_id(id)
        labels, said = given.tags(WHERE, tags), given.headers(WHERE, headers)
        if tolerate is not None:
            tolerate = given.instance(
                WHERE, "tolerate", tolerate, Tolerance, like="outlive.limits.Tolerance(failures=5)"
            )
        if not hasattr(rows, "__aiter__"):
            given.many(WHERE, "rows", rows)
        place = await self._place_of(item, choice)
        if id is None or await self.reader.store.find_run(run_id) is None:
            name, version = chunk_name(item)
            plan = Plan(item=name, version=version, chunks=[], concurrency=lanes, place=place)
            total = len(rows) if isinstance(rows, Sized) else None
            plan = await self._cut(plan, _arguments(item, rows), run_id, total=total)
            if tolerate is not None:
                plan = _tolerating(plan, tolerate)
            await self._start(plan, id=run_id, tags=labels, headers=said, connection=connection)
            if connection is not None:
                return self.get(run_id)  # No one sees it before the commit.
        return await self._attach(run_id, chunk_name(item))

    async def start_named(
        self,
        workflow: str,
        rows: Sequence[Any],
        *,
        version: int | None = None,
        concurrency: int = 20,
        id: str | None = None,
        tags: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        tolerate: Tolerance | None = None,
        choice: QueueChoice | None = None,
    ) -> Batch[Any]:
        """Start a batch of runs of a workflow whose code is not here; each row is plain JSON, its one argument.

        Raises:
            UnknownWorkflowError: no worker has described it. InvalidArgumentError: a row does not fit; nothing was
            started. RunExistsError: the id belongs to something else.
        """
        number, described = await self._client.find_definition(workflow, version)
        lanes = given.whole(WHERE, "concurrency", concurrency)
        run_id = self._client.new_id() if id is None else check_run_id(id)
        labels, said = given.tags(WHERE, tags), given.headers(WHERE, headers)
        chunk = OF_WORKFLOW + workflow, number
        if id is None or await self.reader.store.find_run(run_id) is None:
            arguments = [await checked_input(workflow, described, [row], where=WHERE) async for row in giving_way(rows)]
            place = None
            if choice is not None or described.queue:
                found = await self._client.place(WHERE, choice, described.queue or None)
                place = found if found.queue else None
            plan = Plan(item=chunk[0], version=number, chunks=[], concurrency=lanes, place=place)
            plan = await self._cut(plan, giving_way(arguments), run_id, total=len(arguments))
            if tolerate is not None:
                plan = _tolerating(plan, tolerate)
            await self._start(plan, id=run_id, tags=labels, headers=said)
        return await self._attach(run_id, chunk)

    async def _place_of(self, item: StepSpec | WorkflowSpec, choice: QueueChoice | None) -> QueuePlace | None:
        """Where the chunks of a batch wait for their turn; None if they need not."""
        own = item.queue if isinstance(item, WorkflowSpec) else None
        if choice is None and not own:
            return None
        place = await self._client.place(WHERE, choice, own)
        return place if place.queue else None

    async def _cut(
        self, plan: Plan, arguments: AsyncIterator[bytes], batch_id: str, *, total: int | None = None
    ) -> Plan:
        """The plan with chunks of these items, which are stored; how many they are, if that is known."""
        packer, store, place = self._client.access.packer, self.reader.store, plan.place
        if place is None:
            chunks = await cut(arguments, batch_id=batch_id, packer=packer, store=store)
        else:
            has_rate = bool(queue_in(await store.read_cell(queue_cell(place.queue))).limits.rate)
            # Otherwise a rate would count chunks where people think of items.
            most = 1 if has_rate else CHUNK_ITEMS_MAX
            lanes = plan.concurrency * ROUNDS
            if total is None:
                arguments, total = await counted(arguments, enough=most * lanes)
            # All chunks have one size: each lane has its share of them, and there are as few as can be.
            most = min(most, max(1, total // lanes))
            chunks = await cut(arguments, batch_id=batch_id, packer=packer, store=store, most=most)
        return msgspec.structs.replace(plan, chunks=chunks)

    async def _start(self, plan: Plan, **options: Any) -> None:
        await self._client.start(_BATCH if plan.place is None else _QUEUED_BATCH, (plan,), **options)

    async def _attach(self, run_id: str, chunk: tuple[str, int]) -> Batch[Any]:
        """The batch of this id, if it is one with chunks of this name and version."""
        batch = self.get(run_id)
        run = await self._client.info(run_id)
        plan = await self.reader.plan_of(run)
        if (plan.item, plan.version) != chunk:
            item_name = plan.item.rpartition(":")[2]
            raise RunExistsError(run_id, f"{run.status.value}, a batch of {item_name}", ANOTHER_ID)
        return batch

    def get(self, run_id: str) -> Batch[Any]:
        """A batch by its id."""
        return StoredBatch(StoredRun(self._client, run_id), self.reader, self.retry)

    async def retry(self, batch_id: str, id: str | None) -> Batch[Any]:
        """A batch of the rows of another one that have not succeeded. See `Batch.retry`."""
        run, access = await self._client.info(batch_id), self._client.access
        plan = await self.reader.plan_of(run)
        new_id = self._client.new_id() if id is None else check_run_id(id)
        if not run.status.is_terminal:
            raise RunNotRetriableError(batch_id, f"it is {run.status.value}; wait for its end, or cancel it")
        if id is None or await access.store.find_run(new_id) is None:
            again = await self._cut(plan, self.reader.rows_left(batch_id, plan), new_id)
            if not again.chunks:
                raise RunNotRetriableError(batch_id, f"all of its {plan.total} items have succeeded")
            rows = await access.store.read_journal(run.journal, limit=1)
            headers = creation_in(rows[0], nonce=run.nonce, run_id=run.id).headers
            await self._start(again, id=new_id, tags=run.tags, headers=headers)
        return await self._attach(new_id, (plan.item, plan.version))


def _item_of(work: Any) -> StepSpec | WorkflowSpec:
    if not isinstance(work, Step | Workflow):
        wanted = "give it a step or a workflow, a function decorated with @outlive.step or @outlive.workflow"
        raise ArgumentTypeError(WHERE, "work", work, wanted)
    if isinstance(work, Workflow):
        work._check_startable()
    if isinstance(work, Step) and work.call_options != work.spec.options:
        raise ConfigurationError(
            f"start_batch({work!r}, ...): options of a call are not kept with a batch; put them into @outlive.step(...)"
        )
    if isinstance(work, Step) and work.spec.is_method:
        wanted = f"it is a method, and the workers of a batch have not its object; give {work.name}.of(resource)"
        raise ArgumentTypeError(WHERE, "work", work, wanted)
    if not work.spec.signature.takes_one:
        raise ArgumentTypeError(WHERE, "work", work, "give one that takes one argument, the row")
    return work.spec


def _tolerating(plan: Plan, tolerate: Tolerance) -> Plan:
    """The plan with the number of failures that is too many by whichever measure is stricter."""
    limits = [] if tolerate.failures is None else [tolerate.failures]
    limits += [] if tolerate.ratio is None else [int(tolerate.ratio * plan.total)]
    return msgspec.structs.replace(plan, failures_max=min(limits, default=None))


async def cut(
    arguments: AsyncIterator[bytes],
    *,
    batch_id: str,
    packer: Packer,
    store: Store,
    most: int = CHUNK_ITEMS_MAX,
) -> list[Chunk]:
    """Store the arguments of items in chunks of up to so many; where the chunks lie.

    Small chunks are stored together: a commit for each of them would cost more than all the rest.
    """
    chunks: list[Chunk] = []
    waiting: list[bytes] = []
    blobs: list[Blob] = []
    first = size = held = 0

    def close_chunk() -> None:
        data = b"[%d,[%s]]" % (first, b",".join(waiting))
        what = f"rows {first} to {first + len(waiting) - 1}"
        payload, blob = packer.pack(data, what, of=inbox_mark(batch_id), as_blob=True)
        assert blob is not None
        blobs.append(blob)
        chunks.append(Chunk(msgspec.json.encode(payload).decode(), len(waiting)))

    async for row in arguments:
        if waiting and (len(waiting) >= most or size + len(row) > CHUNK_BYTES_MAX):
            close_chunk()
            first, size, held = first + len(waiting), 0, held + size
            waiting.clear()
            if held > CHUNK_BYTES_MAX or len(blobs) >= BLOBS_MAX:
                await store.put_blobs(blobs)
                blobs, held = [], 0
        waiting.append(row)
        size += len(row)
    if waiting:
        close_chunk()
    if blobs:
        await store.put_blobs(blobs)
    return chunks


async def counted(rows: AsyncIterator[bytes], *, enough: int) -> tuple[AsyncIterator[bytes], int]:
    """The rows, and how many they are: all of them, or at least so many, if there are `enough` or they are large."""
    ahead: list[bytes] = []
    size = 0
    while len(ahead) < enough and size < AHEAD_BYTES_MAX and (row := await anext(rows, None)) is not None:
        ahead.append(row)
        size += len(row)

    async def from_the_first() -> AsyncIterator[bytes]:
        for row in ahead:
            yield row
        ahead.clear()
        async for row in rows:
            yield row

    return from_the_first(), len(ahead)


async def _arguments(item: StepSpec | WorkflowSpec, rows: Rows) -> AsyncIterator[bytes]:
    """Each row as the arguments of one item."""
    if isinstance(rows, AsyncIterable):
        async for row in rows:
            yield item.signature.encode((row,), {})
    else:
        async for row in giving_way(rows):
            yield item.signature.encode((row,), {})
