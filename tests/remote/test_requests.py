"""What each verb of a connection asks the server for, and what it makes of the answers."""

from __future__ import annotations

import asyncio
import socket
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from http.client import HTTPConnection
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from msgspec.structs import replace

import outlive
from outlive._features.queues.remote import LOOK_SECONDS
from outlive._kernel.runtime.wakeup import Wakeup
from outlive.errors import (
    ConfigurationError,
    InvalidArgumentError,
    RunFailedError,
    RunParkedError,
    RunTimedOutError,
    ServerError,
)
from outlive.errors.outside import UnreachableError
from outlive.errors.run import AskTimeoutError
from outlive.http.problem import problem_of
from outlive.http.wire.runs import NotEnded, ResultView
from outlive.limits import Tolerance
from outlive.remote import Remote
from outlive.remote.connection import Connection
from outlive.remote.following import PAUSE_SECONDS, follow
from outlive.remote.requests import PAUSE_FIRST_SECONDS, Requests
from outlive.remote.transport import SHOWN_BYTES_MAX, Answer, Call, Listening, Transport
from outlive.types import BulkProgress
from tests.remote.test_remote import promise_parcel, served
from tests.remote.test_servers import drained


class Asked:
    """A connection whose server is the test: it has the answers, and notes the requests."""

    def __init__(self, *answers: Any) -> None:
        connection = Connection(Transport("http://127.0.0.1:9", key=None, timeout=30))
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self._answers = list(answers)
        connection.operate = self._operate  # type: ignore[method-assign, assignment]
        self.remote = Remote(connection)

    async def _operate(self, operation: str, **parts: Any) -> Any:
        self.requests.append((operation, parts))
        return self._answers.pop(0) if self._answers else None


def ended(run_id: str, result: Any = None) -> ResultView:
    """What a server says of a run that has succeeded."""
    return ResultView(run_id, "succeeded", result, None, "")


Verb = Callable[[Remote], Awaitable[Any]]


@pytest.mark.parametrize(
    ("verb", "operation", "parts"),
    [
        (lambda it: it.get("o").retry(reason="again"), "runs.retry", {"body": {"reason": "again"}, "run_id": "o"}),
        (lambda it: it.get("o").pause(reason="rain"), "runs.pause", {"body": {"reason": "rain"}, "run_id": "o"}),
        (lambda it: it.get("o").resume(), "runs.resume", {"body": None, "run_id": "o"}),
        (lambda it: it.get("o").cancel(reason="no"), "runs.cancel", {"body": {"reason": "no"}, "run_id": "o"}),
        (lambda it: it.get("o").skip_step(), "runs.skip_step", {"body": {}, "run_id": "o"}),
        (
            lambda it: it.get("o").skip_step("pay#1", result=None),
            "runs.skip_step",
            {"body": {"call": "pay#1", "result": None}, "run_id": "o"},
        ),
        (lambda it: it.batches.get("b").cancel(reason="no"), "runs.cancel", {"body": {"reason": "no"}, "run_id": "b"}),
        (lambda it: it.bulk.get("x").cancel(reason="no"), "runs.cancel", {"body": {"reason": "no"}, "run_id": "x"}),
        (lambda it: it.bulk.get("x").progress(), "bulk.progress", {"operation_id": "x"}),
        (lambda it: it.queues.reset("mail"), "queues.reset", {"name": "mail"}),
        (
            lambda it: it.queues.pause("mail", reason="rain"),
            "queues.pause",
            {"body": {"reason": "rain"}, "name": "mail"},
        ),
        (lambda it: it.queues.resume("mail"), "queues.resume", {"name": "mail"}),
        (lambda it: it.pause(queue="mail"), "queues.pause", {"body": {}, "name": "mail"}),
        (lambda it: it.pause("a", by="ann"), "runs.pause", {"body": {"by": "ann"}, "run_id": "a"}),
        (lambda it: it.resume(workflow="order"), "workflows.resume", {"body": None, "name": "order"}),
        (lambda it: it.resume(all=True), "store.resume", {"body": None}),
        (lambda it: it.schedules.resume("digest"), "schedules.resume", {"name": "digest"}),
    ],
)
async def test_verb_sends_one_request(verb: Verb, operation: str, parts: dict[str, Any]) -> None:
    """With what the caller gave, and nothing else."""
    asked = Asked()
    await verb(asked.remote)
    assert [(operation, parts)] == asked.requests


async def test_runs_of_a_deleted_flow_are_purged_in_several_requests() -> None:
    """A flow that is deleted with its runs has these purged a thousand at a time until none is left."""
    asked = Asked(None, SimpleNamespace(deleted=1000), SimpleNamespace(deleted=3), SimpleNamespace(deleted=0))
    await asked.remote.flows.delete("mail", runs=True, reason="old")
    kept = Asked()
    await kept.remote.flows.delete("mail")

    purge = ("bulk.purge", {"body": {"workflow": "mail", "older_than": 0, "limit": 1000}})
    assert asked.requests == [
        ("flows.delete", {"query": {"force": False, "reason": "old", "expected": None}, "name": "mail"}),
        *[purge] * 3,
    ]
    assert ["flows.delete"] == [name for name, _ in kept.requests]


async def test_drained_queue_is_paused_and_looked_at_until_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not more often than some times a second."""
    pauses: list[float] = []

    async def sleep(_: Wakeup, seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(Wakeup, "sleep", sleep)
    asked = Asked(None, SimpleNamespace(running=2), SimpleNamespace(running=1), SimpleNamespace(running=0))
    await asked.remote.queues.drain("mail")

    look = ("queues.stats", {"name": "mail"})
    assert asked.requests == [("queues.pause", {"body": {"reason": "draining"}, "name": "mail"}), *[look] * 3]
    assert pauses == [LOOK_SECONDS] * 2


async def test_bulk_operation_is_waited_for_and_says_how_far_it_came() -> None:
    """Purging is an operation of its own, as other people may do it."""
    asked = Asked(
        SimpleNamespace(id="x"),
        SimpleNamespace(id="y"),
        ended("x"),
        progress := cast(BulkProgress, SimpleNamespace(done=1)),
    )
    operation = await asked.remote.bulk.start("cancel", workflow="order", reason="sold out", id="x")
    await asked.remote.bulk.start("purge", workflow="order", older_than=86_400)

    assert await operation.result(timeout=1) is progress
    assert asked.requests[:2] == [
        ("bulk.start", {"body": {"workflow": "order", "id": "x", "reason": "sold out", "verb": "cancel"}}),
        ("bulk.start_purge", {"body": {"workflow": "order", "older_than": 86400.0}}),
    ]
    assert ["runs.result", "bulk.progress"] == [name for name, _ in asked.requests[2:]]


async def test_result_of_a_run_that_is_parked_is_not_waited_for() -> None:
    """It is if the run is only paused, which is a matter of time."""
    parked = NotEnded("o", "parked", "the code has changed")
    stopped = Asked(parked, SimpleNamespace(is_stopped=True))
    paused = Asked(parked, SimpleNamespace(is_stopped=False), ended("o", 7))

    with pytest.raises(RunParkedError, match="the code has changed"):
        await stopped.remote.get("o").result()
    assert await paused.remote.get("o").result() == 7


async def test_end_without_a_result_is_raised() -> None:
    """The end of a run without a result is raised, even if this release does not know its status."""
    late, continued = [replace(ended("o"), status=status, reason="1 h") for status in ("timed_out", "continued")]

    with pytest.raises(RunTimedOutError, match="1 h"):
        await Asked(late).remote.get("o").result()
    with pytest.raises(RunFailedError, match="ended as continued"):
        await Asked(continued).remote.get("o").result()


async def test_check_of_the_audit_log_is_that_of_the_server() -> None:
    """It has its own key: none is sent to it."""
    async with outlive.Engine("memory:", worker=False) as engine, served(engine) as url, outlive.connect(url) as remote:
        await remote.queues.set("mail", concurrency=7)

        assert await remote.audit.verify() == await engine.audit.verify()
        assert (await remote.audit.verify()).is_whole
        with pytest.raises(InvalidArgumentError, match="sent to no server"):
            await remote.audit.verify(key=b"k" * 32)


@outlive.step
async def give_back_parcel(parcel: str) -> None:
    """Cannot."""
    raise ValueError(f"{parcel} is gone")


@outlive.step(undo=give_back_parcel)
async def take_parcel() -> str:
    """It cannot be given back."""
    return "parcel"


@outlive.workflow
async def lose_parcel() -> None:
    """Fails after a signal, and its undo does too."""
    async with outlive.saga():
        await take_parcel()
        await outlive.wait_for_signal("go")
        raise ValueError("no truck")


async def test_events_of_a_run_are_followed_as_they_come() -> None:
    """Existing events come first. Then each event comes as it happens, also that the run is parked."""
    seen: list[Any] = []
    async with outlive.Engine("memory:") as engine, served(engine) as url, outlive.connect(url) as remote:
        run = await remote.start(lose_parcel)
        events = run.follow()
        seen.append(await anext(events))
        await run.pause()
        while seen[-1].type != "RunParked":
            seen.append(await anext(events))
        await run.resume()
        await run.signal("go")
        with pytest.raises(RunParkedError, match="give_back_parcel"):
            await drained(events, seen)

        assert seen == await run.history()
        assert [event.type for event in seen].count("RunParked") == 2


async def test_answer_that_does_not_come_in_time_is_asked_for_later() -> None:
    """The ask goes on; how long a caller waits is its own matter."""
    async with outlive.Engine("memory:") as engine, served(engine) as url, outlive.connect(url) as remote:
        run = await remote.start(promise_parcel)
        with pytest.raises(AskTimeoutError, match="price"):
            await run.ask("price", 1, key="k", timeout=0.01)
        with pytest.raises(AskTimeoutError, match="price"):
            await run.answer("price", "k", timeout=0)


async def test_open_connection_is_not_opened_again() -> None:
    """Its requests would be on threads that the first one ends."""
    async with outlive.connect("http://127.0.0.1:9") as remote:
        with pytest.raises(ConfigurationError, match="open already"):
            await remote.__aenter__()


async def test_request_without_an_answer_is_sent_again_after_growing_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pause is twice the one before it, and at least as long as the server wants; a busy server is not flooded."""
    pauses: list[float] = []

    async def sleep(self: Wakeup, seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(Wakeup, "sleep", sleep)
    answers: list[Answer | OSError] = [
        ConnectionRefusedError(),
        Answer(503, b""),
        Answer(503, b"", wait=1.5),
        ConnectionResetError(),
        Answer(200, b"{}"),
    ]

    def send(**_: object) -> Answer:
        found = answers.pop(0)
        if isinstance(found, OSError):
            raise found
        return found

    requests = Requests(Transport("http://127.0.0.1:9", key=None, timeout=30))
    requests.open()
    try:
        assert (await requests.answer(send, 30, may_change=False)).status == 200
    finally:
        requests.close()
    assert pauses == [PAUSE_FIRST_SECONDS * factor for factor in (1, 2)] + [1.5, PAUSE_FIRST_SECONDS * 8]


def listened(head: bytes, body: bytes) -> Listening:
    """A stream that a server answers like this."""
    ours, theirs = socket.socketpair()
    connection = HTTPConnection("127.0.0.1")
    connection.sock = ours
    connection.request("GET", "/")
    theirs.sendall(b"HTTP/1.1 " + head + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    theirs.close()
    try:
        return Listening(connection, Call())
    finally:
        connection.close()


@pytest.mark.parametrize("status", [400, 404, 503])
def test_refusal_of_a_stream_is_read_to_its_end(status: int) -> None:
    """A problem that was cut could not be decoded, and its caller would not know why."""
    problem = b'{"detail": "%s"}' % (b"x" * 5_000)

    answer = listened(b"%d No\r\nContent-Type: application/problem+json" % status, problem).answer
    assert (answer.status, answer.body) == (status, problem)


@pytest.mark.parametrize("status", [200, 307])
def test_page_in_the_place_of_a_stream_is_read_as_far_as_it_is_shown(status: int) -> None:
    """A proxy may answer with a page of any size."""
    answer = listened(b"%d Page\r\nContent-Type: text/html" % status, b"p" * 5_000).answer

    assert answer.body == b"p" * SHOWN_BYTES_MAX


async def test_items_of_a_batch_come_once_in_whatever_order_they_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that breaks is followed again, and sends items that were seen before."""

    async def follow(*_: object, **__: object) -> AsyncIterator[SimpleNamespace]:
        for index in (1, 0, 1, 0, 4, 2, 4, 3, 2, 5):
            yield SimpleNamespace(
                name="item", data={"index": index, "status": "succeeded", "result": index, "error": None}
            )

    monkeypatch.setattr(Connection, "follow", follow)
    asked = Asked(ended("b"))

    assert [item.index async for item in asked.remote.batches.get("b").items()] == [1, 0, 4, 2, 3, 5]


async def test_tolerance_of_a_batch_is_sent_with_it() -> None:
    """A number of failures, a share of all, or both; nothing else of the options is sent with them."""
    asked = Asked(SimpleNamespace(id="b"))
    await asked.remote.start_batch("order", [1], tolerate=Tolerance(failures=2, ratio=0.5))

    ((operation, parts),) = asked.requests
    assert (operation, parts["body"]) == (
        "batches.start",
        {"workflow": "order", "rows": [1], "failures_max": 2, "failures_ratio": 0.5},
    )


async def test_request_is_given_up_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pause that is as long as what is left is not made: the answer that came last is given, or the reason why there
    is none."""
    sends: list[float] = []

    async def sleep(_: Wakeup, seconds: float) -> None:
        pass

    monkeypatch.setattr(Wakeup, "sleep", sleep)
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: 100.0)

    def send(found: Answer | OSError) -> Callable[..., Answer]:
        def sent(*, timeout: float, call: Call) -> Answer:
            sends.append(timeout)
            if isinstance(found, OSError):
                raise found
            return found

        return sent

    requests = Requests(Transport("http://127.0.0.1:9", key=None, timeout=30))
    requests.open()
    try:
        busy = await requests.answer(send(Answer(503, b"", wait=0.1)), 0.05, may_change=False)
        assert (busy.status, sends) == (503, [0.1])
        with pytest.raises(UnreachableError, match="gave no answer: ConnectionResetError"):
            await requests.answer(send(ConnectionResetError()), 0.05, may_change=True)
    finally:
        requests.close()
    assert sends == [0.1] * 3  # The first pause is shorter than what is left, the second is as long.


async def test_request_that_was_answered_is_forgotten() -> None:
    """A connection that lives for weeks keeps nothing of the requests that it has sent. One that sent none can be
    closed too."""
    sent: list[weakref.ref[Call]] = []

    def send(*, timeout: float, call: Call) -> Answer:
        sent.append(weakref.ref(call))
        return Answer(200, b"")

    requests = Requests(Transport("http://127.0.0.1:9", key=None, timeout=30))
    requests.close()
    requests.open()
    await requests.answer(send, 30, may_change=False)

    assert sent[0]() is None
    requests.close()


async def test_stream_that_is_refused_for_now_is_asked_for_until_the_time_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The pause is as long as the server wants, until it would end behind the time that the caller gives."""
    pauses: list[float] = []

    async def sleep(_: Wakeup, seconds: float) -> None:
        pauses.append(seconds)

    async def at_once(work: Callable[[], Any], _: Call) -> Any:
        return work()

    def listen(*_: object, **__: object) -> Any:
        answer = Answer(503, b"", wait=waits.pop(0))
        return SimpleNamespace(is_open=False, is_over=False, answer=answer, close=lambda: None)

    monkeypatch.setattr(Wakeup, "sleep", sleep)
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: 100.0)
    transport = Transport("http://127.0.0.1:9", key=None, timeout=30)
    transport.listen = listen  # type: ignore[method-assign]
    waits = [0.0, 7.0, 30.0, 30.5]

    with pytest.raises(ServerError, match="503"):
        await anext(follow(transport, "/follow", {}, in_thread=at_once))
    assert pauses == [PAUSE_SECONDS, 7.0, 30.0]


async def test_answer_with_a_refusal_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """From 400 on; what is below is the answer."""
    refused = problem_of(InvalidArgumentError("engine.list", "limit", 0, "give 1 to 1000"))
    answers = [Answer(400, msgspec.json.encode(refused.body)), Answer(200, b'{"items": [], "next": null}')]
    connection = Connection(Transport("http://127.0.0.1:9", key=None, timeout=30))
    monkeypatch.setattr(Transport, "send", lambda *_, **__: answers.pop(0))
    connection.open()
    try:
        with pytest.raises(InvalidArgumentError, match="give 1 to 1000"):
            await connection.operate("workers.list")
        assert await connection.operate("workers.list") is not None
    finally:
        connection.close()
