"""Asks survive the death of either side: every ask gets exactly one answer, whichever write a process dies at."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

import outlive
from outlive.errors import AskFailedError, EngineClosedError
from outlive.errors.run import AskRefusedError
from outlive.events import AskAnswered, AskReceived
from outlive.testing import TestEngine, crash_everywhere
from outlive.testing.crash import Survivor
from outlive.testing.crash.everywhere import POINTS_MAX
from tests.engine.inside import crash, journal_of
from tests.engine.support import Place, events_of, in_time, waits

ANSWERS: dict[int, list[Any]] = {}
"""What callers were answered in one run of a crash test, by the number that they asked for."""


def small(number: int) -> None:
    """Refuse what is large."""
    if number > 9:
        raise ValueError(f"{number} is large")


@outlive.step
async def square_of_ask(number: int) -> int:
    return number * number


@outlive.workflow
async def squares(most: int) -> list[int]:
    seen: list[int] = []
    async for ask in outlive.asks("square", int, validate=small):
        seen.append(await square_of_ask(ask.body))
        ask.reply(seen[-1])
        if len(seen) == most:
            break
    return seen


@outlive.workflow
async def squares_in_generations(seen: list[int], most: int) -> list[int]:
    async for ask in outlive.asks("square", int, validate=small):
        if len(seen) % 2:
            # Taken and not answered: the next generation has it again.
            outlive.continue_as_new([*seen, 0], most)
        seen = [*seen, ask.body]
        ask.reply(ask.body * ask.body)
        if len(seen) >= most:
            break
    return seen


WANTED = {30: "ValueError('30 is large')", 2: 4, 3: 9}


async def ask_all(engine: TestEngine, run_id: str, *, numbers: tuple[int, ...]) -> None:
    """What every process does that is born: ask all of it, one after the other."""
    for number in numbers:
        try:
            answer: Any = await engine.ask(run_id, "square", number, key=f"k{number}")
        except AskFailedError as error:
            answer = repr(error.__cause__)
        ANSWERS.setdefault(number, []).append(answer)


async def check_answers(survivor: Survivor) -> None:
    """One answer for each, however often it was given; and a refused ask is not in the journal."""
    for number, answers in ANSWERS.items():
        assert {*answers} == {WANTED[number]}
    runs = [run.id for run in await survivor.engine.list() if run.id.partition("~")[0] == survivor.run.id]
    events = [event for run_id in runs for event in await journal_of(survivor.engine, run_id)]
    accepted = sorted(f"k{number}" for number in ANSWERS if number < 10)
    assert sorted(event.key for event in events if isinstance(event, AskAnswered)) == accepted
    assert sorted({event.key for event in events if isinstance(event, AskReceived)}) == accepted


@pytest.mark.parametrize("points", [5, pytest.param(POINTS_MAX, marks=pytest.mark.slow)])
async def test_asks_survive_a_crash_at_every_write(points: int) -> None:
    """The process that dies is the worker and the caller at once; the next caller asks again with the same keys."""
    drive = partial(ask_all, numbers=(30, 2))
    report = await crash_everywhere(
        squares, 1, drive=drive, check=check_answers, reset=ANSWERS.clear, max_points=points
    )

    assert report.result == [4]
    assert any("refusal of 1 asks" in write for write in report.writes)


@pytest.mark.parametrize("points", [5, pytest.param(POINTS_MAX, marks=pytest.mark.slow)])
async def test_asks_survive_a_crash_at_every_write_of_every_generation(points: int) -> None:
    """An ask that one generation has taken is answered by the next."""
    drive = partial(ask_all, numbers=(2, 3))
    report = await crash_everywhere(
        squares_in_generations, [], 3, drive=drive, check=check_answers, reset=ANSWERS.clear, max_points=points
    )

    assert report.result == [2, 0, 3]


async def test_an_answer_outlives_its_caller(place: Place) -> None:
    """A caller that is gone before the answer came does not matter to the run; another one fetches it."""
    async with place.engine() as engine:
        run = await engine.start(squares, 1)
        async with place.engine(worker=False) as client:
            asking = asyncio.create_task(client.ask(run.id, "square", 3, key="k"))
            await in_time(run.result())
        with suppress(EngineClosedError):
            await asking
        assert await in_time(engine.asks.answer(run.id, "square", "k")) == 9
        assert len(await events_of(run, AskReceived)) == 1


async def test_another_worker_answers_what_a_lost_one_had_taken(place: Place) -> None:
    """The caller in a third process does not notice."""
    async with place.engine(worker=False) as client:
        first = place.engine()
        await first.__aenter__()
        run = await client.start(squares, 2)
        await in_time(client.ask(run.id, "square", 2))
        await waits(run)
        asking = asyncio.create_task(client.ask(run.id, "square", 3, key="k"))
        await crash(first)
        async with place.engine():
            assert await in_time(asking) == 9
            assert await in_time(run.result()) == [4, 9]


async def test_a_run_that_ends_from_outside_refuses_what_is_open(place: Place) -> None:
    """No code of it runs any more, and its callers hear of it all the same."""
    async with place.engine(worker=False) as client:
        run = await client.start(squares, 2)
        asking = asyncio.create_task(client.ask(run.id, "square", 2, key="k"))
        await asyncio.sleep(0)
        await client.cancel(run.id)
        with pytest.raises(AskRefusedError) as caught:
            await in_time(asking)

    assert caught.value.status == "cancelled"
