"""A run that newer code has moved past a mark: older code lets go of it, says so, and leaves it to newer workers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import outlive
from outlive._kernel.define.registry import Registry
from outlive._kernel.journal.arguments import Signature
from outlive._kernel.replay.command import WorkflowSpec
from outlive.events import RunClaimed, RunReleased
from tests.engine.faults import FaultyStore, faulty
from tests.engine.inside import crash, row_of
from tests.engine.support import Place, events_of, hold, in_time, note, reaches, stage, until, waits

pytestmark = pytest.mark.any_store


async def old_ship(order: str) -> list[str]:
    """As it was."""
    return [await note("pack"), await note("send"), await outlive.wait_for_signal("sent", str)]


async def new_ship(order: str) -> list[str]:
    """As it became: it prints a label, behind a mark."""
    done = [await note("pack")]
    if outlive.patched("label"):
        done.append(await hold("label"))
    return [*done, await note("send"), await outlive.wait_for_signal("sent", str)]


async def newest_ship(order: str) -> list[str]:
    """The mark and the old way are gone."""
    done = [await note("pack"), await hold("label")]
    return [*done, await note("send"), await outlive.wait_for_signal("sent", str)]


async def call_ship(order: str) -> Any:
    """A parent; what changes is its child."""
    return await SHIP[order](order)


SHIP: dict[str, Any] = {}
"""The child that this process has, by order."""
ENDED = ["pack", "label", "send", "yes"]


def deployed(fn: Any) -> Registry:
    """A process in which `ship` has this code."""
    registry = Registry()
    registry.add_workflow(WorkflowSpec(name="ship", version=1, fn=fn, signature=Signature(fn, "ship")))
    registry.add_workflow(WorkflowSpec(name="calls", version=1, fn=call_ship, signature=Signature(call_ship, "calls")))
    return registry


def workflow_of(registry: Registry, name: str = "ship") -> Any:
    """What a client of that process starts."""
    return outlive.types.Workflow(registry.workflow(name, 1), {})


OLD, NEW, NEWEST = deployed(old_ship), deployed(new_ship), deployed(newest_ship)


async def begin_with_new_code(place: Place, *, at_label: bool = False, workflow: str = "ship") -> None:
    """A run that new code has moved past the mark: in its first step there, or waiting further down."""
    SHIP["o-1"] = workflow_of(NEW)
    engine = await place.engine(registry=NEW).__aenter__()
    run = await engine.start(workflow_of(NEW, workflow), "o-1", id="r")
    await stage.gate("label").reached()
    if at_label:
        await crash(engine)
        return
    stage.gate("label").open()
    await waits(run)
    await engine.__aexit__(None, None, None)


async def is_declined_by(engine: outlive.Engine) -> None:
    """Return when an engine has let go of the run."""

    async def has_let_go() -> bool:
        return engine.counters.runs_declined > 0 and await engine.get("r").status() == "pending"

    await until(has_let_go)


@pytest.mark.parametrize("at_label", [False, True], ids=["waiting", "in a step"])
async def test_old_code_lets_go_of_a_run_that_newer_code_has_moved(
    place: Place, caplog: pytest.LogCaptureFixture, *, at_label: bool
) -> None:
    """It is not parked and no attempt is counted; it says what is missing, and goes on when that is there. What the old
    code would do in place of the new step is not done."""
    await begin_with_new_code(place, at_label=at_label)
    async with place.engine(registry=OLD, name="old-worker") as old:
        run = old.get("r")
        if not at_label:
            await run.signal("sent", "yes")
        await is_declined_by(old)

        assert await run.why() == (
            "run r was moved on by code that has the change 'label'; worker old-worker does not know it; "
            "start a worker with that code"
        )
        assert (await run.info()).attempts == int(at_label)  # One was lost when its worker crashed, and no other.
        (released,) = [event for event in await events_of(run, RunReleased) if event.reason]
        (record,) = [record for record in caplog.records if "was moved on by code" in record.message]
        assert (record.levelname, record.run_id, record.workflow) == ("WARNING", "r", "ship")  # type: ignore[attr-defined]
        assert record.message.startswith(released.reason)

        stage.gate("label").open()
        async with place.engine(registry=NEW) as new:
            await new.signal("r", "sent", "yes", key="once")
            assert await in_time(new.get("r").result()) == ENDED
    assert stage.count("send") == 1
    assert "it is parked" not in caplog.text


@pytest.mark.every_store
async def test_a_run_that_no_worker_can_move_is_left_alone_until_one_can(place: Place) -> None:
    """Two old workers let go of it once each and not again, however often they look; their other runs go on."""
    await begin_with_new_code(place)
    async with place.engine(registry=OLD) as first, place.engine(registry=OLD) as second:
        run = first.get("r")
        await run.signal("sent", "yes")

        async def have_let_go() -> bool:
            return first.counters.runs_declined + second.counters.runs_declined == 2

        await until(have_let_go)
        epoch = (await row_of(run)).epoch
        for number in range(3):
            other = await first.start(workflow_of(OLD), "o-2", id=f"other-{number}")
            await other.signal("sent", "too")
            assert await in_time(other.result()) == ["pack", "send", "too"]
            await first.signal("r", "unread", "no code waits for this")

        assert (await row_of(run)).epoch == epoch
        assert first.counters.runs_declined == second.counters.runs_declined == 1


async def test_old_code_looks_again_when_the_run_has_moved(place: Place) -> None:
    """After newer code has moved it once more and is gone again, the run says so again."""
    await begin_with_new_code(place)
    async with place.engine(registry=OLD) as old:
        await old.signal("r", "other", "wakes it")
        await is_declined_by(old)
        async with place.engine(registry=NEW) as new:
            await waits(new.get("r"))
        assert (await old.get("r").why()).startswith("it waits for")
        await old.signal("r", "other", "wakes it again")
        await reaches(old.get("r"), "pending")

        assert "has the change 'label'" in await old.get("r").why()
        assert old.counters.runs_declined == 2


async def test_a_run_in_the_memory_of_an_old_worker_is_let_go_of_too(place: Place) -> None:
    """It began there, newer code took the mark meanwhile, and what is in memory is not used."""

    async def before(order: str) -> list[str]:
        return [await outlive.wait_for_signal("go", str), *await old_ship(order)]

    async def after(order: str) -> list[str]:
        return [await outlive.wait_for_signal("go", str), *await new_ship(order)]

    old_code, new_code = deployed(before), deployed(after)
    stores: list[FaultyStore] = []
    async with place.engine(registry=old_code, wrap=faulty(stores)) as old:
        run = await old.start(workflow_of(old_code), "o-1", id="r")
        await waits(run)
        stores[0].gates["claim_runs"] = may_claim = asyncio.Event()
        await in_time(stores[0].waiting["claim_runs"].wait())
        async with place.engine(registry=new_code) as new:
            await new.signal("r", "go", "on")
            await stage.gate("label").reached()
            stage.gate("label").open()
            await waits(new.get("r"))
        may_claim.set()
        await run.signal("sent", "yes")
        await is_declined_by(old)
    async with place.engine(registry=new_code) as new:
        assert await in_time(new.get("r").result()) == ["on", *ENDED]


async def test_a_child_that_newer_code_has_moved_is_left_to_newer_code(place: Place) -> None:
    """The tree is let go of as a whole."""
    await begin_with_new_code(place, workflow="calls")
    SHIP["o-1"] = workflow_of(OLD)
    async with place.engine(registry=OLD) as old:
        await old.signal("r~1", "sent", "yes")
        await is_declined_by(old)
    SHIP["o-1"] = workflow_of(NEW)
    async with place.engine(registry=NEW) as new:
        assert await in_time(new.get("r").result()) == ENDED


@pytest.mark.parametrize("at_label", [False, True], ids=["waiting", "in a step"])
async def test_code_that_has_only_the_new_way_left_goes_on(place: Place, *, at_label: bool) -> None:
    """It does not ask for the mark, and waits for the same things behind it."""
    await begin_with_new_code(place, at_label=at_label)
    stage.gate("label").open()
    async with place.engine(registry=NEWEST) as newest:
        await newest.signal("r", "sent", "yes")

        assert await in_time(newest.get("r").result()) == ENDED
        assert newest.counters.runs_declined == 0


async def test_a_signal_and_a_resume_reach_the_newer_worker(place: Place) -> None:
    """A signal and a resume reach the newer worker, even if an old worker takes the run first and declines it."""
    await begin_with_new_code(place)

    async def misfit(order: str) -> list[str]:
        return [await note("pack"), *([await note("other")] if outlive.patched("label") else [])]

    async with place.engine(registry=deployed(misfit)) as wrong:
        await wrong.signal("r", "sent", "yes")
        await reaches(wrong.get("r"), "parked")
    async with place.engine(registry=OLD) as old:
        await old.resume("r")
        await is_declined_by(old)
    async with place.engine(registry=NEW) as new:
        assert await in_time(new.get("r").result()) == ENDED
        claims = await events_of(new.get("r"), RunClaimed)
        assert not any(claim.interrupted for claim in claims)
