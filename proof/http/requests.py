"""One request for every operation that changes something, with what has to be there before it is sent.

`WANTED` has a function for each of them: it prepares the store and says what to send. An operation that is in neither
table fails a test: a new one is proved, or stands in `NOT_REPEATED` with the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

import outlive
from outlive.engine import Engine
from outlive.engine.view import view_of
from outlive.http.operation import OPERATIONS
from proof.http import program

STEADY = ("waiting", "parked", "succeeded", "failed", "cancelled", "timed_out")
LOOK_SECONDS, LOOKS_MAX = 0.01, 3_000
_OTHER_FLOW = program.FLOW.replace("look: { use: noop }", "look: { use: noop }\n  again: { use: noop }")


class Wanted(msgspec.Struct):
    """A request to send."""

    names: Mapping[str, str] = {}
    """The names in its path."""
    body: Any = None


Prepare = Callable[[Engine, str], Awaitable[Wanted]]
"""Given an engine with a worker, and a word that no other trial has."""

NOT_REPEATED = {
    "keys.create": "only the answer holds the secret: a retry makes another key, and the lost one can be revoked",
    "approvals.create_link": "only the answer holds the token: a retry makes another link; who decides first decides",
    "approvals.use_link": "a link has no key but itself: the second use gets 404, and the decision stands",
    "runs.create_token": "only the answer holds the token: a retry makes another one, and the lost one expires",
    "tasks.claim": "an answer that is lost loses the lease with it: the task is for others when that has run out",
}
"""Operations that a repeated request does again, and why that does no harm."""


async def run_of(engine: Engine, workflow: Any, *arguments: Any, id: str) -> str:
    """A run that stands still."""
    await engine.start(workflow, *arguments, id=id)
    await _steady(engine, id)
    return id


async def _steady(engine: Engine, run_id: str) -> None:
    for _ in range(LOOKS_MAX):
        if (await engine.get(run_id).status()) in STEADY:
            return
        await asyncio.sleep(LOOK_SECONDS)


def _on_run(workflow: Any, body: Any = None, arguments: tuple[Any, ...] = (), **names: str) -> Prepare:
    """A request to a run of this workflow."""

    async def prepare(engine: Engine, word: str) -> Wanted:
        return Wanted({"run_id": await run_of(engine, workflow, *arguments, id=word), **names}, body)

    return prepare


def _on_parked(workflow: Any = program.proof_waiting, body: Any = None) -> Prepare:
    async def prepare(engine: Engine, word: str) -> Wanted:
        run_id = await run_of(engine, workflow, id=word)
        await engine.pause(run_id)
        return Wanted({"run_id": run_id}, body)

    return prepare


def _plain(body: Any = None, **names: str) -> Prepare:
    """A request that needs nothing to be there; `WORD` in it is one of its own."""

    async def prepare(engine: Engine, word: str) -> Wanted:
        text = msgspec.json.encode([names, body]).decode().replace("WORD", word)
        own, sent = msgspec.json.decode(text)
        return Wanted(own, sent)

    return prepare


async def _on_open_run(engine: Engine, word: str) -> Wanted:
    return Wanted(body={"run_ids": [await run_of(engine, program.proof_waiting, id=word)]})


def _on_batch(body: Any = None) -> Prepare:
    async def prepare(engine: Engine, word: str) -> Wanted:
        batch = await engine.start_batch(program.proof_failing, [1, 2], id=word)
        await _steady(engine, batch.id)
        return Wanted({"batch_id": batch.id}, body)

    return prepare


def _on_queue(body: Any = None) -> Prepare:
    async def prepare(engine: Engine, word: str) -> Wanted:
        await engine.queues.set(word, concurrency=5)
        return Wanted({"name": word}, body)

    return prepare


def _on_schedule(body: Any = None) -> Prepare:
    async def prepare(engine: Engine, word: str) -> Wanted:
        every = outlive.every(hours=1, args={"number": 1})
        await engine.schedules.set(word, every, program.proof_order)
        return Wanted({"name": word}, body)

    return prepare


def _on_flow(body: Any = None, *, revisions: int = 1, draft: bool = False) -> Prepare:
    async def prepare(engine: Engine, word: str) -> Wanted:
        name = word.replace("-", "_")
        for text in (program.FLOW, _OTHER_FLOW)[:revisions]:
            await engine.flows.apply(text.replace("proof_flow", name), by="proof")
        if draft:
            await engine.flows.save_draft(_OTHER_FLOW.replace("proof_flow", name), by="proof")
        return Wanted({"name": name}, body)

    return prepare


async def _apply(engine: Engine, word: str) -> Wanted:
    return Wanted(body={"document": program.FLOW.replace("proof_flow", word.replace("-", "_")), "expected": 0})


async def _event(engine: Engine, word: str) -> Wanted:
    """An event that one flow waits for, which is there for this request alone: an event starts a run of each flow that
    waits for it, and the flows of earlier requests would be counted too."""
    name = word.replace("-", "_")
    document = program.FLOW.replace("proof_flow", name).replace("proof.happened", f"proof.{name}")
    await engine.flows.apply(document, by="proof")
    return Wanted(body={"type": f"proof.{name}", "data": {"order": 1}})


def _on_task(**body: Any) -> Prepare:
    async def prepare(engine: Engine, word: str) -> Wanted:
        run = await engine.start(program.proof_remote, 1, id=word)
        task = await engine.tasks.claim("proof-gpu", ["proof_resize"], worker="proof", lease_seconds=600, wait=20)
        assert task is not None, f"no task of {run.id}"
        return Wanted({"task_id": task.id}, {"lease": task.lease, **body})

    return prepare


def _on_promise(body: Any) -> Prepare:
    async def prepare(engine: Engine, word: str) -> Wanted:
        run_id = await run_of(engine, program.proof_promising, id=word)
        shown: Any = await view_of(engine).plain((await view_of(engine).row(run_id)).published)
        return Wanted({"promise_id": shown["promise"]}, body)

    return prepare


async def _on_key(engine: Engine, word: str) -> Wanted:
    return Wanted({"key_id": (await engine.keys.create(word)).key.id}, {"reason": "lost"})


def _bulk(workflow: Any, body: Any, *arguments: Any, parked: bool = False) -> Prepare:
    """A request to three runs."""

    async def prepare(engine: Engine, word: str) -> Wanted:
        for number in range(3):
            run_id = await run_of(engine, workflow, *arguments, id=f"{word}-{number}")
            if parked:
                await engine.pause(run_id)
        return Wanted(body={"id_prefix": f"{word}-", **body})

    return prepare


async def _on_trigger(engine: Engine, word: str) -> Wanted:
    return Wanted({"workflow": "proof_gone"})


async def _on_sink(engine: Engine, word: str) -> Wanted:
    await engine.events.add_sink(word, "https://example.org/sink", types=("none.*",))
    return Wanted({"name": word})


_ORDER = {"workflow": "proof_order", "arguments": {"number": 1}}
_WHY = {"reason": "because"}
WANTED: dict[str, Prepare] = {
    "runs.start": _plain(_ORDER),
    "runs.start_many": _plain({"starts": [_ORDER, _ORDER]}),
    "runs.signal": _on_run(program.proof_waiting, {"payload": "now"}, name="go"),
    "runs.signal_many": _plain(
        {"signals": [{"run_id": f"WORD-{at}", "name": "go", "start": {"workflow": "proof_waiting"}} for at in "ab"]}
    ),
    "runs.ask": _on_run(program.proof_answering, {"body": 1, "wait": 10}, name="add"),
    "approvals.approve": _on_run(program.proof_refund, {"by": "ann"}, name="refund"),
    "approvals.reject": _on_run(program.proof_refund, {"by": "ann"}, name="refund"),
    "runs.cancel": _on_run(program.proof_waiting, _WHY),
    "runs.retry": _on_run(program.proof_stepping, _WHY),
    "runs.pause": _on_run(program.proof_waiting, _WHY),
    "runs.resume": _on_parked(),
    "runs.change": _on_run(program.proof_waiting, {"tags": {"stage": "held"}, **_WHY}),
    "runs.skip_step": _on_parked(program.proof_unlucky, {"result": 7}),
    "runs.fork": _on_run(program.proof_order, {}, arguments=(1,)),
    "runs.delete": _on_run(program.proof_order, arguments=(1,)),
    "bulk.cancel": _bulk(program.proof_waiting, _WHY),
    "bulk.retry": _bulk(program.proof_stepping, _WHY),
    "bulk.pause": _bulk(program.proof_waiting, _WHY),
    "store.pause": _plain(_WHY),
    "store.resume": _plain(),
    "bulk.start": _bulk(program.proof_waiting, {"verb": "cancel", **_WHY}),
    "bulk.start_purge": _bulk(program.proof_order, {"older_than": 0}, 1),
    "bulk.purge": _bulk(program.proof_order, {"older_than": 0}, 1),
    "bulk.resume": _bulk(program.proof_waiting, {}, parked=True),
    "batches.start": _plain({"workflow": "proof_failing", "rows": [1, 2]}),
    "batches.retry": _on_batch({}),
    "events.send": _event,
    "events.add_sink": _plain({"url": "https://example.org/sink", "types": ["none.*"]}, name="WORD"),
    "events.remove_sink": _on_sink,
    "events.forget": _on_trigger,
    "flows.apply": _apply,
    "flows.check": _plain({"document": program.FLOW}),
    "flows.save_draft": _apply,
    "flows.publish": _on_flow({}, draft=True),
    "flows.discard_draft": _on_flow(draft=True),
    "flows.rollback": _on_flow({}, revisions=2),
    "flows.enable": _on_flow(),
    "flows.disable": _on_flow(_WHY),
    "flows.delete": _on_flow(),
    "flows.start": _on_flow({"input": {"order": 1}}),
    "keys.revoke": _on_key,
    "promises.resolve": _on_promise({"value": 7}),
    "promises.fail": _on_promise({"message": "no"}),
    "deploys.journals": _on_open_run,
    "queues.set": _plain({"concurrency": 7}, name="WORD"),
    "queues.reset": _on_queue(),
    "queues.pause": _on_queue(_WHY),
    "queues.resume": _on_queue(),
    "schedules.set": _plain({**_ORDER, "every": 3600}, name="WORD"),
    "schedules.delete": _on_schedule(),
    "schedules.pause": _on_schedule({"reason": "because"}),
    "schedules.resume": _on_schedule(),
    "schedules.trigger": _on_schedule({}),
    "schedules.backfill": _on_schedule({"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T03:00:00Z"}),
    "tasks.heartbeat": _on_task(progress={"done": 0.5}),
    "tasks.complete": _on_task(output=7),
    "tasks.fail": _on_task(message="no", retryable=False),
    "workflows.pause": _plain(_WHY, name="WORD"),
    "workflows.resume": _plain(name="WORD"),
}


def unproved() -> list[str]:
    """The operations that change something and stand in none of the tables, and those in a table that there are not."""
    changing = {name for name, it in OPERATIONS.items() if it.method != "GET"}
    return sorted(changing ^ (WANTED.keys() | NOT_REPEATED.keys()))
