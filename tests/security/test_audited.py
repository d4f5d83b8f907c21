"""Every operation that changes something leaves its row in the audit log, with who did it; and none that only looks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from urllib.parse import quote

import msgspec

import outlive
from outlive._features.events.triggers import TRIGGERS_CELL, Triggers
from outlive._kernel.journal.described import Described
from outlive._kernel.model.trigger import EventTrigger, TriggerSet
from outlive.errors import OutliveError
from outlive.http import Api
from outlive.http.operation import OPERATIONS
from proof.http.requests import WANTED
from tests.engine.inside import store_of
from tests.http.caller import Caller

WORKERS = {"tasks.heartbeat", "tasks.complete", "tasks.fail"}
"""What a worker does is in the history of the run."""
LOOKS = {"flows.check"}
"""Takes a body, and changes nothing."""


async def give_triggers(engine: outlive.Engine, workflow: str) -> None:
    """As if code that has gone since had declared them."""
    known = {workflow: Triggers(version=1, described=Described(arguments={}), all=HEARD)}
    await store_of(engine).change_cell(TRIGGERS_CELL, lambda *_: (msgspec.json.encode(known), None))


HEARD = TriggerSet(events=(EventTrigger(event="proof.gone"),))
BEFORE: dict[str, Callable[[outlive.Engine, str], Awaitable[object]]] = {
    "flows.enable": lambda engine, name: engine.flows.disable(name),
    "events.forget": give_triggers,
    "queues.resume": lambda engine, name: engine.queues.pause(name),
    "workflows.resume": lambda engine, name: engine.pause(workflow=name),
}
"""Without it these would change nothing, and what changes nothing has no row."""
HEARS = """
name: hears.{}
input: {{ order: any }}
triggers:
  - event: proof.happened
steps:
  look: {{ use: noop }}
"""


async def test_no_operation_changes_something_without_its_row() -> None:
    """In the name of the key that was used; a part of the table of operations, so a new one is in it. [S37]"""
    missing: list[str] = []
    async with outlive.Engine("memory:", poll_seconds=0.01) as engine:
        scopes = {scope: await engine.keys.create(scope, scope=scope) for scope in ("admin", "worker")}
        app = Api(engine, auth="keys")
        for each in ("one", "two"):
            await engine.flows.apply(HEARS.format(each), by="ann")
        for number, (name, prepare) in enumerate(WANTED.items()):
            it, wanted = OPERATIONS[name], await prepare(engine, f"word{number}")
            path = it.path.format(**{key: quote(value, safe="") for key, value in wanted.names.items()})
            body = wanted.body
            if isinstance(body, dict):
                body = {key: value for key, value in body.items() if key != "by"}
            key = scopes["worker" if it.scope == "worker" else "admin"]
            if "batch_id" in wanted.names:
                with suppress(OutliveError):  # Its rows fail, as they should.
                    await engine.get(wanted.names["batch_id"]).result()
            if name == "events.send":
                body = {**body, "type": "proof.happened"}  # For two flows.
            if name in BEFORE:
                await BEFORE[name](engine, next(iter(wanted.names.values())))
            newest = await engine.audit.list(limit=1)
            last = newest[0].number if newest else 0
            answer = await Caller(app, key=key.secret).send(it.method, path, body)
            assert answer.status in it.answers, (name, answer.body)
            if name == "events.send":
                assert len(answer.data["runs"]) == 2
            rows = [row for row in await engine.audit.list(limit=20) if row.number > last]
            if name in WORKERS | LOOKS:
                continue
            if name == "events.send":
                assert {row.target for row in rows} == {run["run_id"] for run in answer.data["runs"]}
            if not rows or {(row.actor, row.key, row.via) for row in rows} != {("admin", key.key.id, "http")}:
                missing.append(f"{name}: {[(row.actor, row.verb) for row in rows]}")
        assert (await engine.audit.verify()).is_whole

    assert not missing, " ".join(missing)
