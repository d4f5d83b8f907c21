"""What people do with schedules, and how code declares them."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

import outlive
from outlive._features.schedules.in_code import OPTION, declared_in
from outlive.errors import ArgumentTypeError, InvalidArgumentError
from outlive.errors.run import ScheduleNotFoundError, ScheduleOverlapError
from outlive.testing import TestEngine
from outlive.types import WorkerOptions
from tests.engine.support import registry_of, stage
from tests.limits.world import World
from tests.schedules.flows import hours_of, registry_with, started, tick_noted, tick_plain, tick_slow

pytestmark = pytest.mark.any_store
HOURLY = outlive.every(hours=1, name="digest")


async def test_a_paused_schedule_starts_nothing_until_it_is_resumed(world: World) -> None:
    """A paused schedule starts nothing, even after its workers were started again, and does not catch up when it is
    resumed. [FB-R18]"""
    async with world.engine(schedules=True, _registry=registry_with(tick_plain, HOURLY)) as engine:
        await engine.schedules.pause("digest", by="ann", reason="the feed is down")
        await engine.schedules.pause("digest", by="bob")
        await engine.skip(hours=2)
    async with world.engine(schedules=True, _registry=registry_with(tick_plain, HOURLY)) as engine:
        await engine.skip(hours=2)
        info = await engine.schedules.get("digest")
        assert (True, []) == (info.is_paused, info.next_fires)
        assert info.why.startswith("it is paused by ann: the feed is down (since 2023-11-14T22:00:00")
        assert [] == await hours_of(engine, "digest")

        await engine.schedules.resume("digest")
        await engine.skip(hours=1)
        assert [3] == started(await hours_of(engine, "digest"))


async def test_new_code_changes_the_schedule_and_not_its_state(world: World) -> None:
    """A pause stays, and the last outcomes too; new times count from now on."""
    async with world.engine(schedules=True, _registry=registry_with(tick_plain, HOURLY)) as engine:
        await engine.skip(hours=1)
        await engine.schedules.pause("digest")
    later = outlive.cron("30 * * * *", name="digest")
    async with world.engine(schedules=True, _registry=registry_with(tick_plain, later)) as engine:
        info = await engine.schedules.get("digest")
        assert (later, True, ["succeeded"]) == (info.schedule, info.is_paused, [run.status for run in info.last])
        await engine.schedules.resume("digest")
        await engine.skip(hours=1)

    assert 2 == len(info.last) + 1


async def test_a_process_with_older_code_does_not_write_its_schedule_back(world: World) -> None:
    """Among processes of one version the last to begin sets the schedule, and a higher version wins over a lower
    one."""
    old, new = replace(HOURLY, catch_up=0), replace(HOURLY, catch_up=5)
    versioned: outlive.types.Workflow[..., Any] = outlive.types.Workflow(replace(tick_plain.spec, version=2), {})
    async with world.engine(schedules=True, _registry=registry_with(tick_plain, old)) as first:
        async with world.engine(schedules=True, _registry=registry_with(tick_plain, new)):
            await first.skip(hours=2)
            assert new == (await first.schedules.get("digest")).schedule
        async with world.engine(schedules=True, _registry=registry_with(versioned, old)):
            await first.skip(minutes=1)
        # It is started again, later than the one with version 2.
        async with world.engine(schedules=True, _registry=registry_with(tick_plain, new)):
            info = await first.schedules.get("digest")

    assert (2, old) == (info.version, info.schedule)


async def test_equal_code_writes_nothing(world: World) -> None:
    """A schedule that was set at run time stays until the code changes."""
    mine = outlive.every(hours=2)
    async with world.engine(schedules=True, _registry=registry_with(tick_plain, HOURLY)) as engine:
        await engine.schedules.set("digest", mine)
    async with world.engine(schedules=True, _registry=registry_with(tick_plain, HOURLY)) as engine:
        assert (await engine.schedules.get("digest")).schedule == replace(mine, name="digest")
    async with world.engine(schedules=True, _registry=registry_with(tick_plain, replace(HOURLY, catch_up=7))) as engine:
        info = await engine.schedules.get("digest")

    assert info.schedule is not None
    assert 7 == info.schedule.catch_up


async def test_a_triggered_run_starts_now(world: World) -> None:
    """With the time of now, also while the schedule is paused; the schedule knows it as its own. [CA-S11]"""
    async with world.engine(schedules=True) as engine:
        await engine.schedules.set("digest", outlive.every(hours=1, args={"at": outlive.tick}), tick_noted)
        await engine.schedules.pause("digest")
        run = await engine.schedules.trigger("digest")
        await run.result()

        assert run.id.startswith("digest@2023-11-14T22:00:00Z.")
        assert "2023-11-14T22:00:00+00:00" == stage.calls[0][1]
        assert [run.id] == [each.id for each in (await engine.schedules.get("digest")).last]


async def test_triggering_respects_the_overlap_policy(world: World) -> None:
    """Unless the person says otherwise. [CA-S12]"""
    async with world.engine(schedules=True) as engine:
        await engine.schedules.set("slow", outlive.every(hours=1, overlap="buffer_all"), tick_slow)
        first = await engine.schedules.trigger("slow")
        with pytest.raises(ScheduleOverlapError, match=f"run {first.id} is open; wait for its end, or give"):
            await engine.schedules.trigger("slow")
        second = await engine.schedules.trigger("slow", overlap="allow")
        await engine.settle()
        third = await engine.schedules.trigger("slow", overlap="terminate_previous")
        await engine.settle()

        statuses = [(await run.info()).status for run in (first, second, third)]
        assert ["cancelled", "cancelled", "waiting"] == statuses


async def test_a_process_without_a_worker_may_terminate_what_is_open(world: World) -> None:
    """The worker that has the run gives it up."""
    async with world.engine(schedules=True) as engine, world.engine(worker=False) as other:
        await engine.schedules.set("slow", outlive.every(hours=1), tick_slow)
        first = await other.schedules.trigger("slow")
        await engine.settle()
        await other.schedules.trigger("slow", overlap="terminate_previous")

        assert "cancelled" == (await first.info()).status


async def test_a_range_is_filled_one_after_the_other(world: World) -> None:
    """Each tick that has no run; none of them twice."""
    async with world.engine(schedules=True) as engine:
        await engine.schedules.set("digest", outlive.every(hours=1), tick_plain)
        await engine.skip(hours=2)
        end = engine.now()

        assert 2 == await engine.schedules.backfill("digest", end - timedelta(hours=3), end)
        assert 2 == (await engine.schedules.get("digest")).waiting
        await engine.skip(minutes=1)
        assert [0, 21, 22, 23] == started(await hours_of(engine, "digest"))
        assert 0 == await engine.schedules.backfill("digest", end - timedelta(hours=3), end)


async def test_a_range_is_filled_at_once_where_overlap_is_allowed(world: World) -> None:
    """A backfill of a schedule with overlap starts all runs at once, even while the schedule is paused. [FE-T5]"""
    async with world.engine(schedules=True) as engine:
        await engine.schedules.set("digest", outlive.every(minutes=1, overlap="allow"), tick_plain)
        await engine.schedules.pause("digest")

        assert 300 == await engine.schedules.backfill("digest", engine.now() - timedelta(hours=5), engine.now())
        assert 300 == await engine.count(tags={"schedule": "digest"})


@pytest.mark.parametrize(
    ("start", "end", "said"),
    [
        (timedelta(days=-1), timedelta(hours=1), "lies in the future"),
        (timedelta(days=-100), timedelta(), "more than 1,000 ticks"),
    ],
)
async def test_a_range_that_cannot_be_filled_is_refused(
    world: World, start: timedelta, end: timedelta, said: str
) -> None:
    """Before anything is started."""
    async with world.engine(schedules=True) as engine:
        await engine.schedules.set("digest", outlive.every(hours=1), tick_plain)
        with pytest.raises(InvalidArgumentError, match=said):
            await engine.schedules.backfill("digest", engine.now() + start, engine.now() + end)
        assert 0 == await engine.count(tags={"schedule": "digest"})


async def test_a_deleted_schedule_is_gone_and_its_runs_stay(world: World) -> None:
    """A second one of the name has no past. [CA-S17]"""
    async with world.engine(schedules=True) as engine:
        await engine.schedules.set("digest", outlive.every(hours=1), tick_plain)
        await engine.skip(hours=1)
        await engine.schedules.delete("digest")
        await engine.skip(hours=1)
        with pytest.raises(ScheduleNotFoundError):
            await engine.schedules.get("digest")
        assert [23] == started(await hours_of(engine, "digest"))
        info = await engine.schedules.set("digest", outlive.every(hours=1), tick_plain)

    assert [] == info.last


async def test_schedules_are_listed_by_name(world: World) -> None:
    """A page at a time, each with its next fires. [CA-S16 FE-T3]"""
    async with world.engine(worker=False) as engine:
        for name in ("b", "a", "c"):
            await engine.schedules.set(name, outlive.cron("0 6 * * *", tz="Europe/Stockholm"), tick_plain)
        first = await engine.schedules.list(limit=2)
        rest = await engine.schedules.list(after=first[-1].name)

    assert ["a", "b", "c"] == [info.name for info in (*first, *rest)]
    assert [datetime(2023, 11, day, 5, tzinfo=UTC) for day in (15, 16, 17, 18, 19)] == first[0].next_fires


async def test_a_schedule_can_start_a_workflow_whose_code_is_elsewhere(world: World) -> None:
    """If a worker has described it."""
    async with world.engine(schedules=True) as worker:
        await worker.settle()
        async with world.engine(worker=False) as client:
            await client.schedules.set("digest", outlive.every(hours=1, args={"at": outlive.tick}), "tick_noted")
            with pytest.raises(InvalidArgumentError, match="tick_noted does not take it"):
                await client.schedules.set("other", outlive.every(hours=1, args={"when": 7}), "tick_noted")
        await worker.skip(hours=1)

        assert [(23, "succeeded")] == await hours_of(worker, "digest")


async def test_sync_code_has_the_verbs_of_schedules() -> None:
    """The sync engine sets, pauses, lists and gets schedules."""
    with outlive.Engine("memory:", worker=WorkerOptions(tune=False)).sync as engine:
        engine.schedules.set("digest", outlive.every(hours=1), tick_plain)
        engine.schedules.pause("digest", reason="not now")

        assert ["digest"] == [info.name for info in engine.schedules.list()]
        assert engine.schedules.get("digest").is_paused


async def test_schedules_of_code_fire_in_a_test_engine_only_on_request(world: World) -> None:
    """A test that skips two days does not want forty-eight runs of something else."""
    registry = registry_with(tick_plain, HOURLY)
    async with TestEngine(_registry=registry) as engine:
        await engine.skip(hours=3)
        assert [] == await engine.schedules.list()
    async with TestEngine(_registry=registry, schedules=True) as engine:
        await engine.skip(hours=3)
        assert 3 == await engine.count(tags={"schedule": "digest"})


async def test_the_newest_version_in_the_code_counts() -> None:
    """Older ones are there for runs that are open."""
    registry = registry_of()
    for version, hours in ((2, 7), (1, 1)):
        spec = replace(tick_plain.spec, version=version)
        registry.add_workflow(spec)
        registry.declare(OPTION, spec, [outlive.every(hours=hours, name="digest")])

    assert [(2, timedelta(hours=7))] == [(spec.version, each.every) for spec, each in declared_in(registry)]


async def no_day(day: date) -> None:
    """Takes a day."""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"args": {"day": outlive.tick}}, "does not take it"),
        ({"args": {"when": 1}}, "does not take it"),
        ({}, "does not take it"),
        ({"args": [1]}, "plain JSON values by name"),
        ({"args": {"day": object()}}, "plain JSON values by name"),
        ({"args": {"day": {"$tick": "date"}}}, "plain JSON values by name"),
        ({"tz": "Mars/Olympus"}, "knows no such time zone"),
        ({"overlap": "sometimes"}, "give one of"),
        ({"catch_up": "some"}, "give one of"),
        ({"catch_up": 1_001}, "catch_up"),
        ({"trip_after": 0}, "trip_after"),
        ({"start": datetime(2026, 1, 1)}, "no time zone"),  # noqa: DTZ001
        ({"exclude": "0 6 * * *"}, "a list of cron expressions"),
        ({"exclude": ["6"]}, "five fields"),
        ({"exclude": ["* * * * *"]}, "leaves no tick"),
        ({"tz": "Europe/Stokholm"}, "did you mean 'Europe/Stockholm'"),
        ({"catch_up": "lastest"}, "or how many at most"),
        ({"days": 40_000}, "no more than 100 years"),
        ({"jitter": -1}, "jitter"),
        ({"name": "no spaces"}, "letters, digits"),
        ({"tags": {"schedule": "x"}}, "the name of the schedule"),
        ({"args": {"day": "2026-01-01"}, "key": "x"}, "runs with a queue"),
        ({"args": {"day": "2026-01-01"}, "priority": 1}, "runs with a queue"),
        ({"priority": "high"}, "priority"),
    ],
)
def test_a_schedule_that_cannot_work_is_refused_where_it_is_written(options: dict[str, Any], said: str) -> None:
    """With what is wrong, and what to give instead. [CA-S18]"""
    with pytest.raises((InvalidArgumentError, ArgumentTypeError), match=said):
        outlive.workflow(name="tick_refused", schedule=outlive.every(hours=1, **options))(no_day)


def test_an_unknown_option_of_a_schedule_is_refused() -> None:
    """With what may be meant."""
    with pytest.raises(TypeError, match=r"outlive\.cron\(\) has no argument 'overlapp'; did you mean 'overlap'"):
        outlive.cron("0 6 * * *", overlapp="skip")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"outlive\.every\(\) has no argument 'years'"):
        outlive.every(years=1)  # type: ignore[call-arg]


async def test_two_workflows_cannot_have_a_schedule_of_one_name(world: World) -> None:
    """One of them would never fire; the engine says so when it starts."""
    both = registry_with(tick_plain, HOURLY)
    both.add_workflow(tick_slow.spec)
    both.declare(OPTION, tick_slow.spec, [HOURLY])
    with pytest.raises(InvalidArgumentError, match="has one called digest too; give this one another name="):
        async with world.engine(schedules=True, _registry=both):
            """It does not start."""


async def test_arguments_that_contradict_each_other_are_refused(world: World) -> None:
    """A range that ends before it begins, and a schedule with another name than it is set under, are refused."""
    async with world.engine(schedules=True, _registry=registry_with(tick_plain, HOURLY)) as engine:
        with pytest.raises(InvalidArgumentError, match="not later than the start"):
            await engine.schedules.backfill("digest", engine.now(), engine.now() - timedelta(hours=3))
        with pytest.raises(InvalidArgumentError, match="it is called digest, and is to be set as report"):
            await engine.schedules.set("report", HOURLY, tick_plain)


def test_a_workflow_may_have_several_schedules() -> None:
    """Each with a name of its own."""
    both = [outlive.every(hours=1), outlive.cron("0 6 * * *")]
    with pytest.raises(InvalidArgumentError, match="a name of its own"):
        outlive.workflow(name="tick_refused", schedule=both)(tick_plain.fn)
    with pytest.raises(ArgumentTypeError, match=r"outlive\.every"):
        outlive.workflow(name="tick_refused", schedule="0 6 * * *")(tick_plain.fn)  # type: ignore[arg-type]


async def test_a_schedule_that_is_not_there_cannot_be_given_other_times(world: World) -> None:
    """Without a workflow there is nothing that it could start."""
    async with world.engine(schedules=True) as engine:
        with pytest.raises(ScheduleNotFoundError, match="digest"):
            await engine.schedules.set("digest", HOURLY)
