"""A request that is sent again with the same `Idempotency-Key`: the same answer, and nothing happens twice."""

from __future__ import annotations

import pytest

import outlive
from outlive.engine.view import view_of
from outlive.http import Api, FixedKeys, Principal
from outlive.testing import TestEngine
from proof.http.requests import NOT_REPEATED, WANTED, unproved
from tests.http import shop
from tests.http.caller import Caller

KEY = {"idempotency-key": "once"}
OTHER = "x" * 40


def test_every_operation_that_changes_something_is_proved_or_has_a_reason() -> None:
    """`make verbs` kills the server in the middle of each; a new operation has to stand in one of the two tables."""
    assert [] == unproved()
    assert not WANTED.keys() & NOT_REPEATED.keys()


async def test_a_run_that_was_retried_is_not_retried_again(api: Caller, engine: TestEngine) -> None:
    """The state has changed, and the answer is the same; another request gets an error with the state."""
    shop.Flag.is_up = False
    await engine.start(shop.api_order, 5, id="o-1")
    await engine.settle()
    shop.Flag.is_up = True
    first = await api.post("/api/v1/runs/o-1/retry", headers=KEY)
    await engine.settle()
    again = await api.post("/api/v1/runs/o-1/retry", headers=KEY)
    other = await api.post("/api/v1/runs/o-1/retry", headers={"idempotency-key": "another"})
    without = await api.post("/api/v1/runs/o-1/retry")

    assert (200, first.body) == (again.status, again.body)
    assert (409, 409) == (other.status, without.status)


async def test_a_key_is_the_key_of_one_principal(engine: TestEngine) -> None:
    """A request with the idempotency key of another principal is a new request."""
    await engine.start(shop.api_patient, id="p-1")
    await engine.settle()
    await engine.pause("p-1")
    await engine.settle()
    keys = FixedKeys({OTHER: Principal("other", frozenset({"operator"}))})
    mine, theirs = Caller(Api(engine)), Caller(Api(engine, auth=keys), key=OTHER)
    path = "/api/v1/runs/p-1/resume"
    first = await mine.post(path, headers=KEY)
    await engine.settle()

    assert (202, 202, 409) == (
        first.status,
        (await mine.post(path, headers=KEY)).status,
        (await theirs.post(path, headers=KEY)).status,
    )


async def test_key_names_one_kind_of_request_to_one_run(api: Caller, engine: TestEngine) -> None:
    """A client that uses its key for the next request too gets that done, and not the answer to the first one."""
    for name in ("p-1", "p-2"):
        await engine.start(shop.api_patient, id=name)
    await engine.settle()
    answers = []
    for verb in ("pause", "resume"):
        answers += [await api.post(f"/api/v1/runs/{name}/{verb}", headers=KEY) for name in ("p-1", "p-2")]
        await engine.settle()

    assert [202] * 4 == [it.status for it in answers]
    still_paused = [await api.post(f"/api/v1/runs/{name}/resume") for name in ("p-1", "p-2")]
    assert [409, 409] == [it.status for it in still_paused]


async def test_runs_started_with_one_key_by_two_principals_are_two(engine: TestEngine) -> None:
    """The id of such a run is made of the key, and of who sends it."""
    await engine.start(shop.api_patient, id="known")  # The store knows the workflow from now on.
    both = FixedKeys({name * 40: Principal(name, frozenset({"operator"})) for name in ("x", "y")})
    started = [
        await Caller(Api(engine, auth=both), key=name * 40).post(
            "/api/v1/runs", {"workflow": "api_patient"}, headers=KEY
        )
        for name in ("x", "y", "x")
    ]

    first, other, again = [it.data["id"] for it in started]
    assert first == again != other


async def test_requests_for_two_things_with_one_key_make_two_runs(api: Caller, engine: TestEngine) -> None:
    """A schedule may have the name of a workflow, and a client may use one key for all that it does."""
    await engine.schedules.set("api_patient", outlive.every(hours=1), shop.api_patient)
    requests = [
        ("/api/v1/runs", {"workflow": "api_patient"}),
        ("/api/v1/runs", {"workflow": "api_promising"}),
        ("/api/v1/schedules/api_patient/trigger", None),
        ("/api/v1/runs/origin-1/fork", None),
        ("/api/v1/runs/origin-2/fork", None),
    ]
    for name in ("origin-1", "origin-2"):
        await engine.start(shop.api_promising, id=name)
    await engine.settle()
    first, again = [[(await api.post(path, body, headers=KEY)).data["id"] for path, body in requests] for _ in range(2)]

    assert first == again
    assert len(requests) == len(set(first))


async def test_promise_that_another_principal_has_settled_is_not_new(engine: TestEngine) -> None:
    """Though the same key has settled another promise of the same run."""
    run = await engine.start(shop.api_promising_twice)
    await engine.settle()
    paths = [f"/api/v1/promises/{it}/resolve" for it in (await run.published())["promises"]]
    keys = FixedKeys({OTHER: Principal("other", frozenset({"operator"}))})
    mine, theirs = Caller(Api(engine)), Caller(Api(engine, auth=keys), key=OTHER)
    await theirs.post(paths[1], {"value": 2}, headers=KEY)
    answers = [await mine.post(path, {"value": 1}, headers=KEY) for path in (paths[0], paths[0], paths[1])]

    assert [True, True, False] == [it.data["is_new"] for it in answers]
    assert [1, 2] == await run.result()


async def test_a_deleted_run_stays_deleted(api: Caller, engine: TestEngine) -> None:
    """Its deed is in the audit log, which outlives it."""
    await engine.start(shop.api_order, 5, id="o-1")
    await engine.settle()
    answers = [await api.send("DELETE", "/api/v1/runs/o-1", headers=KEY) for _ in range(2)]

    assert [200, 200] == [answer.status for answer in answers]
    assert 404 == (await api.send("DELETE", "/api/v1/runs/o-1")).status


async def test_a_schedule_is_triggered_once(api: Caller, engine: TestEngine) -> None:
    """A trigger of a schedule that is sent again gets the first answer, even though the overlap policy would refuse
    another run."""
    await engine.schedules.set("nightly", outlive.every(hours=1, overlap="skip"), shop.api_patient)
    first, again = [await api.post("/api/v1/schedules/nightly/trigger", headers=KEY) for _ in range(2)]

    assert (201, first.body) == (again.status, again.body)
    assert 1 == await engine.count(workflow="api_patient")


@pytest.mark.parametrize("policy", ["reject", "replace"])
async def test_a_start_with_a_policy_is_one_start(api: Caller, engine: TestEngine, policy: str) -> None:
    """It does not refuse itself, and does not take its own place."""
    body = {"workflow": "api_patient", "id": "p-1", "on_conflict": policy}
    await engine.start(shop.api_patient, id="known")  # The store knows the workflow from now on.
    first = await api.post("/api/v1/runs", body, headers=KEY)
    await engine.settle()
    row = await view_of(engine).run("p-1")
    again = await api.post("/api/v1/runs", body, headers=KEY)

    assert (201, first.body) == (again.status, again.body)
    assert row.created_at == (await view_of(engine).run("p-1")).created_at


async def test_a_request_for_many_runs_is_for_the_same_ones_again(api: Caller, engine: TestEngine) -> None:
    """A bulk cancel that is sent again gets the first answer and cancels no run that came since."""
    for name in ("p-1", "p-2"):
        await engine.start(shop.api_patient, id=name)
    await engine.settle()
    body = {"workflow": "api_patient", "reason": "sold out"}
    first = await api.post("/api/v1/bulk/cancel", body, headers=KEY)
    await engine.start(shop.api_patient, id="p-3")
    await engine.settle()
    again = await api.post("/api/v1/bulk/cancel", body, headers=KEY)
    await engine.settle()

    assert (200, first.body) == (again.status, again.body)
    assert ["p-1", "p-2"] == [it["id"] for it in first.data["items"] if it["done"]]
    assert "waiting" == (await view_of(engine).run("p-3")).status


async def test_a_purge_that_is_only_tried_is_done_when_it_is_sent_in_earnest(api: Caller, engine: TestEngine) -> None:
    """A try makes no plan, with one key as without; and what is sent without a key looks for the runs of its moment."""
    body = {"workflow": "api_order", "older_than": 1}

    async def ended(name: str) -> None:
        await engine.start(shop.api_order, 5, id=name)
        await engine.settle()
        await engine.skip(seconds=10)

    await ended("o-1")
    tried = await api.post("/api/v1/bulk/purge", {**body, "dry_run": True}, headers=KEY)
    assert (1, 0) == (tried.data["found"], tried.data["deleted"])
    assert 1 == await engine.count(workflow="api_order")
    first = await api.post("/api/v1/bulk/purge", body)
    await ended("o-2")
    second = await api.post("/api/v1/bulk/purge", body)
    await ended("o-3")
    kept = await api.post("/api/v1/bulk/purge", body, headers=KEY)

    assert [1, 1, 1] == [each.data["deleted"] for each in (first, second, kept)]
    assert 0 == await engine.count(workflow="api_order")


async def test_runs_are_purged_once(api: Caller, engine: TestEngine) -> None:
    """The answer says what went, also when it has gone already; more than fit into a plan are refused."""
    for name in ("o-1", "o-2"):
        await engine.start(shop.api_order, 5, id=name)
    await engine.settle()
    await engine.skip(seconds=10)
    body = {"workflow": "api_order", "older_than": 1}
    first = await api.post("/api/v1/bulk/purge", body, headers=KEY)
    await engine.start(shop.api_order, 5, id="o-3")
    await engine.settle()
    await engine.skip(seconds=10)
    again = await api.post("/api/v1/bulk/purge", body, headers=KEY)
    many = await api.post("/api/v1/bulk/purge", {**body, "limit": 5_000}, headers=KEY)

    assert (200, first.body) == (again.status, again.body)
    assert (2, 2, {"api_order succeeded": 2}) == (
        first.data["found"],
        first.data["deleted"],
        first.data["counts"],
    )
    assert 1 == await engine.count(workflow="api_order")
    assert (422, "invalid_argument") == (many.status, many.code)


async def test_a_message_may_create_its_run(api: Caller, engine: TestEngine) -> None:
    """In the same transaction, and with the same key once; without `start` there has to be one."""
    start = {"workflow": "api_polite", "headers": {"tenant": "a"}}
    assert 404 == (await api.post("/api/v1/runs/new-1/signals/bye", {"payload": "now"})).status
    signal, ask = {"payload": "now", "start": start}, {"body": 1, "key": "k", "start": start}
    answers = [
        await api.post(f"/api/v1/runs/new-1/{message}", body, headers=KEY)
        for message, body in (("signals/bye", signal), ("asks/add", ask)) * 2
    ]
    unknown = await api.post("/api/v1/runs/new-2/signals/bye", {"start": {"workflow": "api_nothing"}})
    wrong = await api.post("/api/v1/runs/new-2/signals/bye", {"start": start | {"arguments": [1]}})

    assert [202, 200, 202, 200] == [it.status for it in answers]
    assert 2 == answers[1].data["answer"] == answers[3].data["answer"]
    assert "now" == await engine.get("new-1").result()
    assert (404, "unknown_workflow") == (unknown.status, unknown.code)
    assert (422, "invalid_argument") == (wrong.status, wrong.code)
    assert ["new-1"] == [run.id for run in await engine.list()]
