"""`pause` and `resume` of a run, a workflow and everything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import outlive
from outlive._kernel.client.pausing import Pauser
from outlive.codecs import Encryption
from outlive.errors import InvalidArgumentError, ResultTimeoutError, RunCancelledError, RunFinishedError, RunParkedError
from outlive.errors.run import RunNotParkedError
from outlive.events import RunParked, RunReleased
from outlive.limits import Limits
from outlive.testing import TestEngine, crash_everywhere
from outlive.testing.crash.everywhere import POINTS_MAX
from outlive.testing.fsck import check_store
from tests.engine.inside import journal_of, store_of, trees_of, worker_of
from tests.engine.support import in_time, reaches, until, waits

calls: list[str] = []
gate = asyncio.Event()


@pytest.fixture(autouse=True)
def fresh() -> None:
    """Nothing was called, and the gate is shut."""
    global gate  # noqa: PLW0603 (a step has no other way to reach it)
    calls.clear()
    gate = asyncio.Event()


@pytest.fixture
async def engine() -> AsyncIterator[outlive.Engine]:
    """An engine whose store is sound in the end."""
    async with outlive.Engine("memory:", limits=Limits(steps_running_max=2)) as engine:
        yield engine
        assert await check_store(store_of(engine)) == []


@outlive.step
async def pause_slow(name: str) -> str:
    """Waits at the gate."""
    calls.append(f"slow {name}")
    await gate.wait()
    return name


@outlive.step
async def pause_next(name: str) -> str:
    """Returns at once."""
    calls.append(f"next {name}")
    return name


@outlive.step(once=True)
async def pause_once(name: str) -> str:
    """May be called once."""
    calls.append(f"once {name}")
    return name


@outlive.workflow
async def pause_line(name: str) -> str:
    """A step behind the other, and one that is called once."""
    try:
        await pause_slow(name)
        await pause_next(name)
        return await pause_once(name)
    finally:
        await pause_next("cleaning")


@outlive.workflow
async def pause_relay(name: str, *rest: str) -> str:
    """A step, and a generation for each other name."""
    await pause_slow(name)
    return outlive.continue_as_new(*rest) if rest else name


async def has_called(count: int) -> None:
    """Return when so many steps were called."""

    async def has() -> bool:
        return len(calls) >= count

    await until(has)


async def is_held(engine: outlive.Engine) -> bool:
    """Whether the worker has heard that a run is paused."""
    return any(live.hold is not None for live in trees_of(engine))


async def test_running_steps_end_and_nothing_begins(engine: outlive.Engine) -> None:
    """Their results are kept; `why` says who paused it, and callers that wait for the result wait on. [FE-R11]"""
    run = await engine.start(pause_line, "a", id="a")
    await has_called(1)
    await engine.pause("a", by="ann", reason="lunch")
    why = await run.why()
    assert why.startswith(
        "it is to be paused by ann: lunch, when the steps that run have ended; now it is in step pause_"
    )
    await until(partial(is_held, engine))
    gate.set()
    await reaches(run, "parked")

    assert (await run.why()).startswith("it is paused by ann: lunch (since 20")
    assert calls == ["slow a"]
    await run.pause()  # Twice is once.
    with pytest.raises(ResultTimeoutError, match="it is paused by ann: lunch"):
        await run.result(timeout=0.01)
    result = asyncio.ensure_future(run.result())
    await run.resume()
    assert await in_time(result) == "a"
    assert calls == ["slow a", "next a", "once a", "next cleaning"]
    with pytest.raises(RunNotParkedError):
        await run.resume()
    with pytest.raises(RunFinishedError):
        await run.pause()


@outlive.workflow
async def pause_wide(count: int) -> list[str]:
    """More steps than may run at once."""
    return list(await asyncio.gather(*(pause_slow(str(number)) for number in range(count))))


async def test_steps_that_wait_for_a_slot_do_not_begin(engine: outlive.Engine) -> None:
    """Two run, and the other eight are called when the run is resumed."""
    run = await engine.start(pause_wide, 10)
    await has_called(2)
    await run.pause()

    await until(partial(is_held, engine))
    gate.set()
    await reaches(run, "parked")
    assert len(calls) == 2
    await run.resume()
    assert await in_time(run.result()) == [str(number) for number in range(10)]
    assert sorted(calls) == sorted(f"slow {number}" for number in range(10))


@outlive.workflow
async def pause_rivals(count: int) -> str:
    """The first of several steps to end withdraws the others."""
    rivals = [asyncio.ensure_future(pause_slow(str(number))) for number in range(count)]
    done, _ = await asyncio.wait(rivals, return_when=asyncio.FIRST_COMPLETED)
    for rival in rivals:
        rival.cancel()
    await asyncio.wait(rivals)
    return await pause_next(next(iter(done)).result())


async def test_run_is_parked_whose_steps_were_withdrawn_while_it_was_held(engine: outlive.Engine) -> None:
    """The run itself withdraws steps that had not begun when it was paused: they are not counted a second time."""
    run = await engine.start(pause_rivals, 10)
    await has_called(2)
    await run.pause()
    await until(partial(is_held, engine))
    gate.set()
    await reaches(run, "parked")
    assert len(calls) == 2


async def test_pause_that_is_taken_back_before_it_came_to_be(engine: outlive.Engine) -> None:
    """The run goes on from its journal, and nothing is called twice."""
    run = await engine.start(pause_line, "a")
    await has_called(1)
    await run.pause()
    await run.resume()
    gate.set()
    assert await in_time(run.result()) == "a"
    assert calls == ["slow a", "next a", "once a", "next cleaning"]


async def test_pause_that_comes_to_be_while_it_is_taken_back(
    engine: outlive.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker parks the run between the two looks of `resume`, at the run and at its inbox."""
    store, me = store_of(engine), asyncio.current_task()
    read_inbox = store.read_inbox
    run = await engine.start(pause_line, "a")
    await has_called(1)
    await run.pause()
    await until(partial(is_held, engine))

    async def read_late(*args: Any, **options: Any) -> Any:
        if asyncio.current_task() is me and not gate.is_set():
            gate.set()
            await reaches(run, "parked")
        return await read_inbox(*args, **options)

    monkeypatch.setattr(store, "read_inbox", read_late)
    await run.resume()
    assert await in_time(run.result()) == "a"


async def test_resume_finds_a_pause_that_went_to_the_next_generation(
    engine: outlive.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run goes on as its next generation between the two looks of `resume`, and the pause is in the inbox of that
    generation."""
    store, me = store_of(engine), asyncio.current_task()
    looks: list[str] = []
    read_inbox = store.read_inbox
    run = await engine.start(pause_relay, "a", "b")
    await has_called(1)

    async def read_late(*args: Any, **options: Any) -> Any:
        if asyncio.current_task() is me and not looks:
            looks.append("first")
            gate.set()
            gate.clear()  # The step of the next generation waits again.
            await has_called(2)
            await run.pause()
        return await read_inbox(*args, **options)

    monkeypatch.setattr(store, "read_inbox", read_late)
    await run.resume()
    gate.set()
    assert await in_time(run.result()) == "b"


async def test_paused_run_cleans_up_when_it_is_cancelled(engine: outlive.Engine) -> None:
    """Its code is fit to run. One that is about to be paused does so too."""
    for pauses_first in (True, False):
        run = await engine.start(pause_line, "a")
        await has_called(1)
        await run.pause()
        if pauses_first:
            await until(partial(is_held, engine))
            gate.set()
            await reaches(run, "parked")
        await run.cancel(reason="enough")
        gate.set()
        with pytest.raises(RunCancelledError, match="enough"):
            await in_time(run.result())
        assert calls[-1] == "next cleaning"
        gate.clear()
        calls.clear()


async def test_paused_run_is_cancelled_while_another_client_resumes_it(
    engine: outlive.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cancel is durable, and the run no longer paused when `cancel` wants to let it go on: all is well."""
    resume_run = Pauser.resume_run
    run = await engine.start(pause_line, "a")
    await has_called(1)
    await run.pause()
    await until(partial(is_held, engine))
    gate.set()
    await reaches(run, "parked")

    async def resume_late(pauser: Pauser, run_id: str) -> None:
        await resume_run(pauser, run_id)
        await reaches(run, "cancelled")
        await resume_run(pauser, run_id)

    monkeypatch.setattr(Pauser, "resume_run", resume_late)
    await run.cancel(reason="enough")
    assert calls[-1] == "next cleaning"


async def test_run_that_has_no_worker_is_paused_at_once(tmp_path: Path) -> None:
    """Its timers do not fire, signals are buffered, and it begins only when it is resumed."""
    url = f"sqlite:{tmp_path}/runs.db"
    async with outlive.Engine(url, worker=False) as client:
        run = await client.start(pause_sleeper, 5, id="new")
        await run.pause(by="ann")
        assert await run.status() == "parked"
        await run.signal("go", "early")
    async with TestEngine(url) as engine:
        await engine.settle()
        assert calls == []
        await engine.resume("new")
        await engine.settle()
        await engine.get("new").pause()
        await engine.skip(timedelta(hours=1))
        assert calls == ["next begins"]
        await engine.resume("new")
        assert await engine.get("new").result() == "early"
        assert await check_store(store_of(engine)) == []


async def test_run_that_is_paused_again_before_a_worker_has_resumed_it_stays_paused(tmp_path: Path) -> None:
    """The last of the three requests counts, however long no worker was there."""
    url = f"sqlite:{tmp_path}/runs.db"
    async with outlive.Engine(url, worker=False) as client:
        run = await client.start(pause_sleeper, 5, id="twice")
        await run.pause(by="ann")
        await run.resume()
        await run.pause(by="ben", reason="not yet")
    async with TestEngine(url) as engine:
        await engine.settle()
        assert calls == []
        assert "paused by ben: not yet" in await engine.get("twice").why()
        await engine.resume("twice")
        await engine.settle()
        assert calls == ["next begins"]
        assert await check_store(store_of(engine)) == []


@outlive.workflow
async def pause_asked(cancels: int) -> str:
    """Goes on after so many cancels."""
    for _ in range(cancels):
        with suppress(asyncio.CancelledError):
            await outlive.wait_for_signal("go")
    return str(await outlive.wait_for_signal("go"))


@pytest.mark.parametrize(("cancels", "status"), [(0, "cancelled"), (1, "waiting")])
async def test_run_that_is_cancelled_after_a_request_that_does_not_fit_is_cancelled(
    tmp_path: Path, cancels: int, status: str
) -> None:
    """There is no step to skip: the run was parked for that, with the cancel left in its inbox."""
    url = f"sqlite:{tmp_path}/runs.db"
    async with TestEngine(url) as engine:
        run = await engine.start(pause_asked, cancels, id="both")
        await engine.settle()
        await run.pause(by="ann")
    async with outlive.Engine(url, worker=False) as client:
        await client.skip_step("both")
        await client.cancel("both", reason="no more")
    for _ in range(2):  # The second time from the journal alone: nothing of the requests is left.
        async with TestEngine(url) as engine:
            await engine.settle()
            assert status == (await engine.get("both").status())
            assert await check_store(store_of(engine)) == []


async def test_run_that_is_cancelled_after_a_request_that_cannot_be_read_is_cancelled(tmp_path: Path) -> None:
    """The result that was given for its step is encrypted with a key that no worker has."""
    url = f"sqlite:{tmp_path}/runs.db"
    encryption = Encryption(keys={"own": bytes(32)}, current="own", required=True)
    async with TestEngine(url) as engine:
        run = await engine.start(pause_held, id="both")
        await engine.settle()
        await run.pause(by="ann")
    async with TestEngine(url) as engine:
        await engine.settle()  # It parks the run.
    async with outlive.Engine(url, worker=False, codecs=[encryption]) as client:
        await client.skip_step("both", result="given")
        await client.cancel("both", reason="no more")
    async with TestEngine(url) as engine:
        await engine.settle()
        assert await engine.get("both").status() == "cancelled"
        assert await check_store(store_of(engine)) == []


@outlive.workflow
async def pause_held() -> str:
    """Waits for a step that waits at the gate."""
    return await pause_slow("held")


@outlive.workflow
async def pause_sleeper(seconds: float) -> str:
    """Sleeps, and waits."""
    await pause_next("begins")
    await asyncio.sleep(seconds)
    await pause_next("slept")
    return await outlive.wait_for_signal("go", str)


@outlive.workflow
async def pause_stuck() -> None:
    """Cannot go on."""
    await asyncio.get_running_loop().create_future()


async def test_run_that_is_parked_for_another_reason_is_not_paused(engine: outlive.Engine) -> None:
    """It has stopped already, and says why."""
    run = await engine.start(pause_stuck)
    await reaches(run, "parked")
    with pytest.raises(RunParkedError, match="is parked: pause_stuck@1 stopped"):
        await run.pause()


# -- Workflows ---------------------------------------------------------------------------------------------------------


async def test_workflow_is_paused_with_the_runs_that_come(engine: outlive.Engine) -> None:
    """A paused workflow ends the steps under way and releases their runs, new runs of it wait, and other workflows go
    on."""
    first = await engine.start(pause_line, "a")
    await has_called(1)
    await engine.pause(workflow="pause_line", by="bob", reason="deploy")
    second = await engine.start(pause_line, "b")
    gate.set()
    other = await engine.start(pause_wide, 1)
    assert await in_time(other.result()) == ["0"]
    await reaches(first, "pending")

    for run in (first, second):
        assert (await run.why()).startswith("its workflow is paused by bob: deploy (since 20")
    assert "engine.resume(workflow='pause_line')" in await first.why()
    assert calls == ["slow a", "slow 0"]
    await engine.resume(workflow="pause_line")
    assert [await in_time(each.result()) for each in (first, second)] == ["a", "b"]
    assert calls.count("slow a") == 1
    left = [type(event) for event in await journal_of(first) if isinstance(event, RunParked | RunReleased)]
    assert left == [RunReleased]


async def test_everything_is_paused_and_one_run_stays_so(engine: outlive.Engine) -> None:
    """A run that was paused by itself is not resumed with the others; signals and timers wait."""
    run, alone = await engine.start(pause_sleeper, 0.01), await engine.start(pause_sleeper, 0.01)
    await waits(run)
    await waits(alone)
    await alone.pause()
    await engine.pause(all=True, reason="the bank is closed")
    await run.signal("go", "now")
    late = await engine.start(pause_line, "a")
    assert "its workflow is paused: the bank is closed" in await late.why()
    assert "engine.resume(all=True)" in await run.why()
    await engine.resume(all=True)
    gate.set()
    assert [await in_time(each.result()) for each in (run, late)] == ["now", "a"]
    assert (await alone.why()).startswith("it is paused (since")


async def test_worker_of_another_process_learns_of_a_pause(tmp_path: Path) -> None:
    """It releases what it has, and claims nothing more."""
    url = f"sqlite:{tmp_path}/runs.db"
    async with (
        outlive.Engine(url, poll_seconds=0.01) as worker,
        outlive.Engine(url, worker=False) as client,
    ):
        run = await worker.start(pause_line, "a")
        await has_called(1)
        await client.pause(workflow="pause_line")
        await until(partial(hears_of_a_pause, worker))
        gate.set()
        await reaches(run, "pending")
        assert calls == ["slow a"]
        await client.resume(workflow="pause_line")
        assert await in_time(run.result()) == "a"


async def hears_of_a_pause(engine: outlive.Engine) -> bool:
    """Whether the worker of an engine has read it."""
    return bool(worker_of(engine).inboxes.pauses)


async def test_pause_and_resume_take_exactly_one_target(engine: outlive.Engine) -> None:
    """`pause` and `resume` refuse no target and two targets."""
    wrong: list[dict[str, Any]] = [{}, {"run_id": "a", "all": True}, {"workflow": "a", "all": True}]
    for options in wrong:
        with pytest.raises(InvalidArgumentError, match="exactly one"):
            await engine.pause(**options)
        with pytest.raises(InvalidArgumentError, match="exactly one"):
            await engine.resume(**options)


# -- Crashes -----------------------------------------------------------------------------------------------------------


@outlive.workflow
async def pause_mortal() -> str:
    """Steps around a wait."""
    await pause_next("first")
    await outlive.wait_for_signal("go", int)
    return await pause_next("second")


@pytest.mark.parametrize("points", [5, pytest.param(POINTS_MAX, marks=pytest.mark.slow)])
async def test_pause_and_resume_survive_every_crash(points: int) -> None:
    """A pause that was answered holds until it is taken back, and nothing is called twice."""

    async def drive(engine: TestEngine, run_id: str) -> None:
        with suppress(RunFinishedError, RunNotParkedError):
            await engine.settle()
            await engine.pause(run_id, by="ann")
            await engine.signal(run_id, "go", 1, key="go")
            await engine.settle()
            assert await engine.get(run_id).status() == "parked"
            await engine.resume(run_id)

    await crash_everywhere(pause_mortal, drive=drive, max_points=points)


@pytest.mark.every_store
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
async def test_pause_on_every_store(store: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """A run and a workflow are paused and resumed on SQLite and on PostgreSQL, and the store is sound."""
    url = f"sqlite:{tmp_path}/runs.db" if store == "sqlite" else request.getfixturevalue("postgres_url")
    async with outlive.Engine(url) as engine:
        run = await engine.start(pause_line, "a")
        await has_called(1)
        await run.pause()
        await until(partial(is_held, engine))
        gate.set()
        await reaches(run, "parked")
        await engine.pause(workflow="pause_line")
        await run.resume()
        assert "its workflow is paused" in await run.why() or "it is paused" in await run.why()
        await engine.resume(workflow="pause_line")
        assert await in_time(run.result()) == "a"
        assert await check_store(store_of(engine)) == []
