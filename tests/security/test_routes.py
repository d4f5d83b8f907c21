"""Every route of the API, made from the table of operations: who may use it, by which spelling, and what it answers.

A route that is added is in here without a line of its own.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from outlive._features.security.key import SCOPES
from outlive.http import Api, ApiLimits, Principal
from outlive.http.operation import OPERATIONS, Operation
from outlive.testing import TestEngine
from tests.http import shop
from tests.http.caller import Answer, Caller

FAR = "192.0.2.7"
LIMITS = ApiLimits(wait_seconds_max=0.0)
CANARY = "SELECT secret FROM /var/lib/outlive"
OPEN = {"health.live", "health.ready", "health.startup", "approvals.show_link", "approvals.use_link"}
"""All that may be used without a key. Think twice before you add one: it must show nothing, and do nothing."""
CLOSED = sorted(name for name, it in OPERATIONS.items() if it.scope != "none")
WITH_NAMES = sorted(name for name, it in OPERATIONS.items() if it.names)
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "QUERY")
SPELLINGS: tuple[str, ...] = (
    "{}/",
    "{}/configs",
    "{}/health",
    "/{}",
    "{}?x=/health/live",
    "{}%00",
    "{};/health/live",
    "{}/../health/live",
)
SPELLINGS += ("{}/%2e%2e/health/live", "/health/live/..{}", "{}%2f..%2fhealth%2flive", "{}#/health/live", "/static{}")
NAMES: tuple[str, ...] = (
    "..",
    ".",
    "../x",
    "%2e%2e",
    "%2e%2e%2fx",
    "x%00",
    "%00",
    "/etc/passwd",
    "%2fetc%2fpasswd",
    "x" * 5_000,
)
NAMES += (
    "%c0%ae%c0%ae",
    "\u2024\u2024",
    "x%0d%0aset-cookie:%20a=b",
    "%ef%bb%bfx",
    "${{ 1 }}",
    "'; DROP TABLE runs; --",
)
NAMES += ("__proto__", "%25%32%65", "~old1", "x/y", "*", "outlive.key", "%ff", "NaN", "-1", "1e999")


@pytest.fixture
async def engine() -> AsyncIterator[TestEngine]:
    """An engine."""
    async with TestEngine(worker=False) as engine:
        yield engine


def path_of(it: Operation, name: str = "x") -> str:
    """The path of an operation, with a name in each of its places."""
    return it.path.format(**dict.fromkeys(it.names, name))


def check_headers(answer: Answer) -> None:
    """What every answer has, whatever it is, and what none has."""
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert answer.headers["referrer-policy"] in ("no-referrer", "same-origin")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
    assert not {"set-cookie", "access-control-allow-origin", "location", "server"} & set(answer.headers)


def test_every_open_route_is_listed_here() -> None:
    """Every route that needs no key is listed here. [S6]"""
    assert {name for name, it in OPERATIONS.items() if it.scope == "none"} == OPEN


@pytest.mark.parametrize("name", CLOSED)
async def test_no_method_and_no_spelling_opens_a_route(engine: TestEngine, name: str) -> None:
    """Without a key, and with one that proves nothing. Every answer has the headers of a page. [S2 S6 S8 S13]"""
    app, path = Api(engine, auth="keys"), path_of(OPERATIONS[name])
    stranger = Caller(app, address=FAR)
    for method in METHODS:
        answer = await stranger.send(method, path)
        assert answer.status == 401, (method, answer.body)
        check_headers(answer)
    for spelling in SPELLINGS:
        answer = await stranger.get(spelling.format(path))
        assert answer.status == 401, (spelling, answer.body)
    proofs = ("Bearer", "Bearer ", "Bearer null", "Basic YTpi", "Bearer olv_" + "a" * 16 + "_" + "b" * 43, "Token x")
    for proof in proofs:
        assert (await stranger.send("GET", path, headers={"authorization": proof})).status == 401


@pytest.mark.parametrize("name", sorted(OPERATIONS))
async def test_an_unknown_scope_opens_nothing(engine: TestEngine, name: str) -> None:
    """A principal without scopes, or with an unknown one, is refused before its request is read. [S3 S6]"""
    it = OPERATIONS[name]

    async def door(asking: Any) -> Principal:
        return Principal("eve", frozenset(asking.headers["x-scopes"].split()))

    caller = Caller(Api(engine, auth=door), address=FAR)
    for scopes in ("", "root", "Admin", "admin,", "none"):
        answer = await caller.send(it.method, path_of(it), headers={"x-scopes": scopes, "idempotency-key": "\t"})
        assert (answer.status == 403) is (it.scope != "none"), (scopes, answer.body)


@pytest.mark.parametrize("name", WITH_NAMES)
async def test_names_in_paths_are_names(engine: TestEngine, name: str, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever they look like: no failure, no file, no header of theirs, no line in the log. [S17 S23]"""
    it = OPERATIONS[name]
    caller = Caller(Api(engine, limits=LIMITS))
    for each in NAMES:
        answer = await caller.send(it.method, path_of(it, each), {} if it.body is not None else None)
        assert answer.status < 500, (each, answer.body)
        check_headers(answer)
        assert b"root:" not in answer.body
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert await engine.count() == 0


@pytest.mark.parametrize("name", sorted(OPERATIONS))
async def test_a_route_that_fails_shows_nothing(engine: TestEngine, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No stack, no statement, no path; the answer has the form and the headers of all others. [S13 S44]"""
    it = OPERATIONS[name]

    async def fail(call: Any, **arguments: Any) -> None:
        raise RuntimeError(CANARY)

    monkeypatch.setitem(it.__dict__, "function", fail)
    monkeypatch.setitem(it.__dict__, "read_body", lambda body: None)
    monkeypatch.setitem(it.__dict__, "before_body", None)
    answer = await Caller(Api(engine)).send(it.method, path_of(it), {} if it.body is not None else None)

    assert (answer.status, answer.code) == (500, "internal")
    assert CANARY.encode() not in answer.body
    assert b"Traceback" not in answer.body
    check_headers(answer)


NARROWED = Principal("eve", frozenset({"admin", "worker"}), frozenset({"api_order"}))
OF_RUNS = sorted(name for name, it in OPERATIONS.items() if it.reach == "run")
OF_WORKFLOWS = sorted(name for name, it in OPERATIONS.items() if it.reach in ("runs", "code", "workflow"))


async def as_narrowed(asking: Any) -> Principal:
    """A caller with every scope, for one workflow."""
    return NARROWED


@pytest.mark.parametrize("name", OF_RUNS)
async def test_a_run_of_another_workflow_is_not_there(engine: TestEngine, name: str) -> None:
    """For every operation on a run, before anything else of the request is read. [S3 S12 S33]"""
    it = OPERATIONS[name]
    await engine.start(shop.api_patient, id="theirs")
    caller = Caller(Api(engine, auth=as_narrowed))
    before = (await engine.get("theirs").info()).updated_at
    answers = [
        await caller.send(it.method, it.path.format(**{**dict.fromkeys(it.names, "x"), it.run_name: run_id}), {})
        for run_id in ("theirs", "nothing")
    ]

    assert [(404, "run_not_found")] * 2 == [(answer.status, answer.code) for answer in answers]
    assert answers[0].body.replace(b"theirs", b"nothing") == answers[1].body
    assert (await engine.get("theirs").info()).updated_at == before


async def test_a_message_creates_no_run_of_another_workflow(engine: TestEngine) -> None:
    """A signal neither creates a run of another workflow nor reaches one, whatever start it carries. [S3 S33]"""
    await engine.start(shop.api_patient, id="theirs")
    caller = Caller(Api(engine, auth=as_narrowed))
    before = (await engine.get("theirs").info()).updated_at
    own, other = {"start": {"workflow": "api_order", "arguments": [5]}}, {"start": {"workflow": "api_patient"}}
    answers = [
        await caller.post(f"/api/v1/runs/{run_id}/signals/go", body)
        for run_id, body in (("theirs", own), ("theirs", other), ("new", other), ("new", own))
    ]

    assert [404, 404, 404, 202] == [it.status for it in answers]
    assert {"theirs", "new"} == {run.id for run in await engine.list()}
    assert (await engine.get("theirs").info()).updated_at == before


@pytest.mark.parametrize("name", OF_WORKFLOWS)
async def test_nothing_of_another_workflow_is_shown_or_done(engine: TestEngine, name: str) -> None:
    """Whether an operation takes the workflow in its path, its query or its body. [S3 S33]"""
    it = OPERATIONS[name]
    await engine.start(shop.api_patient, id="theirs")
    caller = Caller(Api(engine, auth=as_narrowed))
    query = "?workflow=api_patient" if "workflow" in getattr(it.query, "__struct_fields__", ()) else ""
    its = {"workflow": "api_patient"}
    bodies: dict[str, Any] = {
        "batches.start": {**its, "rows": [1]},
        "runs.start_many": {"starts": [its]},
        "runs.signal_many": {"signals": [{"run_id": "new", "name": "go", "start": its}]},
    }
    takes = "workflow" in getattr(it.body, "__struct_fields__", ())
    body = bodies.get(name, its if takes else None)
    asked = await caller.send(it.method, path_of(it, "api_patient") + query, body)

    if query or it.names or it.method != "GET":
        assert asked.status in (403, 404), asked.body
    assert b"theirs" not in asked.body
    assert (await engine.count()) == 1


def test_every_scope_is_asked_for() -> None:
    """There is none that opens nothing."""
    assert {it.scope for it in OPERATIONS.values()} == {*SCOPES, "none"}
