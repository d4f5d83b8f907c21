"""What a start may change of a flow: every way to give arguments, every field of a step, every kind of principal."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import inspect

import outlive
from outlive import flow
from outlive._features.flows.document.model import FlowStep
from outlive._features.flows.flow import register_flow
from outlive._features.security.key import SCOPES
from outlive._kernel.client.definitions import Describer
from outlive._kernel.define.registry import Registry
from outlive._kernel.model.bounds import Bounds
from outlive.errors import RunFailedError
from outlive.http import Api
from outlive.http.operation import OPERATIONS
from outlive.testing import TestEngine
from tests.engine.inside import store_of
from tests.engine.support import registry_of
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
triggers: [{ event: hello.wanted }, { webhook: /overrides_hello }]
steps:
  pay: { use: overrides_pay, with: { amount: 1 } }
  other: { use: noop, with: 1, must_run: true }
output: "${{ steps.pay }}"
"""
HELLO = flow.parse(PLAIN)
register_flow(HELLO)


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


async def among_many(caller: Caller, id: str, changes: Any) -> Answer:
    """One of the starts that one request may hold."""
    sent = {"workflow": "overrides_hello", "id": id, "arguments": {"overrides": changes}}
    answer = await caller.post(f"{API}/bulk/start", {"starts": [sent]})
    if answer.status == 201:
        assert [it["id"] for it in answer.data["items"]] == [id]
    return answer


async def as_a_flow(caller: Caller, id: str, changes: Any) -> Answer:
    """A start of a flow of the library."""
    return await caller.post(f"{API}/flows/overrides_hello/runs", {"id": id, "overrides": changes})


async def as_an_older_flow(caller: Caller, id: str, changes: Any) -> Answer:
    """A start of an older revision of it."""
    return await caller.post(f"{API}/flows/overrides_hello/runs", {"id": id, "overrides": changes, "revision": 1})


async def by_a_version(caller: Caller, id: str, changes: Any) -> Answer:
    """A start of a version of a workflow, which is one revision of the flow."""
    sent = {"workflow": "overrides_hello", "version": HELLO.spec.version, "id": id, "arguments": {"overrides": changes}}
    return await caller.post(f"{API}/runs", sent)


async def by_a_signal(caller: Caller, id: str, changes: Any) -> Answer:
    """A signal that creates its run."""
    start = {"workflow": "overrides_hello", "arguments": {"overrides": changes}}
    return await caller.post(f"{API}/runs/{id}/signals/go", {"payload": 1, "start": start})


async def by_many_signals(caller: Caller, id: str, changes: Any) -> Answer:
    """One of many signals, which creates its run."""
    start = {"workflow": "overrides_hello", "arguments": {"overrides": changes}}
    signal = {"run_id": id, "name": "go", "payload": 1, "start": start}
    return await caller.post(f"{API}/bulk/signal", {"signals": [signal]})


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


async def by_a_webhook(caller: Caller, id: str, changes: Any) -> Answer:
    """A webhook, whose body is the input and nothing else."""
    return await caller.post("/webhooks/overrides_hello", {"overrides": changes}, headers={"webhook-id": id})


Door = Callable[[Caller, str, Any], Awaitable[Answer]]
OPENS: dict[Door, str] = {
    by_name: "runs.start",
    in_a_list: "runs.start",
    by_a_version: "runs.start",
    among_many: "runs.start_many",
    as_a_flow: "flows.start",
    as_an_older_flow: "flows.start",
    by_a_signal: "runs.signal",
    by_many_signals: "runs.signal_many",
    by_an_ask: "runs.ask",
    by_a_fork: "runs.fork",
    by_a_batch: "batches.start",
    by_an_event: "events.send",
    by_a_schedule: "schedules.set",
}
"""The operation of each door. Webhooks are none: they have no principal."""
DOORS: list[Door] = [
    by_name,
    in_a_list,
    by_a_version,
    among_many,
    as_a_flow,
    as_an_older_flow,
    by_a_signal,
    by_many_signals,
    by_an_ask,
    by_a_fork,
]
OF_LIBRARY = (as_a_flow, as_an_older_flow)
ONE_OF_EACH_KIND: list[Door] = [by_name, among_many, as_a_flow, by_a_signal, by_a_fork]
"""A start by name, a start of the library, a message that creates its run, and a fork: each writes in its own way."""
INPUT_ONLY: list[Door] = [by_a_batch, by_an_event, by_a_webhook]
ARGUMENTS = {
    "runs.start": {"arguments"},
    "runs.start_many": {"starts.arguments"},
    "flows.start": {"input", "vars", "overrides"},
    "runs.signal": {"start.arguments"},
    "runs.signal_many": {"signals.start.arguments"},
    "runs.ask": {"start.arguments"},
    "runs.fork": {"input"},
    "batches.start": {"rows"},
    "events.send": {"data"},
    "schedules.set": {"arguments"},
}
"""The arguments of runs in the bodies of operations."""
VALUES = {
    "runs.signal": {"payload"},
    "runs.signal_many": {"signals.payload"},
    "runs.ask": {"body"},
    "runs.fork": {"set"},
    "runs.skip_step": {"result"},
    "approvals.approve": {"form"},
    "approvals.reject": {"form"},
    "approvals.use_link": {"form"},
    "promises.resolve": {"value"},
    "tasks.claim": {"steps.input", "steps.output"},
    "tasks.complete": {"output"},
    "tasks.heartbeat": {"progress"},
}
"""Any other JSON in them: what a run waits for, or what a step returns."""
KEYS: dict[str, dict[str, Any]] = {
    "admin": {"scope": "admin"},
    "operator": {"scope": "operator"},
    "viewer": {"scope": "viewer"},
    "admin of hello": {"scope": "admin", "workflows": ["overrides_hello"]},
    "operator of hello": {"scope": "operator", "workflows": ["overrides_hello"]},
    "admin of a tenant": {"scope": "admin", "tags": {"tenant": "a"}},
    "operator of a tenant": {"scope": "operator", "tags": {"tenant": "a"}},
    "worker": {"scope": "worker"},
}


def may_start(who: str, door: Door) -> bool:
    """Whether a key opens this door at all."""
    key = KEYS[who]
    is_bound = bool(key.get("workflows") or key.get("tags"))
    return key["scope"] in ("admin", "operator") and not (is_bound and door in OF_LIBRARY)


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a store: a file, unless the test says otherwise."""
    if getattr(request, "param", "sqlite") == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite:{tmp_path / 'runs.db'}"


ON_BOTH_STORES = pytest.mark.parametrize("url", ["sqlite", "postgres"], indirect=True)


@pytest.fixture
async def engine(url: str) -> AsyncIterator[TestEngine]:
    """A worker, and a flow in its library that has run once."""
    PAID.clear()
    async with TestEngine(url) as engine:
        await engine.flows.apply(PLAIN)
        await engine.flows.apply(PLAIN + "description: the newer one\n")
        await engine.settle()
        assert await (await engine.start(HELLO, id="first", tags={"tenant": "a"})).result() == 1
        yield engine


async def callers(engine: TestEngine, api: Api) -> dict[str, Caller]:
    """One caller for each kind of principal."""
    return {name: Caller(api, key=(await engine.keys.create(name, **key)).secret) for name, key in KEYS.items()}


def test_every_field_of_a_step_is_looked_at() -> None:
    """A field that comes is given a patch here, and is closed to starts until it is listed."""
    assert {each.encode_name for each in msgspec.structs.fields(FlowStep)} == PATCHES.keys()


def free_json(of: inspect.Type, path: str = "") -> Iterator[str]:
    """The places in a body where any JSON may stand."""
    match of:
        case inspect.AnyType() | inspect.RawType():
            yield path
        case inspect.StructType():
            for field in of.fields:
                yield from free_json(field.type, f"{path}.{field.encode_name}".removeprefix("."))
        case inspect.Metadata():
            yield from free_json(of.type, path)
        case inspect.UnionType():
            for each in of.types:
                yield from free_json(each, path)
        case inspect.DictType():
            yield from free_json(of.value_type, path)
        case inspect.ListType() | inspect.SetType() | inspect.VarTupleType():
            yield from free_json(of.item_type, path)
        case inspect.TupleType():
            for each in of.item_types:
                yield from free_json(each, path)
        case _:
            return


def test_every_operation_that_takes_arguments_is_looked_at() -> None:
    """Each body that takes any JSON is listed as one of arguments of a run, or not, and an operation that takes such
    arguments has a door here. So a new door, and a new field of one, fails until it is looked at. [S33]"""
    bodies = {name: each.body for name, each in OPERATIONS.items() if each.body is not None}
    taken = {name: set(free_json(inspect.type_info(body))) for name, body in bodies.items()}
    known = {name: ARGUMENTS.get(name, set()) | VALUES.get(name, set()) for name in {*ARGUMENTS, *VALUES}}

    assert {name: places for name, places in taken.items() if places} == known
    assert ARGUMENTS.keys() == set(OPENS.values())
    assert {*DOORS, *INPUT_ONLY, by_a_schedule} == {*OPENS, by_a_webhook}


def test_keys_of_every_scope_are_looked_at() -> None:
    """These tests have a key of every scope and of every kind of bound. [S33]"""
    bounds = {name for key in KEYS.values() for name in key if name != "scope"}

    assert {key["scope"] for key in KEYS.values()} == set(SCOPES)
    assert bounds == set(Bounds.__struct_fields__)


@pytest.fixture
async def server(engine: TestEngine, url: str) -> AsyncIterator[outlive.Engine]:
    """A process that has the store of the worker, and none of its code."""
    await Describer(store_of(engine), registry_of(HELLO)).describe()
    async with outlive.Engine(url, worker=False, _registry=Registry()) as server:
        yield server


@pytest.mark.parametrize("has_code", [True, False], ids=["worker", "server"])
@pytest.mark.parametrize(
    ("door", "url"),
    [(door, "sqlite") for door in DOORS] + [(door, "postgres") for door in ONE_OF_EACH_KIND],
    ids=lambda it: it if isinstance(it, str) else it.__name__,
    indirect=["url"],
)
async def test_a_start_changes_policies_only(
    engine: TestEngine, server: outlive.Engine, door: Door, *, has_code: bool
) -> None:
    """Whatever the way in, and whether the server has the code of the flow, an operator and an admin of some workflows
    change no other field of a step; an admin of the whole store does. What is refused starts nothing. [S3 S33]"""
    served = await callers(engine, Api(engine if has_code else server, auth="keys"))
    for who, caller in served.items():
        for field in PATCHES:
            id = f"{who}-{field}".replace(" ", "-")
            if door is by_a_fork and not has_code and (field in POLICIES or who == "admin"):
                continue  # A worker carries it out, with the arguments that the server has checked and encoded.
            answer = await door(caller, id, overrides(field))
            is_let_in = may_start(who, door)
            is_free = who == "admin" and is_let_in
            if is_let_in and (field in POLICIES or is_free):
                assert answer.status in (200, 201, 202), (who, field, answer.body)
            else:
                assert answer.status == (422 if is_let_in else 403), (who, field, answer.body)
                assert (await served["admin"].get(f"{API}/runs/{id}")).status == 404, (who, field)


@ON_BOTH_STORES
async def test_data_of_rows_and_events_changes_no_step(engine: TestEngine) -> None:
    """They are the input of a flow, whatever their fields are called. [S33]"""
    caller = (await callers(engine, Api(engine, auth="keys")))["operator"]
    answers = [await door(caller, door.__name__, overrides("with")) for door in INPUT_ONLY]
    await engine.settle()

    assert [answer.status for answer in answers] == [201, 202, 202], [answer.body for answer in answers]
    assert set(PAID) == {1}
    assert len(PAID) == 1 + len(answers)


@pytest.mark.parametrize(
    ("field", "url"),
    [*((field, "sqlite") for field in sorted(PATCHES.keys() - POLICIES)), ("with", "postgres")],
    indirect=["url"],
)
async def test_a_schedule_gives_policies_only(engine: TestEngine, field: str) -> None:
    """When it ticks there is no principal to ask. [S33]"""
    served = await callers(engine, Api(engine, auth="keys"))
    answers = {who: (await by_a_schedule(caller, "daily", overrides(field))).status for who, caller in served.items()}

    assert answers == dict.fromkeys(served, 403) | {"admin": 422}


async def test_overrides_are_in_the_audit_log(engine: TestEngine) -> None:
    """The overrides of a start are in the audit log by step and field, without values, for every operation that takes
    them. [S37]"""
    caller = (await callers(engine, Api(engine, auth="keys")))["operator"]
    for door in DOORS:
        assert (await door(caller, door.__name__, overrides("timeout"))).status in (200, 201, 202), door
    rows = [it for it in await engine.audit.list() if it.actor == "operator"]

    assert {it.reason for it in rows if "overrides of pay (timeout)" not in it.reason} == set()
    assert len(rows) == len(DOORS)

    admin = Caller(Api(engine, auth="keys"), key=(await engine.keys.create("ann", scope="admin")).secret)
    assert (await by_a_schedule(admin, "daily", overrides("timeout"))).status in (200, 201)
    assert "overrides of pay (timeout)" in next(it for it in await engine.audit.list() if it.actor == "ann").reason


CALLING = """
name: calling_hello
steps:
  child: { use: flow, with: { name: overrides_hello, input: "${{ input }}" } }
  other: { use: start, with: { name: overrides_hello, input: "${{ input }}" }, after: [child], must_run: true }
output: "${{ steps.child }}"
"""


async def test_input_that_a_flow_passes_on_changes_no_step_of_another(engine: TestEngine) -> None:
    """The input of a child, or of a run that a flow starts, is its input and nothing else. [S33]"""
    await engine.flows.apply(CALLING)
    await engine.settle()
    caller = (await callers(engine, Api(engine, auth="keys")))["operator"]
    given = {"overrides": overrides("with"), "vars": {"shop": "south"}, "may": "all", "k": {"may": "all"}}

    answer = await caller.post(f"{API}/flows/calling_hello/runs", {"id": "c-1", "input": given})
    await engine.settle()

    assert answer.status == 201, answer.body
    assert await engine.get("c-1").result() == 1
    await engine.settle()
    assert PAID == [1, 1, 1]


@ON_BOTH_STORES
async def test_a_run_that_got_more_than_it_may_fails_where_it_begins(engine: TestEngine) -> None:
    """Arguments that came past every check do nothing: the run looks again, and needs a mark that no caller can give.
    [S33]"""
    for changes in ({"overrides": overrides("with")}, {"overrides": overrides("use")}):
        await engine.schedules.set("past", outlive.every(days=1, args=changes), HELLO)
        run = await engine.schedules.trigger("past")
        with pytest.raises(RunFailedError, match="a start may not change"):
            await run.result()
        await engine.schedules.delete("past")

    assert PAID == [1]


REFUND = """
name: overrides_refund_asked
input: { cents: { type: integer } }
steps:
  asked: { use: approval, with: { title: "Refund ${{ input.cents }}?" } }
  pay: { use: overrides_pay, with: { amount: "${{ input.cents }}" }, if: "steps.asked.approved" }
output: "${{ steps.pay }}"
"""


async def test_an_operator_cannot_set_or_take_along_a_decision(engine: TestEngine) -> None:
    """No fork and no skip gives the result of an approval, and a decision is not taken along to other input: the person
    is asked again. [S33 S38]"""
    await engine.flows.apply(REFUND)
    await engine.settle()
    served = Api(engine, auth="keys")
    eve, boss = [Caller(served, key=(await engine.keys.create(it, scope="operator")).secret) for it in ("eve", "boss")]
    for id in ("waits", "decided"):
        await eve.post(f"{API}/flows/overrides_refund_asked/runs", {"id": id, "input": {"cents": 1}})
    await engine.settle()
    [call] = [it["data"]["call"] for it in (await eve.get(f"{API}/runs/waits/history")).data["items"] if it["seq"] == 1]
    forged = {"approved": True, "by": "boss"}

    for name in ("asked", call):
        assert (await eve.post(f"{API}/runs/waits/fork", {"id": "f", "set": {name: forged}})).status == 409
        assert (await eve.post(f"{API}/runs/waits/skip", {"call": name, "result": forged})).status == 409

    assert (await boss.post(f"{API}/runs/decided/approvals/asked/approve")).status == 200
    await engine.settle()
    for origin in ("waits", "decided"):
        sent = {"id": f"{origin}-2", "input": {"input": {"cents": 900}}}
        assert (await eve.post(f"{API}/runs/{origin}/fork", sent)).status == 201
        await engine.settle()
        [asked] = (await boss.get(f"{API}/runs/{origin}-2/approvals")).data["items"]
        assert (asked["status"], asked["title"]) == ("pending", "Refund 900?")
    assert PAID == [1, 1]


COFFEE = """
name: overrides_asked_twice
steps:
  asked: { use: approval, with: { title: "Coffee?" } }
  pay: { use: overrides_pay, with: { amount: 3 }, if: "steps.asked.approved" }
output: "${{ steps.pay }}"
"""


@pytest.mark.parametrize("title", ["Coffee?", "A million?"])
async def test_a_decision_is_not_taken_along_to_a_document_that_asks_something_else(
    engine: TestEngine, title: str
) -> None:
    """A fork to another version keeps what people decided only if the code asks them the same. [S33 S38]"""
    later = flow.parse(COFFEE.replace("Coffee?", title) + "description: the later one\n")
    await engine.flows.apply(COFFEE)
    await engine.flows.apply(COFFEE.replace("Coffee?", title) + "description: the later one\n")
    await engine.settle()
    caller = (await callers(engine, Api(engine, auth="keys")))["operator"]
    await caller.post(f"{API}/flows/overrides_asked_twice/runs", {"id": "asked", "revision": 1})
    await engine.settle()
    assert (await caller.post(f"{API}/runs/asked/approvals/asked/approve")).status == 200
    await engine.settle()

    forked = await caller.post(f"{API}/runs/asked/fork", {"id": "again", "version": later.version})
    await engine.settle()
    [request] = (await caller.get(f"{API}/runs/again/approvals")).data["items"]

    assert forked.status == 201, forked.body
    assert (request["title"], request["status"]) == (title, "approved" if title == "Coffee?" else "pending")


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
        ({"pay": {"with": {"amount": "${{ 6 + 1 }}"}}}, "${{ 6 + 1 }}"),
        ({"pay": {"with": {"amount": "\ufdd0secret:token:\ufdd1"}}}, "only the document can do that"),
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
    if result == "${{ 6 + 1 }}":  # It is not a number, so the step refuses it: the expression was not computed.
        with pytest.raises(RunFailedError, match="cannot be read as int"):
            await engine.get("l-1").result()
    else:
        assert await engine.get("l-1").result() == result


SHARING = """
name: overrides_sharing
steps:
  one: { use: overrides_pay, with: { amount: 2 }, limit: "bank 1/d" }
output: "${{ steps.one }}"
"""


async def test_a_limit_that_a_start_gives_is_for_its_flow_alone(engine: TestEngine) -> None:
    """By the name of a limit of another workflow it neither uses that one up nor resets it. [S33]"""
    await engine.flows.apply(SHARING)
    await engine.settle()
    served = await callers(engine, Api(engine, auth="keys"))
    caller = served["operator of hello"]

    async def start(id: str, **changes: Any) -> None:
        assert (await by_name(caller, id, {"pay": changes})).status == 201
        await engine.settle()

    await start("h-1", limit="bank 1/d")
    await start("h-2", limit="bank 1/d")
    assert PAID == [1, 1]
    assert "rate limit bank of starts of overrides_hello" in await engine.get("h-2").why()

    first = await engine.flows.start("overrides_sharing", id="s-1")
    assert await first.result() == 2
    await start("h-3", limit="bank 9/s")
    assert PAID == [1, 1, 2, 1]
    for id, changes in (("s-2", None), ("s-3", {"one": {"timeout": 5}}), ("s-4", {"one": {"limit": "bank 1/d"}})):
        sent = {"id": id, "overrides": changes}
        assert (await served["operator"].post(f"{API}/flows/overrides_sharing/runs", sent)).status == 201
        await engine.settle()
        assert "rate limit bank (" in await engine.get(id).why()
    assert PAID == [1, 1, 2, 1]


async def test_the_program_itself_may_change_everything(engine: TestEngine) -> None:
    """An override of code is code. So is one of an admin, under whatever name the program acts."""
    with engine.audit.acting("ann"):
        run = await engine.start(HELLO.bind(overrides={"pay": {"with": {"amount": 5}}}))
    assert await run.result() == 5

    with (
        engine.audit.acting("ann", overrides="policies"),
        pytest.raises(flow.FlowInputError, match="may not change `with"),
    ):
        await engine.start(HELLO.bind(overrides={"pay": {"with": {"amount": 5}}}))
