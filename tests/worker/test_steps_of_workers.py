"""`engine.workers.steps`: the steps that live workers run, of Python and remote ones, with what they take and give."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import outlive
from outlive.cli import main
from outlive.errors import ArgumentTypeError, InvalidArgumentError
from outlive.http import Api
from outlive.testing import TestEngine
from outlive.types import StepInfo
from tests.engine.inside import describe_now, store_of
from tests.engine.support import Place
from tests.http.caller import Caller, served

OF_INT = {"type": "integer"}
SCALED: dict[str, dict[str, Any]] = {
    "input": {"type": "object", "properties": {"by": OF_INT}, "required": ["by"]},
    "output": OF_INT,
}


@dataclass
class Parcel:
    """What is weighed."""

    grams: int


@outlive.step(name="listed.weigh")
async def weigh(parcel: Parcel, times: int = 1) -> int:
    """A step with types."""
    return parcel.grams


@outlive.step(name="listed.anything")
async def anything(*args: Any) -> Any:
    """A step that says nothing of itself."""


@pytest.fixture
async def engine() -> AsyncIterator[TestEngine]:
    """An engine with a worker, in memory."""
    async with TestEngine() as engine:
        yield engine


async def steps_of(engine: Any) -> dict[str, StepInfo]:
    """The steps that are listed, by name."""
    return {it.name: it for it in await engine.workers.steps()}


@pytest.mark.every_store
async def test_steps_of_python_are_listed_while_a_worker_runs_them(place: Place) -> None:
    """With the schemas of their arguments by name and of their results; when the worker stops they are gone, on every
    store. [SF-R1 FE-O10]"""
    watcher = place.engine(worker=False)
    async with watcher:
        async with place.engine() as engine:
            await describe_now(engine)
            found = await steps_of(watcher)
            (worker,) = [it for it in await watcher.workers.list() if it.status == "live"]

        assert found["listed.weigh"].queue == ""
        assert found["listed.weigh"].workers == 1
        assert found["listed.weigh"].arguments is not None
        assert list(found["listed.weigh"].arguments["properties"]) == ["parcel", "times"]
        assert found["listed.weigh"].result == OF_INT
        assert found["listed.anything"].result is None
        assert "listed.weigh" in worker.steps
        assert not [name for name in found if name.startswith("outlive.")]
        assert not [name for name in worker.built_in if name.startswith("outlive.steps:")]
        assert await steps_of(watcher) == {}


@pytest.mark.every_store
async def test_a_remote_worker_is_listed_with_what_it_can_do(place: Place) -> None:
    """From its first claim, with schemas if it says them, also between its claims; a minute after it has gone it is
    listed no more. On every store. [SF-R1 FE-O10]"""
    async with TestEngine(place.url) if place.url != "memory:" else TestEngine() as engine:
        assert await engine.tasks.claim("gpu", {"scale": SCALED, "crop": {}}, worker="gpu-1") is None
        assert await engine.tasks.claim("cpu", ["scale"]) is None

        found = await steps_of(engine)
        assert found["gpu/scale"] == StepInfo(
            name="gpu/scale", queue="gpu", arguments=SCALED["input"], result=SCALED["output"], workers=1
        )
        assert found["gpu/crop"] == StepInfo(name="gpu/crop", queue="gpu", workers=1)
        assert found["cpu/scale"].arguments is None

        await engine.skip(seconds=50)
        assert await engine.tasks.claim("gpu", ["scale"]) is None
        await engine.skip(seconds=50)
        found = await steps_of(engine)
        assert found["gpu/scale"].arguments == SCALED["input"], "another worker of the queue has not said it"
        assert "gpu/crop" not in found
        assert "cpu/scale" not in found
        await engine.skip(seconds=60)
        assert not [name for name in await steps_of(engine) if "/" in name]


async def test_a_remote_worker_that_is_busy_stays_listed(engine: TestEngine) -> None:
    """A remote worker is listed with everything that it can do for as long as it renews the lease of a task."""

    run = await engine.start(sized)
    await engine.settle()
    steps = {"listed_scale": SCALED, "listed_crop": SCALED}
    task = await engine.tasks.claim("gpu", steps, worker="gpu-1", lease_seconds=100)
    assert task is not None
    for _ in range(4):
        await engine.skip(seconds=90)
        await engine.tasks.heartbeat(task.id, task.lease, lease_seconds=100)
        found = await steps_of(engine)
        assert found["gpu/listed_scale"].workers == found["gpu/listed_crop"].workers == 1
        assert found["gpu/listed_scale"].arguments == SCALED["input"]
    (worker,) = [it for it in await engine.workers.list() if it.name == "remote gpu-1"]
    assert worker.steps == ("gpu/listed_crop", "gpu/listed_scale")
    await engine.tasks.complete(task.id, task.lease, 1)
    assert await run.result() == 1
    await engine.skip(seconds=400)
    assert "gpu/listed_scale" not in await steps_of(engine)


listed_scale = outlive.remote_step("listed_scale", queue="gpu")


@outlive.workflow(name="listed.sized")
async def sized() -> Any:
    """One remote step."""
    return await listed_scale({"by": 2})


async def test_steps_are_listed_over_http(engine: TestEngine) -> None:
    """A claim says the schemas, and a list has them; a claim that says them in another way is refused."""
    api = Caller(Api(engine))
    wanted = {"queue": "gpu", "worker": "gpu-1", "wait": 0}
    assert (await api.post("/api/v1/tasks/claim", {**wanted, "steps": {"scale": SCALED}})).status == 200

    listed = (await api.get("/api/v1/workers/steps")).data["items"]

    assert [it for it in listed if it["name"] == "gpu/scale"] == [
        {"name": "gpu/scale", "queue": "gpu", "arguments": SCALED["input"], "result": SCALED["output"], "workers": 1}
    ]
    wrong: list[Any] = [{"scale": {"in": {}}}, {"scale": 1}, {"scale": {"input": []}}, {}, "scale"]
    for steps in wrong:
        assert (await api.post("/api/v1/tasks/claim", {**wanted, "steps": steps})).status == 400


async def test_a_connection_says_and_lists_the_same() -> None:
    """A remote worker in Python says its schemas through a server, and a program there lists what the engine lists."""
    async with outlive.Engine("memory:") as engine, served(Api(engine)) as port:
        async with outlive.connect(f"http://127.0.0.1:{port}") as there:
            assert await there.tasks.claim("gpu", {"scale": SCALED}, worker="gpu-1") is None
            listed = await there.workers.steps()
        assert listed == await engine.workers.steps()
    assert [it.arguments for it in listed if it.name == "gpu/scale"] == [SCALED["input"]]


def nested(levels: int) -> dict[str, Any]:
    """A schema in a schema, so many levels."""
    schema: dict[str, Any] = {}
    for _ in range(levels - 1):
        schema = {"items": schema}
    return schema


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"description": "x" * 8_200}, "8,192 are the most"),
        (nested(21), "more than 20 levels deep"),
        ({"anyOf": [{} for _ in range(500)]}, "more than 500 maps and lists"),
    ],
)
async def test_a_schema_of_a_remote_worker_is_bounded(engine: TestEngine, schema: dict[str, Any], said: str) -> None:
    """A schema is refused for its bytes, its levels or its parts; the refusal says which, and nothing of it is kept.
    [S27]"""
    with pytest.raises(InvalidArgumentError, match=said):
        await engine.tasks.claim("gpu", {"scale": {"input": schema}})
    assert not [name for name in await steps_of(engine) if "/" in name]
    assert await engine.tasks.claim("gpu", {"scale": {"input": nested(20)}}) is None


async def test_a_schema_is_an_object(engine: TestEngine) -> None:
    """Anything else is refused, with what is wanted."""
    wrong: list[Any] = [[], {"in": {}}, {"input": True}, {"output": "integer"}]
    for schemas in wrong:
        with pytest.raises(ArgumentTypeError):
            await engine.tasks.claim("gpu", {"scale": schemas})


async def test_the_list_of_a_queue_has_an_end(engine: TestEngine) -> None:
    """Workers that say many steps, or much of each, can claim them all; the list has the first ones, and other queues
    have theirs."""
    for turn in range(3):
        names: dict[str, Any] = {f"step_{turn}_{number}": {} for number in range(90)}
        assert await engine.tasks.claim("crowded", names) is None
    large = {f"large_{number}": {"input": {"description": "x" * 8_000}} for number in range(40)}
    assert await engine.tasks.claim("wordy", large) is None
    assert await engine.tasks.claim("small", ["one"]) is None

    found = await steps_of(engine)
    assert len([name for name in found if name.startswith("crowded/")]) == 200
    assert len([name for name in found if name.startswith("wordy/")]) == 40
    assert len([it for it in found.values() if it.queue == "wordy" and it.arguments is not None]) == 16
    assert "small/one" in found
    held = await store_of(engine).read_cell("outlive.remote-steps/wordy")
    assert held is not None
    assert len(held) < 150_000

    await engine.skip(seconds=120)
    assert await engine.tasks.claim("crowded", ["late"]) is None
    assert [name for name in await steps_of(engine) if "/" in name] == ["crowded/late"]


async def test_queues_that_are_listed_have_an_end(engine: TestEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that names one queue after the other fills no store; a place is free again when another has gone."""
    monkeypatch.setattr("outlive._features.tasks.listing.QUEUES_LISTED_MAX", 3)
    monkeypatch.setattr("outlive._kernel.client.workers.QUEUES_LISTED_MAX", 3)
    for number in range(5):
        assert await engine.tasks.claim(f"many-{number}", ["one"]) is None

    assert [name for name in await steps_of(engine) if "/" in name] == ["many-0/one", "many-1/one", "many-2/one"]

    await engine.skip(seconds=70)
    assert await engine.tasks.claim("many-9", ["one"]) is None
    assert [name for name in await steps_of(engine) if "/" in name] == ["many-9/one"]


async def test_a_claim_costs_a_write_only_when_it_says_something_new(
    engine: TestEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claims that say the same are written twice a minute."""
    store, written = store_of(engine), []
    change = store.change_cell

    async def counting(name: str, *args: Any, **options: Any) -> Any:
        written.append(name)
        return await change(name, *args, **options)

    monkeypatch.setattr(store, "change_cell", counting)
    for _ in range(20):
        await engine.tasks.claim("gpu", {"scale": SCALED})
    await engine.skip(seconds=31)
    for _ in range(20):
        await engine.tasks.claim("gpu", {"scale": SCALED})
    await engine.tasks.claim("gpu", {"scale": {}})

    assert written.count("outlive.remote-steps/gpu") == 3


async def test_a_name_that_no_document_can_say_is_not_listed(engine: TestEngine) -> None:
    """It can be claimed as before."""
    assert await engine.tasks.claim("gpu", ["sc ale", "outlive", "a/b", "x,y"]) is None
    assert [name for name in await steps_of(engine) if "/" in name] == ["gpu/outlive"]


def test_the_command_lists_what_workers_say(tmp_path: Path) -> None:
    """A table has each step with what it takes, whatever its worker says, and JSON has the schemas."""
    url = f"sqlite:{tmp_path / 'steps.db'}"
    odd: dict[str, Any] = {"type": ["object", {}], "properties": {"a": 1, "b": {"$ref": 7}}, "required": {"a": []}}

    async def say() -> None:
        async with outlive.Engine(url, worker=False) as engine:
            steps = {"scale": SCALED, "crop": {}, "odd": {"input": odd}, "many": {"input": {"type": "array"}}}
            assert await engine.tasks.claim("gpu", steps) is None

    asyncio.run(say())
    shown = CliRunner().invoke(main, ["workers", "steps", "--store", url])
    plain = CliRunner().invoke(main, ["workers", "steps", "--store", url, "--json"])

    assert [line.split() for line in shown.output.splitlines()] == [
        ["STEP", "WORKERS", "ARGUMENTS"],
        ["gpu/crop", "1", "-"],
        ["gpu/many", "1", "array"],
        ["gpu/odd", "1", "a:", "any?,", "b:", "7?"],
        ["gpu/scale", "1", "by:", "integer"],
    ], shown.output
    assert [it["arguments"] for it in json.loads(plain.output)][-1] == SCALED["input"]
