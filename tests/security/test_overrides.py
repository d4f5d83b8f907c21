"""What a start may change of a flow: every way to give arguments, every field of a step, every kind of principal."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import outlive
from outlive import flow
from outlive._define.flow.document import FlowStep
from outlive.errors import RunFailed
from outlive.http import Api
from outlive.testing import TestEngine
from tests.http.caller import Answer, Caller

API = "/api/v1"
PAID: list[int] = []


@outlive.step
async def overrides_pay(amount: int) -> int:
    """What a start must not reach with other arguments."""
    PAID.append(amount)
    return amount


@outlive.step
async def overrides_refund(amount: int) -> int:
    """What no start may put in the place of a step."""
    PAID.append(-amount)
    return amount


PATCHES: dict[str, Any] = {
    "use": "overrides_refund",
    "with": {"amount": 666},
    "if": False,
    "after": ["other"],
    "must_run": True,
    "retry": {"attempts": 1},
    "timeout": 5,
    "on_error": {"use_default": {"approved": True, "by": "boss"}},
    "undo": {"use": "overrides_refund", "with": {"amount": 1}},
    "once": True,
    "queue": "theirs",
    "limit": "gate 10/s",
    "heartbeat_timeout": 5,
    "overridable": ["with.amount"],
    "description": "another one",
    "metadata": {"a": 1},
}
POLICIES = {"retry", "timeout", "heartbeat_timeout", "limit"}
PLAIN = """
name: overrides_hello
vars: { shop: { type: string, default: north } }
steps:
  pay: { use: overrides_pay, with: { amount: 1 } }
  other: { use: noop, with: 1, must_run: true }
output: "${{ steps.pay }}"
"""
HELLO = flow.parse(PLAIN)
HELLO.register()


def overrides(field: str) -> dict[str, Any]:
    """A change of one field of one step."""
    return {"pay": {field: PATCHES[field]}}


async def by_name(caller: Caller, id: str, changes: Any) -> Answer:
    """A start of a workflow."""
    return await caller.post(
        f"{API}/runs", {"workflow": "overrides_hello", "id": id, "arguments": {"overrides": changes}}
    )


async def in_a_list(caller: Caller, id: str, changes: Any) -> Answer:
    """The same with arguments by their places."""
    return await caller.post(f"{API}/runs", {"workflow": "overrides_hello", "id": id, "arguments": [{}, {}, changes]})


async def as_a_flow(caller: Caller, id: str, changes: Any) -> Answer:
    """A start of a flow of the library."""
    return await caller.post(f"{API}/flows/overrides_hello/runs", {"id": id, "overrides": changes})


async def by_a_signal(caller: Caller, id: str, changes: Any) -> Answer:
    """A signal that creates its run."""
    start = {"workflow": "overrides_hello", "arguments": {"overrides": changes}}
    return await caller.post(f"{API}/runs/{id}/signals/go", {"payload": 1, "start": start})


async def by_an_ask(caller: Caller, id: str, changes: Any) -> Answer:
    """A question that creates its run."""
    start = {"workflow": "overrides_hello", "arguments": {"overrides": changes}}
    return await caller.post(f"{API}/runs/{id}/asks/price", {"body": 1, "wait": 0, "start": start})


async def by_a_fork(caller: Caller, id: str, changes: Any) -> Answer:
    """A fork with other arguments."""
    return await caller.post(f"{API}/runs/first/fork", {"id": id, "input": {"overrides": changes}})


async def by_a_batch(caller: Caller, id: str, changes: Any) -> Answer:
    """A row, which is the input and nothing else."""
    return await caller.post(
        f"{API}/batches", {"workflow": "overrides_hello", "id": id, "rows": [{"overrides": changes}]}
    )


async def by_a_schedule(caller: Caller, id: str, changes: Any) -> Answer:
    """A schedule, which only an admin of the whole store sets."""
    data = {"workflow": "overrides_hello", "every": 60, "arguments": {"overrides": changes}}
    return await caller.send("PUT", f"{API}/schedules/{id}", data)


async def by_an_event(caller: Caller, id: str, changes: Any) -> Answer:
    """An event, whose data is the input and nothing else."""
    return await caller.post(f"{API}/events", {"type": "hello.wanted", "id": id, "data": {"overrides": changes}})


Door = Callable[[Caller, str, Any], Awaitable[Answer]]
DOORS: list[Door] = [by_name, in_a_list, as_a_flow, by_a_signal, by_an_ask, by_a_fork]
INPUT_ONLY: list[Door] = [by_a_batch, by_an_event]
KEYS: dict[str, dict[str, Any]] = {
    "admin": {"scope": "admin"},
    "operator": {"scope": "operator"},
    "viewer": {"scope": "viewer"},
    "admin of hello": {"scope": "admin", "workflows": ["overrides_hello"]},
    "operator of hello": {"scope": "operator", "workflows": ["overrides_hello"]},
}


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[TestEngine]:
    """A worker, and a flow in its library that has run once."""
    PAID.clear()
    async with TestEngine(f"sqlite:{tmp_path / 'runs.db'}") as engine:
        await engine.flows.apply(PLAIN)
        await engine.settle()
        assert await (await engine.start(HELLO, id="first")).result() == 1
        yield engine


async def callers(engine: TestEngine, api: Api) -> dict[str, Caller]:
    """One caller for each kind of principal."""
    return {name: Caller(api, key=(await engine.keys.create(name, **key)).secret) for name, key in KEYS.items()}


def test_every_field_of_a_step_is_looked_at() -> None:
    """A field that comes is given a patch here, and is closed to starts until it is listed."""
    assert {each.encode_name for each in msgspec.structs.fields(FlowStep)} == PATCHES.keys()


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
async def test_a_start_changes_policies_only(engine: TestEngine, door: Door) -> None:
    """Whatever the way in, an operator and an admin of some workflows change no other field of a step; an admin of the
    whole store does. What is refused starts nothing. [S3] [S33]"""
    served = await callers(engine, Api(engine, auth="keys"))
    for who, caller in served.items():
        for field in PATCHES:
            id = f"{who}-{field}".replace(" ", "-")
            answer = await door(caller, id, overrides(field))
            is_let_in = who != "viewer" and (door is not as_a_flow or not KEYS[who].get("workflows"))
            is_free = who == "admin" and is_let_in
            if is_let_in and (field in POLICIES or is_free):
                assert answer.status in (200, 201, 202), (who, field, answer.body)
            else:
                assert answer.status == (422 if is_let_in else 403), (who, field, answer.body)
                assert (await served["admin"].get(f"{API}/runs/{id}")).status == 404, (who, field)


async def test_data_of_rows_and_events_changes_no_step(engine: TestEngine) -> None:
    """They are the input of a flow, whatever their fields are called. [S33]"""
    caller = (await callers(engine, Api(engine, auth="keys")))["operator"]
    answers = [await door(caller, door.__name__, overrides("with")) for door in INPUT_ONLY]
    await engine.settle()

    assert [answer.status for answer in answers] == [201, 202], [answer.body for answer in answers]
    assert set(PAID) == {1}


@pytest.mark.parametrize("field", sorted(PATCHES.keys() - POLICIES))
async def test_a_schedule_gives_policies_only(engine: TestEngine, field: str) -> None:
    """When it ticks there is no principal to ask. [S33]"""
    served = await callers(engine, Api(engine, auth="keys"))
    answers = {who: (await by_a_schedule(caller, "daily", overrides(field))).status for who, caller in served.items()}

    assert answers == dict.fromkeys(served, 403) | {"admin": 422}


async def test_what_was_changed_is_in_the_audit_log(engine: TestEngine) -> None:
    """Which steps and which fields, without values, for every way in. [S37]"""
    caller = (await callers(engine, Api(engine, auth="keys")))["operator"]
    for door in DOORS:
        assert (await door(caller, door.__name__, overrides("timeout"))).status in (200, 201, 202), door
    rows = [it for it in await engine.audit.list() if it.actor == "operator"]

    assert {it.reason for it in rows if "overrides of pay (timeout)" not in it.reason} == set()
    assert len(rows) == len(DOORS)


async def test_a_run_that_got_more_than_it_may_fails_where_it_begins(engine: TestEngine) -> None:
    """Arguments that came past every check do nothing: the run looks again, and needs a mark that no caller can give.
    [S33]"""
    for changes in ({"overrides": overrides("with")}, {"overrides": overrides("use")}):
        await engine.schedules.set("past", outlive.every(days=1, args=changes), HELLO)
        run = await engine.schedules.trigger("past")
        with pytest.raises(RunFailed, match="a start may not change"):
            await run.result()
        await engine.schedules.delete("past")

    assert PAID == [1]


@pytest.mark.parametrize("argument", ["may", "step"])
async def test_no_caller_gives_the_mark(engine: TestEngine, argument: str) -> None:
    """It is none of the arguments that a flow has for others. [S33]"""
    caller = (await callers(engine, Api(engine, auth="keys")))["operator"]
    sent = {"workflow": "overrides_hello", "arguments": {argument: "all", "overrides": overrides("timeout")}}

    assert (await caller.post(f"{API}/runs", sent)).status == 422
    assert (await caller.post(f"{API}/runs", {**sent, "arguments": [{}, {}, {}, "all"]})).status == 422


LISTED = """
name: listed
steps:
  pay:
    use: overrides_pay
    with: { amount: 1 }
    overridable: [with.amount, if]
  frozen: { use: noop, with: 1, must_run: true, overridable: [] }
output: "${{ steps.pay }}"
"""


@pytest.mark.parametrize(
    ("changes", "result"),
    [
        ({"pay": {"with": {"amount": 7}}}, 7),
        ({"pay": {"if": False}}, None),
        ({"pay": {"if": "1 == 1"}}, "true or false"),
        ({"pay": {"timeout": 5}}, "may not change `timeout`"),
        ({"pay": {"with": {"amount": 7, "other": 1}}}, "may not change `with.other`"),
        ({"pay": {"with": None}}, "may not change `with`"),
        ({"frozen": {"timeout": 5}}, "lets a start change nothing"),
        ({"pay": {"with": {"amount": "${{ run.id }}"}}}, "${{ run.id }}"),
    ],
)
async def test_a_document_says_what_a_start_may_change(engine: TestEngine, changes: Any, result: Any) -> None:
    """`overridable` takes the place of the policies, and what a start gives there is data. [S33]"""
    await engine.flows.apply(LISTED)
    await engine.settle()
    caller = Caller(Api(engine, auth="keys"), key=(await engine.keys.create("op", scope="operator")).secret)

    answer = await caller.post(f"{API}/flows/listed/runs", {"id": "l-1", "overrides": changes})
    if isinstance(result, str) and not result.startswith("$"):
        assert answer.status == 422
        assert result in answer.data["detail"]
        return
    assert answer.status == 201, answer.body
    if result == "${{ run.id }}":  # It is no number, so the step refuses it: the expression was not computed.
        with pytest.raises(RunFailed, match="cannot be read as int"):
            await engine.get("l-1").result()
    else:
        assert await engine.get("l-1").result() == result


async def test_the_program_itself_may_change_everything(engine: TestEngine) -> None:
    """An override of code is code. So is one of an admin, under whatever name the program acts."""
    with outlive.acting("ann"):
        run = await engine.start(HELLO.bind(overrides={"pay": {"with": {"amount": 5}}}))
    assert await run.result() == 5

    with (
        outlive.acting("ann", overrides="policies"),
        pytest.raises(flow.FlowInputError, match="may not change `with"),
    ):
        await engine.start(HELLO.bind(overrides={"pay": {"with": {"amount": 5}}}))
