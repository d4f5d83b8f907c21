"""A workflow reads what another run shows and emits: what it has read is in its journal, and a replay reads nothing."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

import outlive
from outlive.errors import RunFailedError
from outlive.events import StepSucceeded
from outlive.testing import TestEngine, crash_everywhere
from tests.engine.support import Place, events_of, in_time

pytestmark = pytest.mark.any_store


@dataclass(frozen=True)
class Row:
    number: int


@outlive.workflow
async def read_writer(count: int, *, waits: bool = False) -> None:
    """Shows a stage and emits rows; it may wait between them."""
    outlive.publish(stage="reading", count=count)
    for number in range(count):
        outlive.emit("rows", Row(number))
        if waits:
            await outlive.wait_for_signal("more")
    outlive.publish(stage="done")


@outlive.workflow
async def read_all(run_id: str) -> list[int]:
    return [row.number async for row in outlive.get(run_id).stream("rows", Row)]


@outlive.workflow
async def read_some(run_id: str) -> list[Any]:
    """The first rows, then one more behind a position, and gives up when none comes."""
    found: list[Any] = []
    try:
        async with asyncio.timeout(60):
            async for row in outlive.get(run_id).stream("rows", after=1):
                found.append(row)
                await outlive.signal(run_id, "more")
    except TimeoutError:
        found.append("none")
    return found


@outlive.workflow
async def read_stage(run_id: str, key: str | None) -> Any:
    return await outlive.get(run_id).published(key)


@outlive.workflow
async def read_writing(count: int) -> list[int]:
    """Starts the writer itself, and reads what it emits while it does."""
    run = await outlive.start(read_writer, count, detached=True, id="writer")
    assert await outlive.get(run.id).published("count") == count
    return [row.number async for row in outlive.get(run.id).stream("rows", Row)]


async def test_a_stream_is_read_to_its_end(engine: outlive.Engine) -> None:
    """Items of a type, in order; many that are there together are few events of the journal."""
    await in_time((await engine.start(read_writer, 250, id="writer")).result())
    run = await engine.start(read_all, "writer")

    assert await in_time(run.result()) == [*range(250)]
    assert 3 <= len(await events_of(run, StepSucceeded)) <= 4


async def test_a_replay_reads_nothing(place: Place) -> None:
    """The other run may be gone by then: what was read is in the journal."""
    async with place.engine() as engine:
        await in_time((await engine.start(read_writer, 3, id="writer")).result())
        run = await engine.start(read_all, "writer")
        assert await in_time(run.result()) == [0, 1, 2]
        history = await engine.export(run.id)
        assert (await engine.purge(older_than=0, workflow="read_writer")).deleted == 1
    assert '"read_all"' in history


async def test_a_stream_is_read_while_it_grows() -> None:
    """From a position on, and a timeout bounds the wait for the next item."""
    async with TestEngine() as engine:
        await engine.start(read_writer.bind(4, waits=True), id="writer")
        await engine.signal("writer", "more")
        run = await engine.start(read_some, "writer")
        found = await run.result()

        assert found == [{"number": 1}, {"number": 2}, {"number": 3}]


async def test_a_wait_for_the_next_item_ends_with_its_timeout() -> None:
    """The run reads on later, or goes on without."""
    async with TestEngine() as engine:
        await engine.start(read_writer.bind(1, waits=True), id="writer")
        run = await engine.start(read_some, "writer")
        assert await run.result() == ["none"]


async def test_what_a_run_shows_is_read(engine: outlive.Engine) -> None:
    """The whole object, or one field, which is waited for."""
    await in_time((await engine.start(read_writer, 2, id="writer")).result())

    assert await in_time((await engine.start(read_stage, "writer", None)).result()) == {"stage": "done", "count": 2}
    assert await in_time((await engine.start(read_stage, "writer", "stage")).result()) == "done"
    for run_id, key, text in (("writer", "nothing", "RunFinishedError"), ("none", None, "RunNotFoundError")):
        run = await engine.start(read_stage, run_id, key)
        with pytest.raises(RunFailedError, match=text):
            await in_time(run.result())


async def test_reading_survives_every_crash() -> None:
    """No item is lost and none comes twice, wherever the worker of the reader and of the writer dies."""
    report = await crash_everywhere(read_writing, 5, max_points=12)
    assert report.result == [0, 1, 2, 3, 4]
