"""Several engines in one process, on one loop or on many: they disturb each other in nothing."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import outlive
from outlive.errors import RunNotFoundError
from outlive.errors.program import WorkflowNotFoundError
from outlive.testing.fsck import check_store
from tests.engine.support import Place, in_time, note, registry_of, stage, until, waits

RUNS = 100


@outlive.workflow
async def twice(name: str) -> str:
    await note(name)
    return await note(f"{name} again")


@outlive.workflow
async def staying(name: str) -> str:
    word: str = await outlive.wait_for_signal("go")
    return f"{name} {word}"


@outlive.step
async def who() -> str:
    """The run that the step believes to be in."""
    return outlive.current_step().run_id


@outlive.workflow
async def whose() -> str:
    return await who()


@outlive.step
async def ask_the_other() -> list[str]:
    """Starts a run on another engine in the middle of a step of this one."""
    other: outlive.Engine = stage.values["other"]
    before = outlive.current_step().run_id
    theirs = await (await other.start(whose, id="theirs")).result()
    return [before, theirs, outlive.current_step().run_id]


@outlive.workflow
async def asking_many() -> list[str]:
    return await ask_the_other()


@pytest.fixture
def untouched_interpreter() -> Iterator[None]:
    """The switches of the interpreter, put back."""
    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    yield
    sys.setswitchinterval(interval)
    gc.set_threshold(*threshold)


async def test_engines_with_stores_of_their_own_know_nothing_of_each_other(tmp_path: Path) -> None:
    """Three engines on one loop with stores of their own keep runs with one id apart, and two go on when the third is
    left."""
    places = [Place(tmp_path / "a.db"), Place(tmp_path / "b.db"), Place(None)]
    async with places[0].engine() as first, places[1].engine() as second:
        async with places[2].engine() as third:
            engines = (first, second, third)
            runs = [await engine.start(staying, str(number), id="same") for number, engine in enumerate(engines)]
            for run in runs:
                await waits(run)
            await third.signal("same", "go", "third")
            assert await in_time(runs[2].result()) == "2 third"
        for number, engine in enumerate((first, second)):
            await engine.signal("same", "go", "now")
            assert await in_time(runs[number].result()) == f"{number} now"
            assert len(await engine.list()) == 1
        await first.start(twice, "x", id="only-here")
        with pytest.raises(RunNotFoundError):
            await second.get("only-here").info()


async def test_a_step_of_one_engine_may_use_another(tmp_path: Path) -> None:
    """Each step knows its own run, before and after."""
    places = [Place(tmp_path / "a.db"), Place(None)]
    async with places[0].engine() as first, places[1].engine() as stage.values["other"]:
        run = await first.start(asking_many, id="ours")

        assert await in_time(run.result()) == ["ours", "theirs", "ours"]


async def test_each_engine_runs_what_its_registry_has(tmp_path: Path) -> None:
    """Engines on one file with different code share nothing but the file: each takes what it has."""
    place, only_twice = Place(tmp_path / "a.db"), registry_of(twice)
    async with (
        place.engine(registry=only_twice) as first,
        place.engine(registry=registry_of(staying)) as second,
    ):
        theirs = await second.start(twice, "a", id="run-1")
        ours = await first.start(staying, "b", id="run-2")
        await second.signal("run-2", "go", "on")

        assert await in_time(theirs.result()) == "a again"
        assert await in_time(ours.result()) == "b on"

        async def have_counted() -> bool:
            # The end of a run can be read before its own engine hears that it is written.
            return first.counters.runs_ended == second.counters.runs_ended == 1

        await until(have_counted)
        with pytest.raises(WorkflowNotFoundError):
            only_twice.workflow("staying", 1)


async def test_two_engines_on_one_file_share_work_without_a_storm(tmp_path: Path) -> None:
    """A hundred runs that only the two workers may start: each once, and hardly ever both reach for the same."""
    place = Place(tmp_path / "a.db")
    async with place.engine(worker=False) as client, place.engine() as first, place.engine() as second:
        runs = [await client.start(twice, f"run {number}") for number in range(RUNS)]
        results = [await in_time(run.result()) for run in runs]

        assert results == [f"run {number} again" for number in range(RUNS)]
        assert first.counters.runs_ended + second.counters.runs_ended == RUNS
        assert first.counters.conflicts + second.counters.conflicts <= RUNS // 20
    assert set(Counter(stage.calls).values()) == {1}


async def test_engines_on_loops_of_their_own_share_a_file(tmp_path: Path) -> None:
    """Three threads, each with an event loop and a worker on one file; one of them runs each run."""
    place = Place(tmp_path / "a.db")

    def work(worker: int) -> list[str]:
        with place.engine().sync as engine:
            runs = [engine.start(twice, f"{worker}/{number}") for number in range(20)]
            return [run.result(timeout=20) for run in runs]

    with ThreadPoolExecutor(3) as threads:
        loop = asyncio.get_running_loop()
        results = await in_time(asyncio.gather(*(loop.run_in_executor(threads, work, each) for each in range(3))))

    assert results == [[f"{worker}/{number} again" for number in range(20)] for worker in range(3)]
    assert set(Counter(stage.calls).values()) == {1}
    store = place.store()
    await store.open()
    assert await check_store(store) == []
    await store.close()


@pytest.mark.usefixtures("untouched_interpreter")
async def test_the_interpreter_is_tuned_once_and_only_by_those_who_may(tmp_path: Path) -> None:
    """A client and a worker that must not leave it alone; a second worker finds it done; a finer one stays."""
    sys.setswitchinterval(0.005)
    async with Place(None).engine(worker=False), Place(None).engine(tune=False):
        assert sys.getswitchinterval() == pytest.approx(0.005)
        async with Place(None).engine(), Place(tmp_path / "a.db").engine():
            tuned = sys.getswitchinterval()
            assert tuned < 0.005
        assert sys.getswitchinterval() == tuned
    sys.setswitchinterval(0.0001)
    async with Place(None).engine():
        assert sys.getswitchinterval() == pytest.approx(0.0001)
