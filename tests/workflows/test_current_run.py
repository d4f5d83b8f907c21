"""`outlive.current_run()` and `outlive.get_logger()`: what code knows of its run; a replay says nothing twice."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

import outlive
from outlive.errors.program import NotInRunError
from outlive.testing import TestEngine
from outlive.types import RunContext
from tests.engine.inside import crash
from tests.engine.support import Place, hold, in_time, note, parks, stage, waits

log = outlive.get_logger(__name__)


class Kept(logging.Handler):
    """Keeps records; works in any process."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def lines(self) -> list[tuple[Any, ...]]:
        """Text and fields."""
        return [(each.getMessage(), *fields(each)) for each in self.records]


def fields(record: logging.LogRecord) -> list[Any]:
    """What a record says besides its text."""
    return [getattr(record, name) for name in ("run_id", "workflow", "step", "attempt")]


@pytest.fixture
def kept() -> Iterator[Kept]:
    """What was logged here."""
    handler = Kept()
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield handler
    log.removeHandler(handler)


def remember() -> RunContext:
    """Note what is known now."""
    me = outlive.current_run()
    stage.call(me)
    return me


@outlive.workflow(version=3)
async def knows_itself() -> str:
    remember()
    await note("first")
    remember()
    await outlive.start(knows_its_parent, detached=True, id="detached")
    return await knows_its_parent()


@outlive.workflow
async def knows_its_parent() -> str:
    return str(outlive.current_run().parent_id)


@outlive.step
async def asks_in_a_step() -> None:
    outlive.current_run()


@outlive.workflow
async def asks_in_steps() -> None:
    await asks_in_a_step()


@outlive.workflow
async def replayed() -> str:
    remember()
    log.info("begins")
    await note("a")
    log.info("goes on")
    remember()
    await hold("held")
    log.info("ends")
    return "done"


async def test_a_workflow_knows_its_run() -> None:
    """Who it is, where it belongs, since when, and how long its journal is."""
    async with TestEngine() as engine:
        run = await engine.start(knows_itself, id="a", tags={"tenant": "x"})
        assert "a" == await run.result()
        assert "a" == await engine.get("detached").result()
        created_at = (await run.info()).created_at
    first, second = [each for each in stage.calls if not isinstance(each, str)]
    assert ("a", "knows_itself", 3, None, "a") == (
        first.id,
        first.workflow,
        first.version,
        first.parent_id,
        first.root_id,
    )
    assert {"tenant": "x"} == first.tags
    assert created_at == first.created_at
    assert [1, 2] == [first.events, second.events]
    assert [False, False] == [first.is_replaying, second.is_replaying]


async def test_current_run_outside_a_workflow_is_refused() -> None:
    """`current_run` is refused outside a workflow, and in a step the error names `current_step`."""
    with pytest.raises(NotInRunError, match="outside a workflow;"):
        outlive.current_run()
    async with TestEngine() as engine:
        with pytest.raises(outlive.errors.RunFailedError, match=r"a step has outlive\.current_step\(\)"):
            await (await engine.start(asks_in_steps)).result()


async def test_a_replay_knows_that_it_is_one_and_logs_nothing_again(kept: Kept) -> None:
    """A replay sees the same events as before the crash, knows that it is one, and logs only the lines that come after
    it."""
    place = Place(None)
    first = await place.engine().__aenter__()
    await first.start(replayed, id="a")
    await stage.gate("held").reached()
    await crash(first)
    async with place.engine() as second:
        await stage.gate("held").reached()
        stage.gate("held").open()
        await in_time(second.get("a").result())

    assert ["begins", "goes on", "ends"] == [each.getMessage() for each in kept.records]
    seen = [each for each in stage.calls if not isinstance(each, str)]
    assert [False, False, True, True] == [each.is_replaying for each in seen]
    assert [each.events for each in seen[:2]] == [each.events for each in seen[2:]]


async def test_a_run_that_no_worker_has_begun_is_not_replayed(kept: Kept) -> None:
    """A client has created it; the worker that claims it is the first to run its code."""
    place = Place(None)
    async with place.engine(worker=False) as client:
        await client.start(replayed, id="a")
    stage.gate("held").open()
    async with place.engine() as engine:
        await in_time(engine.get("a").result())

    assert ["begins", "goes on", "ends"] == [each.getMessage() for each in kept.records]


@outlive.workflow
async def generations(left: int) -> str:
    log.info("generation %d", left)
    await outlive.wait_for_signal("go")
    if left:
        outlive.continue_as_new(left - 1)
    return "done"


async def test_a_new_generation_is_not_replayed(kept: Kept) -> None:
    """It is born with the signals that were left to it, and its code has not run yet."""
    place = Place(None)
    async with place.engine() as engine:
        run = await engine.start(generations, 1, id="a")
        await waits(run)
    async with place.engine(worker=False) as client:
        await client.signal("a", "go")
        await client.signal("a", "go")
    async with place.engine() as engine:
        await in_time(engine.get("a").result())

    assert ["generation 1", "generation 0"] == [each.getMessage() for each in kept.records]


@outlive.workflow
async def parks_first() -> str:
    await note("a")
    if "better" not in stage.values:
        outlive.Engine("memory:").get("x")
    log.info("goes on")
    return "done"


async def test_a_run_that_is_resumed_is_heard_from_where_it_stopped(kept: Kept) -> None:
    """No reader has seen what it says there."""
    async with Place(None).engine() as engine:
        run = await engine.start(parks_first, id="a")
        await parks(run)
        stage.values["better"] = True
        await run.resume()
        await in_time(run.result())

    assert ["goes on"] == [each.getMessage() for each in kept.records]


@outlive.step(retry=outlive.Retry(attempts=2, first=0))
async def says_async() -> None:
    log.info("async")
    if outlive.current_step().attempt == 1:
        raise ConnectionError


@outlive.step
def says_on_a_thread() -> None:
    log.info("thread", extra={"step": "mine"})


@outlive.step(process=True)
def says_in_a_process() -> list[str]:
    handler = Kept()
    log.addHandler(handler)
    log.warning("process")
    return [str(each) for each in handler.lines()[0]]


@outlive.workflow
async def says_everywhere() -> list[str]:
    log.info("workflow")
    await says_child()
    await says_async()
    await says_on_a_thread()
    return await says_in_a_process()


@outlive.workflow
async def says_child() -> None:
    log.info("child")


async def test_every_record_has_the_fields_of_its_run_and_step(kept: Kept) -> None:
    """In workflows, children, async steps, steps on threads and steps in processes; what the caller gives stays."""
    async with Place(None).engine() as engine:
        of_process = await in_time((await engine.start(says_everywhere, id="a")).result())
    log.info("outside")

    assert [
        ("workflow", "a", "says_everywhere", None, None),
        ("child", "a~1", "says_child", None, None),
        ("async", "a", "says_everywhere", "says_async", 1),
        ("async", "a", "says_everywhere", "says_async", 2),
        ("thread", "a", "says_everywhere", "mine", 1),
        ("outside", None, None, None, None),
    ] == kept.lines()
    assert ["process", "a", "says_everywhere", "says_in_a_process", "1"] == of_process


def test_the_logger_is_that_of_the_standard_library() -> None:
    """Asked for twice, it is the same and filters once."""
    assert logging.getLogger(__name__) is log
    assert outlive.get_logger(__name__) is log
    assert 1 == len(log.filters)
