"""What starts flows by itself: events with conditions and mappings, and schedules."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import outlive
from outlive import flow
from outlive._define.registry import REGISTRY
from outlive._model.trigger import Sent
from outlive.flow import FlowError
from outlive.testing import TestEngine

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
    not know; variables come from the environment of the sender. [FB-R3]"""
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
    by_event = NIGHTLY.replace("  - schedule:", "  - event:").replace("    overlap: allow\n", "")
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
