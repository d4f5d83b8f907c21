"""Every verb of an engine while its store says nothing: each raises in time, and none can be forgotten here."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import outlive
from outlive._features.batches.batch import StoredBatch
from outlive._kernel.client.handle import StoredRun
from outlive._kernel.client.secret_token import new_token
from outlive._kernel.model.promise import promise_id
from outlive._kernel.store.contract import Store
from outlive.errors import StoreUnavailableError
from outlive.types import BulkOperation
from tests.engine.inside import verbs_inside
from tests.engine.loop_time import LoopTime
from tests.engine.support import Place, turns_of_the_loop

SECONDS = 600
LIMITS_MAX = 50
"""Times that a verb may wait for the store: it may ask more than once."""
AT = datetime(2026, 1, 1, tzinfo=UTC)
FLOW = "name: f\nsteps: { a: { use: sleep, with: { seconds: 1 } } }\noutput: 1\n"
NAMESPACES = [
    *(
        "approvals",
        "approvals.links",
        "asks",
        "audit",
        "batches",
        "bulk",
        "checkpoints",
        "dead_letters",
        "events",
        "inbox",
    ),
    *("flows", "keys", "promises", "queues", "quotas", "schedules", "tasks", "workers", "workflows"),
]
INSIDE = {"flows.document_of"}
"""A part of other verbs."""
WITHOUT = {"health"}
"""Says that the store is away, instead of raising it."""
Verbs = dict[str, Callable[[], Any]]


@outlive.workflow(name="away.echoed")
async def echoed(word: str = "") -> str:
    return word


class SilentStore:
    """A store whose verbs wait until it speaks."""

    def __init__(self, inner: Any, speaks: asyncio.Event) -> None:
        self.inner, self.speaks = inner, speaks

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if name == "examiner":
            return SilentStore(found, self.speaks)
        if not inspect.iscoroutinefunction(found) or name in {"open", "close"}:
            return found

        async def verb(*args: Any, **kwargs: Any) -> Any:
            await self.speaks.wait()
            return await found(*args, **kwargs)

        return verb


def verbs_of_runs(engine: outlive.Engine, copy: str) -> Verbs:
    """The verbs of an engine itself."""
    return {
        "ask": lambda: engine.ask("r-1", "add", 1),
        "cancel": lambda: engine.cancel("r-1"),
        "change": lambda: engine.change("r-1", tags={"a": "b"}),
        "count": engine.count,
        "count_by": lambda: engine.count_by("status"),
        "export": lambda: engine.export("r-1"),
        "fork": lambda: engine.fork("r-1"),
        "history": lambda: engine.history("r-1"),
        "import_run": lambda: engine.import_run(copy),
        "info": lambda: engine.info("r-1"),
        "list": engine.list,
        "pause": lambda: engine.pause("r-1"),
        "purge": lambda: engine.purge(workflow="away.echoed"),
        "list_stuck": engine.list_stuck,
        "resume": lambda: engine.resume("r-1"),
        "retry": lambda: engine.retry("r-1"),
        "signal": lambda: engine.signal("r-1", "go"),
        "signal_many": lambda: engine.signal_many([("r-1", "go")]),
        "skip_step": lambda: engine.skip_step("r-1"),
        "start": lambda: engine.start(echoed, "a"),
        "start_batch": lambda: engine.start_batch(echoed, ["a"]),
        "start_many": lambda: engine.start_many([(echoed, "a")]),
        "steps": lambda: engine.steps("r-1"),
    }


def verbs_of_namespaces(engine: outlive.Engine) -> Verbs:
    """Those of its namespaces."""
    flows, links, events = engine.flows, engine.approvals.links, engine.events
    token, promise = new_token("old").text, promise_id("r-1", 1, 1, "promise")
    return {
        "approvals.approve": lambda: engine.approvals.approve("r-1", "ok", by="ann"),
        "approvals.list": engine.approvals.list,
        "approvals.reject": lambda: engine.approvals.reject("r-1", "ok", by="ann"),
        "approvals.links.create": lambda: links.create("r-1", "ok", approved=True, by="ann"),
        "approvals.links.show": lambda: links.show(token),
        "approvals.links.use": lambda: links.use(token),
        "asks.answer": lambda: engine.asks.answer("r-1", "add", "key"),
        "audit.list": engine.audit.list,
        "audit.verify": engine.audit.verify,
        "batches.list": engine.batches.list,
        "batches.retry": lambda: engine.batches.retry("b-1"),
        "bulk.list": engine.bulk.list,
        "bulk.start": lambda: engine.bulk.start("cancel", workflow="away.echoed"),
        "checkpoints.append": lambda: engine.checkpoints.append("c-1", outlive.checkpoints.Checkpoint(0, "a")),
        "checkpoints.clear": lambda: engine.checkpoints.clear("c-1"),
        "checkpoints.load_run": lambda: engine.checkpoints.load_run("c-1"),
        "dead_letters.list": lambda: engine.dead_letters.list("r-1"),
        "inbox.list": lambda: engine.inbox.list("r-1"),
        "events.add_sink": lambda: events.add_sink("out", "https://example.com/"),
        "events.forget": lambda: events.forget("away.echoed"),
        "events.remove_sink": lambda: events.remove_sink("out"),
        "events.send": lambda: events.send("order.created"),
        "events.sinks": events.sinks,
        "events.triggers": events.triggers,
        "flows.apply": lambda: flows.apply(FLOW),
        "flows.delete": lambda: flows.delete("f"),
        "flows.disable": lambda: flows.disable("f"),
        "flows.discard_draft": lambda: flows.discard_draft("f"),
        "flows.enable": lambda: flows.enable("f"),
        "flows.get": lambda: flows.get("f"),
        "flows.history": lambda: flows.history("f"),
        "flows.info": lambda: flows.info("f"),
        "flows.list": flows.list,
        "flows.publish": lambda: flows.publish("f"),
        "flows.rollback": lambda: flows.rollback("f"),
        "flows.save_draft": lambda: flows.save_draft(FLOW),
        "flows.start": lambda: flows.start("f"),
        "keys.create": lambda: engine.keys.create("ann"),
        "keys.list": engine.keys.list,
        "keys.revoke": lambda: engine.keys.revoke("k"),
        "promises.fail": lambda: engine.promises.fail(promise, ValueError()),
        "promises.resolve": lambda: engine.promises.resolve(promise, 1),
        "queues.drain": lambda: engine.queues.drain("emails"),
        "queues.list": engine.queues.list,
        "queues.pause": lambda: engine.queues.pause("emails"),
        "queues.reset": lambda: engine.queues.reset("emails"),
        "queues.resume": lambda: engine.queues.resume("emails"),
        "queues.set": lambda: engine.queues.set("emails", concurrency=5),
        "queues.stats": lambda: engine.queues.stats("emails"),
        "quotas.get": engine.quotas.get,
        "quotas.set": lambda: engine.quotas.set(open_runs=5),
        "quotas.usage": engine.quotas.usage,
        "schedules.backfill": lambda: engine.schedules.backfill("s", AT, AT + timedelta(hours=1)),
        "schedules.delete": lambda: engine.schedules.delete("s"),
        "schedules.get": lambda: engine.schedules.get("s"),
        "schedules.list": engine.schedules.list,
        "schedules.pause": lambda: engine.schedules.pause("s"),
        "schedules.resume": lambda: engine.schedules.resume("s"),
        "schedules.set": lambda: engine.schedules.set("s", outlive.every(minutes=5), echoed),
        "schedules.trigger": lambda: engine.schedules.trigger("s"),
        "tasks.claim": lambda: engine.tasks.claim("gpu", ["resize"]),
        "tasks.complete": lambda: engine.tasks.complete("t", "lease"),
        "tasks.fail": lambda: engine.tasks.fail("t", "lease", "no"),
        "tasks.heartbeat": lambda: engine.tasks.heartbeat("t", "lease"),
        "workers.list": engine.workers.list,
        "workers.steps": engine.workers.steps,
        "workflows.list": engine.workflows.list,
    }


def verbs_of_handles(engine: outlive.Engine) -> Verbs:
    """Those of a run, a batch and an operation."""
    run, batch, operation = engine.get("r-1"), engine.batches.get("b-1"), engine.bulk.get("o-1")
    return {
        "run.answer": lambda: run.answer("add", "key"),
        "run.approvals": run.approvals,
        "run.approve": lambda: run.approve("ok", by="ann"),
        "run.ask": lambda: run.ask("add", 1),
        "run.cancel": run.cancel,
        "run.change": lambda: run.change(tags={"a": "b"}),
        "run.dead_letters": run.dead_letters,
        "run.inbox": run.inbox,
        "run.export": lambda: run.export("never.jsonl"),
        "run.follow": run.follow,
        "run.history": run.history,
        "run.info": run.info,
        "run.pause": run.pause,
        "run.published": run.published,
        "run.reject": lambda: run.reject("ok", by="ann"),
        "run.result": run.result,
        "run.resume": run.resume,
        "run.retry": run.retry,
        "run.signal": lambda: run.signal("go"),
        "run.skip_step": run.skip_step,
        "run.status": run.status,
        "run.steps": run.steps,
        "run.stream": lambda: run.stream("s"),
        "run.until": lambda: run.until("waiting"),
        "run.watch": run.watch,
        "run.why": run.why,
        "batch.cancel": batch.cancel,
        "batch.failures": batch.failures,
        "batch.info": batch.info,
        "batch.items": batch.items,
        "batch.outcomes": batch.outcomes,
        "batch.result": batch.result,
        "batch.results": batch.results,
        "batch.retry": batch.retry,
        "batch.status": batch.status,
        "operation.cancel": operation.cancel,
        "operation.progress": operation.progress,
        "operation.result": operation.result,
    }


def public_verbs(engine: outlive.Engine) -> set[str]:
    """The names of all verbs that a caller waits for."""

    def names(thing: type, before: str) -> set[str]:
        found = {name: getattr(thing, name) for name in dir(thing) if not name.startswith("_")}
        is_verb = {
            name for name, it in found.items() if inspect.iscoroutinefunction(it) or inspect.isasyncgenfunction(it)
        }
        return {f"{before}{name}" for name in is_verb}

    found = names(type(engine), "")
    for path in NAMESPACES:
        thing: Any = engine
        for name in path.split("."):
            thing = getattr(thing, name)
        found |= names(type(thing), f"{path}.")
    return found | names(StoredRun, "run.") | names(StoredBatch, "batch.") | names(BulkOperation, "operation.")


async def outcome_of(engine: outlive.Engine, verb: Callable[[], Any]) -> Any:
    """What a verb raises, or returns; of many, the first. A person acts: what the audit log is to have is asked of the
    store too."""
    with engine.audit.acting("ann"):
        try:
            what = verb()
            return await (anext(what) if isinstance(what, AsyncIterator) else what)
        except Exception as error:
            return error


async def test_every_verb_raises_in_time_when_the_store_says_nothing(place: Place, loop_time: LoopTime) -> None:
    """All at once, so that one that asks the store itself, which has a limit of its own or none, is found."""
    speaks = asyncio.Event()
    speaks.set()
    async with place.engine(
        worker=False, store_seconds=SECONDS, wrap=lambda inner: cast(Store, SilentStore(inner, speaks))
    ) as engine:
        await engine.start(echoed, "a", id="r-1")
        copy = await engine.export("r-1")
        await engine.start("away.echoed", id="r-2")
        verbs = verbs_of_runs(engine, copy) | verbs_of_namespaces(engine) | verbs_of_handles(engine)
        verbs |= (inside := verbs_inside(engine))
        speaks.clear()
        asked = {name: asyncio.create_task(outcome_of(engine, verb)) for name, verb in verbs.items()}
        for _ in range(LIMITS_MAX):
            await turns_of_the_loop(20)
            loop_time.skip(seconds=SECONDS)
        for task in asked.values():
            task.cancel()
        await asyncio.wait(asked.values())
        speaks.set()
        names = public_verbs(engine) - INSIDE - WITHOUT

    outcomes = {name: None if task.cancelled() else task.result() for name, task in asked.items()}
    assert {name: it for name, it in outcomes.items() if not isinstance(it, StoreUnavailableError)} == {}
    assert names == verbs.keys() - inside.keys()
