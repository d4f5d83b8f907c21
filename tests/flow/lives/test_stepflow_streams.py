"""Stepflow's streams of events, with a flow: over the HTTP API, before and after the server is started again."""

from __future__ import annotations

import asyncio

import pytest

from outlive import flow
from outlive.http import Api, ApiLimits
from tests.engine.inside import journal_of
from tests.engine.support import Place, in_time, stage
from tests.http.caller import Caller, Message

SAYING = flow.parse("""
name: stepflow-saying
steps:
  first: { use: note, with: { what: first } }
  second: { use: hold, with: { name: second }, after: [first] }
output: "${{ steps.first }} ${{ steps.second }}"
""")
PATH = "/api/v1/runs/saying/follow"


def events(messages: list[Message]) -> list[tuple[int, str]]:
    """The events of the journal, by number and type."""
    return [(each.data["seq"], each.data["type"]) for each in messages if each.name == "journal"]


@pytest.mark.every_store
async def test_events_of_a_flow_are_streamed_again_when_the_server_has_started_again(place: Place) -> None:
    """A reader that was cut off goes on behind the event that it had, and one that comes when the run has ended gets
    all of them, with the results of steps. [SF-E1 SF-E2 SF-E4 SF-E5 SF-E6 FE-O4]
    """
    async with place.engine() as engine:
        await engine.start(SAYING, id="saying")
        await stage.gate("second").reached()
        api = Caller(Api(engine, limits=ApiLimits(look_seconds=0.01)))
        first = await api.follow(PATH, until=lambda seen: any(name == "StepSucceeded" for _, name in events(seen)))
    stage.gate("second").open()
    async with place.engine() as engine:
        api = Caller(Api(engine, limits=ApiLimits(look_seconds=0.01)))
        second = await in_time(asyncio.ensure_future(api.follow(PATH, after=first[-1].id)))
        whole = await api.follow(PATH)
        history = await journal_of(engine, "saying")

    assert events(first) + events(second) == events(whole)
    assert [seq for seq, _ in events(whole)] == list(range(len(history)))
    succeeded = [each.data["data"] for each in whole if each.data.get("type") == "StepSucceeded"]
    assert ["first", "second"] == [each["result"] for each in succeeded]
    assert ("end", "succeeded") == (whole[-1].name, whole[-1].data["status"])
