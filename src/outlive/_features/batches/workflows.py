"""Two built-in workflows that carry a batch: one run that looks after it, and one for each chunk of its items.

    outlive.batch@1                      starts chunks, a few at a time, and adds up how they ended
    outlive.batch@2                      the same for a batch with a queue
    outlive.batch.step:<name>@1          runs the items of one chunk: calls of this step
    outlive.batch.run:<name>@<version>   runs the items of one chunk: runs of this workflow

A chunk is a tree of its own, so a fleet shares a batch, and its journal is bounded by the size of a chunk however many
items the batch has. The definition of a chunk names what its items need: only a worker that has it claims the chunk.

The chunks of a batch with a queue are in that queue, and each runs one item at a time: so a slot is an item. A chunk
that has had its slot for some seconds gives it back after the item under way and gets in line again, so that a chunk of
long items does not keep other runs waiting for all of them. Small chunks would not either, and cost as much as a run
each. The run that looks after the batch is in no queue, where it would take slots from its own chunks. Every worker
takes it, also one that takes from some queues only: it calls no code of users.

The rows of a chunk are a blob that the starter of the batch has stored; the run that looks after the batch knows of
them only by name, and never has them in memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

import msgspec

from outlive._kernel.define.own import Code, OwnWorkflows
from outlive._kernel.journal.arguments import Signature
from outlive._kernel.journal.redaction import RowNames
from outlive._kernel.model import Payload, Run
from outlive._kernel.model.queue import QueuePlace
from outlive._kernel.model.why import Why
from outlive._kernel.replay.ask import cancel_detached, end_of, run_item, start_detached, this_execution
from outlive._kernel.replay.command import StepSpec, WorkflowSpec
from outlive._kernel.replay.deciding import publish
from outlive._kernel.replay.ending import result_of
from outlive._kernel.replay.execution import Execution
from outlive._kernel.replay.frame import SCOPE
from outlive.errors.advice import Advice
from outlive.errors.run import BatchFailedError

CHUNKS_OPEN_MAX = 16
"""Chunks of one batch that are under way at once: that many workers can share it."""
QUEUED_CHUNKS_OPEN_MAX = 1_000
"""How many chunks a batch with a queue has open at most: each of them runs one item at a time."""
OF_STEP = "outlive.batch.step:"
OF_WORKFLOW = "outlive.batch.run:"
LANES, BUDGET, TURN = "outlive.lanes", "outlive.budget", "outlive.turn"
"""Tags of a chunk: how many of its items run at once, how many may fail, and for how many seconds it keeps its slot."""
TURN_SECONDS = 5.0
AWAY_SECONDS = 0.05
"""For how long a chunk is out of the line between two turns: others are before it then."""


class Chunk(msgspec.Struct, frozen=True, array_like=True):
    """Where the rows of a chunk lie, and how many there are."""

    rows: str
    """JSON of the payload. As text, because a worker that replays the batch fetches all blobs that its journal names,
    and these are not for it."""
    count: int

    @property
    def payload(self) -> Payload:
        """The input of the run of the chunk."""
        return msgspec.json.decode(self.rows, type=Payload)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of a batch."""

    item: str
    """The definition of the chunks."""
    version: int
    chunks: list[Chunk]
    concurrency: int
    failures_max: int | None = None
    place: QueuePlace | None = None
    """The place of each chunk; None if it is in no queue."""

    @property
    def open_max(self) -> int:
        """How many chunks are under way at once."""
        most = CHUNKS_OPEN_MAX if self.place is None else QUEUED_CHUNKS_OPEN_MAX
        return min(len(self.chunks), self.concurrency, most)

    @property
    def total(self) -> int:
        """How many items there are."""
        return sum(chunk.count for chunk in self.chunks)

    def chunk_of(self, index: int) -> int:
        """The number of the chunk that has the item with this place."""
        ends = accumulate(chunk.count for chunk in self.chunks)
        return next(number for number, end in enumerate(ends, start=1) if index < end)


class Tally(msgspec.Struct, kw_only=True):
    """How many items have ended, and how."""

    total: int
    succeeded: int = 0
    failed: int = 0


def chunk_id(batch_id: str, number: int) -> str:
    """The id of a chunk; '~' keeps it apart from every id a user may choose."""
    return f"{batch_id}~chunk{number}"


async def run_batch(plan: Plan) -> Tally:
    """Start the chunks one after the other, a few at a time, and add up how they ended."""
    tally = Tally(total=plan.total)
    chunks = enumerate(plan.chunks, start=1)
    open_max = plan.open_max
    try:
        async with asyncio.TaskGroup() as group:
            for number in range(open_max):
                # The lanes of all of them together are what was asked for.
                lanes = plan.concurrency // open_max + (number < plan.concurrency % open_max)
                group.create_task(_run_chunks(plan, chunks, lanes if plan.place is None else 1, tally))
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return tally


async def _run_chunks(plan: Plan, chunks: Iterator[tuple[int, Chunk]], lanes: int, tally: Tally) -> None:
    for number, chunk in chunks:
        ended = await _run_chunk(plan, number, chunk, lanes, tally)
        tally.succeeded += ended.succeeded
        tally.failed += ended.failed
        publish(this_execution("batch"), {"total": tally.total, "succeeded": tally.succeeded, "failed": tally.failed})
        if plan.failures_max is not None and tally.failed > plan.failures_max:
            raise BatchFailedError(tally.failed, plan.failures_max, tally.total)


async def _run_chunk(plan: Plan, number: int, chunk: Chunk, lanes: int, tally: Tally) -> Tally:
    execution = this_execution("batch")
    run_id = chunk_id(SCOPE.get().frame.id, number)
    tags = {LANES: str(lanes)}
    if plan.place is not None:
        tags[TURN] = str(TURN_SECONDS)
    if plan.failures_max is not None:
        tags[BUDGET] = str(plan.failures_max - tally.failed)
    spec = msgspec.structs.replace(_CHUNK, name=plan.item, version=plan.version)
    try:
        await start_detached(execution, spec, (), {}, run_id=run_id, tags=tags, payload=chunk.payload, place=plan.place)
        ended = await end_of(execution, run_id, started=spec.name)
    except asyncio.CancelledError:
        cancel_detached(execution, run_id)
        raise
    # A chunk that was cancelled is a failure of the batch, and not a cancel of it.
    result = execution.unpack_foreign(result_of(ended))
    counted: Tally = _CHUNK.signature.result.decode(result, f"result of {run_id}")
    return counted


async def _run_items(item: StepSpec | WorkflowSpec, first: int, rows: list[msgspec.Raw]) -> Tally:
    """The items of one chunk, a few at a time."""
    execution, tags = this_execution("batch"), SCOPE.get().frame.tags
    budget = int(tags.get(BUDGET, len(rows)))
    turn = float(tags.get(TURN, "inf"))
    tally = Tally(total=len(rows))
    left = enumerate(rows, start=first)

    async def lane() -> None:
        began_at = execution.loop.time()
        for index, row in left:
            if tally.failed > budget:
                return
            if execution.loop.time() - began_at >= turn:
                await _give_way(execution)
                began_at = execution.loop.time()
            try:
                await run_item(execution, item, bytes(row), index)
            except Exception:
                tally.failed += 1
            else:
                tally.succeeded += 1

    async with asyncio.TaskGroup() as group:
        for _ in range(min(len(rows), int(tags.get(LANES, 1)))):
            group.create_task(lane())
    return tally


async def _give_way(execution: Execution) -> None:
    """Give the slot in the queue back, and get in line again."""
    execution.gives_way = True
    try:
        await asyncio.sleep(AWAY_SECONDS)
    finally:
        execution.gives_way = False


async def _chunk(first: int, rows: list[msgspec.Raw]) -> Tally:
    """The signature of a chunk, for callers; it is never called."""
    raise NotImplementedError


BATCH = WorkflowSpec(name="outlive.batch", version=1, fn=run_batch, signature=Signature(run_batch, "outlive.batch"))
QUEUED_BATCH = msgspec.structs.replace(BATCH, version=2)
"""The workflow of a batch with a queue: code that knows nothing of its queue does not have this version."""
_CHUNK = WorkflowSpec(name="", version=1, fn=_chunk, signature=Signature(_chunk, "outlive.batch.chunk"))


def chunk_name(item: StepSpec | WorkflowSpec) -> tuple[str, int]:
    """The name and version of the chunks of a batch of this."""
    return (OF_STEP + item.name, 1) if isinstance(item, StepSpec) else (OF_WORKFLOW + item.name, item.version)


def chunk_spec(item: StepSpec | WorkflowSpec) -> WorkflowSpec:
    """The workflow that runs a chunk of such items."""
    name, version = chunk_name(item)
    fn: Any = partial(_run_items, item)
    return msgspec.structs.replace(_CHUNK, name=name, version=version, fn=fn)


class BatchWorkflows(OwnWorkflows):
    """The runs that look after batches, and their chunks."""

    prefix = BATCH.name
    specs = (BATCH, QUEUED_BATCH)
    unqueued = (QUEUED_BATCH,)
    """Nothing of a batch with a queue comes into that queue without the run that looks after the batch."""

    def find(self, code: Code, name: str, version: int) -> WorkflowSpec | None:
        """The run of a batch, or a chunk of what this process has."""
        if name == BATCH.name:
            return super().find(code, name, version)
        item = item_of(code, name, version)
        return None if item is None else chunk_spec(item)

    def names(self, runnable: Iterable[WorkflowSpec], steps: Iterable[StepSpec]) -> Iterable[tuple[str, int]]:
        """The runs of batches, and chunks of all that takes one argument."""
        items: Iterable[StepSpec | WorkflowSpec] = [*runnable, *steps]
        return [*super().names(runnable, steps), *(chunk_name(it) for it in items if it.signature.takes_one)]

    def row_names(self, code: Code, name: str, version: int) -> Sequence[str] | RowNames | None:
        """Each row of a chunk holds the arguments of an item."""
        if name == BATCH.name:
            return super().row_names(code, name, version)
        item = item_of(code, name, version)
        return RowNames(None if item is None else item.signature.names)

    def no_retry(self, root: Run) -> str:
        """A batch is retried by another one."""
        batch = {"batch_id": root.id.partition("~")[0]}
        advice = Advice("batches.retry", batch, "starts another one of what has not succeeded")
        return Why("it is a batch, or a chunk of one", advice)

    def no_fork(self, root: Run) -> str:
        """A batch is started again and not forked."""
        return "it is a batch, or a chunk of one; start another batch"


def item_of(code: Code, chunk: str, version: int) -> StepSpec | WorkflowSpec | None:
    """The step or workflow that the chunks of this name and version call, if the process has it."""
    if chunk.startswith(OF_STEP):
        return code.find_step(chunk.removeprefix(OF_STEP))
    return code.defined(chunk.removeprefix(OF_WORKFLOW), version)
