"""Keys for some workflows start runs in the queue that their workflow declares, and in no other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

import outlive
from outlive._kernel.client.definitions import Describer
from outlive._kernel.define.registry import Registry
from outlive.errors.key import QueueRefusedError
from outlive.http import Api
from outlive.http.operation import OPERATIONS
from outlive.http.principal import WITHIN_WORKFLOWS
from outlive.testing import TestEngine
from tests.engine.inside import store_of
from tests.engine.support import registry_of
from tests.http.caller import Caller

mails = outlive.Queue("keys.mails", concurrency=5, priorities=True)
payroll = outlive.Queue("keys.payroll", concurrency=1, priorities=True)
SAYS_WHERE = {"queue", "key", "priority"}


@outlive.workflow(name="keys.mail", queue=mails)
async def mail(number: int) -> int:
    """A workflow with a queue."""
    return number


@outlive.workflow(name="keys.note")
async def note(number: int) -> int:
    """A workflow without a queue."""
    return number


@outlive.workflow(name="keys.pay", queue=payroll)
async def pay(number: int) -> int:
    """A workflow of other people."""
    return number


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[TestEngine]:
    """An engine."""
    async with TestEngine(f"sqlite:{tmp_path / 'runs.db'}") as engine:
        await engine.start(pay, 1, id="theirs")
        await engine.start(mail, 1, id="ours")
        await engine.settle()
        yield engine


async def caller(engine: TestEngine, **options: Any) -> Caller:
    """A caller with a key of an operator."""
    key = await engine.keys.create("eve", scope=options.pop("scope", "operator"), **options)
    return Caller(Api(engine, auth="keys"), key=key.secret)


def fields_of(struct: Any) -> set[str]:
    """The names of the fields of a struct, and of structs in it, that say where a run is placed."""
    found: set[str] = set()
    for field in msgspec.structs.fields(struct):
        found |= SAYS_WHERE & {field.name}
        for each in structs_in(field.type):
            found |= fields_of(each)
    return found


def structs_in(kind: Any) -> list[Any]:
    """The structs in a type, at whatever depth of lists and unions."""
    own = [kind] if isinstance(kind, type) and issubclass(kind, msgspec.Struct) else []
    return own + [it for each in get_args(kind) for it in structs_in(each)]


BY_QUEUE: dict[str, tuple[str, dict[str, Any]]] = {
    "runs.start": ("/runs", {"workflow": "keys.mail", "arguments": [1]}),
    "runs.start_many": ("/bulk/start", {"workflow": "keys.mail", "arguments": [1]}),
    "batches.start": ("/batches", {"workflow": "keys.mail", "rows": [1]}),
}
"""The operations by which a key for some workflows may name the queue of a run."""


def sent(door: str, **said: Any) -> dict[str, Any]:
    """The body for a door, with options of the start; of many starts it is the second."""
    first = BY_QUEUE[door][1]
    return {"starts": [first, {**first, **said}]} if door == "runs.start_many" else {**first, **said}


OF_MESSAGES = {"runs.signal", "runs.signal_many", "runs.ask"}
"""Their `key` names the message; a run that they start is placed by its workflow."""
OF_CHANGES = {"runs.change"}
"""They place a run that is there, which has a test of its own."""


def test_every_door_that_names_a_queue_is_known_here() -> None:
    """An operation that takes a queue, a key or a priority is attacked here, unless it is closed to such keys."""
    open_to_keys = {
        name: fields_of(it.body)
        for name, it in OPERATIONS.items()
        if it.body is not None and it.reach in WITHIN_WORKFLOWS and it.scope != "worker"
    }

    assert {name for name, fields in open_to_keys.items() if fields} == {*BY_QUEUE, *OF_MESSAGES, *OF_CHANGES}
    assert all(open_to_keys[name] == {"key"} for name in OF_MESSAGES)


@pytest.mark.parametrize("door", sorted(BY_QUEUE))
@pytest.mark.parametrize("queue", ["keys.payroll", "default", "keys.new"])
async def test_no_start_takes_the_slots_of_another_queue(engine: TestEngine, door: str, queue: str) -> None:
    """Neither those of other people's workflows, nor those outside of all queues, nor a line of its own. [S3 S33]"""
    path = BY_QUEUE[door][0]
    tenant = await caller(engine, tags={"tenant": "a"})
    assert (await tenant.post(f"/api/v1{path}", sent(door, queue=queue))).code == "queue_refused"
    bound, whole = await caller(engine, workflows=["keys.mail", "keys.note"]), await caller(engine)

    refused = await bound.post(f"/api/v1{path}", sent(door, queue=queue))

    assert (refused.status, refused.code) == (403, "queue_refused")
    assert "keys.mails" in refused.data["detail"]
    assert await engine.count(roots_only=True) == 2
    entry = (await engine.audit.list(limit=1))[0]
    assert (entry.actor, entry.verb, entry.is_denied) == ("eve", door, True)
    assert (await whole.post(f"/api/v1{path}", sent(door, queue=queue))).status == 201


async def test_no_change_moves_a_run_into_another_queue(engine: TestEngine) -> None:
    """A bound key gives a run that has not begun another key of its queue, and no other queue. [S3 S33]"""
    await engine.start(mail, 2, id="later", delay=3600)
    bound = await caller(engine, workflows=["keys.mail"])

    refused = await bound.post("/api/v1/runs/later/change", {"queue": "keys.payroll"})
    taken = await bound.post("/api/v1/runs/later/change", {"key": "customer-7"})

    assert (refused.status, refused.code, taken.status) == (403, "queue_refused", 202)
    run = await engine.get("later").info()
    assert (run.queue, run.queue_key) == ("keys.mails", "customer-7")


@pytest.mark.parametrize("door", sorted(BY_QUEUE))
@pytest.mark.parametrize("said", [{}, {"queue": "keys.mails"}])
async def test_the_queue_of_the_workflow_takes_keys_and_priorities(
    engine: TestEngine, door: str, said: dict[str, str]
) -> None:
    """A bound key may name the queue that the workflow declares or leave it out, and may give a key and a priority."""
    bound = await caller(engine, workflows=["keys.mail"])

    placed = await bound.post(f"/api/v1{BY_QUEUE[door][0]}", sent(door, **said, key="customer-7", priority=3))

    assert placed.status == 201
    await engine.settle()
    assert "customer-7" in [run.queue_key for run in await engine.list(queue="keys.mails", internal=True)]


@pytest.mark.parametrize(
    "said", [{"queue": "keys.mails"}, {"queue": "default", "key": "x"}, {"key": "x"}, {"priority": 9}]
)
async def test_a_workflow_without_a_queue_has_no_key_and_no_priority(engine: TestEngine, said: dict[str, Any]) -> None:
    """A bound key cannot give a queue, a key or a priority to a workflow that declares no queue."""
    bound = await caller(engine, workflows=["keys.note"])
    body = {"workflow": "keys.note", "arguments": [1]}

    assert (await bound.post("/api/v1/runs", {**body, **said})).status in (403, 422)
    assert (await bound.post("/api/v1/runs", {**body, "queue": "default"})).status == 201


@pytest.mark.parametrize("has_code", [True, False])
async def test_a_fork_does_not_follow_a_run_into_another_queue(tmp_path: Path, *, has_code: bool) -> None:
    """An operator of the whole store had put it there; its fork would stand there too. [S3 S33]"""
    store = f"sqlite:{tmp_path / 'runs.db'}"
    async with TestEngine(store) as engine:
        for name, queue in (("astray", payroll), ("own", None)):
            await engine.start(mail, 1, id=name, queue=queue)
        await engine.settle()
        await Describer(store_of(engine), registry_of(mail)).describe()
        registry = registry_of(mail) if has_code else Registry()
        async with outlive.Engine(store, worker=False, _registry=registry) as server:
            key = await server.keys.create("eve", scope="operator", workflows=["keys.mail"])
            eve = Caller(Api(server, auth="keys"), key=key.secret)

            refused = await eve.post("/api/v1/runs/astray/fork", {"id": "fork"})

            assert (refused.status, refused.code) == (403, "queue_refused")
            assert not await engine.list(id_prefix="fork")
            if has_code:
                assert (await eve.post("/api/v1/runs/own/fork", {"id": "fork"})).status == 201


async def test_code_that_acts_for_a_key_has_the_same_bounds(engine: TestEngine) -> None:
    """Every start in the name of a principal is checked, whichever door it came by."""
    with engine.audit.acting("eve", workflows=["keys.mail"]):
        with pytest.raises(QueueRefusedError):
            await engine.start(mail, 1, queue=payroll)
        with pytest.raises(QueueRefusedError):
            await engine.start_batch(mail, [1], queue="keys.payroll")
        await engine.start(mail, 1, id="own", queue=mails)
    assert (await engine.get("own").info()).queue == "keys.mails"
