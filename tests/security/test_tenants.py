"""Tenants of one store: no verb, operation or command of one shows anything of another, and a quota holds for all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import outlive
from outlive import flow
from outlive.cli import main
from outlive.errors.run import QuotaExceededError
from outlive.http import Api, ApiLimits
from outlive.http.operation import EVENT_STREAM, OPERATIONS
from outlive.testing import TestEngine
from tests.http.caller import Caller

MARK = "of-acme-only"
API = "/api/v1"
FLOW = """
name: tenant.flow
input: { order: any }
triggers:
  - event: tenant.sent
  - webhook: /tenant
steps:
  look: { use: sleep, with: { seconds: 1000 } }
"""


@outlive.workflow
async def tenant_waits(note: str = "") -> str:
    """Waits for a signal, and for a person."""
    outlive.publish(note=note)
    await outlive.wait_for_approval("refund", title=note)
    return note


async def furnish(engine: outlive.Engine, mark: str) -> None:
    """One of everything that has a name, named after the tenant."""
    with engine.audit.acting(mark):
        await engine.start(tenant_waits, mark, id=mark, tags={"mark": mark}, queue=mark)
        await engine.keys.create(mark)
        await engine.schedules.set(mark, outlive.every(days=1), tenant_waits)
        await engine.queues.pause(mark, reason=mark)
        await engine.events.add_sink(mark, f"https://{mark}.example/")
        await engine.flows.apply(FLOW.replace("tenant.flow", f"flow.{mark}"), by=mark)
        await engine.start_batch(tenant_waits, [mark], id=f"batch-{mark}")


async def seen_by(engine: outlive.Engine) -> dict[str, str]:
    """What all operations show that only look, also of what is named after the other tenant."""
    api = Caller(Api(engine, limits=ApiLimits(wait_seconds_max=0.0, look_seconds=0.0)))
    found = {}
    for it in OPERATIONS.values():
        # What is followed does not end as long as its run is open.
        if it.method != "GET" or it.namespace == "api" or it.media == EVENT_STREAM:
            continue
        path = it.path.format(**dict.fromkeys(it.names, MARK))
        answer = await api.get(path)
        # What was asked for is repeated: in the answer that it is not there, and as the name of an empty queue.
        found[path] = "" if answer.status == 404 else answer.body.decode().replace(f'"name":"{MARK}"', "", 1)
    return found


async def look_at_each_other(url: str) -> None:
    """One tenant has everything; the other sees nothing of it, and the first one sees it."""
    async with AsyncExitStack() as stack:
        acme = await stack.enter_async_context(outlive.Engine(url, worker=False, namespace="seen"))
        globex = await stack.enter_async_context(outlive.Engine(url, worker=False, namespace="unseeing"))
        own = await stack.enter_async_context(outlive.Engine(url, worker=False))
        await furnish(acme, MARK)
        for other in (globex, own):
            assert [] == [path for path, text in (await seen_by(other)).items() if MARK in text]
        seen = await seen_by(acme)

    assert len([path for path, text in seen.items() if MARK in text]) > 15


async def test_no_operation_shows_a_tenant_of_the_same_folder(tmp_path: Path) -> None:
    """Every one that only looks, made from the table. [S33]"""
    await look_at_each_other(f"sqlite:{tmp_path / 'runs.db'}")


async def test_no_operation_shows_a_tenant_of_the_same_database(postgres_url: str) -> None:
    """No operation that only reads shows another tenant of the same PostgreSQL database. [S33]"""
    await look_at_each_other(postgres_url)


def test_no_command_shows_a_tenant_of_the_same_folder(tmp_path: Path) -> None:
    """Lists, and what is asked by name. [S33]"""
    url = f"sqlite:{tmp_path / 'runs.db'}"

    async def prepare() -> None:
        async with outlive.Engine(url, worker=False, namespace="acme") as engine:
            await furnish(engine, MARK)

    def ask(namespace: str, *line: str) -> str:
        result = CliRunner().invoke(main, [*line, "--namespace", namespace], env={"OUTLIVE_STORE": url})
        return result.output if result.exit_code == 0 else ""

    asyncio.run(prepare())
    lines = [
        ["runs", "list"],
        ["runs", "show", MARK],
        ["runs", "why", MARK],
        ["runs", "export", MARK],
        ["keys", "list"],
    ]
    lines += [["schedules", "list"], ["schedules", "show", MARK], ["queues", "list"], ["audit", "list"]]
    lines += [
        ["approvals", "list"],
        ["flows", "list"],
        ["workers", "list"],
        ["events", "sinks"],
        ["fsck"],
        ["runs", "list", "--stuck"],
    ]
    of_acme = [line for line in lines if MARK in ask("acme", *line)]
    asyncio.run(_make(url))

    assert len(of_acme) > 7
    assert [] == [line for line in lines if MARK in ask("globex", *line)]


async def _make(url: str) -> None:
    async with outlive.Engine(url, worker=False, namespace="globex"):
        pass


# -- Quotas ---------------------------------------------------------------------------------------------------------


async def starts_at_once(url: str, *, engines: int, each: int, **quota: int) -> tuple[int, int]:
    """How many of many starts at once, in several engines, were let through; and how many open runs there are."""
    async with AsyncExitStack() as stack:
        all_ = [
            await stack.enter_async_context(outlive.Engine(url, worker=False, namespace="bounded"))
            for _ in range(engines)
        ]
        await all_[0].quotas.set(**quota)
        outcomes = await asyncio.gather(
            *(engine.start(tenant_waits) for engine in all_ for _ in range(each)), return_exceptions=True
        )
        refused = [it for it in outcomes if isinstance(it, QuotaExceededError)]
        assert len(refused) + len([it for it in outcomes if isinstance(it, outlive.types.RunHandle)]) == engines * each
        return len(outcomes) - len(refused), int(await all_[0].count(status="pending"))


@pytest.mark.parametrize(
    "quota", [{"open_runs": 7}, {"starts_per_minute": 7}, {"open_runs": 9, "starts_per_minute": 7}]
)
async def test_a_quota_holds_for_all_engines_of_a_file_together(tmp_path: Path, quota: dict[str, int]) -> None:
    """Starts at the same moment on three engines of one file are together as many as the quota says. [S34]"""
    assert (7, 7) == await starts_at_once(f"sqlite:{tmp_path / 'runs.db'}", engines=3, each=6, **quota)


async def test_a_quota_holds_for_all_engines_of_a_database_together(postgres_url: str) -> None:
    """Starts at the same moment on three engines of one database are together as many as the quota says. [S34]"""
    assert (7, 7) == await starts_at_once(postgres_url, engines=3, each=6, open_runs=7)


async def test_a_start_that_failed_uses_up_no_quota(tmp_path: Path) -> None:
    """A start that failed uses up no quota. [S34]"""
    async with TestEngine(namespace="acme") as engine:
        await engine.quotas.set(open_runs=1)
        with pytest.raises(TypeError):
            await engine.start(tenant_waits, 1, 2, 3)  # type: ignore[arg-type, call-arg]
        await engine.start(tenant_waits, id="run-1")
        with pytest.raises(QuotaExceededError):
            await engine.start(tenant_waits, id="run-2")


VERBS: dict[str, Callable[[TestEngine], Awaitable[Any]]] = {
    "start": lambda engine: engine.start(tenant_waits),
    "start by name": lambda engine: engine.start("tenant_waits"),
    "signal by name": lambda engine: engine.signal("named", "go", start=("tenant_waits",)),
    "ask by name": lambda engine: engine.ask("named", "go", start=("tenant_waits",), timeout=0),
    "batches.start": lambda engine: engine.start_batch(tenant_waits, ["a"]),
    "signal with a start": lambda engine: engine.signal("new", "go", start=(tenant_waits,)),
    "flows.start": lambda engine: engine.flows.start("tenant.flow", {"order": 1}),
    "events.send": lambda engine: engine.events.send("tenant.sent", {"order": 1}),
    "schedules.trigger": lambda engine: engine.schedules.trigger("tenant"),
    "fork": lambda engine: engine.fork("first"),
}


@pytest.mark.parametrize("verb", VERBS)
async def test_no_verb_starts_runs_beyond_the_quota(verb: str) -> None:
    """Whichever way they are started. [S34 S51]"""
    async with TestEngine(namespace="acme") as engine:
        await engine.start(tenant_waits, id="first")
        await engine.flows.apply(FLOW, by="ann")
        await engine.schedules.set("tenant", outlive.every(days=1), tenant_waits)
        await engine.settle()
        await engine.quotas.set(open_runs=1)
        await engine.skip(seconds=2)
        with pytest.raises(QuotaExceededError):
            await VERBS[verb](engine)
        assert await engine.count(status=("pending", "running", "waiting")) == 1


async def test_requests_beyond_the_quota_are_answered_with_429() -> None:
    """A start, a flow, an event and a webhook; one that is there already is found. [S34]"""
    async with TestEngine(namespace="acme") as engine:
        flow.parse(FLOW)
        await engine.start(tenant_waits, id="first")
        await engine.settle()
        await engine.quotas.set(open_runs=1)
        await engine.skip(seconds=2)
        api = Caller(Api(engine))
        new = {"workflow": "tenant_waits"}
        answers = [
            await api.post(f"{API}/runs", new),
            await api.post(f"{API}/events", {"type": "tenant.sent", "data": {"order": 1}}),
            await api.post("/webhooks/tenant", {"order": 1}),
        ]
        again = await api.post(f"{API}/runs", {**new, "id": "first"})
    assert [429, 429, 429, 201] == [answer.status for answer in (*answers, again)]
    assert {"5"} == {answer.headers["retry-after"] for answer in answers}
