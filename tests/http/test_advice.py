"""Advice as data: the words of Python and of HTTP for it, and answers that hold no call of Python."""

from __future__ import annotations

import inspect
import re
from functools import partial
from typing import Any, get_origin, get_type_hints

import msgspec
import pytest

import outlive
from outlive._kernel.journal.value import TAGGED, codec_for
from outlive.engine.any_engine import AnyEngine
from outlive.errors import OutliveError
from outlive.errors.advice import Advice
from outlive.http.advice import REQUESTS, as_requests
from outlive.http.app import Api
from outlive.http.operation import EVENT_STREAM, OPERATIONS
from outlive.http.problem import problem_of
from outlive.testing import TestEngine
from outlive.types import Why
from tests.http.caller import Answer, Caller
from tests.http.problems import EVERY, example_of

OF_PYTHON = re.compile(r"datetime\.|page\.next|\b\w+=|\bNone\b|\bTrue\b|\bFalse\b")
"""The signs of Python in a sentence for a caller of the API."""


@pytest.mark.parametrize("kind", EVERY.values(), ids=EVERY)
def test_an_answer_holds_no_call_of_python(kind: type[OutliveError]) -> None:
    """The problem of every error says what helps as a request and as data, and never as a call of `engine`."""
    error = example_of(kind)
    problem = problem_of(error).body

    assert b"engine." not in msgspec.json.encode(problem)
    assert problem.status >= 500 or not re.search(r"engine\.[a-z_.]+\(", error.summary)


async def test_no_operation_answers_with_a_call_of_python(engine: TestEngine) -> None:
    """Each operation, asked for things that are not there, answers in the words of HTTP."""
    api, statuses = Caller(Api(engine)), set()
    for it in OPERATIONS.values():
        if it.media == EVENT_STREAM or it.name.startswith("api.") or it.name == "audit.verify":
            continue  # Streams, the document of the API itself, and what waits ten seconds for rows under way.
        for body in ({"wait": 0}, {"reason": "no"}, None):
            answer = await api.send(it.method, re.sub(r"\{\w+\}", "1", it.path), body)
            statuses.add(answer.status)
            assert b"engine." not in answer.body, it.name
            assert answer.status < 400 or not OF_PYTHON.search(said(answer)), (it.name, said(answer))

    assert {400, 404, 422} <= statuses


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/schedules/x/backfill", {"start": "2019-01-02T00:00:00Z", "end": "2019-01-01T00:00:00Z"}),
        ("POST", "/bulk/cancel", {}),
        ("POST", "/bulk/pause", {}),
        ("GET", "/runs?after=zz", None),
        ("GET", "/approvals?after=zz", None),
        ("POST", "/runs", {"workflow": "advised", "key": "x"}),
        ("POST", "/runs", {"workflow": "advised", "delay": 5, "start_at": "2030-01-01T00:00:00Z"}),
        ("POST", "/runs", {"workflow": "advised", "tags": {"": "x"}}),
        ("POST", "/runs", {"workflow": "advised", "id": "taken", "on_conflict": "reject"}),
        ("POST", "/runs", {"workflow": "in_line", "priority": 3}),
        ("POST", "/runs/none/signals/go", {}),
        ("POST", "/schedules/x/trigger", {"overlap": "skip"}),
        ("PUT", "/schedules/x", {"workflow": "advised", "name": "y", "every": 60}),
        ("PUT", "/schedules/x", {"workflow": "advised", "cron": ["often"]}),
        ("PUT", "/schedules/x", {"workflow": "advised", "every": 60, "exclude": ["often"]}),
        ("PUT", "/schedules/x", {"workflow": "advised", "every": 60, "tz": "Mars/Phobos"}),
        ("PUT", "/schedules/x", {"workflow": "advised", "every": 60, "catch_up": -1}),
        ("POST", "/keys", {"name": "k", "scope": "worker", "workflows": ["advised"]}),
        ("POST", "/keys", {"name": "k", "scope": "worker", "tags": {"a": "b"}}),
        ("POST", "/keys", {"name": "k", "scope": "viewer", "queues": ["a"]}),
        ("GET", "/approvals?waiting_for=x", None),
        ("PUT", "/queues/x", {"rate": [{"kind": "window", "amount": 5}]}),
        ("PUT", "/sinks/x", {"url": "https://crm.example/hooks", "types": ["*.a"]}),
        ("PUT", "/sinks/x", {"url": "https://a:b@crm.example/hooks"}),
        ("PUT", "/sinks/x", {"url": "https://crm.example/hooks", "secret": "no name"}),
    ],
    ids=str,
)
async def test_a_refusal_has_the_values_of_json(
    engine: TestEngine, method: str, path: str, body: dict[str, Any] | None
) -> None:
    """An argument that cannot work is named with its field, its value as JSON, and an example as JSON."""
    await engine.start(advised, id="taken")
    await engine.schedules.set("x", outlive.every(minutes=5), advised)
    await engine.schedules.trigger("x")
    answer = await Caller(Api(engine)).send(method, f"/api/v1{path}", body)

    assert answer.status in (404, 409, 413, 422), answer.body
    assert not OF_PYTHON.search(said(answer)), said(answer)


def said(answer: Answer) -> str:
    """The sentences of a problem."""
    return f"{answer.data['detail']} {answer.data['next']}"


def test_every_request_that_is_advised_is_an_operation() -> None:
    """A request that is advised is an operation of the API, with as many names in its path."""
    known = {f"{it.method} {_unnamed(it.path)}" for it in OPERATIONS.values()}

    assert {_unnamed(request) for request in REQUESTS.values()} <= known


def _unnamed(path: str) -> str:
    return "/".join("{}" if part.startswith("{") else part for part in path.split("/"))


@pytest.mark.parametrize("kind", REQUESTS, ids=str)
def test_advice_in_python_is_a_call_that_the_engine_takes(kind: tuple[str, str]) -> None:
    """Each verb that is advised has the arguments that are advised with it."""
    several: dict[str, dict[str, Any]] = {
        "ask": {"run_id": "a", "name": "b", "key": "c"},
        "asks.answer": {"run_id": "a", "name": "b", "key": "c"},
        "queues.set": {"queue": "a", "concurrency": 5},
    }
    arguments = several.get(kind[0], {kind[1]: "a"} if kind[1] else {})
    called: list[str] = []
    exec(f"answer = {Advice(kind[0], arguments)}", {"engine": _Asked("", AnyEngine, called)})

    assert called[-1] == kind[0].rpartition(".")[2]


class _Asked:
    """Stands for an engine, or a namespace or a handle of it; takes what that takes."""

    def __init__(self, name: str, kind: Any, called: list[str]) -> None:
        self._name, self._kind, self._called = name, kind, called

    def __getattr__(self, name: str) -> _Asked:
        found = inspect.getattr_static(self._kind, name)
        is_verb = inspect.isfunction(found)
        return _Asked(name, found if is_verb else _class_of(get_type_hints(found.fget)), self._called)

    def __call__(self, *args: Any, **options: Any) -> _Asked:
        inspect.signature(self._kind).bind(None, *args, **options)
        self._called.append(self._name)
        return _Asked(self._name, _class_of(get_type_hints(self._kind)), self._called)


def _class_of(hints: dict[str, Any]) -> Any:
    return get_origin(hints["return"]) or hints["return"]


def test_why_is_stored_as_text() -> None:
    """A step may return what `why` has said, with or without an annotation."""
    why = Why("it is paused", Advice("resume", {"run_id": "order-7"}, "lets it go on"))
    text = "it is paused; engine.resume('order-7') lets it go on"

    assert [codec.decode(codec.encode(why, "it"), "it") for codec in (TAGGED, codec_for(str))] == [text, text]


def test_requests_are_written_with_the_names_of_what_they_are_about() -> None:
    """Names are encoded as a path needs it; advice without an operation is left out."""
    advice = [
        Advice("queues.resume", {"queue": "a/b"}, "lets it go on"),
        Advice("quotas.set", {"namespace": "a"}),
        Advice("list", effect="shows all"),
    ]

    assert as_requests(advice) == "POST /api/v1/queues/a%2Fb/resume lets it go on; GET /api/v1/runs shows all."
    assert as_requests([Advice("quotas.set", {"namespace": "a"})]) == ""


@outlive.workflow
async def advised() -> None:
    """Waits for a signal."""
    await outlive.wait_for_signal("go")


@outlive.workflow(queue="advised-line")
async def in_line() -> None:
    """Waits for its turn in a queue without priorities."""


async def test_why_over_http_says_what_to_request(engine: TestEngine) -> None:
    """The reason of a run comes without calls of Python; what helps is data, and a request."""
    api = Caller(Api(engine))
    await engine.start(advised, id="run-1")
    for paused, path in (
        ({"run_id": "run-1"}, "runs/run-1"),
        ({"workflow": "advised"}, "workflows/advised"),
        ({"all": True}, "store"),
    ):
        await engine.settle()
        await engine.pause(**paused)
        said, resume = f"POST /api/v1/{path}/resume lets it go on.", partial(engine.resume, **paused)
        answer = await api.get("/api/v1/runs/run-1/why")
        sentence = await engine.get("run-1").why()

        assert "engine." not in answer.body.decode()
        assert answer.data["next"] == said
        assert answer.data["why"] == sentence.summary
        assert answer.data["advice"] == [msgspec.to_builtins(it) for it in sentence.advice]
        assert str(sentence) == f"{sentence.summary}; {sentence.advice[0]}"
        await resume()
