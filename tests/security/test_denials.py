"""What was refused, in the audit log: the noise of one sender hides no attempt of another, and fills no store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from outlive.http import Api, Principal
from outlive.http.denials import ADMIN_ROWS, OWN_ROWS, REFUSALS, STRANGERS_ROWS, Denials
from outlive.http.exchange import Request
from outlive.http.operation import OPERATIONS
from outlive.http.problem import Problem
from outlive.testing import TestEngine
from tests.engine.support import until
from tests.http.caller import Caller

FAR = "192.0.2.7"
ADMIN_KEY = {"name": "mine", "scope": "admin"}
DAY = 24 * 60 * 60


@dataclass
class Clock:
    """The time of a server."""

    at: float = 1_000.0

    def __call__(self) -> float:
        """Now."""
        return self.at


@pytest.fixture
async def engine() -> AsyncIterator[TestEngine]:
    """An engine."""
    async with TestEngine(worker=False) as engine:
        yield engine


async def nothing() -> Any:
    """What a request without a body receives."""
    return {"type": "http.request", "body": b""}


def request(address: str = FAR) -> Request:
    """A request with a key."""
    head = [(b"authorization", b"Bearer wrong")]
    scope = {"type": "http", "method": "GET", "path": "/api/v1/runs", "headers": head, "client": (address, 1)}
    return Request(scope, nothing)


WRONG = Problem(401, "unauthenticated", "no", "no")


async def actions(engine: TestEngine, **wanted: Any) -> list[tuple[str, str]]:
    """Who was refused what."""
    return [(it.actor, it.verb) for it in await engine.audit.list(limit=1_000, **wanted) if it.is_denied]


async def test_the_noise_of_a_viewer_hides_no_attempt_of_an_operator(engine: TestEngine) -> None:
    """Each key has rows of its own: sixty refusals of one leave room for the one of another. [S37]"""
    app = Api(engine, auth="keys")
    made = {scope: await engine.keys.create(f"the {scope}", scope=scope) for scope in ("viewer", "operator")}
    viewer, operator = (Caller(app, key=made[scope].secret, address=FAR) for scope in ("viewer", "operator"))
    for _ in range(60):
        assert (await viewer.post("/api/v1/runs/x/cancel")).status == 403

    assert (await operator.post("/api/v1/keys", ADMIN_KEY)).status == 403
    assert (await operator.post("/api/v1/runs", {"workflow": "x"})).status == 404

    assert await actions(engine, actor="the operator") == [("the operator", "keys.create")]
    assert len(await actions(engine, actor="the viewer")) == OWN_ROWS.burst


async def test_refused_admin_requests_are_always_written(engine: TestEngine) -> None:
    """Each refused request for an admin operation is a row, however many other requests of that key were refused.
    [S37]"""
    key = await engine.keys.create("eve", scope="viewer")
    eve = Caller(Api(engine, auth="keys"), key=key.secret, address=FAR)
    for _ in range(OWN_ROWS.burst + 10):
        await eve.post("/api/v1/runs/x/cancel")
    for _ in range(OWN_ROWS.burst + 10):
        assert (await eve.post("/api/v1/keys", ADMIN_KEY)).status == 403

    assert len(await actions(engine, verb="keys.create")) == OWN_ROWS.burst + 10


async def test_strangers_hide_no_attempt_and_fill_no_store(engine: TestEngine) -> None:
    """A day of wrong keys is some hundred rows, which say how many there were. [S37]"""
    clock = Clock()
    denials = Denials(engine, now=clock)
    eve = Principal("eve", frozenset({"viewer"}), key="k1")
    refusals = DAY // 30
    for number in range(refusals):
        await denials.note(request(f"192.0.2.{number % 5}"), WRONG, None, None)
        if number % 20 == 19:  # A timer does that.
            await denials.write_counts()
        clock.at += 30
    await denials.note(request(), Problem(403, "forbidden", "no", "no"), eve, OPERATIONS["keys.create"])
    await denials.write_counts()

    entries = [it for it in await engine.audit.list(limit=1_000) if it.actor == "unknown"]
    counted = sum(int(it.reason.partition(" more")[0].rpartition(" ")[2]) for it in entries if "more were" in it.reason)
    single = [it for it in entries if it.verb != REFUSALS]
    assert len(entries) <= 2 * DAY / 600 + STRANGERS_ROWS.burst
    assert counted + len(single) == refusals
    assert "from 5 addresses" in entries[0].reason
    assert (await engine.audit.list(limit=10, actor="eve"))[0].verb == "keys.create"


async def test_a_count_is_written_although_nothing_more_is_refused(
    engine: TestEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A timer does that, once for all that were counted. [S37]"""
    monkeypatch.setattr("outlive.http.denials.COUNT_SECONDS", 0.0)
    denials = Denials(engine, now=Clock())
    for _ in range(STRANGERS_ROWS.burst + 3):
        await denials.note(request(), WRONG, None, None)

    async def is_written() -> bool:
        return bool(await engine.audit.list(verb=REFUSALS))

    await until(is_written)
    assert [it.reason for it in await engine.audit.list(verb=REFUSALS)] == ["3 more were not written, from 1 addresses"]


async def test_a_flood_of_attempts_is_counted(engine: TestEngine) -> None:
    """A key that is refused without end does not fill the store: the rows beyond its bucket are one row. [S37]"""
    denials = Denials(engine, now=Clock())
    eve = Principal("eve", frozenset({"viewer"}), key="k1")
    for _ in range(ADMIN_ROWS.burst + 7):
        await denials.note(request(), Problem(403, "forbidden", "no", "no"), eve, OPERATIONS["keys.create"])
    await denials.write_counts()
    await denials.write_counts()

    last = (await engine.audit.list(limit=2, actor="eve"))[0]
    assert (last.verb, last.reason) == (REFUSALS, "7 more were not written, from 1 addresses")
    assert (last.key, last.is_denied) == ("k1", True)
    assert len(await engine.audit.list(limit=1_000, verb="keys.create")) == 1_000
