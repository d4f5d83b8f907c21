"""What starts flows by itself: events with conditions and mappings, and schedules."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import outlive
from outlive import flow
from outlive._features.flows.outside import settings
from outlive._features.schedules.in_code import declared_in
from outlive._kernel.define.registry import REGISTRY
from outlive.flow import FlowError
from outlive.http import Webhooks
from outlive.testing import TestEngine
from outlive.types import Sent

ORDERS = """
name: triggered.orders
input: { order: object, rush: { type: boolean, default: false } }
vars:
  region: { type: string, env: TRIGGERED_REGION, default: north }
triggers:
  - event: triggered.order.created
    if: event.data.cents > 10
    input: { order: "${{ event.data }}", rush: "${{ event.source == 'web' }}" }
  - event: triggered.order.bare
steps:
  look: { use: noop }
output: { id: "${{ input.order.id }}", rush: "${{ input.rush }}", region: "${{ vars.region }}" }
"""


async def results(engine: outlive.Engine, sent: Sent) -> list[Any]:
    """What the runs of an event return."""
    return [await engine.get(run.run_id).result() for run in sent.runs]


async def test_an_event_starts_a_flow_with_what_its_trigger_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first trigger whose condition is true; its input is mapped, else it is the data without what the flow does
    not know; variables come from the settings and the environment of the sender. [FB-R3]"""
    monkeypatch.setenv("TRIGGERED_REGION", "south")
    flow.parse(ORDERS)
    async with TestEngine() as engine:
        send = engine.events.send
        sent = await send("triggered.order.created", {"id": 7, "cents": 50}, id="e1", source="web")
        assert [{"id": 7, "rush": True, "region": "south"}] == await results(engine, sent)
        again = await send("triggered.order.created", {"id": 7, "cents": 50}, id="e1", source="web")
        assert [run.is_new for run in again.runs] == [False]
        assert [] == (await send("triggered.order.created", {"id": 7, "cents": 5}, id="e2")).runs
        bare = await send("triggered.order.bare", {"order": {"id": 8}, "more": 1}, id="e3")
        assert [{"id": 8, "rush": False, "region": "south"}] == await results(engine, bare)
        with settings.using(settings.read({"vars": {"region": "west"}})):
            third = await send("triggered.order.bare", {"order": {"id": 9}}, id="e4")
        assert [{"id": 9, "rush": False, "region": "west"}] == await results(engine, third)


async def test_an_event_that_a_flow_cannot_read_says_why() -> None:
    """A field that the condition needs, or an input of another type; no run is created."""
    flow.parse(ORDERS)
    async with TestEngine() as engine:
        (refused,) = (await engine.events.send("triggered.order.created", {"id": 7})).refused
        assert "cents" in refused.reason
        (refused,) = (await engine.events.send("triggered.order.bare", {"order": 7})).refused
        assert "expected object" in refused.reason
        assert [] == await engine.list(workflow="triggered.orders")


NIGHTLY = """
name: triggered.nightly
input: { day: string, kind: { type: string, default: full } }
triggers:
  - schedule: "0 6 * * *"
    timezone: Europe/Stockholm
    input: { day: "${{ event.time }}" }
  - schedule: "0 */12 * * *"
    overlap: allow
    input: { day: now, kind: quick }
steps:
  look: { use: noop }
output: "${{ input }}"
"""


async def test_a_schedule_of_a_document_fires_and_keeps_its_state_when_the_document_changes(tmp_path: Path) -> None:
    """The ticks go on, and a pause stays; a trigger that was removed is gone. [FB-R7 FB-R8]"""
    url = f"sqlite:{tmp_path / 'flows.db'}"
    flow.parse(NIGHTLY)
    async with TestEngine(url, schedules=True) as engine:
        await engine.skip(days=1)
        first = await engine.list(tags={"schedule": "triggered.nightly"})
        assert [1, 2] == [len(first), len(await engine.list(tags={"schedule": "triggered.nightly.2"}))]
        assert (await engine.get(first[0].id).result())["day"].endswith(":00:00Z")
        await engine.schedules.pause("triggered.nightly", by="ann")
    changed = flow.parse(NIGHTLY.replace("look:", "look_again:"))
    async with TestEngine(url, schedules=True, clock=engine.clock) as engine:
        info = await engine.schedules.get("triggered.nightly")
        assert (changed.version, True) == (info.version, info.is_paused)
        assert changed.version == (await engine.schedules.get("triggered.nightly.2")).version
    flow.parse(NIGHTLY.replace('  - schedule: "0 */12 * * *"\n    overlap: allow', "  - event: triggered.never"))
    async with TestEngine(url, schedules=True, clock=engine.clock) as engine:
        assert ["triggered.nightly"] == [info.name for info in await engine.schedules.list()]
    by_event = re.sub("  - schedule: .*", "  - event: triggered.never", NIGHTLY).replace("    overlap: allow\n", "")
    flow.parse(by_event.replace("    timezone: Europe/Stockholm\n", ""))
    async with TestEngine(url, schedules=True, clock=engine.clock) as engine:
        assert [] == await engine.schedules.list()


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('"0 6 * * *"', '"0 6 * *"', "triggers[0].schedule"),
        ("Europe/Stockholm", "Europe/Nowhere", "Europe/Nowhere"),
        ("{ day: now, kind: quick }", "{ kind: quick }", "day"),
        ('"${{ event.time }}"', '"${{ event.data.day }}"', "event"),
        ('"${{ event.time }}"', '"at ${{ event.time }}"', "the time of the tick"),
        ('"${{ event.time }}"', "\"${{ event.time + 'x' }}\"", "the time of the tick"),
    ],
)
def test_a_schedule_that_cannot_work_is_refused_when_the_document_is_loaded(before: str, after: str, said: str) -> None:
    """With what is wrong; nothing is registered."""
    with pytest.raises(FlowError, match=re.escape(said)):
        flow.parse(NIGHTLY.replace("triggered.nightly", "triggered.wrong").replace(before, after))
    assert REGISTRY.find_workflow("triggered.wrong") is None


STORED = """
name: triggered.stored
input: { order: any }
triggers:
  - event: triggered.stored.created
  - schedule: "0 * * * *"
    input: { order: hourly }
  - webhook: /hooks/stored
steps:
  say: { use: noop, with: { text: "ONE ${{ input.order }}" } }
output: "${{ steps.say.text }}"
"""


async def test_a_published_flow_is_triggered_by_the_next_event() -> None:
    """An event starts the revision of a flow that is published, without a worker that has loaded it, and none while the
    flow is disabled. [FB-R3]"""
    async with TestEngine() as engine:
        await engine.flows.apply(STORED)
        first = await engine.events.send("triggered.stored.created", {"order": 1}, id="e1")
        await engine.flows.apply(STORED.replace("ONE", "TWO"))
        again = await engine.events.send("triggered.stored.created", {"order": 1}, id="e1")
        second = await engine.events.send("triggered.stored.created", {"order": 2}, id="e2")
        assert ["ONE 1"] == await results(engine, first) == await results(engine, again)
        assert ["TWO 2"] == await results(engine, second)
        assert ["/hooks/stored"] in [it.webhooks for it in await engine.events.triggers()]
        await engine.flows.disable("triggered.stored", reason="too many")
        assert [] == (await engine.events.send("triggered.stored.created", {"order": 3}, id="e3")).runs
        assert ["/hooks/stored"] not in [it.webhooks for it in await engine.events.triggers()]
        await engine.flows.enable("triggered.stored")
        assert ["TWO 3"] == await results(
            engine, await engine.events.send("triggered.stored.created", {"order": 3}, id="e3")
        )


async def test_the_schedules_of_a_stored_flow_follow_the_library() -> None:
    """A new revision keeps their state; a disabled flow rests, what passed meanwhile is not caught up; a trigger that
    was removed, and a flow that was deleted, fire no more. [FB-R7 FB-R18]"""
    async with TestEngine(schedules=True) as engine:

        async def count() -> int:
            return len(await engine.list(tags={"schedule": "triggered.stored"}))

        async def follow(change: Any) -> None:
            """Change the library, and let the worker see it."""
            await change
            await engine.skip(seconds=6)

        await follow(engine.flows.apply(STORED))
        await engine.skip(hours=2)
        assert 2 == await count()
        await follow(engine.flows.apply(STORED.replace("ONE", "TWO")))
        await engine.skip(hours=1)
        (newest, *_) = await engine.list(tags={"schedule": "triggered.stored"})
        assert (3, "TWO hourly") == (await count(), await engine.get(newest.id).result())
        await follow(engine.flows.disable("triggered.stored"))
        assert "its flow is disabled" in (await engine.schedules.get("triggered.stored")).why
        await engine.skip(hours=5)
        await follow(engine.flows.enable("triggered.stored"))
        await engine.skip(hours=1)
        assert 4 == await count()
        await engine.schedules.pause("triggered.stored", by="ann")
        await follow(engine.flows.disable("triggered.stored"))
        await follow(engine.flows.enable("triggered.stored"))
        assert (await engine.schedules.get("triggered.stored")).is_paused
        await follow(engine.flows.delete("triggered.stored"))
        assert [] == await engine.schedules.list()


async def test_a_schedule_that_gives_a_needy_flow_nothing_does_not_fire_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The document can run all the same: it has other triggers, and people start it."""
    made = flow.parse(
        "name: triggered.idle\ninput: { n: integer }\ntriggers: [{ schedule: 0 6 * * * }]\nsteps: { a: { use: noop } }"
    )
    async with TestEngine(schedules=True) as engine:
        await engine.skip(days=2)
        assert 0 == await engine.count(workflow="triggered.idle")
        await (await engine.start(made, {"n": 1})).result()
    assert "the schedule 0 6 * * * of flow triggered.idle never fires: it gives the flow no n" in caplog.text


async def test_a_stored_flow_whose_schedule_cannot_work_is_not_published(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that only the workers have is not a reason: the process that loads it goes on without schedules."""
    needy = STORED.replace("input:", "vars: { region: { type: string, env: TRIGGERED_NEEDED } }\ninput:", 1)
    needy = needy.replace("triggered.stored", "triggered.needy")
    async with TestEngine() as engine:
        with pytest.raises(FlowError, match="gives the flow no order"):
            await engine.flows.apply(STORED.replace("    input: { order: hourly }\n", "    input: {}\n"))
        await engine.flows.apply(needy)
    assert [] == [each.name for _, each in declared_in(REGISTRY) if each.name == flow.parse(needy).name]
    monkeypatch.setenv("TRIGGERED_NEEDED", "north")
    name = flow.parse(needy).name
    assert [name] == [each.name for _, each in declared_in(REGISTRY) if each.name == name]


WAITS = """
name: triggered.waits
triggers:
  - schedule: "0 * * * *"
  - event: triggered.waits.now
  - webhook: /hooks/waits
steps:
  ready: { use: wait_for_signal, with: { name: go } }
"""


async def test_an_event_does_not_wait_for_the_run_of_a_schedule() -> None:
    """A tick is skipped while the run before it is open; runs of events and webhooks begin beside it. [FB-R7 FB-R8]"""
    flow.parse(WAITS)
    async with TestEngine(schedules=True) as engine:
        await engine.skip(hours=3)
        (open_,) = await engine.list(workflow="triggered.waits")
        sent = await engine.events.send("triggered.waits.now")
        scope = {"type": "http", "method": "POST", "path": "/hooks/waits", "headers": []}
        said: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": b""}

        async def send(message: Any) -> None:
            said.append(message)

        await Webhooks(engine)(scope, receive, send)
        assert 202 == said[0]["status"]
        runs = await engine.list(workflow="triggered.waits")
        assert (3, 1) == (len(runs), len([run for run in runs if "schedule" in run.tags]))
        for run in runs:
            await engine.signal(run.id, "go")
            await engine.get(run.id).result()
        assert {open_.id, sent.runs[0].run_id} <= {run.id for run in runs}
