"""Requests of the right form with values at the edge of what there is: names, numbers, instants."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

import outlive
from outlive.cli.paint import clock
from outlive.http import Api
from outlive.http.openapi import document_of
from outlive.http.operation import OPERATIONS
from outlive.testing import TestEngine
from tests.http.caller import Caller
from tests.http.shop import api_fussy, api_talker

DOCUMENT = document_of(OPERATIONS.values())
NAMED = sorted(it.name for it in OPERATIONS.values() if it.names)
BODIES: dict[str, dict[str, Any]] = {
    "events.add_sink": {"url": "https://example.org"},
    "schedules.set": {"workflow": "api_order", "arguments": {"cents": 5}, "every": 60},
    "schedules.backfill": {"start": "2026-01-01T00:00:00Z", "end": "2026-01-02T00:00:00Z"},
    "promises.fail": {"message": "no"},
    "tasks.complete": {"lease": "x"},
    "tasks.fail": {"lease": "x", "message": "no"},
    "tasks.heartbeat": {"lease": "x"},
    "approvals.create_link": {"approved": True},
}
"""Of the operations that need one."""
NEVER = ("9999-12-31T23:59:59-23:59", "9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00+23:59")
"""Instants that are the first or the last in UTC, or have no date there."""
LATE = 2**31
"""A number of an event that PostgreSQL has no column for."""


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("text", ["\0", "x" * 2_000], ids=["nul", "long"])
async def test_a_name_that_no_store_takes_has_an_answer_that_the_document_has(
    api: Caller, name: str, text: str
) -> None:
    """In any place of a path."""
    it = OPERATIONS[name]
    path = it.path.format(**{each: quote(text) for each in it.names})

    answer = await api.send(it.method, path, BODIES.get(name) if it.body is not None else None)

    assert str(answer.status) in DOCUMENT["paths"][it.path][it.method.lower()]["responses"], answer.body
    assert 400 <= answer.status < 500


@pytest.mark.parametrize("after", [LATE, 2**63, -2, -(2**63) - 1])
async def test_a_number_that_no_event_has_is_refused(engine: TestEngine, api: Caller, after: int) -> None:
    """In a query, and as the last id that a reader has."""
    await engine.start_batch(api_fussy, [2], id="b")
    await engine.settle()

    for path in ("/api/v1/runs/b/history", "/api/v1/batches/b/items"):
        assert 400 == (await api.get(f"{path}?after={after}")).status
    journal = (await api.get("/api/v1/runs/b/history")).data["position"].partition(".")[0]
    followed = await api.get("/api/v1/runs/b/follow", headers={"last-event-id": f"{journal}.{after}"})
    assert (400, "malformed") == (followed.status, followed.code)


async def test_a_payload_of_an_event_that_no_store_can_look_for_is_not_there(postgres_url: str) -> None:
    """On PostgreSQL, which has four bytes for the number of an event."""
    async with outlive.Engine(postgres_url, worker=False) as engine:
        await engine.start(api_talker, "x", id="talker")

        answer = await Caller(Api(engine)).get(f"/api/v1/runs/talker/history/{LATE}/input")

    assert (404, "not_found") == (answer.status, answer.code)


@pytest.mark.parametrize(
    "path", ["follow?stream=%00", "follow?stream=a&after=0.-1;a=-1", "streams/%00", "streams/a?after=0.-1;a=-1"]
)
async def test_a_stream_that_cannot_be_is_refused_before_the_first_byte(
    engine: TestEngine, api: Caller, path: str
) -> None:
    """An answer that begins with 200 and ends at once is asked for again and again by a browser."""
    await engine.start(api_talker, "x", id="talker")

    answer = await api.get(f"/api/v1/runs/talker/{path}")

    assert (422, "invalid_argument") == (answer.status, answer.code)


@pytest.mark.parametrize("instant", NEVER)
async def test_a_run_that_begins_at_the_end_of_time_is_shown_like_any_other(
    engine: TestEngine, api: Caller, instant: str
) -> None:
    """One of them let every list of runs fail."""
    body = {"workflow": "api_order", "arguments": {"cents": 5}, "id": "late", "start_at": instant, "timeout": 60}
    started = await api.post("/api/v1/runs", body)

    assert 201 == started.status
    for path in ("/api/v1/runs", "/api/v1/runs/late", "/api/v1/runs/late/why", "/api/v1/runs/late/history"):
        assert 200 == (await api.get(path)).status, path
    run = await engine.get("late").info()
    assert run.timeout_at is not None
    assert clock(run.timeout_at)


@pytest.mark.parametrize("bound", ["start", "end"])
@pytest.mark.parametrize("instant", NEVER)
async def test_a_schedule_until_the_end_of_time_is_shown_like_any_other(api: Caller, instant: str, bound: str) -> None:
    """A schedule that begins or ends at the edge of time is kept and listed, for spans and for a cron expression ahead
    of UTC."""
    body = {"workflow": "api_order", "arguments": {"cents": 5}, bound: instant, "tz": "Asia/Tokyo"}

    spans = await api.send("PUT", "/api/v1/schedules/spans", body | {"every": 60})
    days = await api.send("PUT", "/api/v1/schedules/days", body | {"cron": ["0 6 * * *"]})

    assert (200, 200) == (spans.status, days.status)
    assert 200 == (await api.get("/api/v1/schedules")).status
