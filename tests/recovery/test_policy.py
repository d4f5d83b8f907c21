"""Which runs of a lost worker go on by themselves, and who takes them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import outlive
from outlive.errors import ConfigurationError
from outlive.errors.run import InboxFullError
from outlive.events import RunResumed
from outlive.limits import Limits
from outlive.types import Recovery
from tests.engine.faults import FaultyStore, faulty, unknown
from tests.engine.inside import crash
from tests.engine.support import DAY, Place, events_of, hold, in_time, note, parks, stage, until, waits

pytestmark = pytest.mark.any_store


@outlive.workflow
async def policed(name: str) -> str:
    await note("before")
    return await hold(name)


@outlive.workflow(resumable=False)
async def unresumable(name: str) -> str:
    await note("before")
    return await hold(name)


@outlive.workflow(resumable=False)
async def unresumable_sleep() -> str:
    await asyncio.sleep(DAY)
    return "slept"


async def lose_worker(place: Place, workflow: Any = policed, *, runs: int = 1) -> None:
    """Runs `run-0` and so on, in the middle of a step, of a worker that is gone."""
    engine = await place.engine().__aenter__()
    for number in range(runs):
        await engine.start(workflow, "held", id=f"run-{number}")
        await stage.gate("held").reached()
    await crash(engine)


async def go_on(engine: outlive.Engine) -> None:
    """A person lets the run go on, and it comes to its end without doing again what was done."""
    stage.gate("held").open()
    await engine.resume("run-0")
    assert "held" == await in_time(engine.get("run-0").result())
    assert [1, 2] == [stage.count("before"), stage.count("held")]


@pytest.mark.parametrize(
    ("workflow", "recovery", "why"),
    [
        (policed, Recovery(auto_resume=False), "nothing is resumed here by itself"),
        (unresumable, Recovery(), "workflow unresumable is not resumable"),
        (policed, Recovery(resume_age_max=3600), "is more than resume_age_max=3600 seconds ago"),
    ],
)
async def test_an_orphan_that_may_not_go_on_is_parked_until_a_person_resumes_it(
    place: Place, workflow: Any, recovery: Recovery, why: str
) -> None:
    """The reason says why it stopped and what to do; nothing of it runs before."""
    await lose_worker(place, workflow)
    place.clock.skip(seconds=3601)

    async with place.engine(recovery=recovery) as second:
        reason = await parks(second.get("run-0"))

        assert "interrupted: its worker was lost" in reason
        assert why in reason
        assert "resume it" in reason
        assert (1, 1, 0) == (
            second.counters.orphans_claimed,
            second.counters.runs_held_back,
            second.counters.runs_quarantined,
        )
        assert 1 == stage.count("held")
        await go_on(second)


@pytest.mark.parametrize("verb", ["claim_runs", "read_journals"])
async def test_an_orphan_whose_claim_was_not_heard_of_is_judged_all_the_same(place: Place, verb: str) -> None:
    """It was taken over and this worker did not know it, so it is claimed again, from itself."""
    await lose_worker(place, unresumable)
    stores: list[FaultyStore] = []
    second = place.engine(wrap=faulty(stores))
    stores[0].after[verb].append(unknown())

    async with second:
        assert "unresumable is not resumable" in await parks(second.get("run-0"))
        assert 1 == second.counters.runs_reclaimed
        assert 1 == stage.count("held")
        await go_on(second)


async def test_an_orphan_that_is_not_too_old_goes_on(place: Place) -> None:
    """Its age counts from its last progress, not from its start, and taking it over is not progress."""
    first = await place.engine().__aenter__()
    await waits(await first.start(unpoliced_turns, id="run-0"))
    place.clock.skip(seconds=DAY)
    await stage.gate("held").reached()
    await crash(first)
    place.clock.skip(seconds=1800)
    recovery = Recovery(resume_age_max=3600)
    second = await place.engine(recovery=recovery).__aenter__()
    await stage.gate("held").reached()
    await crash(second)
    place.clock.skip(seconds=1801)

    async with place.engine(recovery=recovery) as third:
        assert "resume_age_max" in await parks(third.get("run-0"))


@outlive.step(retry=outlive.Retry(attempts=2, first=DAY, cap=DAY, jitter=0))
async def policed_attempts() -> str:
    """Fails once, and runs until the test opens its gate."""
    stage.call("attempt")
    if stage.count("attempt") == 1:
        raise ConnectionError("the bank is closed")
    await stage.gate("held").pass_through()
    return "held"


@outlive.workflow
async def policed_back_off() -> str:
    return await policed_attempts()


@outlive.step
async def policed_once() -> str:
    """The same, and only a person tries it again."""
    stage.call("attempt")
    if stage.count("attempt") == 1:
        raise ValueError("the bank does not know this order")
    await stage.gate("held").pass_through()
    return "held"


@outlive.workflow
async def policed_retried() -> str:
    return await policed_once()


@pytest.mark.parametrize("workflow", [policed_back_off, policed_retried])
async def test_the_age_of_an_orphan_counts_from_when_a_worker_went_on_with_it(place: Place, workflow: Any) -> None:
    """A back-off of a day, or a day between a retry and a worker for it, is not a time without progress."""
    recovery = Recovery(resume_age_max=3600)
    async with place.engine(recovery=recovery) as first:
        run = await first.start(workflow, id="run-0")
        if workflow is policed_back_off:
            await waits(run)
        else:
            with pytest.raises(outlive.errors.RunFailedError):
                await in_time(run.result())
    if workflow is policed_retried:
        async with place.engine(worker=False) as client:
            await client.retry("run-0")
    place.clock.skip(seconds=DAY)
    second = await place.engine(recovery=recovery).__aenter__()
    await stage.gate("held").reached()
    await crash(second)
    place.clock.skip(seconds=1800)

    third = await place.engine(recovery=recovery).__aenter__()
    await stage.gate("held").reached()
    await crash(third)
    place.clock.skip(seconds=1801)
    async with place.engine(recovery=recovery) as fourth:
        assert "resume_age_max" in await parks(fourth.get("run-0"))


@outlive.workflow
async def unpoliced_turns() -> str:
    await asyncio.sleep(DAY)
    return await hold("held")


async def test_a_run_that_was_let_go_of_is_not_interrupted(place: Place) -> None:
    """A clean stop, or a wait, is nothing that a policy is for."""
    async with place.engine() as first:
        await first.start(unresumable, "held", id="stopped")
        await stage.gate("held").reached()
        await waits(await first.start(unresumable_sleep, id="waiting"))
    stage.gate("held").open()
    place.clock.skip(seconds=DAY)

    async with place.engine(recovery=Recovery(auto_resume=False, resume_age_max=1)) as second:
        assert "held" == await in_time(second.get("stopped").result())
        assert "slept" == await in_time(second.get("waiting").result())


async def test_a_person_who_wants_a_held_back_run_to_end_need_not_resume_it(place: Place) -> None:
    """A cancel that came before anybody took the run over is not kept waiting."""
    await lose_worker(place, unresumable)
    async with place.engine(worker=False) as client:
        await client.cancel("run-0", reason="enough")

    async with place.engine() as second:
        with pytest.raises(outlive.errors.RunCancelledError, match="enough"):
            await in_time(second.get("run-0").result())


async def test_a_parked_orphan_can_be_cancelled(place: Place) -> None:
    """Quarantined or held back: `cancel` ends it at once, and the run tells that its code could undo nothing."""
    await lose_worker(place, unresumable)
    async with place.engine() as second:
        why = await parks(second.get("run-0"))
        await second.cancel("run-0", reason="enough")

        assert await second.get("run-0").status() == "cancelled"
        reason = (await second.get("run-0").info()).reason
        assert reason == f"enough; it was parked, and nothing was undone: {why}"


async def test_a_worker_without_recovery_takes_no_orphans(place: Place) -> None:
    """It does new work, and leaves what others have lost to others."""
    await lose_worker(place)
    stage.gate("held").open()

    async with place.engine(recovery=Recovery(enabled=False)) as second:
        assert "held" == await in_time((await second.start(policed, "held", id="new")).result())
        assert await second.get("run-0").status() == "running"
        assert "is gone" in await second.get("run-0").why()
        async with place.engine() as third:
            assert "held" == await in_time(third.get("run-0").result())
            assert (0, 1) == (second.counters.orphans_claimed, third.counters.orphans_claimed)


async def test_an_orphan_is_left_alone_until_it_is_stale(place: Place) -> None:
    """Its worker may come back until then."""
    first = await place.engine(lease_seconds=60).__aenter__()
    await first.start(policed, "held", id="run-0")
    await stage.gate("held").reached()
    await crash(first)
    stage.gate("held").open()

    async with place.engine(recovery=Recovery(stale_after=100)) as second:
        assert "held" == await in_time((await second.start(policed, "held", id="new")).result())
        assert 0 == second.counters.orphans_claimed
        place.clock.skip(seconds=161)
        assert "held" == await in_time(second.get("run-0").result())


async def test_orphans_leave_room_for_others(place: Place) -> None:
    """While more orphans wait than a worker can hold, new work goes on all the same."""
    await lose_worker(place, runs=30)
    limits, recovery = Limits(runs_active_max=20), Recovery(orphans_at_start_max=10, orphans_per_check_max=10)

    async with place.engine(limits=limits, recovery=recovery) as second:

        async def is_full() -> bool:
            return second.counters.orphans_claimed == 18

        await until(is_full)
        for number in range(5):
            assert "quick" == await in_time((await second.start(quick, id=f"quick-{number}")).result())
        assert 18 == second.counters.orphans_claimed
        stage.gate("held").open()
        for number in range(30):
            assert "held" == await in_time(second.get(f"run-{number}").result())


@outlive.workflow
async def quick() -> str:
    return await note("quick")


async def test_a_worker_that_starts_takes_all_the_runs_of_the_one_before(place: Place) -> None:
    """In one go: nothing is left for later checks."""
    await lose_worker(place, runs=20)
    recovery = Recovery(orphans_per_check_max=1, check_seconds=1_000)

    async with place.engine(limits=Limits(runs_active_max=30), recovery=recovery) as second:
        stage.calls.clear()
        for _ in range(20):
            await stage.gate("held").reached()
        assert 20 == second.counters.orphans_claimed


async def test_resuming_a_quarantined_run_forgives_its_interruptions(place: Place) -> None:
    """It gets as many new chances as it had at first."""
    limits = Limits(attempts_max=1)
    await lose_worker(place)
    second = await place.engine(limits=limits).__aenter__()
    await stage.gate("held").reached()
    await crash(second)
    third = await place.engine(limits=limits).__aenter__()
    assert "quarantined: 2 workers" in await parks(third.get("run-0"))
    assert (1, 0) == (third.counters.runs_quarantined, third.counters.runs_held_back)

    await third.resume("run-0")
    await stage.gate("held").reached()
    await until_resumed(third)
    assert 0 == (await third.get("run-0").info()).attempts
    await crash(third)
    stage.gate("held").open()
    async with place.engine(limits=limits) as fourth:
        assert "held" == await in_time(fourth.get("run-0").result())


async def until_resumed(engine: outlive.Engine) -> None:
    """Return when the journal says that a person let the run go on."""

    async def is_so() -> bool:
        return len(await events_of(engine.get("run-0"), RunResumed)) == 1

    await until(is_so)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"orphans_at_start_max": 0}, r"orphans_at_start_max=0 .*a whole number from 1 on"),
        ({"orphans_per_check_max": 1.5}, r"orphans_per_check_max=1.5 .*a whole number from 1 on"),
        ({"check_seconds": 0}, "give more than 0 seconds"),
        ({"stale_after": -1}, "give 0 or more seconds"),
        ({"stale_after": float("nan")}, "give 0 or more seconds"),
        ({"resume_age_max": 0}, "or None for no limit"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], message: str) -> None:
    """The message names the setting and what it may be."""
    with pytest.raises(ConfigurationError, match=message):
        Recovery(**settings)


@pytest.mark.parametrize("verb", ["resume", "skip_step"])
async def test_a_parked_run_with_a_full_inbox_can_be_let_go_on(place: Place, verb: str) -> None:
    """It takes nothing while it is parked, so there would never be room."""
    await lose_worker(place, unresumable)
    limits = Limits(inbox_messages_max=2)
    async with place.engine(limits=limits) as second:
        run = second.get("run-0")
        await parks(run)
        for number in range(2):
            await run.signal("said", number)
        with pytest.raises(InboxFullError):
            await run.signal("said", 2)
        stage.gate("held").open()

        await (run.resume() if verb == "resume" else run.skip_step(result="held"))

        assert "held" == await in_time(run.result())
        assert [1, 2][verb == "resume"] == stage.count("held")
