"""Keys that are revoked while their requests wait: what comes afterwards is for others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

import outlive
from outlive.errors.run import AskTimeoutError
from outlive.http import Api, ApiLimits
from outlive.http.doors import StoredKeys
from outlive.http.operation import OPERATIONS
from outlive.http.principal import Asking, Principal
from outlive.testing import TestEngine
from tests.engine.inside import store_of
from tests.http.caller import Answer, Caller

API = "/api/v1"
SECRET = "a-secret-answer"
clip = outlive.remote_step("clip", input=str, output=str, queue="gpu")
CLAIM = {"queue": "gpu", "steps": ["clip"], "worker": "gpu-1"}
END = ApiLimits(check_again_seconds=3600.0)
"""Nothing but the end of a wait asks for the key again."""


@outlive.workflow(name="waiting_keys.clipped")
async def clipped(text: str) -> str:
    """One remote step."""
    return await clip(text)


@outlive.workflow(name="waiting_keys.patient")
async def patient() -> str:
    """Ends with the signal that it got."""
    return str(await outlive.wait_for_signal("go"))


@outlive.workflow(name="waiting_keys.asked")
async def asked() -> None:
    """Answers each ask when it may."""
    async for question in outlive.asks("price"):
        question.reply(await outlive.wait_for_signal("go"))


class Door:
    """Keys in the store. One is revoked as soon as it has opened the door so many times."""

    def __init__(self, engine: outlive.Engine, key: str, *, times: int = 1) -> None:
        self._engine, self._keys = engine, StoredKeys(engine)
        self._key, self._times = key, times
        self.was_closed = asyncio.Event()

    async def __call__(self, asking: Asking) -> Principal | None:
        """See `Authenticate`."""
        found = await self._keys(asking)
        self._times -= 1
        if not self._times:
            await self._engine.keys.revoke(self._key)
            self.was_closed.set()
        return found


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[TestEngine]:
    """An engine on a file."""
    async with TestEngine(f"sqlite:{tmp_path / 'runs.db'}") as engine:
        yield engine


async def result(engine: TestEngine, caller: Caller) -> Answer:
    """Waits for the end of a run."""
    return await caller.get(f"{API}/runs/p-1/result?wait=30")


async def ask(engine: TestEngine, caller: Caller) -> Answer:
    """Asks, and waits for the answer."""
    return await caller.post(f"{API}/runs/a-1/asks/price", {"body": 1, "key": "another", "wait": 30})


async def answer(engine: TestEngine, caller: Caller) -> Answer:
    """Waits for the answer to what was asked before."""
    return await caller.get(f"{API}/runs/a-1/asks/price/before?wait=30")


async def verify_audit(engine: TestEngine, caller: Caller) -> Answer:
    """Checks every row of the log, which can take long."""
    return await caller.get(f"{API}/audit/verify")


async def claim_task(engine: TestEngine, caller: Caller) -> Answer:
    """Waits for a task."""
    return await caller.post(f"{API}/tasks/claim", {**CLAIM, "wait": 30})


WAITING: dict[str, tuple[Callable[[TestEngine, Caller], Coroutine[Any, Any, Answer]], str]] = {
    "runs.result": (result, "viewer"),
    "runs.ask": (ask, "operator"),
    "asks.answer": (answer, "viewer"),
    "tasks.claim": (claim_task, "worker"),
    "audit.verify": (verify_audit, "admin"),
}


def test_every_operation_that_waits_is_looked_at() -> None:
    """One that comes is asked about here."""
    assert {name for name, each in OPERATIONS.items() if each.waits} == WAITING.keys()


@pytest.mark.parametrize("name", WAITING)
async def test_a_key_that_is_revoked_gets_nothing_that_it_waits_for(engine: TestEngine, name: str) -> None:
    """Its request began before, and the answer comes afterwards. [S3]"""
    send, scope = WAITING[name]
    key = await engine.keys.create("eve", scope=scope)
    door = Door(engine, key.key.id)
    await engine.start(patient, id="p-1")
    await engine.start(asked, id="a-1")
    with pytest.raises(AskTimeoutError):
        await engine.ask("a-1", "price", 1, key="before", timeout=0)
    await engine.settle()

    waiting = asyncio.ensure_future(send(engine, Caller(Api(engine, auth=door, limits=END), key=key.secret)))
    await asyncio.wait_for(door.was_closed.wait(), 20)
    await engine.start(clipped, SECRET, id="t-1")
    for run_id in ("p-1", "a-1", "a-1"):
        await engine.signal(run_id, "go", SECRET)
    await engine.settle()
    given = await asyncio.wait_for(waiting, 20)

    assert (given.status, given.code) == (401, "unauthenticated")
    assert SECRET.encode() not in given.body


async def test_a_key_that_is_revoked_waits_no_longer() -> None:
    """A request whose key is revoked while it waits gets 401 long before its wait would end. [S3]"""
    async with outlive.Engine("memory:") as engine:
        key = await engine.keys.create("eve")
        limits = ApiLimits(check_again_seconds=0.0, wait_seconds_max=3600.0)
        app = Api(engine, auth=Door(engine, key.key.id), limits=limits)
        await engine.start(patient, id="p-1")

        waiting = Caller(app, key=key.secret).get(f"{API}/runs/p-1/result?wait=3600")
        assert (await asyncio.wait_for(waiting, 20)).status == 401


@pytest.mark.parametrize(("begins", "claims"), [("before", 2), ("meanwhile", 1), ("after", 1)])
async def test_a_task_that_a_revoked_key_waited_for_is_for_others_at_once(
    engine: TestEngine, begins: str, claims: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a wait the key is looked at before a claim is written. One that was written before is taken back, so that
    the next program gets the task without waiting for the lease. [S3]"""
    eve, bob = [await engine.keys.create(name, scope="worker") for name in ("eve", "bob")]
    app = Api(engine, auth=Door(engine, eve.key.id), limits=END)
    claim, is_first = store_of(engine).claim_runs, True

    async def begin(when: str) -> None:
        if begins == when:
            await engine.start(clipped, SECRET, id="t-1")
            await engine.settle()

    async def claim_runs(session: str, *args: Any, **options: Any) -> Any:
        nonlocal is_first
        found = await claim(session, *args, **options)
        if session.startswith("remote ") and is_first:
            is_first = False
            await begin("meanwhile")
        return found

    monkeypatch.setattr(store_of(engine), "claim_runs", claim_runs)
    await begin("before")
    refused = await asyncio.wait_for(claim_task(engine, Caller(app, key=eve.secret)), 20)
    await begin("after")
    found = await Caller(Api(engine, auth="keys"), key=bob.secret).post(f"{API}/tasks/claim", {**CLAIM, "wait": 0})

    assert refused.status == 401
    assert (found.data["task"]["input"], found.data["task"]["claims"]) == (SECRET, claims)
