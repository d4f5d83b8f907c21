"""Starting a batch: the rows are stored first, then the one run that looks after them is started.

Rows may be any iterable, sync or async, of any length: no more than one chunk of them is in memory at a time.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Iterable
from typing import Any

import msgspec

from outlive._define.batch import BATCH, Chunk, Plan, chunk_name
from outlive._define.map import Tolerance
from outlive._define.step import Step
from outlive._define.workflow import Workflow
from outlive._journal.codec import creation_in
from outlive._journal.packing import Packer, mail_mark
from outlive._model import check_run_id, given
from outlive._replay.command import StepSpec, WorkflowSpec
from outlive._store.contract import Store
from outlive.client.batch import CHUNK_ITEMS_MAX, Batch, Reader
from outlive.client.client import Client
from outlive.client.handle import RunHandle
from outlive.client.starting import ANOTHER_ID
from outlive.errors import ArgumentTypeError, ConfigurationError, RunExistsError, RunNotRetriableError

WHERE = "engine.start_batch"
CHUNK_BYTES_MAX = 1024 * 1024
"""A chunk is in memory as a whole while it runs."""

Rows = Iterable[Any] | AsyncIterable[Any]

_BATCH: Workflow[[Plan], Any] = Workflow(BATCH, {})


class Batches:
    """Starts batches, and finds them again."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._reader = Reader(client)

    async def start(
        self,
        work: Callable[[Any], Coroutine[object, None, Any]],
        rows: Rows,
        *,
        concurrency: int,
        id: str | None,
        tags: dict[str, str] | None,
        headers: dict[str, str] | None,
        tolerate: Tolerance | None,
        connection: Any,
    ) -> Batch[Any]:
        """Start a batch. See `Engine.start_batch`."""
        # All of it before the rows are read, which can be done once only.
        item = _item_of(work)
        lanes = given.whole(WHERE, "concurrency", concurrency)
        run_id = self._client.new_id() if id is None else check_run_id(id)
        labels, said = given.tags(WHERE, tags), given.headers(WHERE, headers)
        if tolerate is not None:
            tolerate = given.instance(WHERE, "tolerate", tolerate, Tolerance, like="outlive.Tolerance(failures=5)")
        if not hasattr(rows, "__aiter__"):
            given.many(WHERE, "rows", rows)
        if id is None or await self._reader.store.find_run(run_id) is None:
            name, version = chunk_name(item)
            arguments = _arguments(item, rows)
            chunks = await cut(arguments, batch_id=run_id, packer=self._client.access.packer, store=self._reader.store)
            plan = Plan(item=name, version=version, chunks=chunks, concurrency=lanes)
            if tolerate is not None:
                plan = _tolerating(plan, tolerate)
            await self._client.start(_BATCH, (plan,), id=run_id, tags=labels, headers=said, connection=connection)
            if connection is not None:
                return self.get(run_id)  # No one sees it before the commit.
        return await self._attach(run_id, chunk_name(item))

    async def _attach(self, run_id: str, chunk: tuple[str, int]) -> Batch[Any]:
        """The batch of this id, if it is one with chunks of this name and version."""
        batch = self.get(run_id)
        run = await batch.run.info()
        plan = await self._reader.plan_of(run)
        if (plan.item, plan.version) != chunk:
            item_name = plan.item.rpartition(":")[2]
            raise RunExistsError(run_id, f"{run.status.value}, a batch of {item_name}", ANOTHER_ID)
        return batch

    def get(self, run_id: str) -> Batch[Any]:
        """A batch by its id. See `Engine.get_batch`."""
        return Batch(RunHandle(self._client, run_id), self._reader, self._retry_failed)

    async def _retry_failed(self, batch_id: str, id: str | None) -> Batch[Any]:
        """A batch of the rows of another one that have not succeeded. See `Batch.retry_failed`."""
        run, access = await self._client.info(batch_id), self._client.access
        plan = await self._reader.plan_of(run)
        new_id = self._client.new_id() if id is None else check_run_id(id)
        if not run.status.is_terminal:
            raise RunNotRetriableError(batch_id, f"it is {run.status.value}; wait for its end, or cancel it")
        if id is None or await access.store.find_run(new_id) is None:
            left = self._reader.rows_left(batch_id, plan)
            chunks = await cut(left, batch_id=new_id, packer=access.packer, store=access.store)
            if not chunks:
                raise RunNotRetriableError(batch_id, f"all of its {plan.total} items have succeeded")
            rows = await access.store.read_journal(run.journal, limit=1)
            headers = creation_in(rows[0], nonce=run.nonce, run_id=run.id).headers
            again = msgspec.structs.replace(plan, chunks=chunks)
            await self._client.start(_BATCH, (again,), id=new_id, tags=run.tags, headers=headers)
        return await self._attach(new_id, (plan.item, plan.version))


def _item_of(work: Any) -> StepSpec | WorkflowSpec:
    if not isinstance(work, Step | Workflow):
        wanted = "give it a step or a workflow, a function decorated with @outlive.step or @outlive.workflow"
        raise ArgumentTypeError(WHERE, "work", work, wanted)
    if isinstance(work, Workflow):
        work._check_startable()
    if isinstance(work, Step) and work.has_own_options:
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


async def cut(arguments: AsyncIterator[bytes], *, batch_id: str, packer: Packer, store: Store) -> list[Chunk]:
    """Store the arguments of items in chunks; where the chunks lie."""
    chunks: list[Chunk] = []
    waiting: list[bytes] = []
    first = size = 0

    async def store_chunk() -> None:
        data = b"[%d,[%s]]" % (first, b",".join(waiting))
        what = f"rows {first} to {first + len(waiting) - 1}"
        payload, blob = packer.pack(data, what, of=mail_mark(batch_id), as_blob=True)
        assert blob is not None
        await store.put_blobs([blob])
        chunks.append(Chunk(msgspec.json.encode(payload).decode(), len(waiting)))

    async for row in arguments:
        if waiting and (len(waiting) >= CHUNK_ITEMS_MAX or size + len(row) > CHUNK_BYTES_MAX):
            await store_chunk()
            first, size = first + len(waiting), 0
            waiting.clear()
        waiting.append(row)
        size += len(row)
    if waiting:
        await store_chunk()
    return chunks


async def _arguments(item: StepSpec | WorkflowSpec, rows: Rows) -> AsyncIterator[bytes]:
    """Each row as the arguments of one item."""
    if isinstance(rows, AsyncIterable):
        async for row in rows:
            yield item.signature.encode((row,), {})
    else:
        for row in rows:
            yield item.signature.encode((row,), {})
