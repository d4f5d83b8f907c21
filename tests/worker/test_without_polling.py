"""An engine that polls once in an hour: whatever it makes due itself, it takes at once. And it counts what it does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import outlive
from outlive import Retry
from outlive.limits import Limits
from tests.engine.faults import FaultyStore, faulty, unavailable
from tests.engine.ledger import entries, ledger_credit, open_ledger
from tests.engine.support import Place, hold, in_time, note, parks, stage, until, waits

pytestmark = pytest.mark.parametrize("place", ["memory"], indirect=True)
HOUR = 3600


@outlive.workflow
async def unpolled_holding(name: str) -> str:
    return await hold(name)


@outlive.workflow
async def unpolled_signals(count: int) -> list[str]:
    return [await outlive.wait_for_signal("word", str) for _ in range(count)]


@outlive.workflow
async def unpolled_held_signal(name: str) -> str:
    await hold(name)
    return await outlive.wait_for_signal("word", str)


@outlive.workflow
async def unpolled_starting(name: str) -> str:
    other = await outlive.start(unpolled_holding, name, detached=True, id=f"detached-{name}")
    return f"{await other.result()} has ended"


@outlive.workflow
async def unpolled_parent(name: str) -> str:
    return await unpolled_holding(name)


@outlive.workflow
async def unpolled_crediting() -> int:
    await open_ledger()
    return await ledger_credit("ann", 3)


@outlive.step(retry=Retry(attempts=3, first=0, jitter=0))
async def unpolled_at_last() -> int:
    if outlive.current_step().attempt < 3:
        raise ConnectionError("not yet")
    return outlive.current_step().attempt


@outlive.workflow
async def unpolled_retrying() -> int:
    return await unpolled_at_last()


@outlive.workflow
async def unpolled_nonsense() -> Any:
    await note("nonsense")
    return object() if not stage.values.get("is_mended") else "sense"


async def test_run_that_found_no_room_begins_when_there_is_room(place: Place) -> None:
    """The one before it has ended, was suspended, or was parked."""
    async with place.engine(poll_seconds=HOUR, limits=Limits(runs_active_max=1)) as engine:
        held = await engine.start(unpolled_holding, "a")
        await stage.gate("a").reached()
        others = [await engine.start(unpolled_holding, name) for name in ("b", "c")]
        await asyncio.sleep(0.01)
        assert ["a"] == stage.calls
        stage.gate("b").open()
        stage.gate("c").open()
        stage.gate("a").open()
        assert ["a", "b", "c"] == [await in_time(run.result()) for run in (held, *others)]
        suspended = await engine.start(unpolled_signals, 1)
        parked = await engine.start(unpolled_nonsense)
        stage.gate("d").open()
        last = await engine.start(unpolled_holding, "d")
        assert "d" == await in_time(last.result())
        await waits(suspended)
        await parks(parked)
        assert 1 == engine.counters.runs_parked


async def test_messages_that_come_while_others_are_on_their_way_are_taken(place: Place) -> None:
    """The first is in the run and not yet in its journal when the others come to the inbox."""
    stores: list[FaultyStore] = []
    async with place.engine(poll_seconds=HOUR, wrap=faulty(stores)) as engine:
        run = await engine.start(unpolled_signals, 3)
        await waits(run)
        blocked = stores[0].gates["commit"] = asyncio.Event()
        await run.signal("word", "a")
        await in_time(stores[0].waiting["commit"].wait())
        await run.signal("word", "b")
        await run.signal("word", "c")
        looked = stores[0].calls["find_inboxes"]

        async def has_looked() -> bool:
            return stores[0].calls["find_inboxes"] > looked

        await until(has_looked)
        del stores[0].gates["commit"]
        blocked.set()
        assert ["a", "b", "c"] == await in_time(run.result())
        assert 3 == engine.counters.signals_taken


async def test_message_that_comes_while_its_run_is_being_suspended_wakes_it(place: Place) -> None:
    """The run has gone to sleep in memory, and the journal does not say so yet."""
    stores: list[FaultyStore] = []
    async with place.engine(poll_seconds=HOUR, wrap=faulty(stores)) as engine:
        run = await engine.start(unpolled_held_signal, "a")
        await stage.gate("a").reached()
        blocked = stores[0].gates["commit"] = asyncio.Event()
        stage.gate("a").open()
        await in_time(stores[0].waiting["commit"].wait())
        looked = stores[0].calls["find_inboxes"]
        await run.signal("word", "b")

        async def has_looked() -> bool:
            return stores[0].calls["find_inboxes"] > looked

        await until(has_looked)
        del stores[0].gates["commit"]
        blocked.set()
        assert "b" == await in_time(run.result())


@pytest.mark.parametrize("verb", ["find_inboxes", "read_inbox", "claim_runs"])
async def test_run_that_is_suspended_while_the_worker_looks_for_its_message_is_woken(place: Place, verb: str) -> None:
    """Whichever question of that look is under way meanwhile: the look finds the message or the run that it woke."""
    stores: list[FaultyStore] = []
    async with place.engine(poll_seconds=HOUR, wrap=faulty(stores)) as engine:
        run = await engine.start(unpolled_held_signal, "a")
        await stage.gate("a").reached()
        blocked = stores[0].gates[verb] = asyncio.Event()
        await run.signal("word", "b")
        await in_time(stores[0].waiting[verb].wait())
        stage.gate("a").open()
        if verb != "claim_runs":
            await waits(run)
        del stores[0].gates[verb]
        blocked.set()
        assert "b" == await in_time(run.result())


async def test_detached_run_begins_and_its_end_is_heard(place: Place) -> None:
    """Both runs are moved by one worker, which rings for itself."""
    stage.gate("a").open()
    async with place.engine(poll_seconds=HOUR) as engine:
        run = await engine.start(unpolled_starting, "a")
        assert "a has ended" == await in_time(run.result())
        assert 2 == engine.counters.runs_ended
        assert 1 == engine.counters.runs_started


async def test_run_whose_transaction_was_lost_goes_on(place: Place) -> None:
    """It was thrown away, and is looked for at once."""
    stores: list[FaultyStore] = []
    async with place.engine(poll_seconds=HOUR, wrap=faulty(stores)) as engine:
        stores[0].skip["end"] = 1
        stores[0].before["end"].append(unavailable())
        run = await engine.start(unpolled_crediting)
        assert 3 == await in_time(run.result())
        assert 1 == engine.counters.runs_reclaimed
        assert 1 == engine.counters.runs_claimed
    assert [("ann", 3)] == await entries(place)


async def test_parked_run_goes_on_when_it_is_resumed(place: Place) -> None:
    """At once; and it is counted as parked once."""
    async with place.engine(poll_seconds=HOUR) as engine:
        run = await engine.start(unpolled_nonsense)
        await parks(run)
        assert (1, 0) == (engine.counters.runs_parked, engine.counters.runs_ended)
        stage.values["is_mended"] = True
        await run.resume()
        assert "sense" == await in_time(run.result())
        assert (1, 1) == (engine.counters.runs_parked, engine.counters.runs_ended)
        assert 1 == engine.counters.runs_replayed


async def test_retries_and_runs_are_counted(place: Place) -> None:
    """Every attempt is a start of a step; a child that ends is a run that ends."""
    async with place.engine(poll_seconds=HOUR) as engine:
        assert 3 == await in_time((await engine.start(unpolled_retrying)).result())
        counters = engine.counters
        assert (2, 3, 1, 1) == (
            counters.steps_retried,
            counters.steps_started,
            counters.runs_started,
            counters.runs_ended,
        )
        stage.gate("a").open()
        assert "a" == await in_time((await engine.start(unpolled_parent, "a")).result())
        assert (2, 3) == (counters.runs_started, counters.runs_ended)


async def test_run_is_cancelled_at_once(place: Place) -> None:
    """Whether its step runs or it is suspended."""
    async with place.engine(poll_seconds=HOUR) as engine:
        for run in (await engine.start(unpolled_holding, "a"), await engine.start(unpolled_signals, 1)):
            if run.id and not stage.calls:
                await stage.gate("a").reached()
            await run.cancel()
            with pytest.raises(outlive.errors.RunCancelledError):
                await in_time(run.result())
    assert ["a", "a cancelled"] == stage.calls
