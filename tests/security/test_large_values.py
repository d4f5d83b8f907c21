"""Values that strangers send are held against schemas on the event loop, so however large or twisted one is, other
requests have their turn meanwhile."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, Union

import msgspec
import pytest

import outlive
from outlive._features.flows.document import inputs
from outlive._features.schedules.in_code import filled
from outlive._kernel.client import slices
from outlive._kernel.define.registry import Registry
from outlive._kernel.journal import schema, tagged
from outlive.http import Api, Webhooks
from outlive.http.reading import read_body
from outlive.types import RunHandle
from tests.engine.inside import describe_now
from tests.engine.support import Place, until
from tests.http.caller import Answer, Caller

RUNS = "/api/v1/runs"
FAR = "192.0.2.7"
LOOKS = 10


class And(msgspec.Struct, tag="and"):
    """One of a union that refers to itself."""

    left: Union[And, Or, Lit]  # noqa: UP007 (msgspec evaluates it)
    right: Union[And, Or, Lit]  # noqa: UP007


class Or(msgspec.Struct, tag="or"):
    """Another one with the same fields."""

    left: Union[And, Or, Lit]  # noqa: UP007
    right: Union[And, Or, Lit]  # noqa: UP007


class Lit(msgspec.Struct, tag="lit"):
    """What a rule ends with."""

    value: int


Rules = list[And | Or | Lit]


class Form(msgspec.Struct):
    """A form with rules."""

    rules: Rules


@outlive.workflow(on_event="large.happened")
async def large_order(rules: Rules) -> int:
    """Takes rules."""
    return len(rules)


@outlive.workflow(signals={"rules": Rules})
async def large_waiting() -> int:
    """Waits for rules."""
    return len(await outlive.wait_for_signal("rules", Rules))


@outlive.workflow
async def large_promise() -> int:
    """Waits for a promise of rules, whose id it shows."""
    made = outlive.promise(Rules)
    outlive.publish(promise=made.id)
    return len(await made)


@outlive.workflow
async def large_form() -> bool:
    """Asks a person for rules."""
    return bool(await outlive.wait_for_approval("rules", form=Form))


weigh = outlive.remote_step("large_weigh", input=int, output=Rules, queue="large")


@outlive.workflow
async def large_remote() -> int:
    """Has a worker elsewhere make rules."""
    return len(await weigh(1))


count = outlive.remote_step("large_count", input=int, queue="large")


@outlive.workflow
async def large_unknown() -> Any:
    """Has a worker elsewhere make anything."""
    return await count(1)


def rule(depth: int) -> dict[str, Any]:
    """A rule whose tag comes last, as a sender may write it."""
    made: dict[str, Any] = {"value": 1, "type": "lit"}
    for _ in range(depth):
        made = {"left": made, "right": {"value": 1, "type": "lit"}, "type": "and"}
    return made


class Server:
    """A server that has no code, and the worker whose runs it serves."""

    def __init__(self, worker: outlive.Engine, api: Api, key: str, worker_key: str) -> None:
        self.worker = worker
        self.caller, self.stranger = Caller(api, key=key), Caller(api, address=FAR)
        self.remote = Caller(api, key=worker_key)

    async def post(self, path: str, **body: Any) -> Answer:
        """The answer to a known caller."""
        return await self.caller.post(path, body)

    async def waits(self, run: RunHandle[Any]) -> None:
        """Return when a run waits for something."""

        async def is_waiting() -> bool:
            return await run.status() == "waiting"

        await until(is_waiting)


async def _start(server: Server, rules: Any) -> Answer:
    return await server.post(RUNS, workflow="large_order", arguments={"rules": rules})


async def _signal(server: Server, rules: Any) -> Answer:
    run = await server.worker.start(large_waiting)
    return await server.post(f"{RUNS}/{run.id}/signals/rules", payload=rules)


def _start_of(rules: Any) -> dict[str, Any]:
    return {"workflow": "large_order", "arguments": {"rules": rules}}


async def _signal_with_start(server: Server, rules: Any) -> Answer:
    return await server.post(f"{RUNS}/new-1/signals/go", start=_start_of(rules))


async def _ask_with_start(server: Server, rules: Any) -> Answer:
    return await server.post(f"{RUNS}/new-1/asks/go", start=_start_of(rules), wait=0)


async def _fork(server: Server, rules: Any) -> Answer:
    rules_before: Rules = [Lit(1)]
    run = await server.worker.start(large_order, rules_before)
    await run.result()
    return await server.post(f"{RUNS}/{run.id}/fork", input={"rules": rules})


async def _batch(server: Server, rules: Any) -> Answer:
    return await server.post("/api/v1/batches", workflow="large_order", rows=[rules])


async def _event(server: Server, rules: Any) -> Answer:
    return await server.post("/api/v1/events", type="large.happened", data=rules)


async def _schedule(server: Server, rules: Any) -> Answer:
    body = {"workflow": "large_order", "arguments": {"rules": rules}, "every": 3600}
    return await server.caller.send("PUT", "/api/v1/schedules/large", body)


async def _promise(server: Server, rules: Any) -> Answer:
    run = await server.worker.start(large_promise)
    await server.waits(run)
    shown = await run.published()
    return await server.post(f"/api/v1/promises/{shown['promise']}/resolve", value=rules)


async def _approve(server: Server, rules: Any) -> Answer:
    run = await server.worker.start(large_form)
    await server.waits(run)
    return await server.post(f"{RUNS}/{run.id}/approvals/rules/approve", form={"rules": rules})


async def _decide_by_link(server: Server, rules: Any) -> Answer:
    run = await server.worker.start(large_form)
    await server.waits(run)
    link = await server.worker.approvals.links.create(run.id, "rules", approved=True, by="ann")
    return await server.stranger.post(f"/decide/{link.token}", {"form": {"rules": rules}})


async def _complete(server: Server, rules: Any) -> Answer:
    await server.worker.start(large_remote)
    task = await server.worker.tasks.claim("large", ["large_weigh"], wait=5)
    assert task is not None
    return await server.remote.post(f"/api/v1/tasks/{task.id}/complete", {"lease": task.lease, "output": rules})


DOORS: list[Callable[[Server, Any], Awaitable[Answer]]] = [
    _start,
    _signal,
    _signal_with_start,
    _ask_with_start,
    _fork,
    _batch,
    _event,
    _schedule,
    _promise,
    _approve,
    _decide_by_link,
    _complete,
]


@pytest.fixture
def _no_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server knows signals and forms by what workers have described."""
    monkeypatch.setattr("outlive._kernel.client.inbox.SIGNALS", {})
    monkeypatch.setattr("outlive._features.approvals.deciding.FORMS", {})


@asynccontextmanager
async def served() -> AsyncIterator[Server]:
    """A server and a worker."""
    place = Place(None)
    async with place.engine() as worker, place.engine(worker=False, registry=Registry()) as engine:
        await describe_now(worker)
        key = await worker.keys.create("eve", scope="admin")
        remote = await worker.keys.create("gpu", scope="worker")
        yield Server(worker, Api(engine, auth="keys"), key.secret, remote.secret)


@pytest.mark.usefixtures("_no_code")
@pytest.mark.parametrize("door", DOORS)
async def test_a_large_value_gives_way_to_other_requests_while_it_is_checked(
    door: Callable[[Server, Any], Awaitable[Answer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever door it came by: after so many looks at it the loop turns. [S35 S51]"""
    turns, checks, check = 0, list[list[int]](), schema.check

    def watched(value: Any, wanted: Any) -> schema.Checking:
        checking, seen = check(value, wanted), list[int]()
        checks.append(seen)
        while True:
            seen.append(turns)
            try:
                next(checking)
            except StopIteration as end:
                found: str | None = end.value
                return found
            yield

    async def take_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    monkeypatch.setattr(slices, "check", watched)
    monkeypatch.setattr(schema, "LOOKS_AT_ONCE", LOOKS)
    async with served() as server:
        other = asyncio.ensure_future(take_turns())
        answer = await door(server, [rule(3)] * 50)
        other.cancel()

    assert answer.status < 300, answer.body
    longest = max(checks, key=len)
    assert len(longest) > 50 * 7 // LOOKS
    assert len(set(longest)) >= len(longest) - 1, "it goes on in the next turn, but for the one in which it began"


@pytest.mark.usefixtures("_no_code")
@pytest.mark.parametrize("door", DOORS)
async def test_a_union_that_refers_to_itself_costs_a_look_for_each_part(
    door: Callable[[Server, Any], Awaitable[Answer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A body of 3 KB with its tags last took more looks than there is time, by whatever door. [S35]"""
    monkeypatch.setattr(schema, "LOOKS_MAX", 2_000)
    async with served() as server:
        answer = await door(server, [rule(40)])

    assert answer.status < 300, answer.body


@pytest.mark.usefixtures("_no_code")
@pytest.mark.parametrize("door", DOORS)
async def test_a_value_that_takes_too_many_looks_is_refused(
    door: Callable[[Server, Any], Awaitable[Answer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By whatever door, in words that say what to do. [S35]"""
    monkeypatch.setattr(schema, "LOOKS_MAX", 100)
    async with served() as server:
        answer = await door(server, [rule(3)] * 50)

    if door is _event:  # It is kept for what takes it; the workflow that does not is named.
        assert answer.data["refused"][0]["workflow"] == "large_order"
    else:
        assert answer.status in (400, 409, 422), answer.body
    assert b"too large to be checked" in answer.body


async def test_a_task_of_another_worker_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller without its lease gets that answer for any output, which is not looked at. [S35]"""
    looked: list[Any] = []

    def check(value: Any, _: Any) -> Iterator[None]:
        looked.append(value)
        yield

    monkeypatch.setattr(slices, "check", check)
    async with served() as server:
        await server.worker.start(large_remote)
        task = await server.worker.tasks.claim("large", ["large_weigh"], wait=5)
        assert task is not None
        path = f"/api/v1/tasks/{task.id}/complete"
        lost = await server.remote.post(path, {"lease": "olt_no", "output": "wrong"})
        await server.worker.tasks.fail(task.id, task.lease, "no")
        ended = await server.remote.post(path, {"lease": task.lease, "output": "wrong"})

    assert [(409, "task_lease_lost"), (409, "task_ended")] == [(it.status, it.code) for it in (lost, ended)]
    assert looked == []


async def _untyped_signal(server: Server, value: Any) -> Answer:
    run = await server.worker.start(large_waiting)
    return await server.post(f"{RUNS}/{run.id}/signals/other", payload=value)


async def _untyped_output(server: Server, value: Any) -> Answer:
    await server.worker.start(large_unknown)
    task = await server.worker.tasks.claim("large", ["large_count"], wait=5)
    assert task is not None
    return await server.remote.post(f"/api/v1/tasks/{task.id}/complete", {"lease": task.lease, "output": value})


@pytest.mark.usefixtures("_no_code")
@pytest.mark.parametrize("door", [_untyped_signal, _untyped_output])
async def test_a_large_value_of_no_type_is_read_in_one_turn_and_written_in_another(
    door: Callable[[Server, Any], Awaitable[Answer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither part can be divided, so others have their turn between them; and to write it calls no function for each
    list, which took half a second for 500 KB of lists in lists. [S35 S51]"""
    turn, seen, calls, encode = 0, list[int](), list[int](), tagged.is_plain

    def read(operation: Any, body: bytes) -> Any:
        if len(body) > slices.LARGE_BYTES:
            seen.append(turn)
        return read_body(operation, body)

    def looked(value: Any) -> bool:
        is_large = isinstance(value, list)
        if is_large:
            seen.append(turn)
            calls.append(0)
            sys.setprofile(lambda *_: calls.append(calls.pop() + 1))
        try:
            return encode(value)
        finally:
            sys.setprofile(None)

    async def take_turns() -> None:
        nonlocal turn
        while True:
            await asyncio.sleep(0)
            turn += 1

    monkeypatch.setattr("outlive.http.app.read_body", read)
    monkeypatch.setattr("outlive._kernel.journal.value.is_plain", looked)
    async with served() as server:
        other = asyncio.ensure_future(take_turns())
        answer = await door(server, [[[[]]]] * 20_000)
        other.cancel()

    assert answer.status < 300, answer.body
    read_at, written_at = seen
    assert read_at < written_at
    assert calls[0] < 500


FLOW = """
name: large-flow
input: { rules: { type: array, items: { anyOf: [ { type: object, properties: { weight: integer } }, integer ] } } }
triggers:
  - event: large.flow
  - webhook: /large
steps:
  look: { use: noop }
"""


async def _flow_by_event(engine: outlive.Engine, key: str, data: Any) -> Answer:
    caller = Caller(Api(engine, auth="keys"), key=key)
    return await caller.post("/api/v1/events", {"type": "large.flow", "data": data})


async def _flow_by_webhook(engine: outlive.Engine, key: str, data: Any) -> Answer:
    return await Caller(Webhooks(engine)).post("/large", data)


@pytest.mark.parametrize("door", [_flow_by_event, _flow_by_webhook])
async def test_a_large_input_of_a_flow_gives_way_to_other_requests_while_it_is_checked(
    door: Callable[[outlive.Engine, str, Any], Awaitable[Answer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that takes an event or a webhook checks what the flow is given in slices, too: half a million
    comparisons took a second of the loop. [S35 S51]"""
    turn, looks, take = 0, dict[int, int](), inputs.Looks.take

    def watched(self: inputs.Looks, count: int = 1) -> Any:
        looks[turn] = looks.get(turn, 0) + count
        return take(self, count)

    async def take_turns() -> None:
        nonlocal turn
        while True:
            await asyncio.sleep(0)
            turn += 1

    monkeypatch.setattr(inputs, "LOOKS_AT_ONCE", LOOKS)
    async with Place(None).engine(worker=False, registry=Registry()) as engine:
        key = await engine.keys.create("eve", scope="admin")
        await engine.flows.apply(FLOW, by="ann")
        monkeypatch.setattr(inputs.Looks, "take", watched)
        other = asyncio.ensure_future(take_turns())
        answer = await door(engine, key.secret, {"rules": [{"weight": 1}] * 100})
        other.cancel()

    assert answer.status == 202, answer.body
    assert len(answer.data["runs"]) == 1
    assert sum(looks.values()) > 300
    assert max(looks.values()) <= 2 * LOOKS


def test_large_arguments_of_a_schedule_take_no_call_for_each_part() -> None:
    """They are written and read by functions of C, when the schedule is made and at each tick: a call for each list and
    map of 2 MB took 0.3 s. [S35 S51]"""
    calls = 0

    def note(frame: Any, event: str, _: Any) -> None:
        nonlocal calls
        calls += event == "call"

    rules = [rule(3)] * 2_000
    sys.setprofile(note)
    try:
        schedule = outlive.every(hours=1, args={"rules": rules})
        arguments = filled(schedule.arguments, 0, "UTC")
    finally:
        sys.setprofile(None)

    assert arguments == {"rules": rules}
    assert calls < 200
