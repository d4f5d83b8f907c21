"""A secret goes in through every door, and everything that comes out for people is searched for it.

What is for programs is not: `run.result()` in Python, the arguments of a step, an export that another store imports.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import outlive
from outlive.cli import main
from outlive.codecs import Encryption
from outlive.http import Api, ApiLimits
from outlive.http.operation import OPERATIONS
from outlive.integrations.logging import JsonFormatter
from outlive.testing import TestEngine
from tests.http.caller import Caller

CANARY = "kanarienvogel-4711"
REDACT = ("password", "*token")
API = "/api/v1"


class WrongPasswordError(Exception):
    """Says more than it should, in its message, an argument, an attribute and a note."""

    def __init__(self, password: str) -> None:
        self.password = password
        super().__init__(f"{password} is wrong")
        self.add_note(f"it was {password}")


@outlive.step(retry=outlive.Retry(attempts=2, first=0))
async def canary_step(password: str, *, fails: bool) -> dict[str, str]:
    """Emits, logs of Outlive's own about it, and fails."""
    outlive.emit("words", {"password": password})
    outlive.current_step().heartbeat({"password": password})
    if fails:
        raise WrongPasswordError(password)
    return {"password": password, "access_token": password}


@outlive.workflow
async def canary_ends(password: str, fails: bool = False) -> dict[str, str]:  # noqa: FBT001, FBT002
    """Ends well, or badly."""
    outlive.publish(stage="begun", password=password)
    return await canary_step(password, fails=fails)


@outlive.workflow
async def canary_parent(password: str) -> dict[str, str]:
    """The failure of a child is its own."""
    return await canary_ends(password, True)


@outlive.workflow
async def canary_message(password: str) -> None:
    """Fails by itself, with the secret in the message alone."""
    raise ValueError(f"{password} is wrong")


@outlive.workflow
async def canary_waits(password: str) -> dict[str, str]:
    """Takes a signal, an ask, an approval and a promise."""
    promise = outlive.promise(dict[str, str])
    outlive.publish(promise=promise.id)
    await outlive.wait_for_signal("password", str)
    question = await anext(outlive.asks("token", str))
    question.reply(question.body)
    doubt = await anext(outlive.asks("doubt", dict[str, str]))
    doubt.fail(ValueError(f"{password} is as weak as {doubt.body['password']}"))
    await outlive.wait_for_approval("refund", form=dict[str, str])
    await promise
    await outlive.wait_for_signal("never")
    return {"password": password}


@outlive.workflow
async def canary_takes_numbers(password: int) -> int:
    """Refuses text."""
    return password


@pytest.fixture
async def seen(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> dict[str, str]:
    """Everything that came out, by what it came from."""
    caplog.set_level(logging.DEBUG)
    found: dict[str, str] = {}
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    url = f"sqlite:{tmp_path / 'runs.db'}"
    async with TestEngine(url, redact=REDACT, middleware=[outlive.middleware.Tracing(provider)]) as engine:
        app = Api(engine, limits=ApiLimits(wait_seconds_max=0.0, look_seconds=0.0))
        await asyncio.wait_for(put_in(engine, Caller(app), found), 60)
        await take_out(engine, Caller(app), found)
        found["counters"] = repr(engine.counters)
    found["spans"] = "\n".join(span.to_json() for span in exporter.get_finished_spans())
    found["log"] = caplog.text
    found["log as JSON"] = "\n".join(map(JsonFormatter(redact=REDACT).format, caplog.records))
    await asyncio.to_thread(commands, url, found)
    return found


async def put_in(engine: TestEngine, api: Caller, found: dict[str, str]) -> None:
    """The secret through every door."""

    async def post(path: str, body: Any, method: str = "POST") -> None:
        answer = await api.send(method, f"{API}{path}", body)
        found[f"{len(found)}: {method} {path}"] = f"{answer.status} {answer.headers} {answer.body.decode()}"

    secret = {"password": CANARY}
    for workflow in ("canary_ends", "canary_parent", "canary_message"):
        await post("/runs", {"workflow": workflow, "arguments": secret, "id": workflow})
    await post("/runs", {"workflow": "canary_ends", "arguments": {**secret, "fails": True}, "id": "failed"})
    await post("/runs", {"workflow": "canary_ends", "arguments": [CANARY, True], "id": "by-position"})
    headers = {"api-token": CANARY}
    await post("/runs", {"workflow": "canary_waits", "arguments": secret, "id": "waits", "headers": headers})
    await engine.settle()
    await post("/runs/waits/signals/password", {"payload": CANARY})
    await engine.settle()
    await post("/runs/waits/asks/token", {"body": CANARY, "key": "k"})
    await engine.settle()
    await post("/runs/waits/asks/token", {"body": CANARY, "key": "k"})
    for _ in range(2):
        await post("/runs/waits/asks/doubt", {"body": secret, "key": "d"})
        await engine.settle()
    await post("/runs/waits/approvals/refund/approve", {"form": secret})
    await engine.settle()
    promise = (await api.get(f"{API}/runs/waits/published")).data["fields"]["promise"]
    await post(f"/promises/{promise}/resolve", {"value": secret})
    await engine.settle()
    await post("/batches", {"workflow": "canary_ends", "rows": [CANARY, CANARY], "id": "batch"})
    await post("/batches", {"workflow": "canary_message", "rows": [CANARY, CANARY], "id": "lost"})
    await engine.settle()
    await post("/runs/failed/retry", {})
    await engine.settle()
    await post("/runs/failed/fork", {"id": "fork", "input": secret, "set": {}})
    await engine.settle()
    cron = {"workflow": "canary_ends", "cron": ["0 0 1 1 *"], "arguments": secret}
    await post("/schedules/yearly", cron, "PUT")
    await post("/schedules/yearly/trigger", {})
    await engine.settle()
    await post("/events", {"type": "canary", "data": secret, "headers": headers})
    # What is refused must not be repeated either.
    await post("/runs", {"workflow": "canary_takes_numbers", "arguments": secret})
    await post("/runs", {"workflow": "canary_ends", "arguments": {**secret, "other": 1}})
    await post("/runs", {"workflow": "canary_ends", "arguments": {"password": {"password": CANARY}}})
    await post("/runs", {"workflow": "canary_takes_numbers", "arguments": [CANARY]})
    await post("/runs", {"workflow": "canary_takes_numbers", "arguments": {"password": f"{CANARY}-{'x' * 99}"}})
    await post("/runs/waits/approvals/refund/approve", {"form": {"password": [CANARY]}})
    await post("/runs/waits/signals/password", {"payload": {"password": CANARY}})
    await engine.settle()
    await post("/runs/waits/signals/never", {"payload": None})
    await engine.settle()


async def take_out(engine: TestEngine, api: Caller, found: dict[str, str]) -> None:
    """What every operation shows that only looks, of every run."""
    runs = [run.id for run in await engine.list(limit=100)]
    names = {"name": "words", "batch_id": "batch", "key": "k", "seq": "0", "field": "input", "token": "x"}
    for it in OPERATIONS.values():
        if it.method != "GET" or it.name == "audit.verify":
            continue
        for run_id in runs if "run_id" in it.names else ["none"]:
            given = {**names, "run_id": run_id, "workflow": "canary_ends", "key_id": "x"}
            path = it.path.format(**{name: given.get(name, "x") for name in it.names})
            if it.name == "schedules.get":
                path = path.replace("words", "yearly")
            # A list is followed without an end.
            leaves = leaves_after(len(runs) if it.name == "runs.follow_list" else 10_000)
            answer = await api.get(f"{path}?stream=words" if it.name == "follow" else path, leave_when=leaves)
            found[f"GET {path}"] = answer.body.decode()
    for path in ("/batches/lost/items", "/batches/lost/follow", "/runs/waits/asks/doubt/d"):
        answer = await api.get(API + path)
        assert b"[redacted]" in answer.body, answer.body
        found[f"GET {path}"] = answer.body.decode()
    history = await api.get(f"{API}/runs/canary_ends/history")
    for event in history.data["items"]:
        for field in ("input", "result", "args", "payload", "body"):
            path = f"{API}/runs/canary_ends/history/{event['seq']}/{field}"
            found[f"GET {path}"] = (await api.get(path)).body.decode()


def leaves_after(messages: int) -> Callable[[bytes], bool]:
    """Goes away after so many messages."""
    count = [0]

    def look(body: bytes) -> bool:
        count[0] += 1
        return count[0] > messages

    return look


def commands(url: str, found: dict[str, str]) -> None:
    """What the command line shows, to people and to programs."""
    runs = ("canary_ends", "failed", "canary_message", "canary_parent", "waits", "fork")
    lines = [
        ["runs", "list"],
        ["runs", "list", "--stuck"],
        ["schedules", "list"],
        ["approvals", "list"],
        ["audit", "list"],
    ]
    lines += [["runs", verb, run_id] for verb in ("show", "why", "export") for run_id in runs]
    lines += [["config", "show"], ["doctor"], ["queues", "list"], ["workers", "list"], ["workflows"]]
    for line in lines:
        for more in ([], ["--json"]):
            env = {"OUTLIVE_STORE": url, "OUTLIVE_REDACT": ",".join(REDACT), "OUTLIVE_FLOWS": ""}
            result = CliRunner().invoke(main, [*line, *more], env=env)
            found[f"outlive {' '.join([*line, *more])}"] = f"{result.output} {result.exception}"


async def test_a_secret_that_goes_in_is_nowhere_in_what_comes_out(seen: dict[str, str]) -> None:
    """Answers, problems, events, logs, traces, metrics, audit log, OpenAPI document, command line. [S30 S32]"""
    assert [] == [place for place, text in seen.items() if CANARY in text]
    assert len(seen) > 200
    assert "[redacted]" in seen[f"GET {API}/runs/canary_ends/history"]
    assert {"200", "201", "202", "422"} == {text[:3] for place, text in seen.items() if ": " in place}


async def test_a_server_without_the_key_of_the_payloads_works(tmp_path: Path) -> None:
    """It needs neither their key nor their code, and says in the place of each that it cannot be read. [S16]"""
    url = f"sqlite:{tmp_path / 'runs.db'}"
    codec = Encryption(keys={"k": b"\7" * 32}, current="k")
    async with TestEngine(url, codecs=[codec]) as engine:
        await (await engine.start(canary_ends, CANARY, id="run-1")).result()
    async with TestEngine(url, worker=False) as engine:
        api = Caller(Api(engine))
        answers = [
            await api.get(f"{API}/runs/run-1{path}") for path in ("", "/history", "/result", "/why", "/published")
        ]

    assert [200] * 5 == [answer.status for answer in answers]
    assert CANARY.encode() not in b"".join(answer.body for answer in answers)
    assert b"[unreadable: " in answers[1].body
    assert b"[unreadable: " in answers[2].body
