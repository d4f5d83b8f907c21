"""Schedules that fire: one run for each tick, and overlap as it was asked for, in every store."""

import asyncio
from datetime import date
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

import outlive
from outlive._features.fsck.checker import check_store
from outlive._features.fsck.problem import Kind
from outlive._features.schedules.schedule import Overlap
from outlive._features.schedules.service import Scheduler
from outlive._kernel.model.pause import MOVER
from outlive._kernel.store.contract import Outcome, Store
from outlive._kernel.store.schedules import ScheduleChange
from outlive.errors import StoreUnavailableError
from outlive.errors.run import ScheduleTrippedError
from outlive.testing import TestEngine
from outlive.testing.watched_store import WatchedStore
from outlive.types import WorkerOptions
from tests.engine.inside import client_of, give_store, row_of, store_of, wrap_inner
from tests.engine.support import stage
from tests.limits.world import World, die
from tests.schedules.flows import (
    hours_of,
    registry_with,
    started,
    tick_failing,
    tick_noted,
    tick_patient,
    tick_plain,
    tick_queued,
    tick_slow,
)

FIRST = 23
"""The hour of the first tick: the clock of a test begins at 22:00 of November 14, 2023, in UTC."""


@pytest.mark.every_store
async def test_a_tick_starts_a_run_with_its_time(world: World) -> None:
    """In its id, its tag, its headers and its arguments; the next ones follow. [TS-S10]"""
    async with world.engine(schedules=True) as engine:
        args = {"at": outlive.tick, "day": outlive.tick.date}
        hourly = outlive.every(hours=1, tz="Asia/Tokyo", args=args, tags={"team": "a"})
        await engine.schedules.set("digest", hourly, tick_noted)
        await engine.skip(hours=2)
        page = await engine.list(tags={"schedule": "digest", "team": "a"})

    first, second = "2023-11-14T23:00:00Z", "2023-11-15T00:00:00Z"
    assert [f"digest@{second}", f"digest@{first}"] == [run.id for run in page]
    assert stage.calls == [
        (f"digest@{tick}", tick.replace("Z", "+00:00"), {"schedule": "digest", "tick": tick}, date(2023, 11, 15))
        for tick in (first, second)
    ]


@pytest.mark.every_store
async def test_a_run_of_a_schedule_sleeps_and_waits_like_any_other(world: World) -> None:
    """A run of a schedule waits for a timer and then for a signal. A run that was started beside it does not belong to
    the schedule. [TS-S16]"""
    async with world.engine(schedules=True) as engine:
        await engine.schedules.set("patient", outlive.cron("0 23 14 11 *"), tick_patient)
        other = await engine.start(tick_patient, id="other")
        await engine.skip(hours=3)
        (run,) = await engine.list(tags={"schedule": "patient"})
        for run_id in (run.id, other.id):
            await engine.signal(run_id, "go", run_id)
        assert [await engine.get(each).result() for each in (run.id, "other")] == [run.id, "other"]


@pytest.mark.every_store
async def test_three_workers_start_one_run_for_each_tick(world: World) -> None:
    """All of them look at the same instant. [TS-S10]"""
    async with world.engine(schedules=True) as one, world.engine(schedules=True), world.engine(schedules=True):
        for number in range(5):
            await one.schedules.set(f"digest-{number}", outlive.every(hours=1, overlap="allow"), tick_plain)
        await one.skip(hours=3)
        found = [await hours_of(one, f"digest-{number}") for number in range(5)]

    assert found == [[(0, "succeeded"), (1, "succeeded"), (23, "succeeded")]] * 5


@pytest.mark.parametrize(
    ("overlap", "expected"),
    [
        ("skip", [(1, "succeeded"), (2, "waiting"), (23, "succeeded")][1:]),
        ("allow", [(0, "succeeded"), (1, "waiting"), (2, "waiting"), (3, "waiting"), (23, "succeeded")]),
        ("buffer_one", [(0, "waiting"), (23, "succeeded")]),
        ("buffer_all", [(0, "waiting"), (23, "succeeded")]),
        ("cancel_previous", [(hour, "cancelled") for hour in (0, 1, 2)] + [(3, "waiting"), (23, "cancelled")]),
        ("terminate_previous", [(hour, "cancelled") for hour in (0, 1, 2)] + [(3, "waiting"), (23, "cancelled")]),
    ],
)
@pytest.mark.any_store
async def test_overlap_is_enforced(world: World, overlap: Overlap, expected: list[tuple[int, str]]) -> None:
    """A tick an hour, and runs of two hours and a half; two workers. [FB-R7 CA-S4 FE-T4]"""
    async with world.engine(schedules=True) as engine, world.engine(schedules=True):
        await engine.schedules.set("slow", outlive.every(hours=1, overlap=overlap), tick_slow)
        await engine.skip(hours=5, minutes=10)
        found = await hours_of(engine, "slow")
        cleaned = [call for call in stage.calls if call[0] == "cleaned up"]

    assert expected == found
    # A run that is cancelled cleans up, and one that is terminated does not.
    assert len(cleaned) == {"cancel_previous": 4, "terminate_previous": 0}.get(overlap, len(cleaned))


@pytest.mark.any_store
async def test_a_run_that_a_person_started_does_not_overlap(world: World) -> None:
    """A schedule starts its run beside one that a person started, because it counts its own runs only. [FB-R8]"""
    async with world.engine(schedules=True) as engine:
        await engine.start(tick_slow, id="by-hand")
        await engine.schedules.set("slow", outlive.every(hours=1), tick_slow)
        await engine.skip(hours=1)

        assert [(FIRST, "waiting")] == await hours_of(engine, "slow")
        assert "waiting" == (await engine.get("by-hand").info()).status


@pytest.mark.any_store
async def test_runs_of_a_schedule_wait_in_the_queue_of_their_workflow(world: World) -> None:
    """Runs of a schedule are in the queue of their workflow."""
    queue = outlive.Queue("ticks", concurrency=1, hold="running")
    queued: outlive.types.Workflow[..., Any] = outlive.types.Workflow(replace(tick_slow.spec, queue=queue), {})
    registry = registry_with(queued, outlive.every(hours=1, name="slow", overlap="allow"))
    async with world.engine(schedules=True, _registry=registry) as engine:
        await engine.skip(hours=2)
        runs = await engine.list(tags={"schedule": "slow"})

    assert [("ticks", "waiting")] * 2 == [(run.queue, run.status) for run in runs]


@pytest.mark.any_store
async def test_a_failing_schedule_trips_and_says_so(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """It is logged, counted, and what stands in its way; resuming it lets it go on. [CA-S5 CA-S7 CA-S9 CA-S10 FE-T6]"""
    async with world.engine(schedules=True) as engine:
        await engine.schedules.set("feed", outlive.every(hours=1, trip_after=2), tick_failing)
        await engine.skip(hours=5)
        info = await engine.schedules.get("feed")
        assert (True, 2, [], ["failed", "failed"]) == (
            info.is_tripped,
            info.failures,
            info.next_fires,
            [run.status for run in info.last],
        )
        assert info.why.startswith(
            "it has tripped: its last 2 runs have failed, the last one feed@2023-11-15T00:00:00Z"
        )
        assert "schedule feed has tripped" in caplog.text
        assert 1 == engine.counters.schedules_tripped
        with pytest.raises(ScheduleTrippedError):
            await engine.schedules.trigger("feed")

        await engine.schedules.resume("feed")
        await engine.skip(hours=1)

        assert 3 == len(await hours_of(engine, "feed"))


class Deaf:
    """A store whose answer to a change of schedules is lost, before it is done or after it."""

    def __init__(self, inner: Store, *, is_done: bool) -> None:
        self._inner, self._is_done = inner, is_done

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def change_schedules(self, changes: list[ScheduleChange]) -> list[Outcome]:
        """Lose the answer, if it is about a tick."""
        is_tick = any(change.starts for change in changes)
        outcomes = await self._inner.change_schedules(changes) if self._is_done or not is_tick else []
        if is_tick:
            raise StoreUnavailableError("the store", "the line was cut")
        return outcomes


@pytest.mark.every_store
@pytest.mark.parametrize("is_done", [True, False])
async def test_a_worker_that_dies_at_a_tick_loses_and_doubles_nothing(world: World, is_done: bool) -> None:  # noqa: FBT001
    """Before its transaction or right after it; another worker goes on. [CA-S14]"""
    dying = world.engine(worker=False)
    wrap_inner(dying, partial(Deaf, is_done=is_done))
    async with dying:
        await dying.schedules.set("digest", outlive.every(hours=1, catch_up="all", overlap="allow"), tick_plain)
        await dying.skip(hours=1)
        with pytest.raises(StoreUnavailableError):
            await scheduler_of(dying).run_once()
        assert ([FIRST] if is_done else []) == started(await hours_of(dying, "digest"))

    async with world.engine(schedules=True) as engine:
        await engine.skip(hours=1, minutes=30)
        assert [0, FIRST] == started(await hours_of(engine, "digest"))


@pytest.mark.any_store
async def test_a_worker_that_dies_before_it_cancels_leaves_that_to_another(world: World) -> None:
    """The tick waits in the store, and the next look asks the run to stop again."""

    async def cannot(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("killed")

    async with world.engine() as dying:
        await dying.schedules.set("slow", outlive.every(hours=1, overlap="cancel_previous"), tick_slow)
        await dying.skip(hours=1)
        await scheduler_of(dying).run_once()
        await dying.skip(hours=1)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(client_of(dying), "cancel", cannot)
            with pytest.raises(RuntimeError):
                await scheduler_of(dying).run_once()
        await die(dying)

    async with world.engine(schedules=True) as engine:
        await engine.skip(minutes=5)
        assert [(0, "waiting"), (FIRST, "cancelled")] == await hours_of(engine, "slow")


@pytest.mark.any_store
async def test_two_workers_that_decide_otherwise_do_not_both_start(world: World) -> None:
    """One has seen that the run was open, and the other that it has ended: one is first, and the other looks again."""
    async with world.engine() as one, world.engine() as other:
        await one.schedules.set("slow", outlive.every(hours=1), tick_slow)
        await one.skip(hours=1)
        await scheduler_of(one).run_once()
        await one.skip(hours=2, minutes=20)
        stale = await store_of(one).find_runs(["slow@2023-11-14T23:00:00Z"])
        await one.skip(minutes=15)
        with pytest.MonkeyPatch.context() as patch:
            store = store_of(other).inner  # type: ignore[attr-defined]
            patch.setattr(store, "find_runs", partial(answer, stale))
            both = await asyncio.gather(scheduler_of(one).run_once(), scheduler_of(other).run_once())
        assert 2 == len(both)
        info = await one.schedules.get("slow")

        assert (1, len(info.open) + info.skipped) == (len(info.last), 1)


async def answer(found: Any, run_ids: Any) -> Any:
    """What a store said some time ago."""
    return found


def scheduler_of(engine: TestEngine) -> Scheduler:
    """A scheduler that a test runs by hand."""
    return Scheduler(client_of(engine), clock=engine.clock, counters=engine.counters, looks_at_once=True)


@pytest.mark.any_store
async def test_missed_ticks_are_caught_up_as_the_schedule_says(world: World) -> None:
    """A schedule catches up none, the latest or some of the ticks that passed without a worker, as it says. [FE-T5]"""
    async with world.engine(schedules=True) as engine:
        for name, catch_up in (("none", "none"), ("latest", "latest"), ("few", 3)):
            daily = outlive.cron("30 22 * * *", catch_up=catch_up, overlap="allow")  # type: ignore[arg-type]
            await engine.schedules.set(name, daily, tick_plain)
    async with world.engine() as clock:
        await clock.skip(days=5)
    async with world.engine(schedules=True) as engine:
        await engine.skip(minutes=1)
        found = {name: len(await engine.list(tags={"schedule": name})) for name in ("none", "latest", "few")}

    assert {"none": 0, "latest": 1, "few": 3} == found


@pytest.mark.any_store
async def test_a_damaged_schedule_stops_itself_only(world: World) -> None:
    """It is listed with what is wrong, and can be set again."""
    async with world.engine(schedules=True) as engine:
        store = store_of(engine)
        await engine.schedules.set("good", outlive.every(hours=1), tick_plain)
        await engine.schedules.set("bad", outlive.every(hours=1), tick_plain)
        row = (await store.find_schedules(["bad"]))["bad"]
        damaged = ScheduleChange(
            name="bad", revision=row.revision, next_revision=row.revision + 1, next_at=row.next_at, data=b"0" + row.data
        )
        await store.change_schedules([damaged])
        await engine.skip(hours=1)

        assert [(FIRST, "succeeded")] == await hours_of(engine, "good")
        assert "is damaged" in (await engine.schedules.get("bad")).why
        await engine.schedules.set("bad", outlive.every(hours=1), tick_plain)
        await engine.skip(hours=1)
        assert [(0, "succeeded")] == await hours_of(engine, "bad")


@pytest.mark.any_store
async def test_a_bounded_look_leaves_none_behind(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """More schedules are due than are started in one transaction; old ones do not keep later ones from it.

    [TS-S12 TS-R32]
    """
    monkeypatch.setattr("outlive._features.schedules.service.SCHEDULES_AT_ONCE", 2)
    async with world.engine(schedules=True) as engine:
        for number in range(7):
            await engine.schedules.set(f"digest-{number}", outlive.every(hours=1), tick_plain)
        await engine.skip(hours=1)

        assert 7 == engine.counters.ticks_started
        assert [[FIRST]] * 7 == [started(await hours_of(engine, f"digest-{number}")) for number in range(7)]


@pytest.mark.any_store
async def test_a_parked_run_stands_in_the_way_and_is_named(world: World) -> None:
    """The reason is one look away."""
    async with world.engine(schedules=True) as engine:
        await engine.schedules.set("slow", outlive.every(hours=1), tick_slow)
        await engine.skip(hours=1)
        run_id = "slow@2023-11-14T23:00:00Z"
        await engine.pause(run_id, reason="the disk is full")
        await engine.skip(hours=3)
        info = await engine.schedules.get("slow")

        assert (3, [run_id]) == (info.skipped, [run.id for run in info.open])
        assert f"run {run_id} is parked (paused: the disk is full), and a tick is skipped while that lasts" in info.why


@pytest.mark.any_store
async def test_a_schedule_without_a_worker_for_it_says_so(world: World) -> None:
    """Its runs would wait."""
    async with world.engine(worker=False) as client:
        info = await client.schedules.set("digest", outlive.every(hours=1), tick_plain)

    assert "no live worker has tick_plain@1; start one that defines it" in info.why


async def test_an_engine_without_schedules_asks_for_none_on_its_way() -> None:
    """A worker that does other things is not slowed down by what it does not use."""
    asked = []

    class Counting(WatchedStore):
        """Notes who asks for schedules."""

        async def find_due_schedules(self, *, limit: int) -> Any:
            """Ask."""
            asked.append(limit)
            return await self.inner.find_due_schedules(limit=limit)

    engine = outlive.Engine("memory:", worker=WorkerOptions(tune=False))
    give_store(engine, Counting(store_of(engine)))
    async with engine:
        for _ in range(10):
            await (await engine.start(tick_plain)).result()

    assert [] == asked


async def test_store_that_was_moved_away_starts_no_runs(world: World) -> None:
    """Its schedules tick in the other store. A pause of everything by a person lets runs of ticks wait."""
    async with world.engine(schedules=True) as engine:
        await engine.schedules.set("digest", outlive.every(hours=1), tick_plain)
        await engine.pause(all=True, by=MOVER, reason="moved to elsewhere")
        await engine.skip(hours=2)
        assert await hours_of(engine, "digest") == []

        await engine.resume(all=True)
        await engine.skip(hours=1)
        assert len(await hours_of(engine, "digest")) == 2  # The latest that was missed, and the next one.


async def test_damaged_schedule_is_found_by_fsck(world: World) -> None:
    """It would not tick, and its worker can only log that."""
    async with world.engine(schedules=True) as engine:
        for name in ("digest", "sound"):
            await engine.schedules.set(name, outlive.every(hours=1), tick_plain)
        store = store_of(engine)
        assert await check_store(store) == []
        row = (await store.find_schedules(["digest"]))["digest"]
        change = ScheduleChange(name="digest", revision=row.revision, next_revision=row.revision + 1, data=b"x")
        assert await store.change_schedules([change]) == [Outcome.COMMITTED]

        (problem,) = await check_store(store)
        assert (problem.kind, str(problem).count("schedule digest: its checksum does not fit")) == (Kind.SCHEDULE, 1)
        gone = replace(change, revision=row.revision + 1, next_revision=row.revision + 2, data=None)
        assert await store.change_schedules([gone]) == [Outcome.COMMITTED]


async def test_runs_of_a_schedule_have_its_key_and_priority_in_their_queue(world: World) -> None:
    """Runs of a schedule have its key and priority, even if its workflow is given by name, and lose them when it is set
    without."""
    async with world.engine(schedules=True) as engine:
        await engine.start(tick_queued)
        for name, workflow in (("digest", tick_queued), ("named", "tick_queued")):
            await engine.schedules.set(name, outlive.every(hours=1, key="ann", priority=2), workflow)
        await engine.skip(hours=1)
        await engine.schedules.set("digest", outlive.every(hours=1))
        await engine.skip(hours=1)
        runs = {
            run.id: (run.queue, run.queue_key, (await row_of(engine, run.id)).lead)
            for run in await engine.list(workflow="tick_queued")
        }

    first, second = "2023-11-14T23:00:00Z", "2023-11-15T00:00:00Z"
    assert [runs[f"digest@{first}"], runs[f"named@{first}"]] == [("ticks", "ann", 20_000_000)] * 2
    assert runs[f"digest@{second}"] == ("ticks", "", 0)
