"""Detached runs: trees of their own that outlive the run that started them."""

from __future__ import annotations

import asyncio

import pytest

import outlive
from tests.engine.inside import crash
from tests.engine.support import Place, hold, in_time, note, parks, reaches, registry_of, stage, waits

pytestmark = pytest.mark.any_store


@outlive.workflow
async def audit(name: str) -> str:
    await hold(name)
    return f"{name} audited"


@outlive.workflow
async def audit_failing() -> None:
    raise ValueError("books are wrong")


@outlive.workflow
async def audit_stuck() -> None:
    await asyncio.Event().wait()


@outlive.workflow
async def audit_waiting() -> str:
    return await outlive.wait_for_signal("go", str)


@outlive.workflow
async def starts_and_ends(name: str) -> str:
    child = await outlive.start(audit, name, detached=True)
    return child.id


@outlive.workflow
async def starts_and_awaits(name: str, child_id: str) -> list[str]:
    child = await outlive.start(audit, name, detached=True, id=child_id, tags={"by": "parent"})
    await note("started")
    return [child.id, await child.result()]


@outlive.workflow
async def starts_and_hears(kind: str) -> str:
    child = await outlive.start(audit_failing if kind == "fails" else audit_stuck, detached=True, id=f"{kind}-child")
    try:
        await child.result()
    except (ValueError, outlive.errors.RunFailedError) as error:
        return f"{type(error).__name__}: {error}"
    return "went on"


@outlive.workflow
async def starts_with_patience() -> str:
    child = await outlive.start(audit_waiting, detached=True, id="patient", timeout=3600)
    try:
        return await child.result()
    except outlive.errors.RunTimedOutError as error:
        return str(error)


@outlive.workflow
async def starts_many(count: int) -> list[str]:
    children = [await outlive.start(audit, f"a{number}", detached=True) for number in range(count)]
    return list(await asyncio.gather(*[child.result() for child in children]))


async def test_a_detached_run_outlives_the_run_that_started_it(engine: outlive.Engine) -> None:
    """It is a root of its own, with an id of its own, and does not end with its parent."""
    run = await engine.start(starts_and_ends, "a", id="run-1")
    child = engine.get(await in_time(run.result()))
    await stage.gate("a").reached()
    stage.gate("a").open()

    assert "a audited" == await in_time(child.result())
    assert child.id == (await child.info()).root_id


async def test_the_result_of_a_detached_run_is_awaited_durably(place: Place) -> None:
    """Its starter may be suspended and restarted meanwhile; it is started once and heard once."""
    first = await place.engine(grace_seconds=0).__aenter__()
    run = await first.start(starts_and_awaits, "a", "audit-1", id="run-1")
    await stage.gate("a").reached()
    await waits(run)
    assert "it waits for run audit-1" == await run.why()
    await crash(first)

    async with place.engine() as second:
        await stage.gate("a").reached()
        stage.gate("a").open()
        assert ["audit-1", "a audited"] == await in_time(second.get("run-1").result())
        assert ["audit-1"] == [found.id for found in await second.list(tags={"by": "parent"})]
    assert 1 == stage.count("started")


async def test_a_detached_run_may_end_while_its_starter_is_not_running(place: Place) -> None:
    """Its end is a message, and messages wait. [FB-R16 SF-X12]"""
    async with place.engine() as first:
        await waits(await first.start(starts_and_awaits, "a", "audit-1", id="run-1"))
        await stage.gate("a").reached()
    stage.gate("a").open()
    async with place.engine(registry=registry_of(audit)) as second:
        assert "a audited" == await in_time(second.get("audit-1").result())
        assert await second.get("run-1").status() == "waiting"

    async with place.engine() as third:
        assert ["audit-1", "a audited"] == await in_time(third.get("run-1").result())


async def test_a_detached_run_that_fails_raises_in_its_starter(engine: outlive.Engine) -> None:
    """The failure of a detached run reaches its starter with its own class if that is a builtin or registered."""
    run = await engine.start(starts_and_hears, "fails")

    assert "ValueError: books are wrong" == await in_time(run.result())


async def test_cancelling_a_detached_run_is_heard_by_its_starter(engine: outlive.Engine) -> None:
    """Cancelling the starter, on the other hand, leaves the detached run alone."""
    run = await engine.start(starts_and_awaits, "a", "audit-1", id="run-1")
    await stage.gate("a").reached()
    await engine.cancel("audit-1", reason="no time")
    with pytest.raises(outlive.errors.RunFailedError, match="audit-1 was cancelled"):
        await in_time(run.result())

    run = await engine.start(starts_and_awaits, "b", "audit-2", id="run-2")
    await stage.gate("b").reached()
    await waits(run)
    await run.cancel()
    with pytest.raises(outlive.errors.RunCancelledError):
        await in_time(run.result())
    stage.gate("b").open()
    assert "b audited" == await in_time(engine.get("audit-2").result())


async def test_cancelling_a_parked_detached_run_is_heard_by_its_starter(engine: outlive.Engine) -> None:
    """No worker owns a parked run, so the client that cancels it sends the end to the run that waits for it."""
    run = await engine.start(starts_and_hears, "stuck")
    await parks(engine.get("stuck-child"))
    await engine.cancel("stuck-child", reason="hopeless")

    assert (await in_time(run.result())).startswith("RunCancelledError: run stuck-child was cancelled")


async def test_replacing_a_detached_run_is_heard_by_its_starter(engine: outlive.Engine) -> None:
    """The run that it started has ended, whichever run has its id now."""
    run = await engine.start(starts_and_awaits, "a", "audit-1", id="run-1")
    await stage.gate("a").reached()
    await waits(run)
    await engine.start(audit, "b", id="audit-1", on_conflict="replace")

    with pytest.raises(outlive.errors.RunFailedError, match="audit-1 was cancelled"):
        await in_time(run.result())
    stage.gate("b").open()
    assert "b audited" == await in_time(engine.get("audit-1").result())


async def test_an_id_that_is_taken_is_not_started_again(engine: outlive.Engine) -> None:
    """Starting detached under the id of another run attaches to it, also when that one has ended."""
    stage.gate("a").open()
    await in_time((await engine.start(audit, "a", id="audit-1")).result())
    run = await engine.start(starts_and_awaits, "b", "audit-1", id="run-1")

    assert ["audit-1", "a audited"] == await in_time(run.result())
    assert 0 == stage.count("b")


async def test_a_detached_run_may_have_a_timeout(place: Place) -> None:
    """Its starter hears of it as `RunTimedOutError`."""
    async with place.engine() as engine:
        run = await engine.start(starts_with_patience)
        await waits(run)
        await waits(engine.get("patient"))
        place.clock.skip(seconds=3600)

        assert "run patient did not end within its timeout" == await in_time(run.result())


async def test_many_detached_runs_have_ids_of_their_own(engine: outlive.Engine) -> None:
    """Ids that the workflow does not give are made up, the same in every replay and different for every call."""
    run = await engine.start(starts_many, 5)
    for number in range(5):
        stage.gate(f"a{number}").open()

    assert [f"a{number} audited" for number in range(5)] == await in_time(run.result())
    assert 5 == len({found.id for found in await engine.list(workflow="audit")})
    await reaches(run, "succeeded")
