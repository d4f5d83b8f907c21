"""Runs over HTTP: every verb, by plain JSON, and what is answered when it cannot be done."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from outlive.http import Api
from outlive.testing import TestEngine
from tests.engine.inside import journal_of
from tests.http import shop
from tests.http.caller import Caller

RUNS = "/api/v1/runs"


@pytest.fixture
async def engine() -> AsyncIterator[TestEngine]:
    """An engine."""
    async with TestEngine(redact=["password", "receipt"]) as engine:
        yield engine


async def start(api: Caller, workflow: str, **body: object) -> str:
    """Start a run."""
    answer = await api.post(RUNS, {"workflow": workflow, **body})
    assert answer.status == 201, answer.body
    return str(answer.data["id"])


async def test_a_run_is_started_and_its_result_is_waited_for(api: Caller) -> None:
    """The result is JSON without what is redacted; the answer has the headers that every answer has."""
    run_id = await start(api, "api_order", arguments={"cents": 5, "note": "hi"})

    answer = await api.get(f"{RUNS}/{run_id}/result?wait=10")

    assert (200, "succeeded") == (answer.status, answer.data["status"])
    assert {"receipt": "[redacted]", "note": "hi"} == answer.data["result"]
    assert ("no-store", "nosniff") == (answer.headers["cache-control"], answer.headers["x-content-type-options"])


async def test_the_same_id_or_key_is_the_same_run(api: Caller, engine: TestEngine) -> None:
    """A retry gets the same answer; another workflow has keys of its own."""
    body = {"workflow": "api_order", "arguments": [5]}
    first, again = [await api.post(RUNS, body, headers={"idempotency-key": "k 1"}) for _ in range(2)]
    other = await api.post(RUNS, {"workflow": "api_patient"}, headers={"idempotency-key": "k 1"})
    named = [await api.post(RUNS, body | {"id": "order-1"}) for _ in range(2)]
    taken = await api.post(RUNS, body | {"id": "order-1", "on_conflict": "reject"})

    assert (first.status, first.body) == (again.status, again.body)
    assert first.data["id"].startswith("run-")
    assert first.data["id"] != other.data["id"]
    assert named[0].body == named[1].body == b'{"id":"order-1"}'
    assert (409, "run_exists") == (taken.status, taken.code)
    assert 3 == int(await engine.count())


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"workflow": "api_ordr"}, 404, "unknown_workflow"),
        ({"workflow": "api_order"}, 422, "invalid_argument"),
        ({"workflow": "api_order", "arguments": {"cents": "5"}}, 422, "invalid_argument"),
        ({"workflow": "api_order", "arguments": {"cents": 5}, "id": "../x"}, 400, "malformed"),
        ({"workflow": "api_order", "arguments": {"cents": 5}, "timeout": -1}, 400, "malformed"),
        ({"workflow": "api_order", "arguments": {"cents": 5}, "start_at": "soon"}, 400, "malformed"),
        ({"workflow": "api_order", "arguments": {"cents": 5}, "tag": {}}, 400, "malformed"),
        ({"arguments": {"cents": 5}}, 400, "malformed"),
        ({"workflow": "api_order", "arguments": {"cents": 5}, "tags": {"": "x"}}, 422, "invalid_argument"),
    ],
)
async def test_a_start_that_cannot_work_is_refused(api: Caller, body: object, status: int, code: str) -> None:
    """A start that cannot work is refused with what is wrong and what to do."""
    answer = await api.post(RUNS, body)

    assert (status, code) == (answer.status, answer.code)
    assert {"type", "title", "status", "detail", "error", "code", "facts", "advice", "next"} == set(answer.data)
    assert answer.data["type"] == f"urn:outlive:error:{code}"
    assert answer.data["next"].endswith(".")


async def test_runs_are_listed_by_filters_and_pages(api: Caller, engine: TestEngine) -> None:
    """Pages go both ways; filters narrow; a count says how many."""
    for number in range(3):
        await start(api, "api_patient", id=f"p-{number}", tags={"shop": "a" if number else "b"})
    await start(api, "api_order", id="o-1", arguments={"cents": 1})
    await engine.settle()

    first = await api.get(f"{RUNS}?workflow=api_patient&limit=2")
    second = await api.get(f"{RUNS}?workflow=api_patient&limit=2&after={first.data['next']}")
    back = await api.get(f"{RUNS}?workflow=api_patient&limit=2&after={second.data['previous']}")
    tagged = await api.get(f"{RUNS}?tag=shop%3Da&status=waiting&status=running&order=created_at")
    asked = await api.get(f"{RUNS}?waiting_for=go&roots_only=true&since=2000-01-01T00:00:00Z")
    count = await api.get("/api/v1/runs/count?workflow=api_patient&limit=2")

    assert [["p-2", "p-1"], ["p-0"], ["p-2", "p-1"]] == [ids(each.data) for each in (first, second, back)]
    assert (None, ["p-1", "p-2"]) == (second.data["next"], ids(tagged.data))
    assert {"p-0", "p-1", "p-2"} == set(ids(asked.data))
    assert {"count": 2, "at_least": True} == count.data
    counts = await api.get("/api/v1/runs/count/groups?by=workflow&limit=2&ids=o-1&ids=p-1&ids=p-2&ids=p-0")
    assert {
        "groups": {"api_order": {"count": 1, "at_least": False}, "api_patient": {"count": 2, "at_least": True}}
    } == counts.data
    ended = await api.get(f"{RUNS}?finished_since=2000-01-01T00:00:00Z&version=1&ids=o-1&ids=p-1")
    assert ids(ended.data) == ["o-1"]


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=many",
        "limit=1&limit=2",
        "status=done",
        "tag=shop",
        "colour=red",
        "since=2000-01-01",
        "%ff=1",
        "after=x",
    ],
)
async def test_invalid_filters_are_refused(api: Caller, query: str) -> None:
    """A filter with a wrong name or value is refused."""
    answer = await api.get(f"{RUNS}?{query}")

    assert answer.status in (400, 422), answer.body


def ids(data: object) -> list[str]:
    """Of a page."""
    assert isinstance(data, dict)
    return [each["id"] for each in data["items"]]


async def test_a_run_is_looked_at(api: Caller, engine: TestEngine) -> None:
    """Its row, why, its history with pages, its tree, what it publishes: all without what is redacted."""
    await start(api, "api_parent", id="tree", arguments={"cents": 7})
    await start(api, "api_patient", id="quiet")
    await engine.get("tree").result()
    await engine.settle()

    run, why = await api.get(f"{RUNS}/quiet"), await api.get(f"{RUNS}/quiet/why")
    events = await api.get(f"{RUNS}/tree/history?limit=2")
    more = await api.get(f"{RUNS}/tree/history?after={events.data['next']}")
    tree = await api.get(f"{RUNS}/tree/tree")
    published = await api.get(f"{RUNS}/quiet/published")

    assert ("waiting", [("signal", "go")]) == (
        run.data["status"],
        [(wait["kind"], wait["name"]) for wait in run.data["waits"]],
    )
    assert "it waits for signal 'go'" == why.data["why"]
    created = events.data["items"][0]
    assert ("RunCreated", {"cents": 7}) == (created["type"], created["data"]["input"])
    assert [2, None] == [more.data["items"][0]["seq"], more.data["next"]]
    assert "nonce" not in events.data["items"][0]["data"]
    assert ["tree", "tree~1"] == ids(tree.data)
    assert {"stage": "waiting", "password": "[redacted]"} == published.data["fields"]
    for path in ("", "/why", "/history", "/tree", "/result", "/published", "/dead-letters", "/asks/add/k"):
        missing = await api.get(f"{RUNS}/nothing{path}")
        assert (404, "run_not_found") == (missing.status, missing.code), path


async def test_result_of_a_run_that_has_not_ended_is_answered_with_why(api: Caller) -> None:
    """The result of a run that has not ended is 202 with the reason why it waits."""
    await start(api, "api_patient", id="later")

    answer = await api.get(f"{RUNS}/later/result?wait=0")

    assert (202, "it waits for signal 'go'") == (answer.status, answer.data["why"]), answer.body


async def test_signals_arrive_once_for_each_key(api: Caller) -> None:
    """The header is a key too."""
    await start(api, "api_patient", id="one")
    for _ in range(2):
        sent = await api.post(f"{RUNS}/one/signals/go", {"payload": [1]}, headers={"idempotency-key": "e-1"})
        assert (202, {"id": "one"}) == (sent.status, sent.data)

    answer = await api.get(f"{RUNS}/one/result?wait=10")
    late = await api.post(f"{RUNS}/one/signals/go")

    assert "[1]" == answer.data["result"]
    assert (409, "run_finished") == (late.status, late.code)


async def test_declared_signal_of_another_type_is_refused(api: Caller) -> None:
    """A payload that the type in `signals={...}` does not fit is answered with 422, and the run goes on waiting."""
    await start(api, "api_declared", id="one")
    for payload in ("five", {"cents": "five"}, [5], None):
        refused = await api.post(f"{RUNS}/one/signals/paid", {"payload": payload})
        assert (422, "signal_type") == (refused.status, refused.code), payload
        assert b"signal 'paid' of workflow api_declared" in refused.body

    assert 202 == (await api.post(f"{RUNS}/one/signals/paid", {"payload": {"cents": 5}})).status
    assert 5 == (await api.get(f"{RUNS}/one/result?wait=10")).data["result"]


async def test_asks_are_answered_once_for_each_key(api: Caller) -> None:
    """An ask with the same key has the same answer, also an error; an ask without an answer yet gets 202 with its
    key."""
    await start(api, "api_polite", id="sum")
    first = await api.post(f"{RUNS}/sum/asks/add", {"body": 1, "key": "k"})
    again = await api.post(f"{RUNS}/sum/asks/add", {"body": 1, "key": "k"})
    known = await api.get(f"{RUNS}/sum/asks/add/k")
    open_ask = await api.post(f"{RUNS}/sum/asks/add", {"body": 2, "wait": 0}, headers={"idempotency-key": "j"})
    await start(api, "api_polite", id="none")
    failed = await api.post(f"{RUNS}/none/asks/add")

    assert {"key": "k", "answer": 2, "error": None} == first.data == again.data == known.data
    assert (202, "j") == (open_ask.status, open_ask.data["key"])
    assert ("ValueError", "nothing to add") == (
        failed.data["error"]["type"],
        failed.data["error"]["message"],
    )
    unknown = await api.get(f"{RUNS}/sum/asks/add/x")
    assert (404, "ask_not_found") == (unknown.status, unknown.code)


async def test_the_first_decision_is_the_only_one(api: Caller, engine: TestEngine) -> None:
    """A decision that is repeated gets the same answer, and a different one gets the first decision."""
    await start(api, "api_refund", id="r")
    await engine.settle()
    decide = f"{RUNS}/r/approvals/refund"
    first = await api.post(f"{decide}/approve", {"comment": "fine", "by": "ann"})
    again = await api.post(f"{decide}/approve", {"comment": "fine", "by": "ann"})
    other = await api.post(f"{decide}/reject", {"by": "bob"})

    assert (200, first.data) == (again.status, again.data)
    assert (True, "ann", True) == (first.data["approved"], first.data["by"], first.data["is_first"])
    assert (True, "ann", False) == (other.data["approved"], other.data["by"], other.data["is_first"])
    missing = await api.post(f"{RUNS}/r/approvals/bonus/approve")
    assert (404, "approval_not_found") == (missing.status, missing.code)


async def test_operators_stop_pause_and_resume_runs(api: Caller, engine: TestEngine) -> None:
    """Pause, resume and cancel are accepted and can be repeated; a skip of a run that is not parked gets 409."""
    for name in ("a", "b"):
        await start(api, "api_patient", id=name)
    await engine.settle()
    paused = await api.post(f"{RUNS}/a/pause", {"reason": "lunch"})
    await engine.settle()
    assert "paused" in (await api.get(f"{RUNS}/a/why")).data["why"]
    resumed = [await api.post(f"{RUNS}/a/resume") for _ in range(2)]
    cancelled = [await api.post(f"{RUNS}/b/cancel", {"reason": "enough"}) for _ in range(2)]
    ended = await api.get(f"{RUNS}/b/result?wait=10")
    skipped = await api.post(f"{RUNS}/a/skip", {})

    assert [202, 202, 202] == [paused.status, resumed[0].status, cancelled[0].status]
    assert cancelled[0].body == cancelled[1].body
    assert ("cancelled", "enough") == (ended.data["status"], ended.data["reason"])
    assert (409, "run_not_parked") == (skipped.status, skipped.code)


async def test_a_failed_run_is_retried_and_forked(api: Caller, engine: TestEngine) -> None:
    """A fork that is sent again is the same fork."""
    shop.Flag.is_up = False
    await start(api, "api_order", id="f", arguments={"cents": 3})
    failed = await api.get(f"{RUNS}/f/result?wait=10")
    shop.Flag.is_up = True
    forks = [await api.post(f"{RUNS}/f/fork", {"at": "api_charge"}, headers={"idempotency-key": "x"}) for _ in "ab"]
    retried = await api.post(f"{RUNS}/f/retry", {"reason": "bank is up"})
    again = await api.get(f"{RUNS}/f/result?wait=10")
    not_failed = await api.post(f"{RUNS}/f/retry")
    taken = await api.post(f"{RUNS}/f/fork", {"id": "f"})

    assert ("failed", "no 3 today") == (failed.data["status"], failed.data["error"]["message"][-10:])
    assert (201, forks[0].body) == (forks[1].status, forks[1].body)
    assert (200, "succeeded") == (retried.status, again.data["status"])
    assert (409, "run_not_retriable") == (not_failed.status, not_failed.code)
    assert (409, "run_exists") == (taken.status, taken.code)
    assert {"receipt": "[redacted]", "note": ""} == (
        await api.get(f"{RUNS}/{forks[0].data['id']}/result?wait=10")
    ).data["result"]


async def test_many_runs_are_cancelled_retried_and_purged(api: Caller, engine: TestEngine) -> None:
    """By filters, with a preview; never without a filter."""
    for number in range(2):
        await start(api, "api_patient", id=f"m-{number}")
    await engine.settle()
    preview = await api.post("/api/v1/bulk/cancel", {"workflow": "api_patient", "dry_run": True})
    done = await api.post("/api/v1/bulk/cancel", {"id_prefix": "m-", "reason": "all"})
    await engine.settle()
    retried = await api.post("/api/v1/bulk/retry", {"id_prefix": "m-", "status": ["cancelled"], "dry_run": True})
    await engine.skip(seconds=5)
    purged = await api.post("/api/v1/bulk/purge", {"id_prefix": "m-", "older_than": 1})
    nothing = await api.post("/api/v1/bulk/cancel", {})

    assert [False, False] == [each["done"] for each in preview.data["items"]]
    assert [True, True] == [each["done"] for each in done.data["items"]]
    assert ["m-0", "m-1"] == ids(retried.data)
    assert (2, 2) == (purged.data["found"], purged.data["deleted"])
    assert (422, "invalid_argument") == (nothing.status, nothing.code)


async def test_one_run_is_deleted(api: Caller, engine: TestEngine) -> None:
    """When it has ended, with its tree."""
    await start(api, "api_parent", id="old", arguments={"cents": 1})
    await start(api, "api_patient", id="new")
    await engine.get("old").result()
    statuses = [(await api.send("DELETE", f"{RUNS}/{name}")).status for name in ("new", "old~1", "old", "old")]

    assert [409, 409, 200, 404] == statuses
    assert 404 == (await api.get(f"{RUNS}/old~1")).status


async def test_workflows_have_schemas_and_can_be_paused(api: Caller, engine: TestEngine) -> None:
    """Schemas say what a start takes."""
    found = await api.get("/api/v1/workflows/api_order")
    everything = await api.get("/api/v1/workflows")
    paused = await api.post("/api/v1/workflows/api_order/pause", {"reason": "bank"})
    await start(api, "api_order", id="w", arguments={"cents": 1})
    await engine.settle()
    why = await api.get(f"{RUNS}/w/why")
    resumed = await api.post("/api/v1/workflows/api_order/resume")

    assert {"cents", "note"} == set(found.data["items"][0]["arguments"]["properties"])
    assert "api_order" in [each["name"] for each in everything.data["items"]]
    assert (200, 200) == (paused.status, resumed.status)
    assert "its workflow is paused by local: bank" in why.data["why"]
    assert 404 == (await api.get("/api/v1/workflows/nothing")).status


async def test_probes_and_health(api: Caller, engine: TestEngine) -> None:
    """Probes show nothing; health says how things are."""
    probes = [await api.get(f"/health/{name}") for name in ("live", "ready", "startup")]
    health = await api.get("/api/v1/health")
    closed = Caller(Api(TestEngine()))

    assert [b'{"status":"ok"}'] * 3 == [each.body for each in probes]
    assert (True, "healthy", "healthy") == (health.data["is_ready"], health.data["store"], health.data["worker"])
    assert [200, 503, 503] == [(await closed.get(f"/health/{name}")).status for name in ("live", "ready", "startup")]
    stopped = await closed.get(f"{RUNS}/x")
    assert (503, "engine_closed", "5") == (stopped.status, stopped.code, stopped.headers["retry-after"])


@pytest.mark.parametrize("parent", ["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "nonsense", ""])
async def test_a_run_is_in_the_trace_of_the_request_that_starts_it(
    api: Caller, engine: TestEngine, parent: str
) -> None:
    """Unless the body says in which one it is, or what the request says cannot be read."""
    body = {"workflow": "api_order", "arguments": [5], "headers": {"tenant": "a"}}
    found = await api.post(RUNS, body, headers={"traceparent": parent, "tracestate": "vendor=1"})
    other = await api.post(RUNS, body | {"headers": {"traceparent": "mine"}}, headers={"traceparent": parent})

    is_good = parent.startswith("00-")
    headers = [getattr((await journal_of(engine, each.data["id"]))[0], "headers", {}) for each in (found, other)]
    assert headers[0] == {"tenant": "a"} | ({"traceparent": parent, "tracestate": "vendor=1"} if is_good else {})
    assert headers[1] == {"traceparent": "mine"}


async def test_a_history_is_followed_where_it_ends(api: Caller) -> None:
    """Its position is that of a follower, and each event says in words what happened."""
    await start(api, "api_patient", id="one")
    await api.post(f"{RUNS}/one/signals/go", {"payload": 1})
    await api.get(f"{RUNS}/one/result?wait=10")
    whole = (await api.get(f"{RUNS}/one/history")).data["items"]

    first = await api.get(f"{RUNS}/one/history?limit=2&payload_bytes=0")
    rest = await api.follow(f"{RUNS}/one/follow?payload_bytes=0&after={first.data['position']}")

    found = [*first.data["items"], *(it.data for it in rest if it.name == "journal")]
    assert [each["words"] for each in whole] == [each["words"] for each in found]
    assert "signal go arrived" in [each["words"] for each in found]
    assert {"[large]": 1} in [each["data"].get("payload") for each in found]


async def test_the_streams_of_a_run_are_listed(api: Caller) -> None:
    """With how many items each has; a run without any has none, and one that is not there is 404."""
    await start(api, "api_talker", arguments=["secret"], id="talk")
    before = await api.get(f"{RUNS}/talk/streams")
    await api.post(f"{RUNS}/talk/signals/go")
    await api.get(f"{RUNS}/talk/result?wait=10")

    after = await api.get(f"{RUNS}/talk/streams")

    assert ([], [{"name": "words", "items": 3}]) == (before.data["items"], after.data["items"])
    assert 404 == (await api.get(f"{RUNS}/missing/streams")).status
