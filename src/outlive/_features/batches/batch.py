"""A batch from outside: what became of its items, as they finish or in the order of the rows, from any process.

The outcome of an item is found by its place. Outcomes of one chunk come in any order, but not far from it: a reader
asks for everything behind the first one that it misses, and leaves out what it has seen. It looks at the chunks that
are under way and at no others, so it needs as much memory for a million items as for a thousand.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, Generic, NoReturn, Protocol, TypeVar

import msgspec

from outlive._features.batches.values import BatchInfo, BatchItem, ItemFailure
from outlive._features.batches.workflows import BATCH, OF_STEP, Plan, chunk_id, item_of
from outlive._kernel.client.client import Client
from outlive._kernel.client.handle import RunHandle
from outlive._kernel.client.why import is_stopped
from outlive._kernel.journal.codec import creation_in
from outlive._kernel.journal.failure import OWN_ERRORS, exception_of
from outlive._kernel.journal.packing import inbox_mark
from outlive._kernel.journal.value import TAGGED, ValueCodec
from outlive._kernel.model import Failure, Run, given
from outlive._kernel.model.instant import instant_of
from outlive._kernel.replay.ending import failed_error
from outlive._kernel.store.contract import ItemResult, Store
from outlive._kernel.values.failure import failure_of
from outlive._kernel.values.run import Status, when
from outlive._tasks import own_task
from outlive.errors import RunExistsError, RunFailedError, RunParkedError, StoreUnavailableError

R = TypeVar("R")
T = TypeVar("T", bound="Placed")
T_co = TypeVar("T_co", bound="Placed", covariant=True)

CHUNK_ITEMS_MAX = 256
FAILURES_PAGE = 500
"""Items that are read at once in a search for failed items."""
_decode_rows = msgspec.json.Decoder(tuple[int, list[msgspec.Raw]]).decode


class Placed(Protocol):
    """A value with the index of a row."""

    @property
    def index(self) -> int:
        """From 0 on."""


class ReadChunk(Protocol[T_co]):
    """Reads what has ended of a chunk."""

    async def __call__(self, plan: Plan, run_id: str, *, after: int) -> Sequence[T_co]:
        """Items of the chunk whose place is behind `after`."""


Retry = Callable[[str, str | None], Coroutine[Any, Any, "Batch[Any]"]]


class Reader:
    """Reads plans and outcomes of batches for one client."""

    def __init__(self, client: Client) -> None:
        self._access, self._shown = client.access, client.shown
        self.new_pause = client.new_pause

    @property
    def store(self) -> Store:
        """The store, while the engine runs."""
        return self._access.store

    async def plan_of(self, run: Run) -> Plan:
        """The plan of a batch.

        Raises:
            RunExistsError: the run is none of a batch.
        """
        if run.workflow != BATCH.name:
            raise RunExistsError(
                run.id,
                f"{run.status.value}, a run of workflow {run.workflow} and not of a batch",
                "give the id of a batch",
            )
        rows = await self.store.read_journal(run.journal, limit=1)
        first = creation_in(rows[0], nonce=run.nonce, run_id=run.id)
        (plan,), _ = BATCH.signature.decode(await self._access.unpack(first.input))
        assert isinstance(plan, Plan)
        return plan

    async def row(self, batch_id: str) -> Run:
        """The row of the run that looks after a batch."""
        return await self._access.info(batch_id)

    async def info_of(self, run: Run) -> BatchInfo:
        """How far a batch has come.

        Raises:
            RunExistsError: the run is none of a batch.
        """
        plan = await self.plan_of(run)
        found = {} if run.published is None else msgspec.json.decode(await self._access.unpack(run.published))
        return BatchInfo(
            id=run.id,
            work=plan.item.rpartition(":")[2],
            kind="step" if plan.item.startswith(OF_STEP) else "workflow",
            version=plan.version,
            status=run.status.value,
            total=plan.total,
            succeeded=int(found.get("succeeded", 0)),
            failed=int(found.get("failed", 0)),
            concurrency=plan.concurrency,
            created_at=instant_of(run.created_at),
            finished_at=when(run.finished_at),
        )

    async def rows_left(self, batch_id: str, plan: Plan) -> AsyncIterator[bytes]:
        """The rows of a batch that have no result, each as the arguments of its item, in their order."""
        for number, chunk in enumerate(plan.chunks, start=1):
            page = await self.store.read_items(chunk_id(batch_id, number), limit=CHUNK_ITEMS_MAX)
            done = {item.index for item in page if item.failure is None}
            if len(done) == chunk.count:
                continue
            first, rows = _decode_rows(await self._access.unpack(chunk.payload, owners=(inbox_mark(batch_id),)))
            for index, row in enumerate(rows, start=first):
                if index not in done:
                    yield bytes(row)

    async def page(self, batch_id: str, plan: Plan, *, after: int, limit: int) -> list[ItemResult]:
        """At most so many items that have ended and whose place is behind `after`, in the order of their places."""
        found: list[ItemResult] = []
        first = 0
        for number, chunk in enumerate(plan.chunks, start=1):
            first += chunk.count
            if first - 1 > after and len(found) < limit:
                most = limit - len(found)
                found += await self.store.read_items(chunk_id(batch_id, number), after=after, limit=most)
        return found

    async def failures(self, batch_id: str, *, limit: int) -> list[ItemFailure]:
        """At most so many items that have failed, in the order of their places, as people may see them.

        Raises:
            RunExistsError: the run is none of a batch.
        """
        plan = await self.plan_of(await self.row(batch_id))
        found: list[ItemFailure] = []
        secrets: dict[int, set[str] | None] = {}
        after = -1
        while len(found) < limit and (page := await self.page(batch_id, plan, after=after, limit=FAILURES_PAGE)):
            for item in page:
                if item.failure is not None:
                    chunk = plan.chunk_of(item.index)
                    if chunk not in secrets:
                        secrets[chunk] = await self._shown.secrets_of(chunk_id(batch_id, chunk))
                    shown = self._shown.failure(item.failure, secrets[chunk])
                    found.append(ItemFailure(item.index, failure_of(shown, with_traceback=False)))
            after = page[-1].index
        return found[:limit]

    async def read(self, plan: Plan, run_id: str, *, after: int) -> list[BatchItem[Any]]:
        """Outcomes of a chunk whose place is behind `after`."""
        page = await self.store.read_items(run_id, after=after, limit=CHUNK_ITEMS_MAX)
        blobs = await self._access.blobs(item.result for item in page)
        return [self._outcome(plan, item, blobs) for item in page]

    async def read_stored(self, plan: Plan, run_id: str, *, after: int) -> list[ItemResult]:
        """Results of items in the form in which they are stored."""
        return await self.store.read_items(run_id, after=after, limit=CHUNK_ITEMS_MAX)

    async def as_they_finish(
        self, batch_id: str, read: ReadChunk[T], *, after: int = -1
    ) -> AsyncIterator[tuple[T, int]]:
        """Every item of a batch whose place is behind `after`, as they finish; and with each the place up to which all
        items have come with it.

        Raises:
            RunParkedError: nothing more comes before the run that it names is resumed.
        """
        pause = self.new_pause()
        plan = await self.plan_of(await self._access.info(batch_id))
        chunks = OpenChunks(batch_id, plan, after=after)
        while chunks:
            # Looked at in this order, nothing can end between two looks unseen.
            is_over = (await self._access.info(batch_id)).status.is_terminal
            rows = await self.store.find_runs(chunks.ids())
            is_new = False
            for run_id in rows:
                async for item in chunks.read(read, run_id):
                    is_new = True
                    yield item, chunks.seen_to
                if rows[run_id].status.is_terminal:
                    chunks.close(run_id)
            if is_over and not is_new:
                break
            if not is_new:
                _refuse_parked([await self._access.info(batch_id), *rows.values()])
                await pause()

    def _outcome(self, plan: Plan, item: ItemResult, blobs: dict[str, bytes]) -> BatchItem[Any]:
        spec = item_of(self._access.registry, plan.item, plan.version)
        if item.failure is not None:
            name, is_step = plan.item.rpartition(":")[2], plan.item.startswith(OF_STEP)
            registered = () if spec is None else spec.registered
            return BatchItem(
                item.index, item_error(name, item.index, item.failure, registered=registered, is_step=is_step)
            )
        assert item.result is not None
        codec: ValueCodec = TAGGED if spec is None else spec.signature.result
        value = codec.decode(self._access.packer.unpack(item.result, blobs), f"the result of item {item.index}")
        return BatchItem(item.index, value)


def item_error(
    work: str, index: int, failure: Failure, *, registered: tuple[type[BaseException], ...], is_step: bool
) -> BaseException:
    """The exception of an item that failed: its own class where that is known here.

    Args:
        work: the workflow or the step of the batch.
        registered: the classes that it names.
    """
    known = (*registered, *OWN_ERRORS, RunFailedError)
    if is_step:
        return exception_of(failure, registered=known, step=work)
    return failed_error(f"of {work} for item {index}", failure, known)


class Batch(ABC, Generic[R]):
    """Many items, each run on its own and each with an outcome of its own."""

    def __init__(self, run: RunHandle[Any]) -> None:
        self.id = run.id
        self.run = run
        """The run that looks after the batch: `why()`, `info()`, `published()`."""

    async def status(self) -> Status:
        """Where the batch is in its life."""
        return await self.run.status()

    async def cancel(self, *, reason: str = "") -> None:
        """Ask the batch to stop; the request is durable when this returns. Items that have ended keep their outcome."""
        await self.run.cancel(reason=reason)

    @abstractmethod
    async def info(self) -> BatchInfo:
        """How many rows there are, how many have ended, and how."""

    @abstractmethod
    async def failures(self, *, limit: int = 1_000) -> list[ItemFailure]:
        """Items that have failed so far, in the order of the rows, each with its error as it is shown to people. It
        does not wait, and needs no code of the batch."""

    @abstractmethod
    async def retry(self, *, id: str | None = None) -> Batch[R]:
        """Start another batch, when this one has ended: of its rows that have not succeeded, in their order, each with
        all attempts again. Items that were never begun are among them. The code need not be in this process.

        Args:
            id: of the other batch; the same id again is the same batch. Made up unless given.

        Raises:
            RunNotRetriableError: this batch has not ended, or every item has succeeded. RunExistsError: the id belongs
            to something else.
        """

    @abstractmethod
    async def result(self, timeout: given.Span | None = None) -> dict[str, int]:
        """Wait for the end: how many items there were (`total`), and how many `succeeded` and `failed`.

        Raises:
            RunFailedError: more items failed than were tolerated, or the batch was cancelled (`RunCancelledError`).
            RunParkedError: it cannot end before the run that it names is resumed.
            ResultTimeoutError: it has not ended within `timeout` seconds; it goes on.
        """

    async def results(self, timeout: given.Span | None = None) -> list[R | BaseException]:
        """Wait for the end: the results in the order of the rows; for an item that failed, its exception.

        Raises:
            RunFailedError: more items failed than were tolerated, or the batch was cancelled (`RunCancelledError`).
            RunParkedError: it cannot end before the run that it names is resumed.
            ResultTimeoutError: it has not ended within `timeout` seconds; it goes on.
        """
        return [item.value async for item in self.outcomes(timeout)]

    @abstractmethod
    def outcomes(self, timeout: given.Span | None = None) -> AsyncIterator[BatchItem[R]]:
        """Wait for the end: every item with its outcome in the order of the rows, a few hundred in memory at a time.

        Raises:
            RunFailedError: more items failed than were tolerated, or the batch was cancelled (`RunCancelledError`).
            RunParkedError: it cannot end before the run that it names is resumed.
            ResultTimeoutError: it has not ended within `timeout` seconds; it goes on.
        """

    @abstractmethod
    def items(self) -> AsyncIterator[BatchItem[R]]:
        """Every item with its outcome, as they finish; items that have finished before come first.

        Raises:
            RunFailedError: after the last one, if the batch failed, or was cancelled (`RunCancelledError`).
            RunParkedError: nothing more comes before the run that it names is resumed.
        """

    def __repr__(self) -> str:
        return f"<batch {self.id}>"


class StoredBatch(Batch[R]):
    """A batch in the store of an engine."""

    def __init__(self, run: RunHandle[Any], reader: Reader, retry: Retry) -> None:
        """`retry` starts a batch of the rows of another one that have not succeeded."""
        super().__init__(run)
        self._reader, self._retry = reader, retry

    async def info(self) -> BatchInfo:
        found = await self._reader.info_of(await self._reader.row(self.id))
        why = await self.run.why()
        return msgspec.structs.replace(found, why=why.summary, advice=why.advice)

    async def failures(self, *, limit: int = 1_000) -> list[ItemFailure]:
        return await self._reader.failures(self.id, limit=given.whole("batch.failures", "limit", limit))

    async def retry(self, *, id: str | None = None) -> Batch[R]:
        return await self._retry(self.id, id)

    async def result(self, timeout: given.Span | None = None) -> dict[str, int]:
        counted: dict[str, int] = msgspec.structs.asdict(await self._end(timeout))
        return counted

    async def _end(self, timeout: given.Span | None = None) -> Any:
        """The result of the run that looks after the batch. That run goes on waiting while one of its chunks is parked;
        the caller that waits for the batch must learn of that."""
        ending = own_task(self.run.result(timeout), name="outlive-batch-end")
        watching = own_task(self._watch_chunks(), name="outlive-batch-watch")
        watching.add_done_callback(_look_at)  # If both are done, the end counts.
        try:
            await asyncio.wait([ending, watching], return_when=asyncio.FIRST_COMPLETED)
            return await (ending if ending.done() else watching)
        finally:
            ending.cancel()
            watching.cancel()

    async def _watch_chunks(self) -> NoReturn:
        """Look for a chunk that is parked, for ever.

        Raises:
            RunParkedError: there is one.
        """
        reader = self._reader
        pause = reader.new_pause()
        chunks: OpenChunks | None = None
        while True:
            # A store that is away is waited for: so does who waits for the end.
            with suppress(StoreUnavailableError):
                if chunks is None:
                    chunks = OpenChunks(self.id, await reader.plan_of(await reader.row(self.id)))
                rows = await reader.store.find_runs(chunks.ids())
                _refuse_parked(rows.values())
                for run in rows.values():
                    if run.status.is_terminal:
                        chunks.close(run.id)
            await pause()

    async def outcomes(self, timeout: given.Span | None = None) -> AsyncIterator[BatchItem[R]]:
        await self._end(timeout)
        plan = await self._reader.plan_of(await self._reader.row(self.id))
        seen = -1
        for number in range(1, len(plan.chunks) + 1):
            for item in await self._reader.read(plan, chunk_id(self.id, number), after=seen):
                yield item
                seen = item.index

    async def items(self) -> AsyncIterator[BatchItem[R]]:
        async for item, _ in self._reader.as_they_finish(self.id, self._reader.read):
            yield item
        await self.run.result()


def _look_at(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()


def _refuse_parked(runs: Iterable[Run]) -> None:
    for run in runs:
        if is_stopped(run):
            raise RunParkedError(run.id, run.reason)


class OpenChunks:
    """The chunks that may be under way, and what was seen of them."""

    def __init__(self, batch_id: str, plan: Plan, *, after: int = -1) -> None:
        """`after` is the place up to which all was seen before."""
        self._plan, self._after = plan, after
        starts = [0]
        for chunk in plan.chunks:
            starts.append(starts[-1] + chunk.count)
        self._left = iter(
            [
                (chunk_id(batch_id, number), start)
                for number, (start, end) in enumerate(pairwise(starts), start=1)
                if end - 1 > after
            ]
        )
        self._open: dict[str, tuple[int, set[int]]] = {}
        """By id: the place up to which all was seen, and the places behind it that were seen too."""
        self._fill()

    def __bool__(self) -> bool:
        return bool(self._open)

    def ids(self) -> list[str]:
        """The chunks to look at: they are begun in this order, so no others can be under way."""
        return list(self._open)

    def close(self, run_id: str) -> None:
        """Everything of a chunk was seen."""
        del self._open[run_id]
        self._fill()

    def _fill(self) -> None:
        while len(self._open) < self._plan.open_max and (following := next(self._left, None)) is not None:
            self._open[following[0]] = max(following[1] - 1, self._after), set()

    @property
    def seen_to(self) -> int:
        """The place up to which all was seen: those before the first chunk that is open, and the first ones of it."""
        return next(iter(self._open.values()))[0]

    async def read(self, read: ReadChunk[T], run_id: str) -> AsyncIterator[T]:
        """The new results in a chunk."""
        seen_to, seen = self._open[run_id]
        for item in await read(self._plan, run_id, after=seen_to):
            if item.index > seen_to and item.index not in seen:
                seen.add(item.index)
                while seen_to + 1 in seen:
                    seen_to += 1
                    seen.discard(seen_to)
                self._open[run_id] = seen_to, seen
                yield item
