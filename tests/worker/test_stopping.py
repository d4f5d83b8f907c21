"""An engine that stops lets go of everything at once, however much it owns; and stops, whatever its store does."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

import outlive
from outlive._kernel.store.contract import Change, Outcome
from outlive.errors import EngineClosedError
from outlive.events import RunReleased
from tests.engine.faults import FaultyStore, faulty
from tests.engine.inside import keeper_of, renewal_of, store_of
from tests.engine.jumping_loop import LoopClock, run_jumping
from tests.engine.support import Place, events_of, hold, in_time, stage

RUNS = 120
STOP_SECONDS_MAX = 5.0
"""What docs/guides/operating.md promises: how much longer than its grace an engine takes to stop."""


@outlive.workflow
async def stops(name: str) -> str:
    return await hold(name)


async def test_everything_is_released_in_one_commit(place: Place) -> None:
    """A hundred runs in the middle of a step are a hundred rows of one transaction, not a hundred transactions."""
    engine = place.engine()
    commits: list[int] = []

    async with engine:
        runs = [await engine.start(stops, "all", id=f"run-{number}") for number in range(RUNS)]
        for _ in runs:
            await stage.gate("all").reached()
        commit = store_of(engine).commit

        async def counted(changes: Sequence[Change]) -> list[tuple[Outcome, int]]:
            commits.append(len(changes))
            return await commit(changes)

        store: Any = store_of(engine)
        store.commit = counted

    assert [RUNS] == commits
    async with place.engine(worker=False) as client:
        assert all([len(await events_of(client.get(run.id), RunReleased)) == 1 for run in runs])


async def test_session_that_was_given_up_is_ended_though_no_other_could_begin(place: Place) -> None:
    """Stopped between two sessions; its lease has not run out, and no worker is to wait for that."""
    stores: list[FaultyStore] = []
    engine = await place.engine(wrap=faulty(stores)).__aenter__()
    await engine.start(stops, "given up", id="run-1")
    await stage.gate("given up").reached()
    stores[0].gates["end_session"] = asyncio.Event()
    keeper_of(engine).end_session("a test says so")
    await in_time(stores[0].waiting["end_session"].wait())
    renewal = renewal_of(engine)

    stopping = asyncio.ensure_future(engine.__aexit__(None, None, None))
    await in_time(asyncio.wait([renewal]))
    stores[0].gates["end_session"].set()
    await in_time(stopping)

    async with place.engine():
        await stage.gate("given up").reached()


@pytest.mark.parametrize("grace_seconds", [0.0, 20.0])
@pytest.mark.parametrize("silent", ["claim_runs", "commit", "end_session", "find_inboxes"])
def test_an_engine_stops_though_its_store_never_answers(
    silent: str, grace_seconds: float, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever it has asked the store for, it stops soon after its grace and says that its lease has to run out."""
    seconds = run_jumping(stop_in_silence(silent, grace_seconds=grace_seconds))

    assert grace_seconds <= seconds <= grace_seconds + STOP_SECONDS_MAX
    assert "its lease will run out" in caplog.text


async def stop_in_silence(silent: str, *, grace_seconds: float) -> float:
    """Stop an engine with a step that runs, while a verb of its store never returns; how long that takes."""
    stage.clear()
    stores: list[FaultyStore] = []
    place = Place(path=None, clock=LoopClock())
    engine = await place.engine(grace_seconds=grace_seconds, wrap=faulty(stores)).__aenter__()
    await engine.start(stops, "silence", id="run-1")
    await stage.gate("silence").reached()
    stores[0].gates[silent] = asyncio.Event()
    if silent in {"claim_runs", "find_inboxes"}:
        await stores[0].waiting[silent].wait()
    loop = asyncio.get_running_loop()
    began_at = loop.time()
    await engine.__aexit__(None, None, None)
    return loop.time() - began_at


@pytest.mark.parametrize("how", ["left", "cancelled"])
def test_a_client_leaves_though_its_store_never_answers(how: str) -> None:
    """Soon; and a caller that waits for the start of a run hears that the engine has stopped."""
    assert run_jumping(leave_in_silence(is_cancelled=how == "cancelled")) <= 0.05 + STOP_SECONDS_MAX


async def leave_in_silence(*, is_cancelled: bool) -> float:
    """Leave an engine whose commit is never answered; how long that takes."""
    stage.clear()
    stores: list[FaultyStore] = []
    place = Place(path=None, clock=LoopClock())
    engine = await place.engine(worker=False, wrap=faulty(stores)).__aenter__()
    stores[0].gates["commit"] = asyncio.Event()
    starting = asyncio.ensure_future(engine.start(stops, "silence", id="run-1"))
    await stores[0].waiting["commit"].wait()
    loop = asyncio.get_running_loop()
    began_at = loop.time()
    leaving = asyncio.ensure_future(engine.__aexit__(None, None, None))
    if is_cancelled:
        await asyncio.sleep(0)
        leaving.cancel()
    await asyncio.wait([leaving])
    seconds = loop.time() - began_at
    with pytest.raises(EngineClosedError):
        await starting
    return seconds
