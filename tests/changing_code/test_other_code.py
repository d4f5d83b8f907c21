"""Other code than the run was started with: it waits for code that fits, says so, and goes on with it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import outlive
from outlive._kernel.define.registry import Registry
from outlive._kernel.journal.arguments import Signature
from outlive._kernel.replay.command import WorkflowSpec
from outlive._kernel.runtime.tree import replay_notes
from tests.engine.inside import crash, journal_of, ring
from tests.engine.support import DAY, Place, hold, in_time, note, parks, registry_of, stage, until, waits

pytestmark = pytest.mark.any_store


@outlive.workflow
async def old_code(name: str) -> str:
    before = await note(f"{name} before")
    said = await outlive.wait_for_signal("go", str)
    return f"{before} {said} {await note(f'{name} after')}"


@outlive.workflow
async def old_sleeper() -> str:
    await asyncio.sleep(DAY)
    return await note("slept")


@outlive.workflow
async def old_hold(name: str) -> str:
    return await hold(name)


@outlive.workflow(name="versioned", version=1)
async def versioned_1() -> str:
    return f"1 {await outlive.wait_for_signal('go', str)}"


@outlive.workflow(name="versioned", version=2)
async def versioned_2() -> str:
    return f"2 {await outlive.wait_for_signal('go', str)}"


async def new_order(name: str) -> str:
    """What `old_code` became: it asks for another step first."""
    await hold(f"{name} other")
    return await outlive.wait_for_signal("go", str)


@outlive.workflow
async def old_shower(name: str) -> str:
    """It shows something to people before it waits."""
    outlive.publish(stage=name)
    return await outlive.wait_for_signal("go", str)


async def new_shower(name: str) -> str:
    """It shows something else."""
    outlive.publish(stage=f"{name} changed")
    return await outlive.wait_for_signal("go", str)


async def new_argument(name: str) -> str:
    """It asks for the same step with another argument."""
    before = await note(f"{name} changed")
    return f"{before} {await outlive.wait_for_signal('go', str)} {await note(f'{name} new')}"


async def new_signature(name: str, count: int) -> str:
    """It wants an argument that the start did not give."""
    return name * count


async def new_type(name: int) -> str:
    """It wants an argument of another type."""
    return f"{name}"


def deployed(fn: Any, name: str = "old_code", *, strict_arguments: bool = True) -> Registry:
    """A process in which a workflow has other code."""
    registry = Registry()
    signature = Signature(fn, name)
    registry.add_workflow(
        WorkflowSpec(name=name, version=1, fn=fn, signature=signature, strict_arguments=strict_arguments)
    )
    return registry


async def test_a_run_waits_for_a_worker_that_has_its_workflow(place: Place) -> None:
    """No other worker touches it, `why` says what is missing, and it goes on when that arrives."""
    first = await place.engine().__aenter__()
    await first.start(old_hold, "a", id="run-1")
    await stage.gate("a").reached()
    await first.__aexit__(None, None, None)

    async with place.engine(registry=registry_of(old_sleeper)) as stranger:
        run = stranger.get("run-1")
        assert "no live worker has old_hold@1; start one that defines it" == await run.why()
        assert await run.status() == "pending"
        async with place.engine():
            await stage.gate("a").reached()
            stage.gate("a").open()
            assert "a" == await in_time(run.result())


async def test_an_orphan_waits_for_a_worker_that_has_its_workflow(place: Place) -> None:
    """It says that its worker is gone and which code it needs. [SF-U2 FB-R2]"""
    first = await place.engine().__aenter__()
    await first.start(old_hold, "a", id="run-1")
    await stage.gate("a").reached()
    await crash(first)
    stage.gate("a").open()

    async with place.engine(registry=Registry()) as stranger:
        why = await stranger.get("run-1").why()
        assert "is gone" in why
        assert "old_hold@1" in why
    async with place.engine() as second:
        assert "a" == await in_time(second.get("run-1").result())


@pytest.mark.parametrize("workflow", [old_code, old_sleeper])
async def test_a_suspended_run_that_is_due_says_that_no_worker_has_its_workflow(place: Place, workflow: Any) -> None:
    """`why` does not say that a run waits for a signal or a timer that it can no longer act on."""
    args = ["a"] if workflow is old_code else []
    async with place.engine() as first:
        await waits(await first.start(workflow, *args, id="run-1"))
    async with place.engine(registry=Registry()) as stranger:
        if workflow is old_code:
            await stranger.signal("run-1", "go", "on")
        place.clock.skip(seconds=DAY)

        assert f"no live worker has {workflow.name}@1; start one that defines it" == await stranger.get("run-1").why()
    async with place.engine() as second:
        assert await in_time(second.get("run-1").result()) in {"a before on a after", "slept"}


async def test_a_run_keeps_the_version_it_was_started_with(place: Place) -> None:
    """Both versions are there, and each run goes on with its own."""
    async with place.engine() as engine:
        runs = [await engine.start(versioned_1), await engine.start(versioned_2)]
        for run in runs:
            await waits(run)
    async with place.engine(registry=registry_of(versioned_2)) as newer:
        for run in runs:
            await newer.signal(run.id, "go", "on")
        assert "2 on" == await in_time(newer.get(runs[1].id).result())
        assert "no live worker has versioned@1; start one that defines it" == await newer.get(runs[0].id).why()
    async with place.engine() as both:
        assert "1 on" == await in_time(both.get(runs[0].id).result())


@pytest.mark.parametrize(
    ("fn", "expected"),
    [
        (new_order, "waits for step hold"),
        (new_argument, "note with other arguments"),
        (new_signature, "argument: 'count'"),
        (new_type, "cannot be read as int"),
    ],
    ids=["order", "argument", "signature", "type"],
)
async def test_code_that_contradicts_the_journal_parks_the_run(place: Place, fn: Any, expected: str) -> None:
    """It is parked with a diff, others go on, and with the right code it ends as if nothing had been. [FB-R2 TS-R4]"""
    async with place.engine() as first:
        await waits(await first.start(old_code, "a", id="run-1"))
    registry = deployed(fn)
    registry.add_workflow(old_sleeper.spec)
    async with place.engine(registry=registry) as second:
        other = await second.start(old_sleeper)
        await second.signal("run-1", "go", "on")
        assert expected in await parks(second.get("run-1"))
        await waits(other)
    async with place.engine() as third:
        await third.resume("run-1")
        assert "a before on a after" == await in_time(third.get("run-1").result())
    assert 1 == stage.count("a before")


async def test_worker_does_not_look_at_the_arguments_of_answered_calls(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """Without strict arguments a replay takes the recorded results as they are, and only later calls use the arguments
    of the new code."""
    async with place.engine() as first:
        await waits(await first.start(old_code, "a", id="run-1"))
    async with place.engine(registry=deployed(new_argument, strict_arguments=False)) as second:
        await second.signal("run-1", "go", "on")

        assert "a before on a new" == await in_time(second.get("run-1").result())
        assert second.counters.calls_changed == 0
    assert (stage.count("a changed"), stage.count("a new")) == (0, 1)
    assert not [record for record in caplog.records if "other arguments" in record.message]


async def test_other_facts_are_logged_once_and_counted_and_the_run_goes_on(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """A run whose new code would record other facts goes on with those of the journal; each replay is counted, and one
    warning is logged."""
    async with place.engine() as first:
        await waits(await first.start(old_shower, "a", id="run-1"))
    registry = deployed(new_shower, "old_shower", strict_arguments=False)
    registry.add_workflow(old_sleeper.spec)
    async with place.engine(registry=registry, limits=outlive.limits.Limits(runs_cached_max=1)) as second:
        for replayed in (1, 2):
            await second.signal("run-1", "other", "x")
            await until(lambda replayed=replayed: _has_replayed(second, replayed))  # type: ignore[misc]
            await waits(second.get("run-1"))
            await waits(await second.start(old_sleeper))  # Has the run thrown out of the cache.
        await second.signal("run-1", "go", "on")

        assert "on" == await in_time(second.get("run-1").result())
        assert second.counters.calls_changed == second.counters.runs_replayed == 3
    (record,) = [record for record in caplog.records if "other arguments" in record.message]
    assert (record.levelname, record.run_id, record.workflow) == ("WARNING", "run-1", "old_shower")  # type: ignore[attr-defined]
    assert "old_shower@1 calls @publish with other arguments than event 1" in record.message


@pytest.mark.parametrize("place", ["memory"], indirect=True)
@pytest.mark.parametrize(("reported_max", "logged"), [(1, 2), (2, 1)])
async def test_a_warning_is_remembered_for_a_bounded_number_of_runs(
    place: Place, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, reported_max: int, logged: int
) -> None:
    """A worker remembers for a bounded number of runs that it has logged their other arguments, and logs them again
    beyond that."""
    monkeypatch.setattr(replay_notes, "REPORTED_MAX", reported_max)
    async with place.engine() as first:
        for id in ("run-1", "run-2"):
            await waits(await first.start(old_shower, "a", id=id))
    registry = deployed(new_shower, "old_shower", strict_arguments=False)
    async with place.engine(registry=registry, limits=outlive.limits.Limits(runs_cached_max=1)) as second:
        for replayed, id in enumerate(("run-1", "run-2", "run-1"), 1):
            await second.signal(id, "other", "x")
            await until(lambda replayed=replayed: _has_replayed(second, replayed))  # type: ignore[misc]
            await waits(second.get(id))
    records = [record for record in caplog.records if "other arguments" in record.message]
    assert logged == sum(record.run_id == "run-1" for record in records)  # type: ignore[attr-defined]
    assert 1 == sum(record.run_id == "run-2" for record in records)  # type: ignore[attr-defined]


async def _has_replayed(engine: outlive.Engine, runs: int) -> bool:
    return engine.counters.runs_replayed >= runs


async def test_the_result_of_a_run_whose_workflow_is_not_here_is_plain(place: Place) -> None:
    """A client that does not have the code reads the result as the JSON says it."""
    async with place.engine() as worker:
        run = await worker.start(old_code, "a", id="run-1")
        await run.signal("go", "on")
        await in_time(run.result())
    async with place.engine(worker=False, registry=Registry()) as client:
        assert "a before on a after" == await in_time(client.get("run-1").result())


async def test_a_resumed_run_that_still_does_not_fit_is_parked_again(place: Place) -> None:
    """A resume is one try, not a loop."""
    async with place.engine() as first:
        await waits(await first.start(old_code, "a", id="run-1"))
    async with place.engine(registry=deployed(new_argument)) as second:
        await second.signal("run-1", "go", "on")
        run = second.get("run-1")
        await parks(run)
        before = len(await journal_of(run))
        await run.resume()

        async def is_parked_again() -> bool:
            return len(await journal_of(run)) > before and await run.status() == "parked"

        await until(is_parked_again)
        after = len(await journal_of(run))
        for _ in range(3):
            ring(second)
            await asyncio.sleep(0.005)
        assert after == len(await journal_of(run))
    async with place.engine() as third:
        await third.resume("run-1")
        assert "a before on a after" == await in_time(third.get("run-1").result())


# -- Timers --------------------------------------------------------------------------------------------------------


async def sleeps_an_hour() -> str:
    """What `old_sleeper` became: it sleeps for an hour and not for a day."""
    await asyncio.sleep(3600)
    return await note("slept")


async def sleeps_a_week() -> str:
    """What `old_sleeper` became: it sleeps for a week and not for a day."""
    await asyncio.sleep(7 * DAY)
    return await note("slept")


async def test_a_timer_that_was_made_shorter_counts_when_its_run_is_woken(place: Place) -> None:
    """The store has the old time, and nothing wakes the run before that; any signal does, and the new time counts."""
    async with place.engine() as first:
        await waits(await first.start(old_sleeper, id="run-1"))
    code = deployed(sleeps_an_hour, "old_sleeper")
    async with place.engine(registry=code) as second:
        run = second.get("run-1")
        place.clock.skip(seconds=2 * 3600)
        sleeper: Any = outlive.types.Workflow(code.workflow("old_sleeper", 1), {})
        await waits(await second.start(sleeper))  # It has looked for what is due.
        assert await run.status() == "waiting"
        await run.signal("look-again")

        assert "slept" == await in_time(run.result())


async def test_a_timer_that_was_made_longer_counts(place: Place) -> None:
    """The run is woken at the old time, sees that it is too early, and waits for the new one."""
    async with place.engine() as first:
        await waits(await first.start(old_sleeper, id="run-1"))
    async with place.engine(registry=deployed(sleeps_a_week, "old_sleeper")) as second:
        run = second.get("run-1")
        place.clock.skip(seconds=DAY + 1)
        await until(lambda: _has_replayed(second, 1))
        await waits(run)
        assert stage.count("slept") == 0
        place.clock.skip(seconds=6 * DAY)

        assert "slept" == await in_time(run.result())
