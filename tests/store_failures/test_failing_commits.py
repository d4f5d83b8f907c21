"""A store that fails: nothing is lost, nothing is done twice, and a caller that cannot be answered gets an error."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from typing import Any

import pytest

import outlive
from outlive._kernel.store.contract import Change, Store
from outlive.errors import CommitUnknownError, EngineClosedError, StoreError, StoreUnavailableError
from outlive.events import SignalReceived, StepSucceeded
from tests.engine.faults import FaultyStore, faulty, unavailable, unknown
from tests.engine.inside import crash
from tests.engine.support import Place, events_of, hold, in_time, note, parks, stage, turns_of_the_loop, until, waits

LEASE = 10


@outlive.workflow
async def committing(name: str) -> list[str]:
    first = await note(f"{name} 1")
    second, third = await asyncio.gather(committing_child(f"{name} 2"), note(f"{name} 3"))
    await asyncio.sleep(0.002)
    return [first, second, third, await note(f"{name} 4")]


@outlive.workflow
async def committing_child(name: str) -> str:
    return await note(name)


@outlive.workflow
async def committing_signal() -> Any:
    return await outlive.wait_for_signal("go")


@outlive.workflow
async def committing_nap() -> str:
    await asyncio.sleep(0.005)
    return "rested"


@outlive.workflow
async def committing_held(name: str) -> str:
    try:
        return await hold(name)
    finally:
        await note("clean-up")


def expected(name: str) -> list[str]:
    """What the run of this name returns."""
    return [f"{name} {number}" for number in (1, 2, 3, 4)]


async def test_a_store_that_is_away_for_a_while_delays_and_loses_nothing(place: Place) -> None:
    """Runs under way wait, and go on when it is back; what they had done is not done again."""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores)) as engine:
        run = await engine.start(committing_held, "a")
        await stage.gate("a").reached()
        stores[0].is_down = True
        stage.gate("a").open()
        late = asyncio.create_task(engine.start(committing, "b"))
        await until_refused(stores[0], 3)
        assert not late.done()
        stores[0].is_down = False

        assert "a" == await in_time(run.result())
        assert expected("b") == await in_time((await late).result())
    assert {1} == set(Counter(stage.calls).values())


async def until_refused(store: FaultyStore, times: int) -> None:
    """Return when a store that is down was asked to commit this often."""
    asked = store.calls["commit"]

    async def is_so() -> bool:
        return store.calls["commit"] >= asked + times

    await until(is_so)


@pytest.mark.parametrize("fault", ["committed", "not committed", "unavailable"])
@pytest.mark.parametrize("commit", range(6))
async def test_a_commit_without_an_answer_is_looked_up(place: Place, fault: str, commit: int) -> None:
    """Whichever commit of a run fails, before or after it was written, every step runs once and the result is right."""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores)) as engine:
        (store,) = stores
        store.skip["commit"] = commit
        if fault == "committed":
            store.after["commit"].append(unknown())
        else:
            store.before["commit"].append(unknown() if fault == "not committed" else unavailable())
        run = await engine.start(committing, "a")

        assert expected("a") == await in_time(run.result())
        assert 4 == len(await events_of(run, StepSucceeded))
    assert {1} == set(Counter(stage.calls).values())


@pytest.mark.every_store
async def test_looking_up_is_tried_until_it_is_answered(place: Place) -> None:
    """The store may be away when the engine wants to know what became of its commit."""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores)) as engine:
        (store,) = stores
        store.after["commit"].append(unknown())
        store.before["find_run"].append(unavailable())
        run = await engine.start(committing, "a")

        assert expected("a") == await in_time(run.result())
        assert 1 == engine.counters.unknowns


async def test_an_unexpected_refusal_is_tried_again(place: Place) -> None:
    """An error of the store that says nothing about a change does not leave its runs stuck."""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores)) as engine:
        stores[0].skip["commit"] = 1
        stores[0].before["commit"].append(StoreError("something is wrong with it"))
        run = await engine.start(committing, "a")

        assert expected("a") == await in_time(run.result())
    assert {1} == set(Counter(stage.calls).values())


async def test_a_timer_waits_until_its_run_exists(place: Place) -> None:
    """A run whose creation takes longer than its first timer goes on all the same."""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores)) as engine:
        stores[0].gates["commit"] = asyncio.Event()
        starting = asyncio.create_task(engine.start(committing_nap))
        await in_time(stores[0].waiting["commit"].wait())
        await asyncio.sleep(0.02)
        stores[0].gates.pop("commit").set()

        assert "rested" == await in_time((await starting).result())


@pytest.mark.parametrize("fault", ["claimed", "not claimed", "journal", "inbox", "mail"])
async def test_a_claim_that_goes_wrong_loses_no_run(place: Place, fault: str) -> None:
    """Whatever fails between claiming a run and reading it, the run goes on, once."""
    stores: list[FaultyStore] = []
    async with place.engine(worker=False) as client:
        runs = [await client.start(committing, name, id=name) for name in "abc"]
        await client.signal("said", "go", 7, start=(committing_signal,))
        engine = place.engine(wrap=faulty(stores))
        (store,) = stores
        if fault == "claimed":
            store.after["claim_runs"].append(unknown())
        elif fault == "not claimed":
            store.before["claim_runs"].append(unknown())
        else:
            verb = {"journal": "read_journals", "inbox": "read_inbox", "mail": "find_inboxes"}[fault]
            store.before[verb].append(unavailable())
        async with engine:
            assert [expected(name) for name in "abc"] == [await in_time(run.result()) for run in runs]
            assert 7 == await in_time(client.get("said").result())
    assert {1} == set(Counter(stage.calls).values())


async def test_the_sender_of_a_signal_gets_the_refusal_of_the_store(place: Place) -> None:
    """Nothing was accepted, and with a key it may be sent again whatever happened the first time. [FB-R16]"""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores)) as engine:
        run = await engine.start(committing_signal)
        await waits(run)
        stores[0].before["deliver"].append(unavailable())
        with pytest.raises(StoreUnavailableError):
            await run.signal("go", 1, key="evt-1")
        stores[0].after["deliver"].append(unknown())
        await run.signal("go", 1, key="evt-1")

        assert 1 == await in_time(run.result())
        assert 1 == len(await events_of(run, SignalReceived))
        other = await engine.start(committing_signal)
        stores[0].after["deliver"].append(unknown())
        with pytest.raises(CommitUnknownError):
            await other.signal("go", 1)
        assert 1 == await in_time(other.result())


async def test_an_engine_stops_although_its_store_is_away(place: Place) -> None:
    """It waits for no run, the callers that wait for it get an error, and another engine goes on with its runs."""
    stores: list[FaultyStore] = []
    first = await place.engine(wrap=faulty(stores), lease_seconds=LEASE).__aenter__()
    await first.start(committing_held, "a", id="run-1")
    await stage.gate("a").reached()
    stores[0].is_down = True
    starting = asyncio.create_task(first.start(committing_held, "b", id="run-2"))
    waiting = asyncio.create_task(first.get("run-1").result())
    await until_refused(stores[0], 2)
    await in_time(first.__aexit__(None, None, None))
    for task in (starting, waiting):
        with pytest.raises(EngineClosedError):
            await in_time(task)
    gc.collect()
    assert 0 == stage.count("clean-up")
    place.clock.skip(seconds=2 * LEASE)

    stage.gate("a").open()
    async with place.engine() as second:
        assert "a" == await in_time(second.get("run-1").result())


async def test_an_engine_stops_although_its_store_goes_away_meanwhile(place: Place) -> None:
    """The store may fail at the very moment at which the engine releases its runs."""
    stores: list[FaultyStore] = []
    first = await place.engine(wrap=faulty(stores), lease_seconds=LEASE).__aenter__()
    await first.start(committing_held, "a", id="run-1")
    await stage.gate("a").reached()
    stores[0].is_down = True
    await in_time(first.__aexit__(None, None, None))
    place.clock.skip(seconds=2 * LEASE)

    stage.gate("a").open()
    async with place.engine() as second:
        assert "a" == await in_time(second.get("run-1").result())


async def test_a_dropped_start_leaves_no_trace(place: Place) -> None:
    """A caller that stops waiting for its start has started the run all the same, and nothing of it runs twice."""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores)) as engine:
        stores[0].gates["commit"] = asyncio.Event()
        starting = asyncio.create_task(engine.start(committing, "a", id="run-1"))
        await in_time(stores[0].waiting["commit"].wait())
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        stores[0].gates.pop("commit").set()

        async def exists() -> bool:
            return bool(await engine.list(workflow="committing"))

        await until(exists)
        assert expected("a") == await in_time(engine.get("run-1").result())


async def test_a_bad_run_does_not_hurt_its_neighbours(place: Place) -> None:
    """Among runs that are committed together the run that cannot be stored is parked, and the others go on."""
    async with place.engine() as engine:
        runs = [await engine.start(committing, f"{number}") for number in range(5)]
        bad = await engine.start(committing_nonsense)

        assert [expected(f"{number}") for number in range(5)] == [await in_time(run.result()) for run in runs]
        assert "cannot be stored" in await parks(bad)
        assert await bad.status() == "parked"


@outlive.workflow
async def committing_nonsense() -> Any:
    await note("nonsense")
    return object()


@pytest.mark.every_store
async def test_crashed_runs_are_not_mixed_up(place: Place) -> None:
    """An engine that dies with a commit on its way leaves either all of it or nothing."""
    stores: list[FaultyStore] = []
    engine = await place.engine(wrap=faulty(stores)).__aenter__()
    await engine.start(committing_held, "a", id="run-1")
    await stage.gate("a").reached()
    stores[0].gates["commit"] = asyncio.Event()
    stage.gate("a").open()
    await in_time(stores[0].waiting["commit"].wait())
    await crash(engine)

    async with place.engine() as second:
        assert "a" == await in_time(second.get("run-1").result())
    assert 2 == stage.count("a")


class Poisoned(FaultyStore):
    """Refuses every change of one run, for a reason that has nothing to do with its own state."""

    async def _do(self, name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "commit" and any(run.id == "poison" for change in args[0] for run in change.runs):
            raise StoreError("no such thing can be stored")
        return await super()._do(name, *args, **kwargs)


@pytest.mark.every_store
async def test_a_change_that_is_always_refused_holds_up_no_other(place: Place) -> None:
    """The changes in the same batch are made, and the caller of the refused change gets the error."""
    async with place.engine(wrap=Poisoned) as engine:
        poison = asyncio.ensure_future(engine.start(committing, "poison", id="poison"))
        run = await engine.start(committing, "a")

        assert expected("a") == await in_time(run.result())
        with pytest.raises(StoreError, match="no such thing can be stored"):
            await in_time(poison)


class LateStore(FaultyStore):
    """One commit fails without an answer, is not to be found, and arrives just before it is tried again."""

    late: int = 0
    """Which commit that is."""
    on_its_way: list[Change] | None = None

    async def commit(self, changes: list[Change]) -> Any:
        """Commit, or let it be on its way."""
        self.calls["commit"] += 1
        if self.calls["commit"] == self.late:
            self.on_its_way = changes
            raise unknown()
        if self.on_its_way is not None:
            await self.inner.commit(self.on_its_way)
            self.on_its_way = None
        return await self.inner.commit(changes)


@pytest.mark.parametrize("late", [1, 2], ids=["the birth", "a step"])
@pytest.mark.every_store
async def test_a_commit_that_arrives_after_it_was_looked_up_is_ours(place: Place, late: int) -> None:
    """It is in its own way when it is tried again, and no other worker's."""

    def wrap(inner: Store) -> Any:
        store = LateStore(inner)
        store.late = late
        return store

    async with place.engine(wrap=wrap) as engine:
        run = await engine.start(noting_twice, id="run-1", on_conflict="reject")
        assert "b" == await in_time(run.result())
        assert 1 == engine.counters.unknowns
        assert 0 == engine.counters.conflicts
    assert ["a", "b"] == stage.calls


@outlive.workflow
async def noting_twice() -> str:
    await note("a")
    return await note("b")


@outlive.workflow
async def noting_in_two_generations(left: int) -> str:
    await note(f"generation {left}")
    if left:
        outlive.continue_as_new(left - 1)
    return "done"


@pytest.mark.every_store
async def test_a_birth_without_an_answer_is_found_in_the_generation_that_it_was(place: Place) -> None:
    """Before anybody looked, another worker had run it, and it had gone on as a new one."""
    stores: list[FaultyStore] = []
    async with place.engine() as other, place.engine(wrap=faulty(stores), worker=False) as engine:
        stores[0].after["commit"].append(unknown())
        looking = stores[0].gates["find_run"] = asyncio.Event()
        starting = asyncio.create_task(engine.start(noting_in_two_generations, 1, id="run-1", on_conflict="reject"))
        await in_time(stores[0].waiting["find_run"].wait())
        assert "done" == await in_time(other.get("run-1").result())
        del stores[0].gates["find_run"]
        looking.set()
        run = await in_time(starting)
        assert "done" == await in_time(run.result())
    assert ["generation 1", "generation 0"] == stage.calls


class Noting(FaultyStore):
    """A store that notes the journals of each batch; 0 stands for a new tree."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.batches: list[list[int]] = []

    async def _do(self, name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "commit":
            self.batches.append([change.journal for change in args[0]])
        return await super()._do(name, *args, **kwargs)


async def test_changes_of_runs_are_written_before_earlier_starts(place: Place) -> None:
    """The change of a run is written before starts that came earlier, and some starts are in each batch."""
    stores: list[Noting] = []

    def wrap(inner: Store) -> Any:
        stores.append(Noting(inner))
        return stores[-1]

    async with place.engine(limits=outlive.limits.Limits(commit_batch_max=4), wrap=wrap) as engine:
        run = await engine.start(committing_held, "a")
        await stage.gate("a").reached()
        gate = stores[0].gates["commit"] = asyncio.Event()
        stores[0].batches.clear()
        starts = [asyncio.create_task(engine.start(committing, f"{n}", delay=3600)) for n in range(12)]
        await in_time(stores[0].waiting["commit"].wait())
        stage.gate("a").open()
        await turns_of_the_loop(100)
        gate.set()

        assert await in_time(run.result()) == "a"
        await in_time(asyncio.gather(*starts))
        assert stores[0].batches[0] == [0, 0, 0, 0]
        assert stores[0].batches[1][0] != 0
        assert stores[0].batches[1][1:] == [0, 0, 0]


async def test_starts_give_way_to_what_runs(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred are prepared in one turn of the event loop, however many callers there are."""
    made: list[str] = []
    new_id = place.clock.new_id

    def noted() -> str:
        made.append(new_id())
        return made[-1]

    monkeypatch.setattr(place.clock, "new_id", noted)
    async with place.engine(worker=False) as engine:
        made.clear()
        starts = [asyncio.create_task(engine.start(committing, f"{n}")) for n in range(1_000)]
        in_each_turn = []
        while len(made) < 1_000:
            before = len(made)
            await asyncio.sleep(0)
            in_each_turn.append(len(made) - before)
        runs = await in_time(asyncio.gather(*starts))

        assert max(in_each_turn) <= 100
        assert len({run.id for run in runs}) == 1_000
