"""The claimer: it takes everything that is due at once, sleeps when there is nothing, and loses nothing on the way."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import outlive
from outlive._kernel.runtime.tree.live import LiveTree
from outlive.events import RunParked
from outlive.limits import Limits
from tests.engine.faults import FaultyStore, faulty, unavailable, unknown
from tests.engine.inside import claimer_of, ring, sessions_of
from tests.engine.ledger import entries, ledger_credit, open_ledger
from tests.engine.support import Place, events_of, in_time, note, parks, stage, turns_of_the_loop, until, waits

pytestmark = pytest.mark.parametrize("place", ["memory"], indirect=True)
HOUR = 3600


@outlive.workflow
async def claimed_note(name: str) -> str:
    return await note(name)


@outlive.workflow
async def claimed_timer(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return await note("awake")


@outlive.workflow
async def claimed_signal() -> str:
    return await outlive.wait_for_signal("go", str)


@outlive.workflow
async def claimed_starter(name: str) -> str:
    other = await outlive.start(claimed_note, name, detached=True, id=f"other-{name}")
    return f"{await other.result()} was heard"


@outlive.workflow
async def claimed_crediting() -> int:
    await open_ledger()
    return await ledger_credit("ann", 4)


@outlive.step
async def claimed_progress() -> str:
    outlive.current_step().heartbeat("half")
    await stage.gate("progress").pass_through()
    return "done"


@outlive.step
async def claimed_publishing() -> str:
    await stage.gate("first").pass_through()
    outlive.publish(done="nothing")
    await stage.gate("second").pass_through()
    outlive.publish(done="half")
    return "done"


@outlive.workflow
async def claimed_telling() -> str:
    return await claimed_progress()


@outlive.workflow
async def claimed_telling_at_the_end() -> str:
    return await claimed_publishing()


async def started(place: Place, names: str) -> None:
    """Runs that wait for a worker."""
    async with place.engine(worker=False) as client:
        for name in names:
            await client.start(claimed_note, name, id=name)


async def test_everything_that_is_due_is_taken_without_a_pause(place: Place) -> None:
    """A worker takes all due runs even if one claim brings only two, and asks the store no more when none is left."""
    await started(place, "abcde")
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores), poll_seconds=HOUR, limits=Limits(claim_batch_max=2)) as engine:
        for name in "abcde":
            assert name == await in_time(engine.get(name).result())
        await turns_of_the_loop(50)
        asked = stores[0].calls["claim_runs"]
        await turns_of_the_loop(50)
        assert asked == stores[0].calls["claim_runs"]
        assert 5 == engine.counters.runs_claimed == engine.counters.runs_replayed
        assert 0 == engine.counters.orphans_claimed == engine.counters.runs_started


@pytest.mark.parametrize("error", [unavailable(), RuntimeError("a bug")], ids=["away", "bug"])
async def test_claim_that_fails_is_tried_again_after_a_pause_though_more_is_due(place: Place, error: Exception) -> None:
    """A store in trouble is not asked without end."""
    await started(place, "abc")
    stores: list[FaultyStore] = []
    engine = place.engine(wrap=faulty(stores), poll_seconds=HOUR, limits=Limits(claim_batch_max=1))
    stores[0].skip["claim_runs"] = 1
    stores[0].before["claim_runs"].extend([error] * 50)
    async with engine:
        assert "a" == await in_time(engine.get("a").result())
        await turns_of_the_loop(100)
        assert ["a"] == stage.calls
        assert stores[0].calls["claim_runs"] < 10
        stores[0].before["claim_runs"].clear()
        assert "d" == await in_time((await engine.start(claimed_note, "d")).result())
        ring(engine)
        assert ["b", "c"] == [await in_time(engine.get(name).result()) for name in "bc"]


async def test_worker_wakes_up_when_the_next_timer_is_due(place: Place) -> None:
    """The store says when that is: it need not be asked before, nor be asked too late."""
    async with place.engine() as engine:
        run = await engine.start(claimed_timer, 100)
        await waits(run)
    place.clock.skip(seconds=99.5)
    async with place.engine(poll_seconds=HOUR) as engine:
        await turns_of_the_loop(20)
        assert [] == stage.calls
        assert "awake" == await in_time(engine.get(run.id).result())


async def test_a_look_sets_the_runs_that_it_claims_in_motion(place: Place) -> None:
    """A look of the claimer returns the number of the runs that it has claimed, and they are in motion."""
    async with place.engine(poll_seconds=HOUR) as engine:
        station: Any = sessions_of(engine)
        await turns_of_the_loop(20)
        await started(place, "ab")
        assert 2 == await in_time(claimer_of(engine).run_once())
        assert station.moves("a")
        assert station.moves("b")
        assert ["a", "b"] == [await in_time(engine.get(name).result()) for name in "ab"]
        assert 0 == await in_time(claimer_of(engine).run_once())


@pytest.mark.parametrize("verb", ["list_runs", "find_runs", "read_journals"])
async def test_run_that_was_given_up_is_looked_for_until_it_is_found(place: Place, verb: str) -> None:
    """The store is away when the worker asks for it."""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores)) as engine:
        stores[0].skip["end"] = 1
        stores[0].before["end"].append(unavailable())
        stores[0].before[verb].append(unavailable())
        run = await engine.start(claimed_crediting)
        assert 4 == await in_time(run.result())
        assert [] == list(stores[0].before[verb])
        assert 1 == engine.counters.runs_reclaimed
    assert [("ann", 4)] == await entries(place)


@pytest.mark.parametrize("verb", ["read_inbox", "claim_runs"])
async def test_run_in_memory_whose_claim_went_wrong_goes_on(place: Place, verb: str) -> None:
    """It slept in memory; what is read for it does not come, or it is not known whether the claim was done."""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores)) as engine:
        run = await engine.start(claimed_signal)
        await waits(run)
        faults = stores[0].before if verb == "read_inbox" else stores[0].after
        faults[verb].append(unavailable() if verb == "read_inbox" else unknown())
        await run.signal("go", "here")
        assert "here" == await in_time(run.result())
        assert [] == list(faults[verb])
        assert 1 <= engine.counters.runs_reclaimed


@pytest.mark.parametrize("verb", ["find_runs", "deliver"])
async def test_end_of_a_detached_run_is_heard_though_the_store_was_away(place: Place, verb: str) -> None:
    """It ended before the run that waits for it could ask; that question is asked until it is answered."""
    stores: list[FaultyStore] = []
    async with place.engine(worker=False) as client:
        await client.start(claimed_note, "a", id="other-a")
    async with place.engine(wrap=faulty(stores)) as engine:
        await in_time(engine.get("other-a").result())
        stores[0].before[verb].append(unavailable())
        run = await engine.start(claimed_starter, "a")
        assert "a was heard" == await in_time(run.result())
        assert [] == list(stores[0].before[verb])


async def test_run_exists_though_it_could_not_be_begun(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The starter has an answer, and the next claim of it goes well."""
    happen, failures = LiveTree.happen, [RuntimeError("a bug")]

    def happen_or_fail(live: LiveTree, event: Any) -> None:
        if failures:
            raise failures.pop()
        happen(live, event)

    monkeypatch.setattr(LiveTree, "happen", happen_or_fail)
    async with place.engine() as engine:
        run = await in_time(engine.start(claimed_note, "a", id="run-1"))
        assert "a" == await in_time(run.result())
        assert 1 == engine.counters.runs_claimed
    assert "run run-1 could not be begun" in caplog.text


class Refusing:
    """A payload codec that cannot encode what a step says while it runs."""

    name = "refusing"

    def encode(self, data: bytes) -> bytes:
        """Only if it may."""
        if b"half" in data:
            raise ValueError("it cannot be encoded")
        return data

    def decode(self, data: bytes) -> bytes:
        """As it is."""
        return data


async def test_run_that_cannot_be_moved_when_its_step_has_ended_is_parked(place: Place) -> None:
    """A run is parked when the last result of its step turns out, behind a commit that is still under way, to have no
    stored form."""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores), codecs=[Refusing()]) as engine:
        run = await engine.start(claimed_telling_at_the_end)
        await stage.gate("first").reached()
        blocked = stores[0].gates["commit"] = asyncio.Event()
        stage.gate("first").open()
        await stage.gate("second").reached()
        await in_time(stores[0].waiting["commit"].wait())
        stage.gate("second").open()

        async def has_ended() -> bool:
            return sessions_of(engine).steps_running == 0

        await until(has_ended)
        await turns_of_the_loop(5)
        del stores[0].gates["commit"]
        blocked.set()
        assert (await parks(run)).endswith("ValueError: it cannot be encoded")


async def test_run_that_cannot_be_moved_is_parked_with_the_reason(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """It is not left silently stuck, and its neighbours go on."""
    async with place.engine(codecs=[Refusing()]) as engine:
        run = await engine.start(claimed_telling)
        reason = await parks(run)
        assert reason.endswith("ValueError: it cannot be encoded")
        assert 1 == len(await events_of(run, RunParked))
        assert "a" == await in_time((await engine.start(claimed_note, "a")).result())

        async def has_stopped() -> bool:
            return sessions_of(engine).steps_running == 0

        await until(has_stopped)
    assert f"run {run.id} could not be moved" in caplog.text
