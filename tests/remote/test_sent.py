"""What a connection sends: every verb makes one request with exactly what its caller gave, and refuses what needs the
store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import msgspec
import pytest

import outlive
from outlive.errors import (
    ConfigurationError,
    InvalidArgumentError,
    ResultTimeoutError,
    RunFinishedError,
    UnserialisableError,
    WrongArgumentsError,
)
from outlive.errors.run import AskTimeoutError, SignalsRefusedError, StartsRefusedError
from outlive.http.problem import problem_of
from outlive.http.wire.runs import AnswerView, NotAnswered, NotEnded
from outlive.remote import Remote
from outlive.remote.connection import Connection
from outlive.remote.following import Message
from tests.remote.test_requests import Asked, ended

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
Verb = Callable[[Remote], Awaitable[Any]]


@outlive.workflow(version=3)
async def sent_order(id: int, *, gift: bool = False) -> str:
    """Has a version."""
    return str(id)


START = {"workflow": "sent_order", "arguments": [7], "version": 3}


@pytest.mark.parametrize(
    ("verb", "operation", "parts"),
    [
        (
            lambda it: it.start(
                "order", {"id": 1}, version=2, id="o", timeout="1m", delay=0, begin_within=5, queue="q"
            ),
            "runs.start",
            {
                "body": {
                    "workflow": "order",
                    "arguments": {"id": 1},
                    "version": 2,
                    "id": "o",
                    "timeout": 60.0,
                    "delay": 0.0,
                    "begin_within": 5.0,
                    "queue": "q",
                }
            },
        ),
        (lambda it: it.start("order"), "runs.start", {"body": {"workflow": "order"}}),
        (lambda it: it.start(sent_order, 7), "runs.start", {"body": START}),
        (
            lambda it: it.start(sent_order.bind(id=7, gift=True), queue=outlive.Queue("q", concurrency=1)),
            "runs.start",
            {"body": START | {"arguments": {"id": 7, "gift": True}, "queue": "q"}},
        ),
        (
            lambda it: it.start_batch("order", [1], version=2, queue=outlive.Queue("q", concurrency=1)),
            "batches.start",
            {"body": {"workflow": "order", "rows": [1], "version": 2, "queue": "q"}},
        ),
        (
            lambda it: it.start_batch(sent_order, (1, 2)),
            "batches.start",
            {"body": {"workflow": "sent_order", "rows": [1, 2], "version": 3}},
        ),
        (
            lambda it: it.signal("o", "go", {"a": 1}, key="k", start=(sent_order, 7), headers={"h": "1"}),
            "runs.signal",
            {
                "body": {"payload": {"a": 1}, "key": "k", "start": START | {"headers": {"h": "1"}}},
                "run_id": "o",
                "name": "go",
            },
        ),
        (lambda it: it.signal("o", "go"), "runs.signal", {"body": {}, "run_id": "o", "name": "go"}),
        (
            lambda it: it.signal("o", "go", start=("order", [1])),
            "runs.signal",
            {"body": {"start": {"workflow": "order", "arguments": [1]}}, "run_id": "o", "name": "go"},
        ),
        (
            lambda it: it.ask("o", "price", [1], key="k", timeout=3, start=("order",)),
            "runs.ask",
            {
                "body": {"body": [1], "key": "k", "wait": 3.0, "start": {"workflow": "order"}},
                "run_id": "o",
                "name": "price",
                "patience": 3.0,
            },
        ),
        (
            lambda it: it.ask("o", "price"),
            "runs.ask",
            {"body": {"wait": 20.0}, "run_id": "o", "name": "price", "patience": 20.0},
        ),
        (
            lambda it: it.asks.answer("o", "price", "k", timeout=0),
            "asks.answer",
            {"query": {"wait": 0}, "run_id": "o", "name": "price", "key": "k"},
        ),
        (
            lambda it: it.list(
                status=["failed", "parked"], tags={"team": "a", "x": "1"}, created_after=NOON, roots_only=True
            ),
            "runs.list",
            {
                "query": {
                    "status": ["failed", "parked"],
                    "tag": ["team=a", "x=1"],
                    "created_after": NOON.isoformat(),
                    "roots_only": "true",
                    "order": "-created_at",
                    "limit": 100,
                    "after": None,
                }
            },
        ),
        (
            lambda it: it.list(status="failed", order="created_at", limit=3, after="c"),
            "runs.list",
            {"query": {"status": ["failed"], "order": "created_at", "limit": 3, "after": "c"}},
        ),
        (lambda it: it.count(queue="q", limit=5), "runs.count", {"query": {"queue": "q", "limit": 5}}),
        (
            lambda it: it.cancel(workflow="order", status="failed", reason="no"),
            "bulk.cancel",
            {"body": {"workflow": "order", "status": ["failed"], "reason": "no"}},
        ),
        (
            lambda it: it.pause(workflow="order", status="failed", by="ann", reason="no"),
            "bulk.pause",
            {"body": {"workflow": "order", "status": ["failed"], "by": "ann", "reason": "no"}},
        ),
        (
            lambda it: it.resume(queue="q", workflow="order"),
            "bulk.resume",
            {"body": {"workflow": "order", "queue": "q"}},
        ),
        (
            lambda it: it.fork("o", at="pay#1", set={"pay": 1}, input=(7,), version=2, id="p", reason="again"),
            "runs.fork",
            {
                "body": {"at": "pay#1", "set": {"pay": 1}, "input": [7], "version": 2, "id": "p", "reason": "again"},
                "run_id": "o",
            },
        ),
        (lambda it: it.fork("o"), "runs.fork", {"body": {"reason": ""}, "run_id": "o"}),
        (lambda it: it.get("o").steps(), "runs.steps", {"query": {"arguments": False}, "run_id": "o"}),
        (lambda it: it.steps("o", arguments=True), "runs.steps", {"query": {"arguments": True}, "run_id": "o"}),
        (lambda it: it.list_stuck(), "runs.list_stuck", {"query": {"limit": 100, "before": None}}),
        (lambda it: it.list_stuck(limit=3, before="c"), "runs.list_stuck", {"query": {"limit": 3, "before": "c"}}),
        (
            lambda it: it.purge(older_than=timedelta(days=2), workflow="order"),
            "bulk.purge",
            {"body": {"workflow": "order", "older_than": 172_800.0}},
        ),
        (lambda it: it.workers.list(), "workers.list", {}),
        (lambda it: it.workflows.list(), "workflows.list", {}),
        (lambda it: it.dead_letters.list("o"), "dead_letters.list", {"run_id": "o"}),
        (lambda it: it.health(), "health.get", {}),
    ],
)
async def test_verb_sends_exactly_what_was_given(verb: Verb, operation: str, parts: dict[str, Any]) -> None:
    """Spans are seconds, queues are names, filters are what the address can carry, and what was not given is left to
    the server."""
    anything = SimpleNamespace(id="o", items=[], next=None, previous=None)
    asked = Asked(AnswerView("k", 1, None) if operation in ("runs.ask", "asks.answer") else anything)

    await verb(asked.remote)

    assert asked.requests == [(operation, parts)]


@pytest.mark.parametrize(
    ("verb", "name"),
    [
        (lambda it: it.start("order", connection=object()), "connection"),
        (lambda it: it.start_batch("order", [1], connection=object()), "connection"),
        (lambda it: it.signal("o", "go", connection=object()), "connection"),
        (lambda it: it.purge(archive="runs.jsonl"), "archive"),
    ],
    ids=["start", "batch", "signal", "purge"],
)
async def test_what_needs_the_store_is_refused_before_anything_is_sent(verb: Verb, name: str) -> None:
    """A transaction of the caller and a file of the machine are nothing to a server: the message says to leave them
    out."""
    asked = Asked()

    with pytest.raises(InvalidArgumentError, match="leave it out: it needs the store") as caught:
        await verb(asked.remote)

    assert caught.value.name == name
    assert asked.requests == []


async def test_arguments_that_do_not_fit_are_refused_before_they_are_sent() -> None:
    """A connection refuses them with the errors of an engine, where the workflow is in this program."""
    asked = Asked()

    with pytest.raises(UnserialisableError, match="give a value of type int"):
        await asked.remote.start(sent_order, "seven")  # type: ignore[arg-type]
    with pytest.raises(WrongArgumentsError, match="start"):
        await asked.remote.start(sent_order, 7, 8)  # type: ignore[arg-type, call-arg]
    with pytest.raises(InvalidArgumentError, match="it starts none"):
        await asked.remote.signal("o", "go", headers={"h": "1"})
    with pytest.raises(InvalidArgumentError, match="the workflow itself has one"):
        await asked.remote.start_batch(sent_order, [1], version=2)  # type: ignore[call-overload]
    with pytest.raises(InvalidArgumentError, match="give a run, a workflow, a queue, all, or filters"):
        await asked.remote.pause("o", workflow="order")
    with pytest.raises(ConfigurationError, match="nothing hidden"):
        await asked.remote.get("o").export("run.jsonl")

    assert asked.requests == []


async def test_many_starts_and_signals_are_one_request_each() -> None:
    """The errors of some are raised together, each at its place; nothing is sent for none."""
    refused = problem_of(InvalidArgumentError("engine.start", "id", 1, "give text")).body
    some = SimpleNamespace(items=[SimpleNamespace(id="a", problem=None), SimpleNamespace(id="b", problem=refused)])
    fine = SimpleNamespace(items=[SimpleNamespace(id="a", problem=None)])
    asked = Asked(fine, some, fine, some)

    assert await asked.remote.start_many([]) == []
    await asked.remote.signal_many([])
    (run,) = await asked.remote.start_many([(sent_order, 7)], queue="q")
    with pytest.raises(StartsRefusedError) as starts:
        await asked.remote.start_many([(sent_order, 7), ("order", [1])])
    await asked.remote.signal_many([("o", "go")])
    with pytest.raises(SignalsRefusedError) as signals:
        await asked.remote.signal_many([("o", "go"), ("p", "go", 1)])

    assert run.id == "a"
    assert [name for name, _ in asked.requests] == ["runs.start_many"] * 2 + ["runs.signal_many"] * 2
    assert asked.requests[0][1] == {"body": {"starts": [START | {"queue": "q"}]}}
    assert [*starts.value.refused] == [*signals.value.refused] == [1]


async def test_caller_that_does_not_wait_asks_once() -> None:
    """A time-out of nothing asks the server not to wait either; the error has the reason that the server gives."""
    late = Asked(NotEnded("o", "waiting", "waits for signal 'go'"))
    unanswered = Asked(*[NotAnswered("k", "is asleep")] * 2)

    with pytest.raises(ResultTimeoutError, match="waits for signal 'go'"):
        await late.remote.get("o").result(timeout=0)
    with pytest.raises(AskTimeoutError, match="is asleep"):
        await unanswered.remote.asks.answer("o", "price", "k", timeout=0)

    assert late.requests == [("runs.result", {"query": {"wait": 0.0}, "run_id": "o", "patience": 0.0})]
    assert len(unanswered.requests) == 1


async def test_caller_without_a_limit_asks_again_and_again() -> None:
    """Each time the server waits for twenty seconds before it says that there is nothing yet."""
    result = Asked(NotEnded("o", "waiting", "is asleep"), ended("o", 7))
    answer = Asked(NotAnswered("k", "is asleep"), NotAnswered("k", "is asleep"), AnswerView("k", 8, None))

    assert await result.remote.get("o").result() == 7
    assert await answer.remote.asks.answer("o", "price", "k") == 8

    assert result.requests == [("runs.result", {"query": {"wait": 20.0}, "run_id": "o", "patience": 20.0})] * 2
    assert [(parts["query"], parts.get("patience")) for _, parts in answer.requests] == [
        ({"wait": 0}, None),
        *[({"wait": 20.0}, 20.0)] * 2,
    ]


async def test_only_the_run_itself_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stream of a run says what becomes of its children too, and a child that has ended is not the run."""
    parent = Asked().remote.get("o")

    async def follow(self: Connection, operation: str, query: Any, **path: str) -> AsyncIterator[Message]:
        assert (operation, query, path) == ("runs.follow", {"after": ""}, {"run_id": "o"})
        for run_id, status in (("o.child", "succeeded"), ("o", "waiting"), ("o.child", "failed"), ("o", "failed")):
            yield Message("run", msgspec.to_builtins(msgspec.structs.replace(row, id=run_id, status=status)), "")

    async with outlive.Engine("memory:", worker=False) as engine:
        row = await (await engine.start(sent_order, 7)).info()
    monkeypatch.setattr(Connection, "follow", follow)
    monkeypatch.setattr(type(parent), "info", AsyncMock(return_value=msgspec.structs.replace(row, id="o")))

    assert (await parent.until("waiting", timeout=30)).id == "o"
    with pytest.raises(RunFinishedError, match="and will not be succeeded"):
        await parent.until("succeeded", timeout=30)
    with pytest.raises(InvalidArgumentError, match="after"):
        await anext(parent.follow(after=-2))


async def test_pages_of_a_history_are_asked_for_one_after_the_other() -> None:
    """From before the first event until there is no next page."""
    asked = Asked(SimpleNamespace(items=["a"], next=4), SimpleNamespace(items=["b"], next=None))

    assert [str(it) for it in await asked.remote.get("o").history()] == ["a", "b"]
    assert [parts["query"] for _, parts in asked.requests] == [{"after": -1}, {"after": 4}]
