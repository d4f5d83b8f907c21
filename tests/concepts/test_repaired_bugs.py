"""Bugs that were found by reading and by surprise; each of these tests failed before it was repaired."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import outlive
from outlive.errors import RunExistsError
from outlive.events import StepFailed, StepSucceeded
from tests.engine.faults import FaultyStore, faulty, unavailable
from tests.engine.inside import journal_of
from tests.engine.support import Place, hold, in_time, note, parks, stage, waits

pytestmark = pytest.mark.any_store


class Moody:
    """A payload codec that can be set to fail for values that hold a word."""

    name = "moody"
    is_broken = True

    def encode(self, data: bytes) -> bytes:
        """Raises for what it does not like."""
        if Moody.is_broken and b"disliked" in data:
            raise ArithmeticError("this codec cannot do it")
        return data[::-1]

    def decode(self, data: bytes) -> bytes:
        """The other way round."""
        return data[::-1]


@pytest.fixture(autouse=True)
def _broken() -> None:
    Moody.is_broken = True


@outlive.step
async def raise_unspeakable() -> None:
    """What it raises cannot be turned into text."""
    raise ValueError({10**5000: 1})


@outlive.workflow
async def museum_unspeakable() -> str:
    try:
        await raise_unspeakable()
    except ValueError:
        return "caught"
    return "nothing was raised"


@outlive.workflow
async def museum_gives_up_a_step() -> Any:
    try:
        async with asyncio.timeout(0.02):
            await hold("given up")
    except TimeoutError:
        return await outlive.wait_for_signal("go")


@outlive.workflow
async def museum_child(word: str) -> str:
    return word


@outlive.workflow
async def museum_disliked(first: str) -> str:
    await note(first)
    return await museum_child("disliked")


@outlive.workflow
async def museum_disliked_at_once() -> str:
    return await museum_child("disliked")


@outlive.workflow
async def museum_disliked_result() -> str:
    return await note("disliked")


@outlive.workflow
async def museum_attached() -> Any:
    child = await outlive.start(museum_child, "mine", detached=True, id="taken")
    return await child.result()


@outlive.workflow
async def museum_opens_a_thread() -> None:
    await outlive.wait_for_signal("go")
    await asyncio.to_thread(print)


@outlive.workflow
async def museum_has_child() -> None:
    await museum_opens_a_thread()


async def test_a_run_that_gave_up_a_step_rests(engine: outlive.Engine) -> None:
    """A timeout around a running step leaves nothing behind that keeps the run in motion."""
    run = await engine.start(museum_gives_up_a_step)

    await waits(run)
    await run.signal("go", 1)

    assert 1 == await in_time(run.result())


async def test_a_failure_that_cannot_be_described_is_a_failure_all_the_same(engine: outlive.Engine) -> None:
    """Whatever a step raises, its outcome is reported."""
    run = await engine.start(museum_unspeakable)

    assert "caught" == await in_time(run.result())
    assert [StepFailed] == [
        type(event) for event in await journal_of(run) if isinstance(event, StepSucceeded | StepFailed)
    ]


async def test_a_codec_that_fails_after_a_step_does_not_repeat_it(place: Place) -> None:
    """A payload codec that fails after a step has ended parks the run, and the step does not run again."""
    async with place.engine(codecs=[Moody()]) as engine:
        run = await engine.start(museum_disliked, "charged")
        assert "this codec cannot do it" in await parks(run)

        Moody.is_broken = False
        await run.resume()

        assert "disliked" == await in_time(run.result())
        assert 1 == stage.count("charged")


async def test_a_codec_that_fails_for_a_result_parks_the_run_and_takes_the_blame(place: Place) -> None:
    """The step has run and its result could not be stored: it runs again once there is a codec that can."""
    async with place.engine(codecs=[Moody()]) as engine:
        run = await engine.start(museum_disliked_result)
        reason = await parks(run)
        assert "payload codec 'moody': ArithmeticError" in reason
        assert "bug in Outlive" not in reason

        Moody.is_broken = False
        await run.resume()

        assert "disliked" == await in_time(run.result())


async def test_one_run_that_cannot_be_taken_in_strands_no_other(place: Place) -> None:
    """Runs that were claimed together with it go on."""
    async with place.engine(worker=False) as client:
        bad = await client.start(museum_disliked_at_once, id="bad")
        good = [await client.start(museum_child, f"good {number}") for number in range(3)]
    async with place.engine(codecs=[Moody()]) as engine:
        assert ["good 0", "good 1", "good 2"] == [await in_time(engine.get(run.id).result()) for run in good]
        assert "this codec cannot do it" in await parks(engine.get(bad.id))


async def test_a_detached_run_is_looked_up_until_the_store_answers(place: Place) -> None:
    """A starter does not rest before a worker has seen whether the run with that id will tell it of its end."""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores)) as engine:
        await in_time((await engine.start(museum_child, "theirs", id="taken")).result())
        stores[0].before["find_runs"].extend([unavailable(), unavailable()])
        run = await engine.start(museum_attached)

        assert "theirs" == await in_time(run.result())


async def test_cancelling_a_child_of_a_parked_run_leaves_the_rest_alone(engine: outlive.Engine) -> None:
    """Only the run that was named is asked to stop."""
    run = await engine.start(museum_has_child, id="tree")
    await waits(run)
    await engine.signal("tree~1", "go")
    await parks(run)

    await engine.cancel("tree~1")

    assert "parked" == await run.status()


@pytest.mark.parametrize("tags", [{"a": "\ud800"}, {"a": 1}, {1: "a"}])
async def test_tags_that_cannot_be_stored_are_refused_at_once(engine: outlive.Engine, tags: Any) -> None:
    """The caller hears of it, and nothing is started."""
    with pytest.raises((TypeError, ValueError), match=r"give text by name|NUL or half a surrogate"):
        await in_time(engine.start(museum_child, "x", id="tagged", tags=tags))

    assert [] == await engine.list()


async def test_attaching_to_a_run_of_another_workflow_is_refused(engine: outlive.Engine) -> None:
    """The id belongs to something else: its result would be of another kind than the caller expects."""
    await engine.start(museum_child, "x", id="one")

    with pytest.raises(RunExistsError, match="workflow museum_child"):
        await engine.start(museum_opens_a_thread, id="one")
