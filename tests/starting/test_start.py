"""Starting: one id is one run, and a start that wants something else says so."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import outlive
from outlive.errors import RunExistsError
from outlive.errors.run import InvalidRunIdError
from outlive.events import RunCancelled
from outlive.limits import Limits
from tests.engine.inside import crash, journal_of, ring
from tests.engine.support import Place, hold, in_time, note, stage, waits


@outlive.workflow
async def started(name: str, *, times: int = 1) -> str:
    return "".join([await note(name) for _ in range(times)])


@outlive.workflow
async def started_and_held(name: str) -> str:
    held = await hold(name)
    await note(f"after {name}")
    return held


@outlive.workflow
async def started_and_waiting(name: str) -> str:
    stage.values.setdefault("lives", []).append(name)
    return f"{name} {await outlive.wait_for_signal('go', str)}"


@outlive.workflow
async def started_parent(name: str) -> str:
    return await started_and_held(name)


async def test_a_started_run_gives_its_result(engine: outlive.Engine) -> None:
    """A run started with an id has that id and returns what the workflow returns."""
    run = await engine.start(started, "a", id="run-1")

    assert "run-1" == run.id
    assert "a" == await in_time(run.result())
    assert await run.status() == "succeeded"


async def test_a_run_without_an_id_gets_one_of_its_own(engine: outlive.Engine) -> None:
    """Two starts without an id are two runs."""
    first, second = await engine.start(started, "a"), await engine.start(started, "a")

    assert first.id != second.id
    assert ["a", "a"] == [await in_time(first.result()), await in_time(second.result())]


async def test_keyword_arguments_are_bound_to_the_workflow(engine: outlive.Engine) -> None:
    """`bind` carries what `start` would take for options of its own."""
    run = await engine.start(started.bind("a", times=3))

    assert "aaa" == await in_time(run.result())


async def test_the_same_id_again_is_the_same_run(engine: outlive.Engine) -> None:
    """Attaching to an open run neither starts another one nor disturbs it. [TS-R16 FE-P10]"""
    first = await engine.start(started_and_held, "a", id="run-1")
    await stage.gate("a").reached()
    second = await engine.start(started_and_held, "b", id="run-1")
    stage.gate("a").open()

    assert ["a", "a"] == [await in_time(first.result()), await in_time(second.result())]
    assert ["a", "after a"] == stage.calls


async def test_attaching_to_a_finished_run_gives_its_result(engine: outlive.Engine) -> None:
    """A start that comes after the end is answered with what was, also by another engine. [SF-U5 TS-R14]"""
    await in_time((await engine.start(started, "a", id="run-1")).result())

    again = await engine.start(started, "b", id="run-1")

    assert "a" == await in_time(again.result())
    assert ["a"] == stage.calls


async def test_a_start_is_durable_when_it_returns(place: Place) -> None:
    """An engine that dies right after a start has not lost the run."""
    engine = await place.engine().__aenter__()
    await engine.start(started, "a", id="run-1")
    await crash(engine)

    async with place.engine() as second:
        assert "a" == await in_time(second.get("run-1").result())


@pytest.mark.parametrize("is_finished", [False, True])
async def test_reject_refuses_an_id_that_is_taken(engine: outlive.Engine, *, is_finished: bool) -> None:
    """`reject` raises, whether the other run is open or finished, and says what it is doing. [FB-R5]"""
    run = await engine.start(started_and_held, "a", id="run-1")
    await stage.gate("a").reached()
    if is_finished:
        stage.gate("a").open()
        await in_time(run.result())

    with pytest.raises(RunExistsError, match="succeeded" if is_finished else "running"):
        await engine.start(started_and_held, "b", id="run-1", on_conflict="reject")

    stage.gate("a").open()
    assert "a" == await in_time(run.result())


async def test_reject_takes_an_id_that_is_free(engine: outlive.Engine) -> None:
    """`reject` is an ordinary start when no run has the id."""
    run = await engine.start(started, "a", id="run-1", on_conflict="reject")

    assert "a" == await in_time(run.result())


async def test_replace_takes_the_id_of_a_finished_run(engine: outlive.Engine) -> None:
    """The finished run stays in the store as it ended, under another name."""
    await in_time((await engine.start(started, "a", id="run-1")).result())

    new = await engine.start(started, "b", id="run-1", on_conflict="replace")

    assert "b" == await in_time(new.result())
    assert "a" == await in_time(engine.get("run-1~old1").result())
    assert await engine.get("run-1~old1").status() == "succeeded"


async def test_replace_cancels_the_steps_of_an_open_run(engine: outlive.Engine) -> None:
    """A step of the replaced run is cancelled at once, and the new run has its own."""
    await engine.start(started_and_held, "a", id="run-1")
    await stage.gate("a").reached()

    new = await engine.start(started, "b", id="run-1", on_conflict="replace")

    assert "b" == await in_time(new.result())
    old = engine.get("run-1~old1")
    with pytest.raises(outlive.errors.RunCancelledError, match="replaced"):
        await in_time(old.result())
    assert ["a", "a cancelled", "b"] == sorted(stage.calls)


async def test_the_late_result_of_a_replaced_run_is_discarded(place: Place) -> None:
    """A step that runs elsewhere when its run is replaced ends in nothing."""
    async with place.engine(poll_seconds=60) as worker, place.engine(worker=False) as client:
        await worker.start(started_and_held, "a", id="run-1")
        await stage.gate("a").reached()
        await client.start(started, "b", id="run-1", on_conflict="replace")
        stage.gate("a").open()
        ring(worker)

        assert "b" == await in_time(worker.get("run-1").result())
        old = worker.get("run-1~old1")
        with pytest.raises(outlive.errors.RunCancelledError):
            await in_time(old.result())
        last = (await journal_of(old))[-1]
        assert isinstance(last, RunCancelled)
    assert 0 == stage.count("after a")


async def test_replace_ends_a_suspended_run(engine: outlive.Engine) -> None:
    """A signal sent after the replacement reaches the new run only."""
    old = await engine.start(started_and_waiting, "a", id="run-1")
    await waits(old)

    new = await engine.start(started_and_waiting, "b", id="run-1", on_conflict="replace")
    await engine.signal("run-1", "go", "!")

    assert "b !" == await in_time(new.result())
    assert await engine.get("run-1~old1").status() == "cancelled"


async def test_replace_takes_the_children_along(engine: outlive.Engine) -> None:
    """The tree of a replaced run is renamed as a whole, and none of it goes on."""
    await engine.start(started_parent, "a", id="run-1")
    await stage.gate("a").reached()

    new = await engine.start(started_parent, "b", id="run-1", on_conflict="replace")
    stage.gate("b").open()

    assert "b" == await in_time(new.result())
    old = await engine.get("run-1~old1~1").info()
    assert ("cancelled", "run-1~old1") == (old.status, old.parent_id)


async def test_replacing_again_keeps_every_earlier_run(engine: outlive.Engine) -> None:
    """Three lives under one id are three runs in the store."""
    for name in "abc":
        await in_time((await engine.start(started, name, id="run-1", on_conflict="replace")).result())

    found = {run.id for run in await engine.list(workflow="started")}
    assert {"run-1", "run-1~old1", "run-1~old2"} == found
    results = [await in_time(engine.get(run_id).result()) for run_id in sorted(found)]
    assert ["a", "b", "c"] == sorted(results)
    assert "c" == await in_time(engine.get("run-1").result())


async def test_an_unknown_way_to_resolve_a_conflict_is_refused(engine: outlive.Engine) -> None:
    """A misspelt `on_conflict` replaces nothing."""
    await in_time((await engine.start(started, "a", id="run-1")).result())
    misspelt: Any = "rejct"

    with pytest.raises(ValueError, match="rejct"):
        await engine.start(started, "b", id="run-1", on_conflict=misspelt)

    assert "a" == await in_time(engine.get("run-1").result())


@pytest.mark.parametrize("run_id", ["", "a b", "a/b", "~a", "x" * 129, "run-1~old1", "count", "follow", "stuck"])
async def test_an_invalid_run_id_is_refused(engine: outlive.Engine, run_id: str) -> None:
    """An invalid run id is refused at the start, because ids appear in URLs and file names."""
    with pytest.raises(InvalidRunIdError):
        await engine.start(started, "a", id=run_id)


async def test_runs_are_found_by_their_tags(engine: outlive.Engine) -> None:
    """Tags are text for searching; anything else is refused."""
    await in_time((await engine.start(started, "a", id="run-1", tags={"team": "blue"})).result())
    await in_time((await engine.start(started, "b", id="run-2", tags={"team": "red"})).result())

    assert ["run-2"] == [run.id for run in await engine.list(tags={"team": "red"}, status="succeeded")]
    wrong: Any = {"team": 1}
    with pytest.raises(TypeError, match="give text by name"):
        await engine.start(started, "c", tags=wrong)


async def test_attaching_takes_no_place_of_another_run(place: Place) -> None:
    """A start that finds its id taken leaves the engine as much room as before, and the run in motion undisturbed."""
    async with place.engine(limits=Limits(runs_active_max=2)) as engine:
        held = await engine.start(started_and_held, "a", id="held")
        await stage.gate("a").reached()
        for _ in range(5):
            await engine.start(started_and_held, "a", id="held")
        for number in range(5):
            for _ in range(2):
                assert "b" == await in_time((await engine.start(started, "b", id=f"run-{number}")).result())
        assert 5 == stage.count("b")
        stage.gate("a").open()
        assert "a" == await in_time(held.result())
        assert 1 == stage.count("a")


async def test_starts_at_the_same_time_are_one_run(engine: outlive.Engine) -> None:
    """Twenty callers with one id get one run. [FB-R4]"""
    runs = await in_time(asyncio.gather(*[engine.start(started, "a", id="run-1") for _ in range(20)]))

    assert ["a"] * 20 == [await in_time(run.result()) for run in runs]
    assert ["a"] == stage.calls


async def test_replacements_at_the_same_time_keep_every_run(engine: outlive.Engine) -> None:
    """Five starts that replace each other at once leave five runs under ids of their own, and only the last one
    succeeds."""
    names = [f"{number}" for number in range(5)]
    await in_time(
        asyncio.gather(*[engine.start(started_and_held, name, id="run-1", on_conflict="replace") for name in names])
    )
    for name in names:
        stage.gate(name).open()

    await in_time(engine.get("run-1").result())
    found = await engine.list(workflow="started_and_held")
    assert {"run-1", *[f"run-1~old{number}" for number in range(1, 5)]} == {run.id for run in found}
    assert 1 == len([run for run in found if run.status == "succeeded"])


async def test_a_wide_tree_is_replaced_as_a_whole(engine: outlive.Engine) -> None:
    """More children than a page of the store has all end and all get the new name."""
    await waits(await engine.start(started_wide, 1_001, id="run-1"))

    new = await engine.start(started, "b", id="run-1", on_conflict="replace")

    assert "b" == await in_time(new.result())
    for number in (1, 500, 1_001):
        old = await engine.get(f"run-1~old1~{number}").info()
        assert ("cancelled", "run-1~old1") == (old.status, old.root_id)


@outlive.workflow
async def started_wide(children: int) -> None:
    await asyncio.gather(*[started_and_waiting(f"{number}") for number in range(children)])
