"""What one generation of a run leaves the next, where that meets publications, marks, detached runs and messages."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import outlive
from outlive.testing import crash_everywhere
from outlive.testing.crash.everywhere import POINTS_MAX
from tests.engine.support import in_time, note, stage

pytestmark = pytest.mark.any_store


@outlive.workflow
async def successor_shows_in_each(left: int) -> str:
    """Publishes before it waits for anything."""
    outlive.publish(**{f"gen{left}": left})
    await note(f"gen{left}")
    outlive.publish(last=left)
    if left:
        outlive.continue_as_new(left - 1)
    return "done"


async def test_a_successor_adds_its_values_to_those_of_its_predecessor(engine: outlive.Engine) -> None:
    """A generation that publishes at once adds its values to the values that the generation before it left."""
    run = await engine.start(successor_shows_in_each, 2)
    assert "done" == await in_time(run.result())
    assert {"gen2": 2, "gen1": 1, "gen0": 0, "last": 0} == await run.published()


@outlive.workflow
async def successor_marks(left: int) -> list[bool]:
    if left:
        outlive.publish(left=left)
        outlive.continue_as_new(left - 1)
    early = outlive.patched("early")
    await note("on the way")
    return [early, outlive.patched("late")]


@outlive.workflow
async def successor_marks_after_signal(left: int) -> list[bool]:
    if left:
        await note("wait")
        await outlive.wait_for_signal("first", int)
        outlive.continue_as_new(left - 1)
    early = outlive.patched("early")
    await outlive.wait_for_signal("second", int)
    return [early, outlive.patched("late")]


async def test_a_successor_takes_the_new_way_whatever_it_was_left(engine: outlive.Engine) -> None:
    """No code has been there before, though something is published."""
    run = await engine.start(successor_marks, 1)
    assert [True, True] == await in_time(run.result())


async def test_a_successor_with_signals_takes_the_new_way(engine: outlive.Engine) -> None:
    """Signals in its journal are not a sign that code has been there before."""
    run = await engine.start(successor_marks_after_signal, 1)
    await run.signal("second", 2)
    await run.signal("first", 1)
    assert [True, True] == await in_time(run.result())


@outlive.workflow
async def successor_report() -> str:
    return "reported"


@outlive.workflow
async def successor_reports_in_each(left: int) -> str:
    child = await outlive.start(successor_report, detached=True, id="the-report")
    said = await child.result()
    if left:
        outlive.continue_as_new(left - 1)
    return said


async def test_each_generation_gets_the_end_of_a_run_that_has_ended(engine: outlive.Engine) -> None:
    """Each generation gets the end of a detached run, even if an earlier generation has had it."""
    run = await engine.start(successor_reports_in_each, 2)
    assert "reported" == await in_time(run.result())


@outlive.step(undo=note)
async def successor_book(what: str) -> str:
    stage.call(f"book {what}")
    return f"undo {what}"


@outlive.workflow
async def successor_mixes(left: int) -> Any:
    """Saga, once, approval-free mix over generations."""
    outlive.publish(left=left)
    async with outlive.saga():
        await successor_book(f"a{left}")
        new = outlive.patched("new")
        got = await outlive.map(note, ["x", "y"])
        if left:
            outlive.continue_as_new(left - 1)
        try:
            async with outlive.saga():
                await asyncio.gather(successor_book("b"), successor_book("c"))
                raise ValueError("no")
        except ValueError:
            outlive.publish(failed=True)
    return [new, got]


@pytest.mark.parametrize("points", [6, pytest.param(POINTS_MAX, marks=pytest.mark.slow)])
async def test_mix_survives_every_crash(points: int) -> None:
    """Sagas, marks, publications and maps over two generations."""
    report = await crash_everywhere(successor_mixes, 1, reset=stage.clear, max_points=points)
    assert [True, ["x", "y"]] == report.result
