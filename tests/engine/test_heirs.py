"""What one generation of a run leaves the next, where that meets publications, marks, detached runs and messages."""

from __future__ import annotations

import asyncio
from typing import Any

import outlive
from outlive.testing import crash_everywhere
from tests.engine.support import in_time, note, stage


@outlive.workflow
async def shows_in_each(left: int) -> str:
    """Publishes before it waits for anything."""
    outlive.publish(**{f"gen{left}": left})
    await note(f"gen{left}")
    outlive.publish(last=left)
    if left:
        outlive.continue_as_new(left - 1)
    return "done"


async def test_what_an_heir_shows_at_once_joins_what_it_was_left(engine: outlive.Engine) -> None:
    run = await engine.start(shows_in_each, 2)
    assert "done" == await in_time(run.result())
    assert {"gen2": 2, "gen1": 1, "gen0": 0, "last": 0} == await run.published()


@outlive.workflow
async def marks(left: int) -> list[bool]:
    if left:
        outlive.publish(left=left)
        outlive.continue_as_new(left - 1)
    early = outlive.patched("early")
    await note("on the way")
    return [early, outlive.patched("late")]


@outlive.workflow
async def marks_after_signal(left: int) -> list[bool]:
    if left:
        await note("wait")
        await outlive.wait_for_signal("first", int)
        outlive.continue_as_new(left - 1)
    early = outlive.patched("early")
    await outlive.wait_for_signal("second", int)
    return [early, outlive.patched("late")]


async def test_an_heir_takes_the_new_way_whatever_it_was_left(engine: outlive.Engine) -> None:
    run = await engine.start(marks, 1)
    assert [True, True] == await in_time(run.result())


async def test_an_heir_with_signals_takes_the_new_way(engine: outlive.Engine) -> None:
    run = await engine.start(marks_after_signal, 1)
    await run.signal("second", 2)
    await run.signal("first", 1)
    assert [True, True] == await in_time(run.result())


@outlive.workflow
async def report() -> str:
    return "reported"


@outlive.workflow
async def reports_in_each(left: int) -> str:
    child = await outlive.start(report, detached=True, id="the-report")
    said = await child.result()
    if left:
        outlive.continue_as_new(left - 1)
    return said


async def test_each_generation_hears_of_a_run_that_has_ended(engine: outlive.Engine) -> None:
    run = await engine.start(reports_in_each, 2)
    assert "reported" == await in_time(run.result())


@outlive.step(once=True)
async def take_money(order: str) -> str:
    stage.call("take")
    return order


@outlive.step(undo=note)
async def book(what: str) -> str:
    stage.call(f"book {what}")
    return f"undo {what}"


@outlive.workflow
async def mixes(left: int) -> Any:
    """Saga, once, approval-free mix over generations."""
    outlive.publish(left=left)
    async with outlive.saga():
        await book(f"a{left}")
        new = outlive.patched("new")
        got = await outlive.map(note, ["x", "y"])
        if left:
            outlive.continue_as_new(left - 1)
        try:
            async with outlive.saga():
                await asyncio.gather(book("b"), book("c"))
                raise ValueError("no")
        except ValueError:
            outlive.publish(failed=True)
    return [new, got]


async def test_mix_survives_every_crash() -> None:
    report_ = await crash_everywhere(mixes, 1, reset=stage.clear)
    assert [True, ["x", "y"]] == report_.result
