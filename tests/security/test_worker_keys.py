"""Keys of programs that take tasks: what others see of a task does not end it; a key may be bound to queues."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import outlive
from outlive.errors import InvalidArgumentError
from outlive.http import Api
from outlive.testing import TestEngine
from tests.http.caller import Caller

TASKS = "/api/v1/tasks"
trim = outlive.remote_step("trim", input=int, output=int, queue="gpu")
WANTED = {"queue": "gpu", "steps": ["trim"], "worker": "gpu-1", "wait": 0}


@outlive.workflow(name="worker_keys.trimmed")
async def trimmed(number: int) -> int:
    """One remote step."""
    return await trim(number)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[TestEngine]:
    """An engine on a file."""
    async with TestEngine(f"sqlite:{tmp_path / 'runs.db'}") as engine:
        yield engine


async def caller(engine: TestEngine, scope: str, **options: Any) -> Caller:
    """A caller with a key."""
    key = await engine.keys.create("eve", scope=scope, **options)
    return Caller(Api(engine, auth="keys"), key=key.secret)


async def claimed(engine: TestEngine, owner: Caller) -> dict[str, Any]:
    """The task of a run that waits for it."""
    await engine.start(trimmed, 7, id="t-1")
    await engine.settle()
    task: dict[str, Any] = (await owner.post(f"{TASKS}/claim", WANTED)).data["task"]
    return task


def texts(value: Any) -> set[str]:
    """All texts in a value of JSON."""
    if isinstance(value, str):
        return {value}
    items = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
    return {text for item in items for text in texts(item)}


async def test_a_viewer_does_not_see_the_lease_of_a_task(engine: TestEngine, tmp_path: Path) -> None:
    """No text that a viewer sees of a task works as its lease, which the store has only as a hash. [S3]"""
    owner, thief = await caller(engine, "worker"), await caller(engine, "worker")
    viewer = await caller(engine, "viewer")
    task = await claimed(engine, owner)
    paths = [f"/runs/{task['id']}{rest}" for rest in ("", "/history", "/tree", "/why", "/timeline")] + ["/workers"]
    answers = [await viewer.get(f"/api/v1{path}") for path in paths]
    seen = {text for answer in answers if answer.status == 200 for text in texts(answer.data)}
    assert [text for text in seen if text.startswith("remote gpu-1#")], "the viewer sees who has the task"

    for text in sorted(text for text in seen if 0 < len(text) <= 1000):
        for lease in (text, text.rpartition("#")[2] or "-"):
            stolen = await thief.post(f"{TASKS}/{task['id']}/complete", {"lease": lease, "output": 1})
            assert (stolen.status, stolen.code) == (409, "task_lease_lost"), lease

    files = [path.read_bytes() for path in sorted(tmp_path.iterdir()) if path.is_file()]
    assert files
    assert not [1 for content in files if task["lease"].encode() in content]
    assert (await owner.post(f"{TASKS}/{task['id']}/complete", {"lease": task["lease"], "output": 7})).status == 200
    assert await engine.get("t-1").result() == 7


async def test_a_task_that_has_ended_shows_no_lease(engine: TestEngine) -> None:
    """Its journal names the session that ended it for ever: the end can be repeated with its lease alone."""
    owner = await caller(engine, "worker")
    task = await claimed(engine, owner)
    await owner.post(f"{TASKS}/{task['id']}/complete", {"lease": task["lease"], "output": 7})
    history = await (await caller(engine, "viewer")).get(f"/api/v1/runs/{task['id']}/history")

    for session in sorted(text for text in texts(history.data) if text.startswith("remote gpu-1#")):
        again = await owner.post(f"{TASKS}/{task['id']}/complete", {"lease": session, "output": 7})
        assert (again.status, again.code) == (409, "task_ended")
    again = await owner.post(f"{TASKS}/{task['id']}/complete", {"lease": task["lease"], "output": 7})
    assert again.status == 200


async def test_the_session_of_a_task_ends_with_it(engine: TestEngine) -> None:
    """The session of a task ends with it, even if the end is sent twice."""
    owner = await caller(engine, "worker")
    task = await claimed(engine, owner)
    for _ in range(2):
        await owner.post(f"{TASKS}/{task['id']}/complete", {"lease": task["lease"], "output": 7})

    assert not [it for it in await engine.workers.list() if it.name.startswith("remote ")]


async def test_a_key_for_some_queues_claims_from_no_other(engine: TestEngine) -> None:
    """A worker for video takes no payment; the refusal says which queues there are for the key. [S3]"""
    bound = await caller(engine, "worker", queues=["gpu", "video"])
    await engine.start(trimmed, 7, id="t-1")
    await engine.settle()

    refused = await bound.post(f"{TASKS}/claim", {**WANTED, "queue": "payments"})
    default = await bound.post(f"{TASKS}/claim", {**WANTED, "queue": "default"})

    assert (refused.status, refused.code) == (default.status, default.code) == (403, "forbidden")
    assert "gpu, video" in refused.data["next"]
    task = (await bound.post(f"{TASKS}/claim", WANTED)).data["task"]
    assert task["input"] == 7


async def test_a_key_for_some_queues_lists_steps_of_no_other(engine: TestEngine) -> None:
    """A worker for video says nothing about the steps of payments, and nothing that a document would take for a step
    of Python. [S3]"""
    bound = await caller(engine, "worker", queues=["gpu"])
    steps = {"refund": {"input": {"type": "integer"}}, "payments/refund": {}, "outlive.mocked": {}}
    for queue in ("payments", "default"):
        assert (await bound.post(f"{TASKS}/claim", {**WANTED, "queue": queue, "steps": steps})).status == 403
    assert (await bound.post(f"{TASKS}/claim", {**WANTED, "wait": 0, "steps": steps})).status == 200

    listed = [it.name for it in await engine.workers.steps() if it.queue]

    assert listed == ["gpu/outlive.mocked", "gpu/refund"]
    assert (await bound.get("/api/v1/workers/steps")).status == 403, "it can do nothing but work"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"scope": "worker", "workflows": ["order"]}, "queues"),
        ({"scope": "operator", "queues": ["gpu"]}, "worker"),
        ({"scope": "worker", "queues": []}, "at least one"),
        ({"scope": "worker", "queues": ["a,b"]}, "without commas"),
    ],
)
async def test_a_key_that_could_do_nothing_is_not_made(engine: TestEngine, options: dict[str, Any], said: str) -> None:
    """A key of a worker for some workflows was made, and let nothing in."""
    with pytest.raises(InvalidArgumentError, match=said):
        await engine.keys.create("gpu-1", **options)


async def test_a_key_for_queues_is_made_by_the_api(engine: TestEngine) -> None:
    """A key for queues is made by the API and listed with its queues."""
    admin = await caller(engine, "admin")
    body = {"name": "gpu-1", "scope": "worker", "queues": ["video", "gpu", "gpu"]}

    made = await admin.post("/api/v1/keys", body)

    assert (made.status, made.data["key"]["queues"]) == (201, ["gpu", "video"])
    listed = (await admin.get("/api/v1/keys")).data["items"]
    assert [["gpu", "video"], None] == sorted((it["queues"] for it in listed), key=lambda it: it is None)
