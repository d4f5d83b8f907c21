"""What type checkers know of steps, workflows and handles: each `assert_type` is judged when mypy reads the tests."""

from __future__ import annotations

import asyncio
from typing import Any, assert_type

import outlive
from tests.engine.support import Place, in_time


@outlive.step
async def text_of(number: int) -> str:
    return str(number)


@outlive.step(timeout=20)
def bytes_of(number: int) -> bytes:
    return b"%d" % number


@outlive.step(transaction=True)
async def double_of(tx: Any, number: int) -> int:
    return number * 2


@outlive.workflow
async def typed_child(number: int) -> float:
    return number / 2


@outlive.workflow
async def typed_all(number: int) -> tuple[str, bytes, int, float]:
    text, data = await asyncio.gather(text_of(number), bytes_of(number))
    assert_type((text, data), tuple[str, bytes])
    double, half = await asyncio.gather(double_of(number), typed_child(number))
    assert_type((double, half), tuple[int, float])
    assert_type(await outlive.map(text_of, [number]), list[str])
    return text, data, double, half


async def test_types_reach_who_awaits(place: Place) -> None:
    """Through gather, handles, batches and `sync`."""
    async with place.engine() as engine:
        run = await engine.start(typed_all, 3)
        assert assert_type(await in_time(run.result()), tuple[str, bytes, int, float]) == ("3", b"3", 6, 1.5)

        batch = assert_type(await engine.start_batch(text_of, [3]), outlive.types.Batch[str])
        assert [assert_type(item, outlive.types.BatchItem[str]).result async for item in batch.items()] == ["3"]

        started = await asyncio.to_thread(lambda: engine.sync.start(typed_child, 3))
        assert assert_type(await asyncio.to_thread(started.result), float) == 1.5
