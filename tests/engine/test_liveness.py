"""Nothing sleeps for ever: whatever goes wrong on the way of a run, somebody comes back to it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import outlive
from outlive import Limits
from outlive._journal.event import StepIntended
from outlive._store.contract import Change, Outcome
from tests.engine.faults import FaultyStore, faulty
from tests.engine.support import Place, events_of, in_time, stage, waits


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


@outlive.workflow(name="liveness.asking")
async def asking_for_a_taken_id() -> str:
    other = await outlive.start(waiting_for_word, detached=True, id="taken")
    try:
        return str(await other.result())
    except outlive.RunFailed:
        return "it was taken"


async def test_once_step_is_called_though_the_clock_went_back_while_its_intent_was_written(place: Place) -> None:
    """Clocks are set right now and then: a retry that was due is not due any more, and has its intent already."""
    engine = place.engine()
    commit, commits = engine._store.commit, 0

    async def commit_meanwhile(changes: Sequence[Change]) -> list[tuple[Outcome, int]]:
        nonlocal commits
        commits += 1
        if commits == 3:  # The run and its first intent, the failure, the second intent.
            place.clock.skip(seconds=-0.2)
        return await commit(changes)

    store: Any = engine._store
    store.commit = commit_meanwhile
    async with engine:
        run = await engine.start(sending_again)

        assert "sent" == await in_time(run.result())
        assert [1, 2] == [intent.attempt for intent in await events_of(run, StepIntended)]
    assert [1, 2] == stage.calls


async def test_run_hears_of_a_taken_id_though_its_inbox_is_full(place: Place) -> None:
    """Whoever fills the inbox of a run must not keep it from what it waits for."""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores), limits=Limits(inbox_messages_max=3)) as engine:
        await waits(await engine.start(waiting_for_word, id="taken"))
        stores[0].gates["find_runs"] = asyncio.Event()
        run = await engine.start(asking_for_a_taken_id, id="run-1")
        await in_time(stores[0].waiting["find_runs"].wait())
        for number in range(3):
            await run.signal("noise", number)
        stores[0].gates.pop("find_runs").set()

        assert "it was taken" == await in_time(run.result())
