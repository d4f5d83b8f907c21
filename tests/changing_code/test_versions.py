"""Several versions of one workflow at once, and marks of changes within one version."""

from __future__ import annotations

from typing import Any

import pytest

import outlive
from outlive._kernel.define.registry import Registry
from outlive._kernel.journal.arguments import Signature
from outlive._kernel.replay.command import WorkflowSpec
from outlive.errors import ResultTimeoutError
from outlive.errors.program import DuplicateDefinitionError
from outlive.errors.run import SignalTypeError
from outlive.events import PatchTaken, RunCreated
from tests.engine.inside import crash
from tests.engine.support import Place, events_of, hold, in_time, note, registry_of, stage, until, waits

pytestmark = pytest.mark.any_store


@outlive.workflow(name="pay_back", signals={"go": str})
async def pay_back(order: str) -> str:
    return f"1 {order} {await outlive.wait_for_signal('go', str)}"


@outlive.workflow(name="pay_back", version=2, signals={"go": int})
async def pay_back_2(order: str, reason: str = "none") -> str:
    return f"2 {order} {reason} {await outlive.wait_for_signal('go', int)}"


@outlive.workflow(name="pay_back", version=10)
async def pay_back_10() -> str:
    return "10"


@outlive.workflow
async def calls_version_1() -> str:
    return await pay_back("child")


@outlive.workflow
async def starts_version_2() -> str:
    child = await outlive.start(pay_back_2, "detached", detached=True, id="other")
    return await child.result()


async def test_each_run_is_of_the_version_that_was_named(engine: outlive.Engine) -> None:
    """Two versions live side by side; the reference says which one, not the newest number."""
    first = await engine.start(pay_back, "a")
    second = await engine.start(pay_back_2.bind("b", reason="late"))
    third = await engine.start(pay_back_10)
    await first.signal("go", "now")
    await second.signal("go", 7)

    assert await in_time(first.result()) == "1 a now"
    assert await in_time(second.result()) == "2 b late 7"
    assert await in_time(third.result()) == "10"
    assert [(await run.info()).version for run in (first, second, third)] == [1, 2, 10]


async def test_a_run_keeps_its_version_across_a_crash(place: Place) -> None:
    """A newer version that is deployed meanwhile does not touch it. [TS-R5 FE-P13]"""
    doomed = await place.engine(registry=registry_of(pay_back)).__aenter__()
    run = await doomed.start(pay_back, "a", id="r")
    await waits(run)
    await crash(doomed)

    async with place.engine(registry=registry_of(pay_back, pay_back_2, pay_back_10)) as engine:
        await engine.signal("r", "go", "later")
        assert await in_time(engine.get("r").result()) == "1 a later"


async def test_the_same_id_again_is_the_same_run_whatever_version_is_asked_for(engine: outlive.Engine) -> None:
    """A retried start after a deploy finds what the first one began."""
    run = await engine.start(pay_back, "a", id="r")
    again = await engine.start(pay_back_2, "a", id="r")
    await again.signal("go", "now")

    assert await in_time(again.result()) == "1 a now"
    assert len(await events_of(run, RunCreated)) == 1


async def test_a_worker_claims_only_the_versions_that_it_has(place: Place) -> None:
    """The others wait for a worker that has theirs, and say so. [TS-R4]"""
    async with place.engine(worker=False) as client:
        old = await client.start(pay_back, "a", id="old")
        new = await client.start(pay_back_10, id="new")

        async with place.engine(registry=registry_of(pay_back_10)):
            assert await in_time(new.result()) == "10"
            assert await old.status() == "pending"
            assert await old.why() == "no live worker has pay_back@1; start one that defines it"

        async with place.engine(registry=registry_of(pay_back)):
            await waits(old)
            await old.signal("go", "now")
            assert await in_time(old.result()) == "1 a now"


async def test_a_result_that_waits_for_a_missing_version_says_so(place: Place) -> None:
    """A caller that waits in vain learns what is missing."""
    async with place.engine(registry=registry_of(pay_back_10)) as engine:
        run = await engine.start(pay_back_2, "b")

        with pytest.raises(ResultTimeoutError, match="no live worker has pay_back@2"):
            await run.result(timeout=0.01)
        await run.cancel()


async def test_a_suspended_run_whose_version_is_gone_says_so_when_it_is_due(place: Place) -> None:
    """Its signal is kept until a worker can take it."""
    async with place.engine() as engine:
        run = await engine.start(pay_back_2, "b", id="r")
        await waits(run)
    async with place.engine(registry=registry_of(pay_back, pay_back_10)) as engine:
        run = engine.get("r")
        await engine.signal("r", "go", 3)
        assert await run.why() == "no live worker has pay_back@2; start one that defines it"
    async with place.engine(registry=registry_of(pay_back_2)) as engine:
        assert await in_time(engine.get("r").result()) == "2 b none 3"


async def test_a_signal_with_start_begins_that_very_version(engine: outlive.Engine) -> None:
    """A signal with `start` begins the given version, and its value is checked against the signal types of that
    version."""
    await engine.signal("one", "go", "now", start=(pay_back, "a"))
    await engine.signal("two", "go", 2, start=(pay_back_2, "b"))

    assert await in_time(engine.get("one").result()) == "1 a now"
    assert await in_time(engine.get("two").result()) == "2 b none 2"
    with pytest.raises(SignalTypeError):
        await engine.signal("three", "go", "not a number", start=(pay_back_2, "c"))


async def test_children_and_detached_runs_have_the_version_that_was_named(engine: outlive.Engine) -> None:
    """A child and a detached run have the version that their starter names, even though later versions exist."""
    parent = await engine.start(calls_version_1, id="parent")
    starter = await engine.start(starts_version_2)
    await waits(parent)
    await waits(starter)
    await engine.signal("parent~1", "go", "now")
    await engine.signal("other", "go", 5)

    assert await in_time(parent.result()) == "1 child now"
    assert await in_time(starter.result()) == "2 detached none 5"


def test_one_version_is_one_function() -> None:
    """Two functions cannot both be version 2."""
    with pytest.raises(DuplicateDefinitionError, match="pay_back"):
        outlive.workflow(name="pay_back", version=2)(another_pay_back)


async def another_pay_back() -> None:
    """Wants a name and version that are taken."""


# -- Marks of changes ----------------------------------------------------------------------------------------------


async def ship(order: str) -> list[str]:
    """As it was."""
    packed = await note("pack")
    held = await hold("held")
    return [packed, held, await outlive.wait_for_signal("go", str)]


async def ship_with_label(order: str) -> list[str]:
    """As it became."""
    packed = await note("pack")
    labels = [await note("label")] if outlive.patched("label") else []
    held = await hold("held")
    return [packed, *labels, held, await outlive.wait_for_signal("go", str)]


def deployed(fn: Any) -> Registry:
    """A process in which `ship` has this code."""
    registry = Registry()
    registry.add_workflow(WorkflowSpec(name="ship", version=1, fn=fn, signature=Signature(fn, "ship")))
    return registry


def workflow_of(registry: Registry) -> Any:
    """What a client of that process starts."""
    return outlive.types.Workflow(registry.workflow("ship", 1), {})


async def test_a_run_past_the_mark_goes_on_in_the_old_way(place: Place) -> None:
    """The step after the mark had ended when the new code came."""
    old = deployed(ship)
    async with place.engine(registry=old) as engine:
        run = await engine.start(workflow_of(old), "o-1", id="r")
        await stage.gate("held").reached()
        stage.gate("held").open()
        await waits(run)
    async with place.engine(registry=deployed(ship_with_label)) as engine:
        await engine.signal("r", "go", "sent")

        assert await in_time(engine.get("r").result()) == ["pack", "held", "sent"]
        assert stage.count("label") == 0


async def test_a_run_before_the_mark_takes_the_new_way_and_keeps_it(place: Place) -> None:
    """A crash at the mark and a crash behind it change nothing."""
    old, new = deployed(ship), deployed(ship_with_label)
    doomed = await place.engine(registry=old).__aenter__()
    await doomed.start(workflow_of(old), "o-1", id="r")
    await stage.gate("held").reached()
    await crash(doomed)
    for _ in range(2):
        doomed = await place.engine(registry=new).__aenter__()
        await stage.gate("held").reached()
        await crash(doomed)
    stage.gate("held").open()
    async with place.engine(registry=new) as engine:
        run = engine.get("r")
        await run.signal("go", "sent")

        assert await in_time(run.result()) == ["pack", "label", "held", "sent"]
        assert stage.count("label") == 1
        assert len(await events_of(run, PatchTaken)) == 1


async def test_a_run_that_a_client_created_takes_the_new_way(place: Place) -> None:
    """It is first fed after a claim, and no worker had it before."""
    new = deployed(ship_with_label)
    async with place.engine(worker=False, registry=new) as client:
        run = await client.start(workflow_of(new), "o-1")
    async with place.engine(registry=new) as engine:
        await until(lambda: _has_called("held"))
        stage.gate("held").open()
        await engine.signal(run.id, "go", "sent")

        assert await in_time(engine.get(run.id).result()) == ["pack", "label", "held", "sent"]


async def _has_called(what: str) -> bool:
    return stage.count(what) > 0
