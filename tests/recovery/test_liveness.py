"""Nothing sleeps for ever: whatever goes wrong on the way of a run, a worker comes back to it."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Sequence
from typing import Any

import pytest

import outlive
from outlive._kernel.runtime.commit.committer import Committer
from outlive._kernel.store.contract import Change, Outcome
from outlive._kernel.store.memory import MemoryStore
from outlive.events import StepIntended
from outlive.limits import Limits
from outlive.telemetry import Counters
from outlive.testing.clock import ManualClock
from outlive_conformance.suite.builders import new_tree
from tests.engine.faults import FaultyStore, faulty, unavailable, unknown
from tests.engine.inside import executor_of, keeper_of, store_of, worker_of
from tests.engine.support import Place, events_of, hold, in_time, note, stage, until, waits


@outlive.step(once=True, name="liveness.send", retry=outlive.Retry(attempts=2, first=0.05, jitter=0))
async def send_again() -> str:
    stage.call(outlive.current_step().attempt)
    if outlive.current_step().attempt == 1:
        raise ValueError("no luck")
    return "sent"


@outlive.workflow(name="liveness.sending")
async def sending_again() -> str:
    return await send_again()


@outlive.workflow(name="liveness.waiting")
async def waiting_for_word() -> str:
    return await outlive.wait_for_signal("go", str)


@outlive.workflow(name="liveness.another")
async def waiting_for_another_word() -> str:
    return await outlive.wait_for_signal("go", str)


@outlive.workflow(name="liveness.holding")
async def holding(name: str) -> str:
    return await note(f"{await hold(name)} was held")


@outlive.workflow(name="liveness.asking")
async def asking_for_a_taken_id() -> str:
    other = await outlive.start(waiting_for_word, detached=True, id="taken")
    try:
        return str(await other.result())
    except outlive.errors.RunExistsError:
        return "it was taken"


async def test_once_step_is_called_though_the_clock_went_back_while_its_intent_was_written(place: Place) -> None:
    """Clocks are set right now and then: a retry that was due is not due any more, and has its intent already."""
    engine = place.engine()
    commit, commits = store_of(engine).commit, 0

    async def commit_meanwhile(changes: Sequence[Change]) -> list[tuple[Outcome, int]]:
        nonlocal commits
        commits += 1
        if commits == 3:  # The run and its first intent, the failure, the second intent.
            place.clock.skip(seconds=-0.2)
        return await commit(changes)

    store: Any = store_of(engine)
    store.commit = commit_meanwhile
    async with engine:
        run = await engine.start(sending_again)

        assert "sent" == await in_time(run.result())
        assert [1, 2] == [intent.attempt for intent in await events_of(run, StepIntended)]
    assert [1, 2] == stage.calls


async def test_run_learns_of_a_taken_id_though_its_inbox_is_full(place: Place) -> None:
    """A sender that fills the inbox of a run must not keep it from what it waits for."""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores), limits=Limits(inbox_messages_max=3)) as engine:
        await waits(await engine.start(waiting_for_another_word, id="taken"))
        stores[0].gates["find_runs"] = asyncio.Event()
        run = await engine.start(asking_for_a_taken_id)
        await in_time(stores[0].waiting["find_runs"].wait())
        for number in range(3):
            await run.signal("noise", number)
        stores[0].gates.pop("find_runs").set()

        assert "it was taken" == await in_time(run.result())


async def test_commit_whose_outcome_cannot_be_read_is_not_forgotten(place: Place) -> None:
    """It is not known whether it was written, and reading it back fails too: the run goes on all the same."""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores)) as engine:
        run = await engine.start(holding, "a")
        await stage.gate("a").reached()
        stores[0].before["read_journal"].append(LookupError("something odd"))
        stores[0].after["commit"].append(unknown())
        stage.gate("a").open()

        assert "a was held" == await in_time(run.result())
    assert ["a", "a was held"] == stage.calls


async def test_engine_whose_end_is_cancelled_lets_go_of_its_runs(place: Place) -> None:
    """An engine that stops without waiting for its steps must not leave a lease behind that is renewed for ever."""
    engine = await place.engine(grace_seconds=1000).__aenter__()
    await engine.start(holding, "a", id="run-1")
    await stage.gate("a").reached()
    stopping = asyncio.create_task(engine.__aexit__(None, None, None))
    await asyncio.sleep(0)
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await in_time(stopping)

    async with place.engine() as other:
        await stage.gate("a").reached()
        stage.gate("a").open()
        assert "a was held" == await in_time(other.get("run-1").result())


async def test_session_that_was_lost_leaves_nothing_behind_that_waits_for_its_lease(place: Place) -> None:
    """The executor of a lost session is freed, and the next session begins the steps that waited for a slot."""
    async with place.engine(limits=Limits(steps_running_max=1)) as engine:
        runs = [await engine.start(holding, "a", id=f"run-{number}") for number in range(2)]
        await stage.gate("a").reached()
        old = weakref.ref(executor_of(engine))
        keeper_of(engine).end_session("a test says so")
        await stage.gate("a").reached()

        async def is_gone() -> bool:
            gc.collect()
            return old() is None

        await until(is_gone)
        stage.gate("a").open()
        assert ["a was held"] * 2 == [await in_time(run.result()) for run in runs]


async def test_run_that_could_not_be_taken_in_is_taken_in_again(place: Place) -> None:
    """Whatever went wrong: no worker holds it then, though the store says that it is ours."""
    async with place.engine() as engine:
        run = await engine.start(waiting_for_word)
        await waits(run)
        worker: Any = worker_of(engine)
        settle, failures = worker.settle, [RuntimeError("a bug")]

        def settle_or_fail(live: Any, *args: Any) -> None:
            if failures:
                raise failures.pop()
            settle(live, *args)

        worker.settle = settle_or_fail
        await run.signal("go", "here")

        assert "here" == await in_time(run.result())
    assert [] == failures


async def test_commit_that_is_abandoned_on_its_way_is_not_tried_for_ever() -> None:
    """The engine has stopped at the very moment at which the callers of the batch before were to get their answers."""
    store = MemoryStore(clock=ManualClock())
    committer = Committer(store, counters=Counters(), batch_max=1, overlaps=True)
    answered = asyncio.Event()

    async def commit_or_not(changes: Sequence[Change]) -> list[tuple[Outcome, int]]:
        if answered.is_set():
            committer.abandon()
            raise unavailable()
        answered.set()
        return [(Outcome.COMMITTED, 1) for _ in changes]

    lying: Any = store
    lying.commit = commit_or_not
    for number in range(2):
        committer.submit(new_tree(store, f"run-{number}"), lambda outcome, journal: None)
    await in_time(answered.wait())

    async def is_quiet() -> bool:
        return "outlive-commit" not in [task.get_name() for task in asyncio.all_tasks()] and committer.is_idle

    await until(is_quiet)
