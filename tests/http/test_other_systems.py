"""The management URLs of the systems that Outlive learned from: every equal in the guide's table answers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from outlive.http import Api
from outlive.http.operation import OPERATIONS
from outlive.testing import TestEngine
from proof.http import program
from proof.http.scene import Scene
from tests.http.caller import Caller

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "http-api.md"
TEXT = GUIDE.read_text("utf-8")
ROWS = re.findall(r"^\| ((?:Asynkron|Stepflow|Flowbot|TanStack|Cano) .*?) \| (.*?) \|$", TEXT, flags=re.MULTILINE)
CALLS = sorted({call for _, here in ROWS for call in re.findall(r"`(GET|POST|PUT|DELETE) (\S+)`", here)})
RUNS = {
    "DELETE /api/v1/runs/{id}": "ended-0",
    "GET /api/v1/runs/{id}/history/{seq}/{field}": "ended-0",
    "POST /api/v1/runs/{id}/resume": "parked-0",
}
"""The run that a call is for; one that waits unless it is here."""
BODIES: dict[str, dict[str, Any]] = {
    "POST /api/v1/runs": {"workflow": "proof_order", "arguments": {"number": 1}},
    "POST /api/v1/batches": {"workflow": "proof_order", "rows": [1]},
    "POST /api/v1/flows": {"document": program.FLOW},
    "POST /api/v1/tasks/claim": {"queue": "proof-gpu", "steps": ["proof_resize"], "wait": 0},
    "POST /api/v1/tasks/{id}/fail": {"message": "no"},
    "PUT /api/v1/schedules/{name}": {
        "workflow": "proof_order",
        "arguments": {"number": 1},
        "every": 900,
        "overlap": "skip",
    },
    "POST /api/v1/runs/{id}/signals/{name}": {"payload": 1, "key": "evt_123"},
    "POST /api/v1/bulk/purge": {"workflow": "proof_order"},
}


@pytest.mark.parametrize(("method", "path"), CALLS)
async def test_an_equal_of_another_system_answers(method: str, path: str) -> None:
    """With a status of success, on a store that has what it is about."""
    async with TestEngine() as engine:
        scene, name = Scene(engine), f"{method} {path}"
        await scene.renew()
        place = "batch_id" if "/batches/" in path else "task_id" if "/tasks/{id}" in path else ""
        known = scene.names[place][0] if place else RUNS.get(name, "waiting-0")
        flow = "proof_flow" if "/flows/" in path else "go"
        target = path.format(id=known, name=flow, seq="0", field="input")
        body = BODIES.get(name)
        if place == "task_id":
            body = {**(body or {}), "lease": scene.names["lease"][0]}
        caller = Caller(Api(engine))
        if path.endswith("/follow"):
            assert await caller.follow(target, until=bool)
            return
        answer = await caller.send(method, target, body)

        assert answer.status in (200, 201, 202), answer.body


def test_the_table_names_every_system_and_only_operations_that_there_are() -> None:
    """The table of the guide names five systems, and every operation in it exists."""
    shapes = {f"{it.method} {re.sub(r'{.*?}', '{}', it.path)}" for it in OPERATIONS.values()}

    assert {f"{method} {re.sub(r'{.*?}', '{}', path)}" for method, path in CALLS} <= shapes
    assert {"Asynkron", "Stepflow", "Flowbot", "TanStack", "Cano"} == {there.split()[0] for there, _ in ROWS}
    assert len(ROWS) > 15
