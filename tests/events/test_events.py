"""Events: each starts one run of every workflow that has a trigger for it, in one transaction, once for its id."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pydantic
import pytest

import outlive
from outlive._kernel.model.trigger import HOPS_MAX, EventTrigger, TriggerSet
from outlive.errors import ArgumentTypeError, InvalidArgumentError
from outlive.events import StepSucceeded
from outlive.types import Sent
from tests.engine.dying import deaths
from tests.engine.support import Place, events_of, in_time, note, registry_of, stage, until

ROOT = Path(__file__).parents[2]


@dataclass
class Parcel:
    """What an event brings."""

    id: str
    grams: int = 0


@outlive.workflow(name="events.ship", on_event="parcel.packed")
async def ship(parcel: Parcel) -> str:
    """One that an event starts."""
    return await note(f"ship {parcel.id}")


@outlive.workflow(name="events.audit", on_event=["parcel.*", "truck.left"])
async def audit(what: Any = None) -> str:
    """One that every event of a kind starts."""
    return await note(f"audit {outlive.current_run().headers['event']}")


@outlive.workflow(name="events.pack")
async def pack(parcel_id: str) -> Sent:
    """One that sends an event."""
    return await outlive.events.send("parcel.packed", Parcel(parcel_id))


@outlive.workflow(name="events.echo", on_event="echoed")
async def echo(number: int) -> None:
    """One that starts itself for ever, if it can."""
    stage.call(number)
    try:
        await outlive.events.send("echoed", number + 1)
    except InvalidArgumentError as error:
        stage.call(str(error))


def new(sent: Sent) -> list[str]:
    """The workflows that an event has started just now."""
    return sorted(run.workflow for run in sent.runs if run.is_new)


@pytest.mark.every_store
async def test_an_event_starts_one_run_of_each_workflow_that_wants_it(engine: outlive.Engine) -> None:
    """Sent again it starts none: the sender is given the same runs. [FB-R3 FB-S6 FE-T7]"""
    sent = await engine.events.send("parcel.packed", Parcel("p-1"), id="evt-1", source="shop")
    again = await engine.events.send("parcel.packed", Parcel("p-1"), id="evt-1", source="shop")
    assert (["events.audit", "events.ship"], []) == (new(sent), new(again))
    assert [run.run_id for run in sent.runs] == [run.run_id for run in again.runs]
    results = [await in_time(engine.get(run.run_id).result()) for run in sent.runs]
    assert ["audit parcel.packed", "ship p-1"] == sorted(results) == sorted(stage.calls)
    (run,) = [run for run in await engine.list(tags={"event_id": "evt-1"}) if run.workflow == "events.ship"]
    assert {"event": "parcel.packed", "event_id": "evt-1"} == run.tags
    # Another source, or another type, with the same id is another event.
    assert new(await engine.events.send("parcel.packed", {"id": "p-2"}, id="evt-1")) == ["events.audit", "events.ship"]
    assert new(await engine.events.send("truck.left", id="evt-1", source="shop")) == ["events.audit"]


@pytest.mark.every_store
async def test_senders_at_the_same_time_start_one_run(place: Place) -> None:
    """Whichever engine they use. [FB-R4]"""
    async with place.engine(worker=False) as one, place.engine(worker=False) as other:
        sent = await asyncio.gather(
            *(each.events.send("truck.left", id="evt-1") for each in (one, other) for _ in range(5))
        )
        assert 1 == sum(len(new(each)) for each in sent)
        assert 1 == await one.count(workflow="events.audit")


@pytest.mark.any_store
async def test_an_event_whose_run_exists_is_refused_to_a_person_who_wants_a_new_one(engine: outlive.Engine) -> None:
    """The answer says that it was there; and a start with an id of one's own may say `reject`. [FB-R5]"""
    await engine.events.send("truck.left", id="evt-1")
    assert [False] == [run.is_new for run in (await engine.events.send("truck.left", id="evt-1")).runs]
    await engine.start(audit, "by hand", id="evt-1", on_conflict="reject")
    with pytest.raises(outlive.errors.RunExistsError):
        await engine.start(audit, "by hand", id="evt-1", on_conflict="reject")


@pytest.mark.any_store
async def test_a_program_without_the_code_sends_events(place: Place) -> None:
    """A worker has declared the triggers; they stay when it has gone, and newer code takes them away."""
    async with place.engine(worker=False, registry=registry_of()) as client:
        assert [] == (await client.events.send("truck.left", id="early")).runs
        async with place.engine():
            pass
        sent = await client.events.send("truck.left", id="evt-1")
        assert ["events.audit"] == new(sent)
        (info,) = [info for info in await client.events.triggers() if info.workflow == "events.audit"]
        assert (1, ["parcel.*", "truck.left"], []) == (info.version, info.events, info.webhooks)
        async with place.engine() as engine:
            assert "audit truck.left" == await in_time(engine.get(sent.runs[0].run_id).result())
        newer = registry_of(ship, audit)
        newer.add_triggers(ship.spec, TriggerSet(events=(EventTrigger(event="parcel.packed"),)))
        place.clock.skip(seconds=1)
        async with place.engine(registry=newer):
            assert [] == (await client.events.send("truck.left", id="evt-2")).runs
            # Nor by a program that still has the older code.
            async with place.engine(worker=False) as older:
                assert [] == (await older.events.send("truck.left", id="evt-3")).runs
        for _ in range(2):
            await client.events.forget("events.ship")
        assert [] == (await client.events.send("parcel.packed", {"id": "p"}, id="evt-4")).runs


@pytest.mark.any_store
async def test_data_that_a_workflow_does_not_take_starts_the_others(engine: outlive.Engine) -> None:
    """The sender and the log are given the reason; when the data is right the same event starts what is missing."""
    sent = await engine.events.send("parcel.packed", {"id": 7}, id="evt-1")
    assert ["events.audit"] == new(sent)
    ((workflow, reason),) = [(each.workflow, each.reason) for each in sent.refused]
    assert "events.ship" == workflow
    assert "$.parcel.id" in reason
    assert ["events.ship"] == new(await engine.events.send("parcel.packed", {"id": "p-7"}, id="evt-1"))


@pytest.mark.any_store
async def test_an_event_that_no_workflow_wants_is_reported(engine: outlive.Engine) -> None:
    """It is not kept: the sender is given an empty list, and an id to send it again with."""
    sent = await engine.events.send("parcels", {"id": 7})
    assert ([], []) == (sent.runs, sent.refused)
    assert sent.id


class Card(pydantic.BaseModel):
    """A model."""

    day: str


@pytest.mark.any_store
async def test_data_is_plain_json(engine: outlive.Engine) -> None:
    """Models and dataclasses become such; what cannot is refused, and so is a bad type or id."""
    assert (await engine.events.send("truck.left", Card(day="today"))).runs
    for bad in (object(), {"when": object()}, 1j):
        with pytest.raises(ArgumentTypeError, match="plain JSON"):
            await engine.events.send("truck.left", bad)
    wrongs: list[tuple[Any, Any]] = [("", "a"), (7, "a"), ("a", ""), ("a", "\0"), ("truck.*", "a")]
    for event_type, event_id in wrongs:
        with pytest.raises(InvalidArgumentError, match=r"engine\.events\.send"):
            await engine.events.send(event_type, id=event_id)


def test_a_workflow_that_takes_more_than_one_argument_has_no_trigger() -> None:
    """An event gives it one."""
    with pytest.raises(InvalidArgumentError, match="more than one argument"):
        outlive.workflow(name="events.two", on_event="parcel.packed")(_two)
    with pytest.raises(InvalidArgumentError, match="on_event"):
        outlive.workflow(name="events.seven", on_event=7)(_two)  # type: ignore[call-overload]


@pytest.mark.parametrize("types", [[], ["truck.*.left"], "*.left"])
def test_a_trigger_that_no_event_fits_is_refused(types: Any) -> None:
    """It would never start anything."""
    with pytest.raises(InvalidArgumentError, match=r"on_event=.*`\*` stands at the end"):
        outlive.workflow(name="events.never", on_event=types)(_two)


async def _two(one: int, two: int) -> None: ...


@pytest.mark.any_store
async def test_a_workflow_sends_an_event_once(place: Place) -> None:
    """Killed before or after any commit, that of the runs among them: the next worker sends the same event.
    [FB-R16 FB-S6]"""
    count = 0
    async for run_id in deaths(place, pack, "p-1"):
        async with place.engine() as engine:
            run = await engine.start(pack, "p-1", id=run_id)
            sent: Sent = await in_time(run.result())
            for each in sent.runs:
                await in_time(engine.get(each.run_id).result())
            count += 1
            assert 2 == len(sent.runs)
            assert count == await engine.count(workflow="events.ship")
            (succeeded,) = await events_of(run, StepSucceeded)
            assert "outlive.events.send" == succeeded.call


@pytest.mark.any_store
async def test_workflows_that_start_each_other_in_a_circle_come_to_an_end(engine: outlive.Engine) -> None:
    """An event knows how many came before it, each sent by the run that the one before has started."""
    await engine.events.send("echoed", 1)

    async def is_refused() -> bool:
        return len(stage.calls) == HOPS_MAX + 1

    await until(is_refused)
    assert [*range(1, HOPS_MAX + 1)] == stage.calls[:-1]
    assert f"it was started behind {HOPS_MAX} events" in stage.calls[-1]


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_killed_sender_sends_again_and_starts_one_run(tmp_path: Path, moment: str) -> None:
    """Killed with -9 before the transaction is written, nothing is; behind it, everything is. Flowbot, which writes
    that the event was consumed before it creates the run, loses the event here. [FB-R3]"""
    paths = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    command = [sys.executable, "-m", "tests.events.program", str(tmp_path / "events.db"), moment]
    killed = subprocess.run(command, env=os.environ | paths, capture_output=True, text=True, timeout=30)
    assert -signal.SIGKILL == killed.returncode, killed.stderr
    async with Place(tmp_path / "events.db").engine() as engine:
        assert (0 if moment == "before" else 2) == await engine.count(tags={"event_id": "evt-1"})
        sent = await engine.events.send("parcel.packed", Parcel("p-1"), id="evt-1")
        assert ([] if moment == "after" else ["events.audit", "events.ship"]) == new(sent)
        results = [await in_time(engine.get(run.run_id).result()) for run in sent.runs]
        assert ["audit parcel.packed", "ship p-1"] == sorted(results) == sorted(stage.calls)


@pytest.mark.any_store
async def test_an_id_whose_run_was_deleted_is_a_new_event(place: Place) -> None:
    """The run is the only record of the event: keep runs for longer than a sender may send an event again."""
    async with place.engine() as engine:
        sent = await engine.events.send("truck.left", id="evt-1")
        await in_time(engine.get(sent.runs[0].run_id).result())
        place.clock.skip(seconds=timedelta(days=1).total_seconds())
        await engine.purge(workflow="events.audit")
        assert ["events.audit"] == new(await engine.events.send("truck.left", id="evt-1"))
