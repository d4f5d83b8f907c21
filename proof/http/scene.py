"""A store with one of everything that a request can name: so requests reach further than to "there is no such run".

`Scene.names` has the values for the names in the paths of operations; `Scene.renew` makes what requests have used up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import outlive
from outlive.engine import Engine
from outlive.engine.view import view_of
from outlive.http.operation import OPERATIONS
from outlive.testing import TestEngine
from proof.http import program

QUEUE = "proof-queue"
SCHEDULE = "proof-schedule"
KEPT = {
    "workflow": ("proof_order", "proof_waiting", "proof_refund"),
    "field": ("input", "result"),
    "seq": ("0", "1", "2"),
    "key": ("k-1",),
}
"""Values of names that are the same in every scene."""
_GOOD: dict[str, Any] = {
    "document": program.FLOW,
    "arguments": {"number": 1},
    "input": {"order": 1},
    "rows": [1, 2],
    "cron": ["0 6 * * *"],
    "every": None,
    "version": None,
    "expected": None,
    "tags": None,
    "headers": None,
    "queue": "proof-gpu",
    "steps": ["proof_resize"],
}
"""Fields of bodies that a random value never fits."""
_RUNS = ("ended", "failed", "waiting", "asking", "refund", "parked", "tree")
_SIGNALS = ("go", "add", "refund", "words")


class Scene:
    """One engine, with runs in every state."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.names: dict[str, list[str]] = {}
        """Values by the name that they have in paths; those of `name` by the resource too, as `queues.name`."""
        self._number = 0

    async def renew(self) -> None:
        """Make another one of everything."""
        engine, number = self.engine, self._number
        self._number += 1
        ids = {name: f"{name}-{number}" for name in _RUNS}
        await engine.resume(all=True)  # A request may have paused the store.
        await engine.start(program.proof_order, 1, id=ids["ended"])
        await engine.start(program.proof_failing, 1, id=ids["failed"])
        await engine.start(program.proof_waiting, id=ids["waiting"], queue=QUEUE)
        await engine.start(program.proof_answering, id=ids["asking"])
        await engine.start(program.proof_refund, id=ids["refund"])
        await engine.start(program.proof_waiting, id=ids["parked"])
        await engine.start(program.proof_parent, 2, id=ids["tree"])
        await engine.start(program.proof_remote, 3)
        promising = await engine.start(program.proof_promising)
        batch = await engine.start_batch(program.proof_order, [1, 2, 3])
        await engine.schedules.set(SCHEDULE, outlive.every(hours=1, args={"number": 1}), program.proof_order)
        await engine.flows.apply(program.FLOW, by="proof")
        key = await engine.keys.create("proof")
        await self._settled()
        await engine.pause(ids["parked"])
        task = await engine.tasks.claim("proof-gpu", ["proof_resize"], worker="proof", lease_seconds=3600, wait=0)
        promise = (await view_of(engine).row(promising.id)).published
        shown: Any = await view_of(engine).plain(promise)
        await self._settled()
        self.names = {name: list(values) for name, values in KEPT.items()} | {
            "run_id": list(ids.values()),
            "batch_id": [batch.id],
            "key_id": [key.key.id],
            "promise_id": [shown["promise"]],
            "task_id": [] if task is None else [task.id],
            "lease": [] if task is None else [task.lease],
            "name": list(_SIGNALS),
            "queues.name": [QUEUE, "proof-gpu"],
            "schedules.name": [SCHEDULE],
            "flows.name": ["proof_flow"],
            "workflows.name": list(KEPT["workflow"]),
        }

    async def _settled(self) -> None:
        """Wait until runs stand still."""
        if isinstance(self.engine, TestEngine):
            await self.engine.settle()
        else:
            await asyncio.sleep(0.5)

    def values(self, operation: str, name: str) -> list[str]:
        """What a name in the path, or in the body, of an operation may be."""
        resource = OPERATIONS[operation].namespace
        return self.names.get(f"{resource}.{name}") or self.names.get(name) or []

    def filled(self, operation: str, body: Any) -> Any:
        """A body whose names are those of things that there are."""
        if not isinstance(body, Mapping):
            return body
        known = {name: self.values(operation, name) for name in ("workflow", "lease")}
        good = _GOOD | {name: values[0] for name, values in known.items() if values}
        return dict(body) | {name: value for name, value in good.items() if name in body}
