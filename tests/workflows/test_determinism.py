"""Determinism: time, chance and races are the same in every replay."""

from __future__ import annotations

import asyncio
import random as ordinary_random
from datetime import UTC, datetime
from uuid import UUID

import pytest

import outlive
from outlive.events import StepSucceeded
from outlive.limits import Limits
from tests.engine.inside import crash
from tests.engine.support import Place, events_of, hold, in_time, note, stage, until, waits

pytestmark = pytest.mark.any_store


@outlive.step
async def see(what: str) -> str:
    stage.call(what)
    return what


def picture() -> str:
    """What a workflow sees of time and chance."""
    return f"{outlive.now().isoformat()} {outlive.random()} {outlive.uuid4()}"


@outlive.workflow
async def deterministic() -> list[str]:
    seen = [await see(picture())]

    async def branch() -> str:
        return await see(picture())

    seen += await asyncio.gather(branch(), branch())
    await outlive.wait_for_signal("go")
    seen.append(await see(picture()))
    return seen


@outlive.workflow
async def deterministic_race() -> list[str]:
    racers = {name: asyncio.create_task(hold(name)) for name in ("a", "b", "c")}
    order = []
    pending = set(racers.values())
    while pending:
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        order += [task.result() for task in done]
    await outlive.wait_for_signal("go")
    await note(" ".join(order))
    return order


async def test_a_replay_sees_the_same_time_and_chance(place: Place) -> None:
    """A run that is rebuilt from its journal asks for every step with the arguments of the first time. [TS-R7 FE-W6]"""
    first = await place.engine().__aenter__()
    await waits(await first.start(deterministic, id="run-1"))
    await crash(first)
    place.clock.skip(seconds=1_000_000)
    ordinary_random.seed(99)

    async with place.engine() as second:
        await second.signal("run-1", "go")
        assert stage.calls == await in_time(second.get("run-1").result())
    assert 4 == len(set(stage.calls))


async def test_two_runs_draw_different_random_numbers(engine: outlive.Engine) -> None:
    """Two runs of one workflow draw different random numbers."""
    runs = [await engine.start(deterministic) for _ in range(2)]
    for run in runs:
        await run.signal("go")
    first, second = [await in_time(run.result()) for run in runs]

    assert not {seen.split()[1] for seen in first} & {seen.split()[1] for seen in second}


async def test_a_race_is_replayed_as_it_was_run(place: Place) -> None:
    """The order in which steps ended is the order of the journal."""
    limits = Limits(runs_cached_max=1)
    first = await place.engine(limits=limits).__aenter__()
    run = await first.start(deterministic_race, id="run-1")
    for name in "abc":
        await stage.gate(name).reached()
    for ended, name in enumerate("bca", start=1):
        stage.gate(name).open()
        await have_ended(run, ended)
    await waits(run)
    await crash(first)

    async with place.engine() as second:
        await second.signal("run-1", "go")
        assert ["b", "c", "a"] == await in_time(second.get("run-1").result())
    assert "b c a" == stage.calls[-1]


async def have_ended(run: outlive.types.RunHandle[list[str]], racers: int) -> None:
    """Return when the journal has the results of this many racers."""

    async def is_so() -> bool:
        return len(await events_of(run, StepSucceeded)) == racers

    await until(is_so)


async def test_outside_a_run_time_and_chance_are_ordinary() -> None:
    """`now`, `random` and `uuid4` work in plain code, and `wait_for_signal` is refused there."""
    assert abs((outlive.now() - datetime.now(UTC)).total_seconds()) < 5
    assert 0 <= outlive.random() < 1
    assert isinstance(outlive.uuid4(), UUID)
    with pytest.raises(outlive.errors.OutliveError, match="outside a workflow"):
        await outlive.wait_for_signal("go")
