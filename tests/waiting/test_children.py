"""Children: runs of one tree, called like functions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import outlive
from outlive.errors import ConfigurationError
from outlive.events import RunCreated, StepSucceeded
from tests.engine.inside import crash, journal_of
from tests.engine.support import DAY, Place, events_of, hold, in_time, note, reaches, stage, waits

pytestmark = pytest.mark.any_store


class ChildishError(Exception):
    """Registered by a child, so it reaches the parent as itself."""

    def __init__(self, code: int) -> None:
        self.code = code
        super().__init__(f"code {code}")


@outlive.workflow
async def child_note(name: str) -> str:
    return await note(name)


@outlive.workflow
async def child_hold(name: str) -> str:
    try:
        return await hold(name)
    finally:
        await note(f"{name} cleaned up")


@outlive.workflow(raises=(ChildishError,))
async def child_failing(code: int) -> None:
    raise ChildishError(code)


@outlive.workflow
async def child_failing_plainly(text: str) -> None:
    raise outlive.errors.OutliveError(text)


@outlive.workflow
async def child_sleeping(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "slept"


@outlive.workflow
async def grandchildren(depth: int) -> int:
    return 0 if depth == 0 else 1 + await grandchildren(depth - 1)


@outlive.workflow
async def parent_of_many(names: list[str]) -> list[str]:
    return list(await asyncio.gather(*[child_note(name) for name in names]))


@outlive.workflow
async def parent_of_held(names: list[str]) -> list[str]:
    first = await child_note("first")
    return [first, *await asyncio.gather(*[child_hold(name) for name in names])]


@outlive.workflow
async def parent_of_failing(kind: str) -> str:
    try:
        await (child_failing(7) if kind == "registered" else child_failing_plainly("plain"))
    except ChildishError as error:
        return f"itself: {error} {error.code}"
    except outlive.errors.RunFailedError as error:
        return f"{error} / {error.failure.type}"
    return "went on"


@outlive.workflow
async def parent_that_ends(name: str) -> str:
    await outlive.start(child_hold, name)
    await hold("parent")
    return "ended"


@outlive.workflow
async def parent_that_gives_up(name: str) -> str:
    try:
        async with asyncio.timeout(0.02):
            await child_hold(name)
    except TimeoutError:
        return await note("gave up")
    return "went on"


@outlive.workflow
async def parent_of_started(name: str) -> list[str]:
    child = await outlive.start(child_note, name)
    return [child.id, await child.result()]


@outlive.workflow
async def parent_with_patience(seconds: float) -> str:
    child = await outlive.start(child_sleeping, DAY, timeout=seconds)
    try:
        return await child.result()
    except outlive.errors.RunTimedOutError as error:
        return str(error)


@outlive.workflow
async def parent_with_wishes() -> None:
    await outlive.start(child_note, "x", id="mine")


async def test_a_workflow_called_in_a_workflow_is_a_child(engine: outlive.Engine) -> None:
    """It has an id of its own, a parent, and its place in the parent's journal. [FE-S12]"""
    run = await engine.start(parent_of_many, ["a"], id="run-1")

    assert ["a"] == await in_time(run.result())
    child = await engine.get("run-1~1").info()
    assert ("run-1", "run-1", "child_note") == (child.parent_id, child.root_id, child.workflow)
    assert child.status == "succeeded"
    assert "a" == await in_time(engine.get("run-1~1").result())
    assert await journal_of(run) == await journal_of(engine, "run-1~1")


async def test_children_run_side_by_side(engine: outlive.Engine) -> None:
    """All of them are under way before one has ended, and results come in the order of the calls. [FE-S3]"""
    run = await engine.start(parent_of_held, ["a", "b", "c"], id="run-1")
    for name in "abc":
        await stage.gate(name).reached()
    for name in "cba":
        stage.gate(name).open()

    assert ["first", "a", "b", "c"] == await in_time(run.result())
    assert {"run-1~1", "run-1~2", "run-1~3", "run-1~4"} == {
        child.id for child in await engine.list() if child.parent_id == "run-1"
    }


async def test_only_roots_are_listed_when_asked(engine: outlive.Engine) -> None:
    """A list of roots leaves the children out."""
    await in_time((await engine.start(parent_of_many, ["a", "b"], id="run-1")).result())

    assert ["run-1"] == [run.id for run in await engine.list(roots_only=True)]
    assert 3 == len(await engine.list())


async def test_children_have_children(engine: outlive.Engine) -> None:
    """A tree is as deep as the calls are."""
    run = await engine.start(grandchildren, 20)

    assert 20 == await in_time(run.result())
    assert 21 == len(await events_of(run, RunCreated))


async def test_a_failing_child_raises_in_its_parent(engine: outlive.Engine) -> None:
    """A parent gets the class that the child's workflow registers, else `RunFailedError` with all facts on it."""
    run = await engine.start(parent_of_failing, "registered", id="run-1")
    assert "itself: code 7 7" == await in_time(run.result())
    assert await engine.get("run-1~1").status() == "failed"

    answer = await in_time((await engine.start(parent_of_failing, "plain", id="run-2")).result())
    assert "run run-2~1 failed: outlive.errors.OutliveError: plain / outlive.errors.OutliveError" == answer


async def test_children_are_cancelled_with_their_parent(engine: outlive.Engine) -> None:
    """A cancel goes down the tree: every child's step is cancelled and every child cleans up."""
    run = await engine.start(parent_of_held, ["a", "b"], id="run-1")
    await stage.gate("a").reached()
    await stage.gate("b").reached()
    await run.cancel(reason="enough")

    with pytest.raises(outlive.errors.RunCancelledError, match="enough"):
        await in_time(run.result())
    expected = ["a cancelled", "a cleaned up", "b cancelled", "b cleaned up"]
    assert expected == sorted(call for call in stage.calls if " " in call)
    assert await engine.get("run-1~2").status() == "cancelled"


async def test_a_child_alone_may_be_cancelled(engine: outlive.Engine) -> None:
    """Its parent hears of it as `RunCancelledError`, and its siblings go on."""
    run = await engine.start(parent_of_held, ["a", "b"], id="run-1")
    await stage.gate("a").reached()
    await stage.gate("b").reached()
    await engine.cancel("run-1~2", reason="just this one")

    with pytest.raises(outlive.errors.RunFailedError, match="run-1~2 was cancelled: just this one"):
        await in_time(run.result())
    assert await run.status() == "failed"


async def test_a_child_ends_with_its_parent(engine: outlive.Engine) -> None:
    """A child that the parent did not wait for is cancelled, and has cleaned up, before its parent has ended."""
    run = await engine.start(parent_that_ends, "a", id="run-1")
    await stage.gate("a").reached()
    stage.gate("parent").open()

    assert "ended" == await in_time(run.result())
    assert await engine.get("run-1~1").status() == "cancelled"
    assert 1 == stage.count("a cleaned up")


async def test_a_parent_may_give_up_on_its_child(engine: outlive.Engine) -> None:
    """A timeout around the call cancels the child and what it has running."""
    run = await engine.start(parent_that_gives_up, "a", id="run-1")

    assert "gave up" == await in_time(run.result())
    await reaches(engine.get("run-1~1"), "cancelled")
    assert 1 == stage.count("a cancelled")
    assert 1 == stage.count("a cleaned up")


async def test_a_started_child_has_a_handle(engine: outlive.Engine) -> None:
    """`outlive.start` gives the id at once and the result when it is asked for."""
    run = await engine.start(parent_of_started, "a", id="run-1")

    assert ["run-1~1", "a"] == await in_time(run.result())


async def test_a_child_may_have_a_timeout(place: Place) -> None:
    """It counts for the child and raises `RunTimedOutError` in the parent."""
    async with place.engine() as engine:
        run = await engine.start(parent_with_patience, DAY / 2, id="run-1")
        await waits(run)
        place.clock.skip(seconds=DAY / 2)

        assert "run run-1~1 did not end within its timeout" == await in_time(run.result())
        assert await engine.get("run-1~1").status() == "timed_out"


async def test_a_child_of_the_tree_cannot_have_an_id_of_its_own(engine: outlive.Engine) -> None:
    """An id or tags given to a child that is not detached are refused, not forgotten."""
    run = await engine.start(parent_with_wishes)

    with pytest.raises(outlive.errors.RunFailedError, match="detached=True") as caught:
        await in_time(run.result())
    assert ConfigurationError.__name__ in caught.value.failure.type


@pytest.mark.parametrize("is_killed", [False, True])
async def test_children_go_on_after_a_restart(place: Place, *, is_killed: bool) -> None:
    """A child that has ended is not run again, one that was under way goes on. [SF-U17 SF-U18]"""
    first = await place.engine(grace_seconds=0).__aenter__()
    run = await first.start(parent_of_held, ["a", "b"], id="run-1")
    await stage.gate("a").reached()
    await stage.gate("b").reached()
    stage.gate("a").open()
    await reaches(first.get("run-1~2"), "succeeded")
    await (crash(first) if is_killed else first.__aexit__(None, None, None))

    stage.gate("b").open()
    async with place.engine() as second:
        run = second.get("run-1")
        assert ["first", "a", "b"] == await in_time(run.result())
        calls: list[Any] = [(event.run, event.call) for event in await events_of(run, StepSucceeded)]
        assert len(calls) == len(set(calls)) == 5
    assert [1, 1, 2] == [stage.count(name) for name in ("first", "a", "b")]
