"""The batches of a trial, as the client starts and reads them."""

from __future__ import annotations

from typing import Any

import outlive
from proof.kill import steps
from proof.kill.plan import Job
from proof.kill.program import program

CONCURRENCY = 5


async def start_batch(engine: outlive.Engine, it: Job) -> None:
    """Start the batch of a job; again is fine."""
    match it.batch:
        case "runs":
            await engine.start_batch(program, it.rows, concurrency=CONCURRENCY, id=it.id)
        case "writes":
            await engine.start_batch(steps.write_item, it.program.ops, concurrency=CONCURRENCY, id=it.id)
        case _:
            await engine.start_batch(steps.handle_item, it.program.ops, concurrency=CONCURRENCY, id=it.id)


async def total_of(engine: outlive.Engine, it: Job) -> int:
    """Wait for the end; what the items add up to. Those that fail must be those that fail by plan."""
    results: list[Any] = await engine.get_batch(it.id).results()
    for op, result in zip(it.program.ops, results, strict=True):
        assert isinstance(result, ValueError) if op.kind == "item" and op.fails else isinstance(result, int), result
    return sum(result for result in results if isinstance(result, int))
